//! The journal file: changes of a card since its state was written, as records, each with length and checksum.
//!
//! A process that dies leaves a record cut off at the end of the file: it was never acknowledged, and is ignored. Any
//! other record that is not whole is damage, because records behind it were acknowledged: the journal is refused. The
//! length has a checksum of its own, so that a wrong one is not taken for a cut.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

const MAGIC: &[u8; 16] = b"emmclab records2";
/// That of earlier builds, whose lengths have no checksum.
const OLD_MAGIC: &[u8; 16] = b"emmclab records\n";
/// The magic, and the generation of the state that the records follow.
const HEADER_BYTES: usize = 24;
/// Length and checksum.
const FRAME_BYTES: usize = 8;
/// The same with a checksum of both.
const HEAD_BYTES: usize = FRAME_BYTES + 4;

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
    generation: u64,
    /// Bytes before each record.
    head_bytes: usize,
    /// Length of the valid part.
    end: usize,
    damage: Option<Damage>,
}

/// A record that is not whole, although it is not cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damage {
    /// Where it begins, and the size of the file. Unit: bytes.
    pub(super) at: u64,
    pub(super) of: u64,
    /// Intact records behind it; at least.
    pub(super) intact_behind: u64,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { at, of, intact_behind } = self;
        write!(f, "a record with its checksum at byte {at} of {of}: it is damaged, {intact_behind} intact ones follow")
    }
}

/// What is behind a place in a journal.
enum Next {
    /// A record of this length.
    Record(usize),
    /// Nothing, or a record that was cut off.
    End,
    /// A record of this length whose content is wrong.
    Wrong(usize),
    /// No length either.
    Damaged,
}

impl Found {
    /// Reads a journal; a missing file, or one that is not a journal, is none.
    ///
    /// Errors: the system's.
    pub(super) fn read(path: &Path) -> std::io::Result<Option<Self>> {
        let mut bytes = Vec::new();
        match File::open(path) {
            Ok(mut file) => drop(file.read_to_end(&mut bytes)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        let Some((magic, generation)) = bytes.split_first_chunk::<16>() else { return Ok(None) };
        let head_bytes = match magic {
            MAGIC => HEAD_BYTES,
            OLD_MAGIC => FRAME_BYTES,
            _ => return Ok(None),
        };
        let Some(generation) = generation.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)) else {
            return Ok(None);
        };
        let mut found = Self { end: HEADER_BYTES, bytes, generation, head_bytes, damage: None };
        while let Next::Record(length) = found.next(found.end) {
            found.end += head_bytes + length;
        }
        found.damage = found.damage_at(found.end);
        Ok(Some(found))
    }

    fn next(&self, at: usize) -> Next {
        let rest = self.bytes.get(at..).unwrap_or_default();
        let Some((head, content)) = rest.split_at_checked(self.head_bytes) else { return Next::End };
        let (frame, of_frame) = head.split_at(FRAME_BYTES);
        if !of_frame.is_empty() && checksum(frame) != of_frame {
            return Next::Damaged;
        }
        let length = frame.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)) as usize;
        match content.get(..length) {
            None => Next::End,
            Some(record) if checksum(record) == frame[4..] => Next::Record(length),
            Some(_) => Next::Wrong(length),
        }
    }

    fn damage_at(&self, end: usize) -> Option<Damage> {
        let mut at = match self.next(end) {
            Next::Record(_) | Next::End => return None,
            Next::Wrong(length) => end + self.head_bytes + length,
            // Where the next one begins is unknown.
            Next::Damaged => self.bytes.len(),
        };
        let mut intact_behind = 0;
        while let Next::Record(length) | Next::Wrong(length) = self.next(at) {
            intact_behind += u64::from(matches!(self.next(at), Next::Record(_)));
            at += self.head_bytes + length;
        }
        Some(Damage { at: end as u64, of: self.bytes.len() as u64, intact_behind })
    }

    /// The generation of the state that it follows, or one more.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// A record that is neither whole nor cut off.
    pub(super) fn damage(&self) -> Option<Damage> {
        self.damage
    }

    /// What was expected, if records are missing at the end: this many bytes were acknowledged.
    pub(super) fn missing_end(&self, acknowledged: u64) -> Option<String> {
        let end = self.end as u64;
        (end < acknowledged).then(|| {
            format!("{acknowledged} bytes of records, which were acknowledged, found {end}: its end is missing")
        })
    }

    /// Where a record begins that is cut off.
    pub(super) fn cut_at(&self) -> Option<u64> {
        (self.damage.is_none() && self.end < self.bytes.len()).then_some(self.end as u64)
    }

    /// The records before any damage, oldest first, each with its place in the file.
    pub(super) fn records(&self) -> Vec<(u64, &[u8])> {
        let mut records = Vec::new();
        let mut at = HEADER_BYTES;
        while at < self.end {
            let Next::Record(length) = self.next(at) else { break };
            let start = at + self.head_bytes;
            records.push((at as u64, &self.bytes[start..start + length]));
            at = start + length;
        }
        records
    }
}

