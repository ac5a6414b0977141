//! The file of a clone: read and checked record by record; written as `FILE.part`, which gets its name when it is
//! whole. A part file that a killed clone left is continued behind its last whole record.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use emmc_clone::format::{Content, FormatError, HEAD_BYTES, Head, Header, RECORD_BYTES, Record, Sequence};
use sha2::{Digest, Sha256};

use super::read_back::ReadBack;
use super::{coding, crew, unable};
use crate::save::Refused;

/// Unit: bytes.
const BUFFER_BYTES: usize = 1 << 20;

/// A record as it is in a file.
pub(super) struct Stored {
    /// Its place in the file. Unit: bytes.
    pub(super) at: u64,
    pub(super) record: Record,
    /// What follows it.
    pub(super) bytes: Vec<u8>,
}

/// A file that is read from its start.
pub(super) struct CloneFile {
    name: String,
    file: BufReader<File>,
    pub(super) header: Header,
    /// The place of the next record. Unit: bytes.
    at: u64,
    sequence: Sequence,
}

impl CloneFile {
    /// Opens a file and reads its header.
    ///
    /// Errors: no clone, another version, damaged.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| name.clone())?;
        Self::of(file, name)
    }

    fn of(file: File, name: String) -> anyhow::Result<Self> {
        let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
        let start = up_to(&mut file, HEAD_BYTES).with_context(|| name.clone())?;
        let head = Head::parse(&start).with_context(|| name.clone())?;
        let text = up_to(&mut file, head.text_bytes as usize).with_context(|| name.clone())?;
        let at = (start.len() + text.len()) as u64;
        if text.len() < head.text_bytes as usize {
            return Err(FormatError::Cut { at }).with_context(|| name);
        }
        let header = head.header(&text).with_context(|| name.clone())?;
        let sequence = Sequence::new(&header.areas);
        Ok(Self { name, file, header, at, sequence })
    }

    /// For messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The place of the next record. Unit: bytes.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The same file, to be read from a record on.
    ///
    /// Errors: the system's.
    fn from(mut self, at: u64, sequence: Sequence) -> anyhow::Result<Self> {
        self.file.seek(SeekFrom::Start(at)).with_context(|| self.name.clone())?;
        Ok(Self { at, sequence, ..self })
    }

    /// The next record with its content; nothing at the end. The content is compared with its hash by whoever uses it.
    ///
    /// Errors: cut off, damaged.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<Stored>> {
        self.read().with_context(|| self.name.clone())
    }

    fn read(&mut self) -> anyhow::Result<Option<Stored>> {
        let at = self.at;
        let found = up_to(&mut self.file, RECORD_BYTES)?;
        let Ok(bytes) = <[u8; RECORD_BYTES]>::try_from(found) else { return Err(FormatError::Cut { at }.into()) };
        let record = Record::parse(&bytes, at)?;
        if self.sequence.take(&record, at)? {
            if !up_to(&mut self.file, 1)?.is_empty() {
                return Err(FormatError::damaged(at + RECORD_BYTES as u64, "more bytes behind the end").into());
            }
            return Ok(None);
        }
        let count = match record.content {
            Content::Data { stored_bytes, .. } => stored_bytes as usize,
            _ => 0,
        };
        let bytes = up_to(&mut self.file, count)?;
        if bytes.len() < count {
            return Err(FormatError::Cut { at }.into());
        }
        self.at = at + (RECORD_BYTES + count) as u64;
        Ok(Some(Stored { at, record, bytes }))
    }

    /// Reads the whole file and compares all content with its hashes. Calls `see` with every record.
    ///
    /// Errors: cut off, damaged: the place is named.
    pub(super) fn check(mut self, mut see: impl FnMut(&Record)) -> anyhow::Result<Header> {
        let name = self.name.clone();
        crew::ordered(
            crew::computing(),
            || self.next(),
            |(), stored| content(stored).map(|(record, _)| record),
            |record| {
                see(&record.with_context(|| name.clone())?);
                Ok(())
            },
        )?;
        Ok(self.header)
    }
}

