//! Saved content of a target, and its restore.
//!
//! The content is saved before the first write, in memory or in a file (`format`), and written back and compared
//! afterwards. A file is whole and on its disk before that first write, so that after `kill -9` or a power cut the
//! content can still be restored from it ([`Saved::open`]); what is in memory is lost then. A file's holes are punched
//! again before anything else: a sparse file that is larger than the free space cannot be restored without that. A
//! fully allocated file (`fallocate`) stays allocated; in a partly allocated file, ranges that were never written are
//! holes afterwards. Ranges that were unmapped on the card (trimmed) hold zeros afterwards.

mod chunk;
mod copy;
mod format;
mod identity;
mod rescue;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use emmc_port::{BlockTarget, TargetError, TargetKind, TargetShape};
use emmc_workload::{Progress, Unwatched, Watch};
use rustix::fs::{FallocateFlags, fallocate};

use super::ranges::{with_content, without_content};
use super::{BlockIo, data};
use chunk::{CHUNK_BYTES, Chunk, checksum, chunks, parts, total};
use copy::{Copy, NewFile};
use format::Header;
use identity::Identity;

/// Most lost parts that are listed.
const LOST_MAX: usize = 16;

/// What the caller does while content is saved and restored.
pub trait Keeper {
    /// Shows progress; stops the saving if it returns false.
    fn watch(&mut self) -> &mut dyn Watch;

    /// Content that could not be restored is only in memory, because no place takes it: `why`. Waits, and returns
    /// whether to try again; else it is lost.
    fn wait(&mut self, why: &str) -> bool;
}

/// Nobody waits.
impl Keeper for Unwatched {
    fn watch(&mut self) -> &mut dyn Watch {
        self
    }

    fn wait(&mut self, _: &str) -> bool {
        false
    }
}

/// Saved content of a range.
pub struct Saved {
    /// What a file of it says: target and range.
    header: Header,
    chunks: Vec<Chunk>,
    copy: Copy,
}

/// Parts that could not be restored, and why.
#[derive(Default)]
struct Lost(Vec<([u64; 2], String)>);

impl Saved {
    /// The bytes to save in a range, without holes of a file. Unit: bytes.
    ///
    /// Errors: the kernel's.
    pub fn bytes_of(target: &BlockIo, from_bytes: u64, to_bytes: u64) -> Result<u64, TargetError> {
        Ok(total(&chunks(&ranges(target, from_bytes, to_bytes)?)))
    }

    /// The amount that is saved, and written by the restore. Unit: bytes.
    pub fn size_bytes(&self) -> u64 {
        total(&self.chunks)
    }

    /// The range. Unit: bytes.
    pub fn range(&self) -> [u64; 2] {
        [self.header.from_bytes, self.header.to_bytes]
    }

    /// The target as it was named when this was saved.
    pub fn target(&self) -> &str {
        &self.header.target
    }

    /// Saves a range of a target in memory, or in a new file, which is complete and synced then; it is removed if that
    /// fails.
    ///
    /// Errors: a part cannot be read; not enough memory or space; the file exists already; cancelled.
    pub fn take(
        target: &BlockIo,
        [from_bytes, to_bytes]: [u64; 2],
        file: Option<&Path>,
        watch: &mut dyn Watch,
    ) -> Result<Self, TargetError> {
        let failed = |what: &str, error: io::Error| saving(target, what, &error);
        let chunks = chunks(&ranges(target, from_bytes, to_bytes)?);
        let copy = match file {
            None => Copy::memory(total(&chunks)).map_err(|error| failed("", error))?,
            Some(path) => {
                Copy::File(NewFile::create(path).map_err(|error| failed(&format!("{}: ", path.display()), error))?)
            }
        };
        let found = target.file().metadata().map_err(|error| failed("", error))?;
        let header = Header {
            target: target.shape().name.clone(),
            from_bytes,
            to_bytes,
            is_allocated: found.blocks().saturating_mul(512) >= found.len(),
            identity: Identity::of(target).map_err(|error| failed("", error))?,
            chunks: 0,
            table_checksum: 0,
        };
        let mut saved = Self { header, chunks, copy };
        match saved.read(target, watch).and_then(|()| saved.complete(target)) {
            Ok(()) => Ok(saved),
            Err(error) => {
                saved.forget();
                Err(error)
            }
        }
    }

