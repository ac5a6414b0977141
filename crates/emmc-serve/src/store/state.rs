//! The state file: an outline of the card, and its blocks in pieces, each with its place among the records of the
//! journal.
//!
//! A state written at one instant has all pieces before the first record. One that is written beside requests has
//! pieces that were taken later: such a piece replaces what the records before it made of its blocks. The file gets its
//! name when it is complete. Absent on purpose: when pieces are taken (`checkpoint`), and what they hold (`emmc_card`).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::journal::{checksum, frame, framed};

/// Magic of the file; generation, start, whether records follow, and a checksum of these four follow.
const MAGIC: &[u8; 16] = b"emmclab state 3\n";
const HEADER_BYTES: usize = MAGIC.len() + 8 + 8 + 4 + 4;
/// Magic of the files of earlier builds; only generation and start follow.
const OLD_MAGIC: &[u8; 16] = b"emmclab state 2\n";
const OLD_HEADER_BYTES: usize = OLD_MAGIC.len() + 8 + 8;
/// Magic of the files of builds before that; generation, checksum and a complete image follow.
const MAGIC_OF_IMAGE: &[u8; 14] = b"emmclab state\n";
/// The place of the end's frame, whose content is the number of pieces.
const END: u64 = u64::MAX;
/// The place of the frame with samples of the contents: slots, each with the checksum of its bytes.
const SAMPLES: u64 = u64::MAX - 1;
/// Written with one call, for which a request may wait.
const BUFFER_BYTES: usize = 16 << 10;

/// A slot of the contents, and the checksum of its bytes.
pub(super) type Sample = (u32, [u8; 4]);
const SAMPLE_BYTES: usize = 4 + 4;

/// A state that is being written, under a name of its own.
#[derive(Debug)]
pub(super) struct NewState {
    path: PathBuf,
    file: BufWriter<File>,
    generation: u64,
    pieces: u64,
    size_bytes: u64,
}

impl NewState {
    /// Begins with the outline. Records of the journal before `start` are part of it; with `follow` there is a journal
    /// of this generation, also if it is empty.
    ///
    /// Errors: the system's.
    pub(super) fn create(
        path: &Path,
        generation: u64,
        (start, follow): (u64, bool),
        outline: &[u8],
    ) -> std::io::Result<Self> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?);
        let mut state = Self { path: path.into(), file, generation, pieces: 0, size_bytes: 0 };
        let mut header = MAGIC.to_vec();
        header.extend_from_slice(&generation.to_le_bytes());
        header.extend_from_slice(&start.to_le_bytes());
        header.extend_from_slice(&u32::from(follow).to_le_bytes());
        let of_header = checksum(&header);
        state.file.write_all(&header)?;
        state.file.write_all(&of_header)?;
        state.file.write_all(&frame(outline))?;
        state.file.write_all(outline)?;
        Ok(state)
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// The size of the pieces so far. Unit: bytes.
    #[cfg(test)]
    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Adds a piece that was taken when the journal ended at `position`.
    ///
    /// Errors: the system's.
    pub(super) fn add(&mut self, position: u64, piece: &[u8]) -> std::io::Result<()> {
        self.pieces += 1;
        self.write(position, piece)
    }

    /// Adds samples of the contents: what `card.data` holds as long as no records follow.
    ///
    /// Errors: the system's.
    pub(super) fn add_samples(&mut self, samples: &[Sample]) -> std::io::Result<()> {
        let mut bytes = Vec::with_capacity(samples.len() * SAMPLE_BYTES);
        for (slot, of_content) in samples {
            bytes.extend_from_slice(&slot.to_le_bytes());
            bytes.extend_from_slice(of_content);
        }
        self.write(SAMPLES, &bytes)
    }

    fn write(&mut self, position: u64, content: &[u8]) -> std::io::Result<()> {
        let mut bytes = Vec::with_capacity(8 + content.len());
        bytes.extend_from_slice(&position.to_le_bytes());
        bytes.extend_from_slice(content);
        self.size_bytes += bytes.len() as u64;
        self.file.write_all(&frame(&bytes))?;
        self.file.write_all(&bytes)
    }

    /// All pieces are added: the file gets its name. `forces`: it is synced to the disk before.
    ///
    /// Errors: the system's.
    pub(super) fn place(mut self, name: &Path, forces: bool) -> std::io::Result<()> {
        let pieces = self.pieces;
        self.write(END, &pieces.to_le_bytes())?;
        self.file.flush()?;
        if forces {
            self.file.get_ref().sync_all()?;
        }
        std::fs::rename(&self.path, name)
    }
}

/// A state that was read.
#[derive(Debug)]
pub(super) struct FoundState {
    bytes: Vec<u8>,
    pub(super) generation: u64,
    /// Records of the journal before it are part of the outline.
    pub(super) start: u64,
    /// Whether a journal of this generation must be there; states of earlier builds do not say.
    pub(super) follow: Option<bool>,
    outline: Range<usize>,
    pieces: Vec<(u64, Range<usize>)>,
    /// With its frame.
    samples: Option<Range<usize>>,
}