/// Length and checksum of a part of the state, or of a record.
pub(super) fn frame(record: &[u8]) -> [u8; FRAME_BYTES] {
    let mut frame = [0; FRAME_BYTES];
    frame[..4].copy_from_slice(&(record.len() as u32).to_le_bytes());
    frame[4..].copy_from_slice(&checksum(record));
    frame
}

/// Of records, of the parts of the state, and of the profile: a CRC-32.
pub(super) fn checksum(bytes: &[u8]) -> [u8; 4] {
    crc32fast::hash(bytes).to_le_bytes()
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
        self.waiting.extend_from_slice(&[0; HEAD_BYTES]);
        if !write(&mut self.waiting) {
            self.waiting.truncate(start);
            return;
        }
        let (head, record) = self.waiting[start..].split_at_mut(HEAD_BYTES);
        let frame = frame(record);
        head[..FRAME_BYTES].copy_from_slice(&frame);
        head[FRAME_BYTES..].copy_from_slice(&checksum(&frame));
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

    fn written(path: &Path) -> Vec<u8> {
        let mut journal = Journal::start(path, 7).unwrap();
        for record in [&b"one"[..], b"", b"three"] {
            journal.add(|out| {
                out.extend_from_slice(record);
                !record.is_empty()
            });
        }
        assert!(!journal.is_settled());
        journal.settle().unwrap();
        std::fs::read(path).unwrap()
    }

    fn found(path: &Path, bytes: &[u8]) -> Option<Found> {
        std::fs::write(path, bytes).unwrap();
        Found::read(path).unwrap()
    }

    #[test]
    fn complete_records_are_read_and_a_cut_one_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        assert!(Found::read(&path).unwrap().is_none());
        let whole = written(&path);
        let places = [HEADER_BYTES, HEADER_BYTES + HEAD_BYTES + 3].map(|at| at as u64);
        let read = Found::read(&path).unwrap().unwrap();
        assert_eq!((read.generation(), read.damage()), (7, None));
        assert_eq!(read.records(), [(places[0], &b"one"[..]), (places[1], b"three")]);
        for cut in 0..whole.len() {
            let Some(read) = found(&path, &whole[..cut]) else {
                assert!(cut < HEADER_BYTES, "{cut}");
                continue;
            };
            let expected = if cut < HEADER_BYTES + HEAD_BYTES + 3 { 0 } else { 1 };
            assert_eq!((read.records().len(), read.damage()), (expected, None), "cut at {cut}");
        }
    }

    #[test]
    fn a_flipped_bit_is_damage_wherever_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let whole = written(&path);
        for bit in 0..whole.len() * 8 {
            let mut wrong = whole.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            let read = found(&path, &wrong);
            match bit / 8 {
                0..16 => assert!(read.is_none(), "bit {bit}"),
                16..HEADER_BYTES => assert_ne!(read.unwrap().generation(), 7, "bit {bit}"),
                at => {
                    let read = read.unwrap();
                    let damage = read.damage().unwrap_or_else(|| panic!("bit {bit}"));
                    let is_first = at < HEADER_BYTES + HEAD_BYTES + 3;
                    assert_eq!(read.records().len(), usize::from(!is_first), "bit {bit}");
                    let in_content = is_first && at >= HEADER_BYTES + HEAD_BYTES;
                    assert_eq!(damage.intact_behind, u64::from(in_content), "bit {bit}");
                }
            }
        }
    }

    #[test]
    fn records_of_an_earlier_build_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut old =
            [&OLD_MAGIC[..], &7u64.to_le_bytes(), &frame(b"one"), b"one", &frame(b"three"), b"three"].concat();
        let read = found(&path, &old).unwrap();
        assert_eq!(read.records().iter().map(|(_, record)| *record).collect::<Vec<_>>(), [&b"one"[..], b"three"]);
        old[HEADER_BYTES + FRAME_BYTES] ^= 1;
        assert_eq!(found(&path, &old).unwrap().damage().unwrap().intact_behind, 1);
    }
}