    /// Content that an earlier process saved in a file, for a restore; the file stays. All of it is read and compared
    /// with its checksums.
    ///
    /// Errors: it is partial, damaged or something else.
    pub fn open(path: &Path, watch: &mut dyn Watch) -> Result<Self, TargetError> {
        let failed = |reason: String| TargetError::Failed { name: path.display().to_string(), reason };
        let (copy, header, chunks) = Copy::open(path).map_err(failed)?;
        let saved = Self { header, chunks, copy };
        let mut memory = data::zeros(CHUNK_BYTES as usize).map_err(|error| failed(error.to_string()))?;
        for (chunk, packed) in saved.chunks() {
            let read = saved.get(&chunk, packed, &mut memory[..chunk.length as usize]);
            read.map_err(|error| failed(format!("bytes {} to {}: {error}", chunk.at, chunk.end())))?;
            if !watch.progress(progress("checking the saved content", 1, packed, saved.size_bytes())) {
                return Err(failed("stopped".into()));
            }
        }
        Ok(saved)
    }

    /// Why it must not be restored to this target: by which mark another one, a sentence; nothing if it was saved from
    /// this one.
    ///
    /// Errors: the kernel's.
    pub fn mismatch(&self, target: &BlockIo) -> Result<Option<String>, TargetError> {
        let shape = target.shape();
        let failed = |error: io::Error| TargetError::Failed { name: shape.name.clone(), reason: error.to_string() };
        let now = Identity::of(target).map_err(failed)?;
        let file = self.copy.path().map_or("the saved content".into(), |path| path.display().to_string());
        if let Some([mark, then, now]) = self.header.identity.differs(&now) {
            let from = &self.header.target;
            return Ok(Some(format!("{file} was saved from another target, {from}: {mark} {then}, here {now}")));
        }
        let [from, to] = self.range();
        let is_aligned = |chunk: &Chunk| chunk.at % sector(shape) == 0 && u64::from(chunk.length) % sector(shape) == 0;
        let fits = to <= shape.size_bytes && self.chunks.iter().all(is_aligned);
        Ok((!fits).then(|| format!("{file} has bytes {from} to {to}, which are no sectors of this target")))
    }

    fn chunks(&self) -> impl Iterator<Item = (Chunk, usize)> + use<> {
        self.chunks.clone().into_iter().scan(0, |packed, chunk| {
            let at = *packed;
            *packed += chunk.length as usize;
            Some((chunk, at))
        })
    }

    fn get(&self, chunk: &Chunk, packed: usize, into: &mut [u8]) -> io::Result<()> {
        self.copy.get(chunk.at - self.header.from_bytes, packed, chunk, into)
    }

    fn read(&mut self, target: &BlockIo, watch: &mut dyn Watch) -> Result<(), TargetError> {
        let failed = |what: &str, error: io::Error| saving(target, what, &error);
        let bytes = self.size_bytes();
        let mut memory = data::zeros(CHUNK_BYTES as usize).map_err(|error| failed("", error))?;
        for (index, (chunk, packed)) in self.chunks().enumerate() {
            let part = &mut memory[..chunk.length as usize];
            target
                .file()
                .read_exact_at(part, chunk.at)
                .map_err(|error| failed(&format!("byte {}: ", chunk.at), error))?;
            self.chunks[index].checksum = checksum(part);
            let put = self.copy.put(chunk.at - self.header.from_bytes, packed, part);
            put.map_err(|error| failed(&self.copy.told(), error))?;
            if !watch.progress(progress("saving the content", 1, packed, bytes)) {
                return Err(failed("", io::Error::other("stopped")));
            }
        }
        Ok(())
    }

    fn complete(&mut self, target: &BlockIo) -> Result<(), TargetError> {
        let Copy::File(file) = &mut self.copy else { return Ok(()) };
        let done = file.complete(self.header.clone(), &self.chunks);
        done.map_err(|error| saving(target, &self.copy.told(), &error))
    }

