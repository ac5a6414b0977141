//! Restores what a bench has overwritten.
//!
//! The content is saved before the first write, in memory or in a file, and written back and compared afterwards. A
//! file's holes are punched again before anything else: a sparse file that is larger than the free space cannot be
//! restored without that. A fully allocated file (`fallocate`) stays allocated; in a partly allocated file, ranges that
//! were never written are holes afterwards. Ranges that were unmapped on the card (trimmed) hold zeros afterwards. A
//! process that is killed (`kill -9`, power) restores nothing; from a file the content can still be written back by
//! hand.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use emmc_port::{BlockTarget, TargetError, TargetKind};
use emmc_workload::{Progress, Watch};
use memmap2::MmapMut;
use rustix::fs::{FallocateFlags, fallocate};

use super::ranges::{with_content, without_content};
use super::{BlockIo, data};

/// Size of one read or write. Unit: bytes.
const CHUNK_BYTES: u64 = 1 << 20;
/// Most lost parts that are listed.
const LOST_MAX: usize = 16;

/// Saved content of a range.
pub struct Saved {
    from_bytes: u64,
    to_bytes: u64,
    /// The allocated parts.
    parts: Vec<[u64; 2]>,
    /// Holes of the range were allocated too.
    is_allocated: bool,
    kept: Kept,
}

enum Kept {
    /// The parts, concatenated.
    Memory(MmapMut),
    /// The parts, each at its offset in the range.
    File(File, PathBuf),
}

/// Parts that could not be restored, and why.
#[derive(Default)]
struct Lost(Vec<([u64; 2], String)>);

impl Saved {
    /// The bytes to save in a range, without holes of a file. Unit: bytes.
    ///
    /// Errors: the kernel's.
    pub fn bytes_of(target: &BlockIo, from_bytes: u64, to_bytes: u64) -> Result<u64, TargetError> {
        let parts = parts(target, from_bytes, to_bytes)?;
        Ok(total(&parts))
    }

    /// The amount that is saved, and written by the restore. Unit: bytes.
    pub fn size_bytes(&self) -> u64 {
        total(&self.parts)
    }

    /// Saves a range of a target in memory, or in a new file, which is removed if that fails.
    ///
    /// Errors: a part cannot be read; not enough memory or space; the file exists already; cancelled.
    pub fn take(
        target: &BlockIo,
        [from_bytes, to_bytes]: [u64; 2],
        file: Option<&Path>,
        watch: &mut dyn Watch,
    ) -> Result<Self, TargetError> {
        let failed = |what: &str, error: io::Error| saving(target, what, &error);
        let parts = parts(target, from_bytes, to_bytes)?;
        let bytes = total(&parts);
        let kept = match file {
            None => Kept::Memory(data::zeros(bytes as usize).map_err(|error| failed("", error))?),
            Some(path) => Kept::File(
                new_file(path).map_err(|error| failed(&format!("{}: ", path.display()), error))?,
                path.to_owned(),
            ),
        };
        let found = target.file().metadata().map_err(|error| failed("", error))?;
        let is_allocated = found.blocks().saturating_mul(512) >= found.len();
        let mut saved = Self { from_bytes, to_bytes, parts, is_allocated, kept };
        if let Err(error) = saved.read(target, watch) {
            saved.forget();
            return Err(error);
        }
        Ok(saved)
    }

    fn read(&mut self, target: &BlockIo, watch: &mut dyn Watch) -> Result<(), TargetError> {
        let failed = |what: &str, error: io::Error| saving(target, what, &error);
        let bytes = total(&self.parts);
        let mut chunk = data::zeros(CHUNK_BYTES as usize).map_err(|error| failed("", error))?;
        for Chunk { at, length, packed } in chunks(&self.parts) {
            let part = &mut chunk[..length];
            target.file().read_exact_at(part, at).map_err(|error| failed(&format!("byte {at}: "), error))?;
            let put = self.kept.put(at - self.from_bytes, packed, part);
            put.map_err(|error| failed(&self.kept.told(), error))?;
            if !watch.progress(progress("saving the content", 1, packed, bytes)) {
                return Err(failed("", io::Error::other("stopped")));
            }
        }
        match &self.kept {
            Kept::File(file, _) => file.sync_all().map_err(|error| failed(&self.kept.told(), error)),
            Kept::Memory(_) => Ok(()),
        }
    }

    /// Punches the holes again, writes the content back, compares, and then removes the file.
    ///
    /// Continues after errors, and cannot be cancelled. On errors, content in memory is written to a file. Errors:
    /// every part that could not be restored or differs, and where its content is.
    pub fn put_back(self, target: &BlockIo, watch: &mut dyn Watch) -> Result<(), TargetError> {
        let failed = |what: String| TargetError::Failed {
            name: target.shape().name.clone(),
            reason: format!("restoring its content: {what}"),
        };
        let memory = || data::zeros(CHUNK_BYTES as usize).map_err(|error| failed(error.to_string()));
        let (mut chunk, mut again) = (memory()?, memory()?);
        let (mut lost, mut unwritten) = (Lost::default(), BTreeMap::new());
        let bytes = total(&self.parts);
        self.punch(target, &chunk, &mut lost);
        let file = target.file();
        for Chunk { at, length, packed } in chunks(&self.parts) {
            let part = &mut chunk[..length];
            let written = self.kept.get(at - self.from_bytes, packed, part).and_then(|()| file.write_all_at(part, at));
            if let Err(error) = written {
                unwritten.insert(at, error);
            }
            watch.progress(progress("restoring the content", 1, packed, bytes));
        }
        lost.note([self.from_bytes, self.to_bytes], file.sync_all());
        for Chunk { at, length, packed } in chunks(&self.parts) {
            let (part, found) = (&mut chunk[..length], &mut again[..length]);
            let same = self
                .kept
                .get(at - self.from_bytes, packed, part)
                .and_then(|()| file.read_exact_at(found, at))
                .and_then(|()| match unwritten.remove(&at) {
                    // A part that cannot be written was perhaps never overwritten either (`ulimit -f`).
                    _ if part == found => Ok(()),
                    Some(error) => Err(error),
                    None => Err(io::Error::other("reads back differently")),
                });
            lost.note([at, at + length as u64], same);
            watch.progress(progress("comparing the restored content", 2, packed, bytes));
        }
        if !lost.0.is_empty() {
            return Err(failed(format!("{}; {}", lost.told(), self.rescue())));
        }
        match &self.kept {
            Kept::File(_, path) => std::fs::remove_file(path)
                .map_err(|error| failed(format!("everything is restored, but {}: {error}", path.display()))),
            Kept::Memory(_) => Ok(()),
        }
    }