fn up_to(file: &mut impl Read, bytes: usize) -> std::io::Result<Vec<u8>> {
    let mut found = Vec::with_capacity(bytes.min(BUFFER_BYTES * 2));
    file.take(bytes as u64).read_to_end(&mut found)?;
    Ok(found)
}

/// The content of a record, compared with its hash; empty for a fill.
///
/// Errors: damaged.
pub(super) fn content(stored: Stored) -> Result<(Record, Vec<u8>), FormatError> {
    let Stored { at, record, bytes } = stored;
    let Content::Data { coding, sha256, .. } = record.content else { return Ok((record, Vec::new())) };
    let damaged = |what: String| FormatError::damaged(at, format!("the content of a record: {what}"));
    let content = coding::restore(coding, bytes, record.bytes as usize).map_err(damaged)?;
    if Sha256::digest(&content).as_slice() != sha256 {
        return Err(damaged("it differs from its hash".into()));
    }
    Ok((record, content))
}

/// A file that is being written.
pub(super) struct PartFile {
    path: PathBuf,
    part: PathBuf,
    file: BufWriter<File>,
    at: u64,
    sequence: Sequence,
    /// Fills that may still grow.
    fill: Option<Record>,
    read_back: ReadBack,
    /// What an earlier run had written. Unit: bytes.
    pub(super) resumed_bytes: u64,
}

impl PartFile {
    /// Where a clone is written until it is whole.
    pub(super) fn name(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        name.into()
    }

    /// Begins a file, or continues the part of an earlier run.
    ///
    /// Errors: [`Refused`]: an existing file, a part in use or of another source; the system's.
    pub(super) fn open(path: &Path, header: &Header, resume: bool, replace: bool) -> anyhow::Result<Self> {
        crate::save::refuse_device(path)?;
        let (part, name) = (Self::name(path), path.display());
        if path.symlink_metadata().is_ok() && !replace {
            return Err(Refused(format!("{name}: exists already; --force replaces it")).into());
        }
        let called = part.display().to_string();
        if part.symlink_metadata().is_ok() && !resume && !replace {
            let what = "of a clone that was interrupted: --resume continues it, --force begins again";
            return Err(Refused(format!("{called}: {what}")).into());
        }
        // A link that somebody put there is not followed.
        let no_link = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).custom_flags(no_link);
        let mut file = options.open(&part).map_err(|error| unable(&called, format!("cannot write: {error}")))?;
        // Other errors: a filesystem without locks.
        let locked = rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
        if locked == Err(rustix::io::Errno::WOULDBLOCK) {
            return Err(Refused(format!("{called}: another emmclab writes it")).into());
        }
        let length = file.metadata().map_err(|error| unable(&called, error))?.len();
        let (at, sequence) = match resume && length > 0 {
            true => continued(&file, &called, header)?,
            false => (0, Sequence::new(&header.areas)),
        };
        let failed = |error: std::io::Error| unable(&called, format!("cannot write: {error}"));
        file.set_len(at).and_then(|()| file.seek(SeekFrom::Start(at)).map(drop)).map_err(failed)?;
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, file);
        let (mut at, resumed_bytes) = (at, at);
        if at == 0 {
            let head = header.encode()?;
            file.write_all(&head).and_then(|()| file.flush()).map_err(failed)?;
            at = head.len() as u64;
        }
        let reader = CloneFile::open(&part)?.from(at, sequence.clone())?;
        let read_back = ReadBack::start(reader, file.get_ref().try_clone().map_err(failed)?);
        Ok(Self { path: path.into(), part, file, at, sequence, fill: None, read_back, resumed_bytes })
    }

    /// The first place that is not written yet: area and offset.
    pub(super) fn next(&self) -> (u8, u64) {
        self.sequence.next()
    }

    /// Writes a record and its content.
    ///
    /// Errors: a full disk, and others of the system.
    pub(super) fn append(&mut self, record: Record, bytes: &[u8]) -> anyhow::Result<()> {
        if let (Content::Fill(byte), Some(last)) = (record.content, &mut self.fill) {
            let follows = (last.area, last.offset_bytes + last.bytes) == (record.area, record.offset_bytes);
            if follows && last.content == Content::Fill(byte) {
                last.bytes += record.bytes;
                return Ok(());
            }
        }
        self.end_fill()?;
        if matches!(record.content, Content::Fill(_)) {
            self.fill = Some(record);
            return Ok(());
        }
        self.sequence.take(&record, self.at)?;
        self.put(&record.encode())?;
        self.put(bytes)?;
        // What a killed run leaves is what the file has.
        self.file.flush().map_err(|error| self.unwritten(&error))?;
        self.read_back.written(self.at);
        Ok(())
    }

    fn end_fill(&mut self) -> anyhow::Result<()> {
        let Some(fill) = self.fill.take() else { return Ok(()) };
        self.sequence.take(&fill, self.at)?;
        self.put(&fill.encode())
    }

    fn put(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.file.write_all(bytes).map_err(|error| self.unwritten(&error))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn unwritten(&self, error: &std::io::Error) -> anyhow::Error {
        unwritten(&self.part, error)
    }

    /// Writes out what is in memory, for a later run: also after an error.
    pub(super) fn leave(mut self) {
        // The error that ended the work is reported.
        let _ = self.end_fill();
        let _ = self.file.flush();
    }

    /// Ends the file, compares all of it with its hashes, and gives it its name. Returns its size. Unit: bytes.
    ///
    /// Errors: the system's; a file that does not read as written.
    pub(super) fn finish(mut self) -> anyhow::Result<u64> {
        self.end_fill()?;
        let end = self.sequence.end();
        self.put(&end.encode())?;
        self.file.flush().map_err(|error| self.unwritten(&error))?;
        self.read_back.written(self.at);
        self.file.get_ref().sync_all().map_err(|error| self.unwritten(&error))?;
        let Self { path, part, at, read_back, .. } = self;
        read_back.end()?;
        let named = std::fs::rename(&part, &path).and_then(|()| {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        });
        named.map_err(|error| unwritten(&part, &error))?;
        Ok(at)
    }
}

