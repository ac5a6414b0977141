//! The journal file: changes of a card since its state was written, as records, each with length and checksum.
//!
//! A truncated record was never acknowledged; it and everything after it is ignored.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crc::{CRC_32_ISO_HDLC, Crc, Table};

const MAGIC: &[u8; 16] = b"emmclab records\n";
/// The magic, and the generation of the state that the records follow.
const HEADER_BYTES: usize = 24;
/// Length and checksum.
const FRAME_BYTES: usize = 8;
/// Of records, and of the parts of the state.
const CHECKSUM: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);

/// A journal open for writing.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    generation: u64,
    /// The offset of the next record.
    end: u64,
    /// Frames that wait to be written.
    waiting: Vec<u8>,
}

/// The content of a journal.
pub(super) struct Found {
    bytes: Vec<u8>,
    /// Length of the valid part.
    end: usize,
}

impl Found {
    /// Reads the journal of a state; a missing one, or one of another state, holds no records.
    ///
    /// Errors: the system's.
    pub(super) fn read(path: &Path, generation: u64) -> std::io::Result<Self> {
        let mut bytes = Vec::new();
        match File::open(path) {
            Ok(mut file) => drop(file.read_to_end(&mut bytes)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        if !bytes.starts_with(&header(generation)) {
            bytes.clear();
        }
        let mut found = Self { end: bytes.len().min(HEADER_BYTES), bytes };
        while let Some(record) = framed(&found.bytes, found.end) {
            found.end += FRAME_BYTES + record.len();
        }
        Ok(found)
    }

    /// Whether there is a journal of that state.
    pub(super) fn exists(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// The records, oldest first, each with its place in the file.
    pub(super) fn records(&self) -> Vec<(u64, &[u8])> {
        let mut records = Vec::new();
        let mut at = HEADER_BYTES;
        while at < self.end {
            let frame = self.bytes.get(at..).and_then(|rest| rest.first_chunk::<FRAME_BYTES>());
            let Some([a, b, c, d, ..]) = frame else { break };
            let end = at + FRAME_BYTES + u32::from_le_bytes([*a, *b, *c, *d]) as usize;
            records.push((at as u64, &self.bytes[at + FRAME_BYTES..end]));
            at = end;
        }
        records
    }
}

/// Length and checksum of a record.
pub(super) fn frame(record: &[u8]) -> [u8; FRAME_BYTES] {
    let mut frame = [0; FRAME_BYTES];
    frame[..4].copy_from_slice(&(record.len() as u32).to_le_bytes());
    frame[4..].copy_from_slice(&checksum(record));
    frame
}

pub(super) fn checksum(bytes: &[u8]) -> [u8; 4] {
    CHECKSUM.checksum(bytes).to_le_bytes()
}

/// The record behind the frame at `at`; `None`: it is not complete, or damaged.
pub(super) fn framed(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let found = bytes.get(at..)?.first_chunk::<FRAME_BYTES>()?;
    let length = u32::from_le_bytes([found[0], found[1], found[2], found[3]]) as usize;
    let record = bytes.get(at + FRAME_BYTES..)?.get(..length)?;
    (frame(record) == *found).then_some(record)
}

impl Journal {
    /// An empty journal for a state; the old journal's records are part of that state.
    ///
    /// Errors: the system's.
    pub(super) fn start(path: &Path, generation: u64) -> std::io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        file.write_all_at(&header(generation), 0)?;
        Ok(Self { file, generation, end: HEADER_BYTES as u64, waiting: Vec::new() })
    }

    /// Goes on in the next journal, which is at `new` and gets the name `path`; this one gets the name `earlier`.
    ///
    /// Errors: the system's; then this journal goes on, under one of both names.
    pub(super) fn go_on_in(&mut self, next: Self, new: &Path, path: &Path, earlier: &Path) -> std::io::Result<()> {
        match std::fs::rename(path, earlier) {
            // It has that name since an earlier try.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        std::fs::rename(new, path)?;
        *self = next;
        Ok(())
    }

    /// The generation of the state that it follows, or one more.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Unit: bytes.
    pub(super) fn size_bytes(&self) -> u64 {
        self.end + self.waiting.len() as u64
    }

    /// Adds the bytes that `write` appends as a record, if there are any; [`Journal::settle`] writes it.
    pub(super) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let start = self.waiting.len();
        self.waiting.extend_from_slice(&[0; FRAME_BYTES]);
        if !write(&mut self.waiting) {
            self.waiting.truncate(start);
            return;
        }
        let (of_record, record) = self.waiting[start..].split_at_mut(FRAME_BYTES);
        of_record.copy_from_slice(&frame(record));
    }

    /// Whether anything waits to be written.
    pub(super) fn is_settled(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Writes waiting frames.
    ///
    /// Errors: the system's; the next call tries again.
    pub(super) fn settle(&mut self) -> std::io::Result<()> {
        self.file.write_all_at(&self.waiting, self.end)?;
        self.end += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }
}

fn header(generation: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..MAGIC.len()].copy_from_slice(MAGIC);
    header[MAGIC.len()..].copy_from_slice(&generation.to_le_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_records_of_the_right_state_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        assert!(Found::read(&path, 1).unwrap().records().is_empty());
        let mut journal = Journal::start(&path, 7).unwrap();
        for record in [&b"one"[..], b"", b"three"] {
            journal.add(|out| {
                out.extend_from_slice(record);
                !record.is_empty()
            });
        }
        assert!(!journal.is_settled());
        journal.settle().unwrap();
        let places = [HEADER_BYTES, HEADER_BYTES + FRAME_BYTES + 3].map(|at| at as u64);
        assert_eq!(Found::read(&path, 7).unwrap().records(), [(places[0], &b"one"[..]), (places[1], b"three")]);
        assert!(Found::read(&path, 8).unwrap().records().is_empty());
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let expected = if cut < HEADER_BYTES + 11 { 0 } else { 1 };
            assert_eq!(Found::read(&path, 7).unwrap().records().len(), expected, "cut at {cut}");
        }
        let mut wrong = whole.clone();
        wrong[HEADER_BYTES + FRAME_BYTES] ^= 1;
        std::fs::write(&path, &wrong).unwrap();
        assert!(Found::read(&path, 7).unwrap().records().is_empty());
    }
}