    /// Forgets the content: nothing of the target was overwritten.
    pub fn forget(self) {
        if let Kept::File(_, path) = &self.kept {
            // The file was created here, and all its content is still on the target.
            let _ = std::fs::remove_file(path);
        }
    }

    /// The message if the target cannot be opened again: where its content is.
    pub fn not_reached(&self, name: &str) -> String {
        format!("{name}: its content was not restored; {}", self.rescue())
    }

    /// Holes become holes again; if the filesystem cannot do that they become zeros.
    fn punch(&self, target: &BlockIo, zeros: &[u8], lost: &mut Lost) {
        let kind = if self.is_allocated { FallocateFlags::ZERO_RANGE } else { FallocateFlags::PUNCH_HOLE };
        let flags = kind | FallocateFlags::KEEP_SIZE;
        for [from, to] in without_content(&self.parts, self.from_bytes, self.to_bytes) {
            if fallocate(target.file(), flags, from, to - from).is_ok() {
                continue;
            }
            for at in (from..to).step_by(CHUNK_BYTES as usize) {
                let length = CHUNK_BYTES.min(to - at);
                lost.note([at, at + length], target.file().write_all_at(&zeros[..length as usize], at));
            }
        }
    }

    /// Where the content is now; content in memory is written to a file.
    fn rescue(&self) -> String {
        let path = match &self.kept {
            Kept::File(_, path) => return format!("the content is in {}", path.display()),
            Kept::Memory(_) => std::env::temp_dir().join(format!("emmclab-saved-{}", std::process::id())),
        };
        let written = new_file(&path).and_then(|file| {
            let mut part = data::zeros(CHUNK_BYTES as usize)?;
            for Chunk { at, length, packed } in chunks(&self.parts) {
                self.kept.get(at - self.from_bytes, packed, &mut part[..length])?;
                file.write_all_at(&part[..length], at - self.from_bytes)?;
            }
            file.sync_all()
        });
        match written {
            Ok(()) => format!("the content from byte {} on is in {}", self.from_bytes, path.display()),
            Err(error) => format!("the content cannot be saved in {} either: {error}", path.display()),
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

impl Kept {
    fn put(&mut self, at: u64, packed: usize, part: &[u8]) -> io::Result<()> {
        match self {
            Self::Memory(memory) => {
                memory[packed..][..part.len()].copy_from_slice(part);
                Ok(())
            }
            Self::File(file, _) => file.write_all_at(part, at),
        }
    }

    fn get(&self, at: u64, packed: usize, part: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Memory(memory) => {
                part.copy_from_slice(&memory[packed..][..part.len()]);
                Ok(())
            }
            Self::File(file, _) => file.read_exact_at(part, at),
        }
    }

    fn told(&self) -> String {
        match self {
            Self::Memory(_) => String::new(),
            Self::File(_, path) => format!("{}: ", path.display()),
        }
    }
}

/// A piece of a part, and its position among all of them.
struct Chunk {
    at: u64,
    length: usize,
    packed: usize,
}

fn chunks(parts: &[[u64; 2]]) -> impl Iterator<Item = Chunk> {
    let pieces = parts.iter().flat_map(|[from, to]| {
        let to = *to;
        (*from..to).step_by(CHUNK_BYTES as usize).map(move |at| (at, (to - at).min(CHUNK_BYTES) as usize))
    });
    pieces.scan(0, |packed, (at, length)| {
        let chunk = Chunk { at, length, packed: *packed };
        *packed += length;
        Some(chunk)
    })
}

/// Unit: bytes.
fn total(parts: &[[u64; 2]]) -> u64 {
    parts.iter().map(|[from, to]| to - from).sum()
}

/// Saving is one step, restoring two.
fn progress(step: &str, number: u32, done: usize, bytes: u64) -> Progress<'_> {
    let steps = if step.starts_with("saving") { 1 } else { 2 };
    Progress { step, number, steps, done_share: done as f64 / bytes.max(1) as f64, whole: None, now: None }
}

fn parts(target: &BlockIo, from_bytes: u64, to_bytes: u64) -> Result<Vec<[u64; 2]>, TargetError> {
    if target.shape().kind == TargetKind::Device {
        return Ok(vec![[from_bytes, to_bytes]]);
    }
    with_content(target.file(), from_bytes, to_bytes).map_err(|error| saving(target, "", &error))
}

fn saving(target: &BlockIo, what: &str, error: &io::Error) -> TargetError {
    TargetError::Failed { name: target.shape().name.clone(), reason: format!("saving its content: {what}{error}") }
}

/// A file with mode 0600: it holds content of other users.
fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}