impl FoundState {
    /// Reads a state from the bytes of its file.
    ///
    /// Errors: what was expected.
    pub(super) fn parse(bytes: Vec<u8>) -> Result<Self, String> {
        if bytes.starts_with(MAGIC_OF_IMAGE) {
            return Self::parse_image(bytes);
        }
        let (generation, start, follow, mut at) = header(&bytes)?;
        let mut next = || {
            let length = framed(&bytes, at)?.len();
            let first = at + frame(&[]).len();
            at = first + length;
            Some(first..at)
        };
        let damaged = || "a complete state with its checksums: it is cut off or damaged".to_string();
        let outline = next().ok_or_else(damaged)?;
        let (mut pieces, mut samples) = (Vec::new(), None);
        loop {
            let found = next().filter(|found| found.len() >= 8).ok_or_else(damaged)?;
            let (position, piece) = (number(&bytes[found.clone()]), found.start + 8..found.end);
            if position == END {
                let is_whole = piece.len() == 8 && number(&bytes[piece]) == pieces.len() as u64;
                if !is_whole {
                    return Err(damaged());
                }
                break;
            }
            match position {
                SAMPLES => samples = Some(found.start - frame(&[]).len()..found.end),
                _ => pieces.push((position, piece)),
            }
        }
        Ok(Self { generation, start, follow, outline, pieces, samples, bytes })
    }

    fn parse_image(bytes: Vec<u8>) -> Result<Self, String> {
        let start = MAGIC_OF_IMAGE.len() + 8 + 4;
        let generation = number(&bytes[MAGIC_OF_IMAGE.len()..]);
        match bytes.get(start - 4..).and_then(|rest| rest.split_at_checked(4)) {
            Some((expected, image)) if *expected == checksum(image) => {
                let outline = start..bytes.len();
                Ok(Self { generation, start: 0, follow: None, outline, pieces: Vec::new(), samples: None, bytes })
            }
            _ => Err("an image with its checksum: it is cut off or damaged".into()),
        }
    }

    /// The same state, of which no records follow. Only of this build's form.
    pub(super) fn without_records(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let end = HEADER_BYTES - 4;
        bytes[end - 4..end].fill(0);
        let of_header = checksum(&bytes[..end]);
        bytes[end..HEADER_BYTES].copy_from_slice(&of_header);
        bytes
    }

    /// The same state without its samples of the contents.
    pub(super) fn without_samples(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        bytes.drain(self.samples.clone().unwrap_or_default());
        bytes
    }

    /// Samples of the contents.
    pub(super) fn samples(&self) -> impl Iterator<Item = Sample> {
        let frame = self.samples.clone().map(|frame| &self.bytes[frame]);
        let samples = frame.and_then(|frame| framed(frame, 0)).and_then(|content| content.get(8..));
        samples.unwrap_or_default().chunks_exact(SAMPLE_BYTES).map(|sample| {
            let [slot, of_content] = [0, 4].map(|at| sample[at..].first_chunk().copied().unwrap_or_default());
            (u32::from_le_bytes(slot), of_content)
        })
    }

    pub(super) fn outline(&self) -> &[u8] {
        &self.bytes[self.outline.clone()]
    }

    /// The pieces, each with the end of the journal when it was taken; ascending.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.pieces.iter().map(|(position, piece)| (*position, &self.bytes[piece.clone()]))
    }
}

/// The generation of a state, from the first bytes of its file.
pub(super) fn generation_of(path: &Path) -> Option<u64> {
    let mut start = [0; HEADER_BYTES];
    std::io::Read::read_exact(&mut File::open(path).ok()?, &mut start).ok()?;
    header(&start).ok().map(|(generation, ..)| generation)
}

/// Generation, start, whether records follow, and where the outline's frame is.
///
/// Errors: what was expected.
fn header(bytes: &[u8]) -> Result<(u64, u64, Option<bool>, usize), String> {
    if let Some(numbers) = bytes.get(..OLD_HEADER_BYTES).and_then(|start| start.strip_prefix(OLD_MAGIC)) {
        return Ok((number(numbers), number(&numbers[8..]), None, OLD_HEADER_BYTES));
    }
    let Some(header) = bytes.get(..HEADER_BYTES).filter(|header| header.starts_with(MAGIC)) else {
        return Err("\"emmclab state 3\" at byte 0".into());
    };
    let (header, of_header) = header.split_at(HEADER_BYTES - 4);
    if checksum(header) != of_header {
        return Err("a header with its checksum: it is damaged".into());
    }
    let numbers = &header[MAGIC.len()..];
    Ok((number(numbers), number(&numbers[8..]), Some(numbers[16] == 1), HEADER_BYTES))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_state_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (path, name) = (folder.path().join("new"), folder.path().join("state"));
        let mut state = NewState::create(&path, 7, (24, true), b"outline").unwrap();
        state.add(24, b"one").unwrap();
        state.add(99, b"").unwrap();
        state.place(&name, true).unwrap();
        let whole = std::fs::read(&name).unwrap();
        let found = FoundState::parse(whole.clone()).unwrap();
        assert_eq!((found.generation, found.start, found.follow), (7, 24, Some(true)));
        assert_eq!(found.outline(), b"outline");
        assert_eq!(found.pieces().collect::<Vec<_>>(), [(24, &b"one"[..]), (99, b"")]);
        assert_eq!((generation_of(&name), generation_of(&path)), (Some(7), None));
        for cut in 0..whole.len() {
            let error = FoundState::parse(whole[..cut].to_vec()).unwrap_err();
            assert!(error.contains("emmclab state 3") || error.contains("cut off"), "{cut}: {error}");
        }
        for at in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 1;
            assert!(FoundState::parse(wrong).is_err(), "{at}");
        }
    }
}