fn unwritten(part: &Path, error: &std::io::Error) -> anyhow::Error {
    let what = format!("cannot write: {error}; what is written so far can be continued with --resume");
    unable(&part.display().to_string(), what)
}

/// Reads what an earlier run wrote: the end of its last whole record, and the sequence up to there.
fn continued(file: &File, called: &str, header: &Header) -> anyhow::Result<(u64, Sequence)> {
    let mut reading = file.try_clone().map_err(|error| unable(called, error))?;
    reading.seek(SeekFrom::Start(0)).map_err(|error| unable(called, error))?;
    let fresh = || (0, Sequence::new(&header.areas));
    let mut clone = match CloneFile::of(reading, called.into()) {
        Ok(clone) => clone,
        // Not even the header was written.
        Err(error) if matches!(error.downcast_ref(), Some(FormatError::Cut { .. })) => return Ok(fresh()),
        Err(error) => return Err(error),
    };
    let card = |header: &Header| header.card.as_ref().and_then(|card| card.cid.clone());
    let is_same = clone.header.areas == header.areas
        && clone.header.fingerprint == header.fingerprint
        && card(&clone.header) == card(header);
    if !is_same {
        let what = "is of another card, or the source changed since: --force begins again";
        return Err(Refused(format!("{called}: {what}")).into());
    }
    let mut good = (clone.at, clone.sequence.clone());
    let read = crew::ordered(
        crew::computing(),
        || {
            let found = clone.read().ok().flatten();
            Ok(found.map(|stored| (stored, clone.at, clone.sequence.clone())))
        },
        |(), (stored, at, sequence)| content(stored).is_ok().then_some((at, sequence)),
        |found| {
            good = found.context("a record that is torn")?;
            Ok(())
        },
    );
    // What follows the last good record is written again, whatever it is.
    drop(read);
    Ok(good)
}