    /// Punches the holes again, writes the content back, compares, and then removes the file that was created for it.
    ///
    /// Continues after errors, and cannot be cancelled. On errors, content in memory is written to a file. Errors:
    /// every part that could not be restored or differs, and where its content is.
    pub fn put_back(self, target: &BlockIo, keeper: &mut dyn Keeper) -> Result<(), TargetError> {
        let failed = |what: String| TargetError::Failed {
            name: target.shape().name.clone(),
            reason: format!("restoring its content: {what}"),
        };
        let memory = || data::zeros(CHUNK_BYTES as usize).map_err(|error| failed(error.to_string()));
        let (mut memory, mut again) = (memory()?, memory()?);
        let (mut lost, mut unwritten) = (Lost::default(), BTreeMap::new());
        let bytes = self.size_bytes();
        self.punch(target, &memory, &mut lost);
        let file = target.file();
        for (chunk, packed) in self.chunks() {
            let part = &mut memory[..chunk.length as usize];
            let written = self.get(&chunk, packed, part).and_then(|()| file.write_all_at(part, chunk.at));
            if let Err(error) = written {
                unwritten.insert(chunk.at, error);
            }
            keeper.watch().progress(progress("restoring the content", 1, packed, bytes));
        }
        lost.note(self.range(), file.sync_all());
        for (chunk, packed) in self.chunks() {
            let length = chunk.length as usize;
            let (part, found) = (&mut memory[..length], &mut again[..length]);
            let same =
                self.get(&chunk, packed, part).and_then(|()| file.read_exact_at(found, chunk.at)).and_then(|()| {
                    match unwritten.remove(&chunk.at) {
                        // A part that cannot be written was perhaps never overwritten either (`ulimit -f`).
                        _ if part == found => Ok(()),
                        Some(error) => Err(error),
                        None => Err(io::Error::other("reads back differently")),
                    }
                });
            lost.note([chunk.at, chunk.end()], same);
            keeper.watch().progress(progress("comparing the restored content", 2, packed, bytes));
        }
        if !lost.0.is_empty() {
            let what = lost.told();
            return Err(failed(format!("{what}; {}", self.rescue(&what, keeper))));
        }
        match &self.copy {
            Copy::File(file) => file
                .remove()
                .map_err(|error| failed(format!("everything is restored, but {}: {error}", file.path().display()))),
            Copy::Memory(_) | Copy::Opened(..) => Ok(()),
        }
    }

    /// Forgets the content: nothing of the target was overwritten.
    pub fn forget(self) {
        if let Copy::File(file) = &self.copy {
            // The file was created here, and all its content is still on the target.
            let _ = file.remove();
        }
    }

    /// Holes become holes again; if the filesystem cannot do that they become zeros.
    fn punch(&self, target: &BlockIo, zeros: &[u8], lost: &mut Lost) {
        let Header { is_allocated, from_bytes, to_bytes, .. } = self.header;
        let kind = if is_allocated { FallocateFlags::ZERO_RANGE } else { FallocateFlags::PUNCH_HOLE };
        let flags = kind | FallocateFlags::KEEP_SIZE;
        for [from, to] in without_content(&parts(&self.chunks), from_bytes, to_bytes) {
            if fallocate(target.file(), flags, from, to - from).is_ok() {
                continue;
            }
            for at in (from..to).step_by(CHUNK_BYTES as usize) {
                let length = CHUNK_BYTES.min(to - at);
                lost.note([at, at + length], target.file().write_all_at(&zeros[..length as usize], at));
            }
        }
    }
}

impl Lost {
    fn note(&mut self, range: [u64; 2], result: io::Result<()>) {
        let Err(error) = result else { return };
        let error = error.to_string();
        let is_in = |known: &[u64; 2]| known[0] <= range[0] && range[1] <= known[1];
        if self.0.iter().any(|(known, _)| is_in(known)) {
            return;
        }
        match self.0.last_mut().filter(|(last, why)| last[1] == range[0] && *why == error) {
            Some((last, _)) => last[1] = range[1],
            None => self.0.push((range, error)),
        }
    }

    fn told(&self) -> String {
        let parts = self.0.iter().take(LOST_MAX).map(|([from, to], why)| format!("bytes {from} to {to}: {why}"));
        let more = self.0.len().saturating_sub(LOST_MAX);
        let more = (more > 0).then(|| format!("and {more} more"));
        parts.chain(more).collect::<Vec<_>>().join("; ")
    }
}

/// Saving is one step, restoring two.
fn progress(step: &str, number: u32, done: usize, bytes: u64) -> Progress<'_> {
    let steps = if step.starts_with("restoring") || step.starts_with("comparing") { 2 } else { 1 };
    Progress { step, number, steps, done_share: done as f64 / bytes.max(1) as f64, whole: None, now: None }
}

fn sector(shape: &TargetShape) -> u64 {
    u64::from(shape.sector_bytes).max(1)
}

fn ranges(target: &BlockIo, from_bytes: u64, to_bytes: u64) -> Result<Vec<[u64; 2]>, TargetError> {
    if target.shape().kind == TargetKind::Device {
        return Ok(vec![[from_bytes, to_bytes]]);
    }
    with_content(target.file(), from_bytes, to_bytes).map_err(|error| saving(target, "", &error))
}

fn saving(target: &BlockIo, what: &str, error: &io::Error) -> TargetError {
    TargetError::Failed { name: target.shape().name.clone(), reason: format!("saving its content: {what}{error}") }
}
