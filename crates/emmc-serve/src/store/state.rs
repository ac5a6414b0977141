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

/// What all forms begin with.
const NAME: &[u8] = b"emmclab state ";
/// Magic of the file; generation, start, flags, the profile's checksum, and a checksum of these five follow.
const MAGIC: &[u8; 16] = b"emmclab state 4\n";
const HEADER_BYTES: usize = MAGIC.len() + 8 + 8 + 4 + 4 + 4;
/// Where the flags and the profile's checksum are. Unit: bytes.
const FLAGS_AT: usize = MAGIC.len() + 8 + 8;
const PROFILE_AT: usize = FLAGS_AT + 4;
/// Records follow; contents that are not those of the state are accepted.
const FOLLOW: u32 = 1;
const ACCEPTS: u32 = 2;
/// Magic of the files of earlier builds; generation, start, whether records follow, and a checksum of these follow.
const MAGIC_3: &[u8; 16] = b"emmclab state 3\n";
const HEADER_3_BYTES: usize = MAGIC_3.len() + 8 + 8 + 4 + 4;
/// Magic of the files of builds before that; only generation and start follow.
const OLD_MAGIC: &[u8; 16] = b"emmclab state 2\n";
const OLD_HEADER_BYTES: usize = OLD_MAGIC.len() + 8 + 8;
/// Magic of the files of builds before that; generation, checksum and a complete image follow.
const MAGIC_OF_IMAGE: &[u8; 14] = b"emmclab state\n";
/// The place of the end's frame, whose content is the number of pieces.
const END: u64 = u64::MAX;
/// The place of a frame of form 3 with samples of the contents, which later forms do not need.
const SAMPLES: u64 = u64::MAX - 1;
/// Written with one call, for which a request may wait.
const BUFFER_BYTES: usize = 16 << 10;

/// What the header of a state says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) generation: u64,
    /// Records of the journal before it are part of the outline.
    pub(super) start: u64,
    /// Whether a journal of this generation must be there; states of earlier builds do not say.
    pub(super) follow: Option<bool>,
    /// Contents that are not those of the state are known, and accepted: each is an error of the card when it is read.
    pub(super) accepts: bool,
    /// The checksum of the profile; states of earlier builds have none.
    pub(super) profile: Option<[u8; 4]>,
}

impl Header {
    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let flags = u32::from(self.follow == Some(true)) * FOLLOW + u32::from(self.accepts) * ACCEPTS;
        let mut bytes = [0; HEADER_BYTES];
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        bytes[MAGIC.len()..][..8].copy_from_slice(&self.generation.to_le_bytes());
        bytes[MAGIC.len() + 8..][..8].copy_from_slice(&self.start.to_le_bytes());
        bytes[FLAGS_AT..][..4].copy_from_slice(&flags.to_le_bytes());
        bytes[PROFILE_AT..][..4].copy_from_slice(&self.profile.unwrap_or_default());
        let of_header = checksum(&bytes[..HEADER_BYTES - 4]);
        bytes[HEADER_BYTES - 4..].copy_from_slice(&of_header);
        bytes
    }
}

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
    /// Begins with the header and the outline.
    ///
    /// Errors: the system's.
    pub(super) fn create(path: &Path, header: Header, outline: &[u8]) -> std::io::Result<Self> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?);
        let mut state = Self { path: path.into(), file, generation: header.generation, pieces: 0, size_bytes: 0 };
        state.file.write_all(&header.to_bytes())?;
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
    pub(super) header: Header,
    outline: Range<usize>,
    pieces: Vec<(u64, Range<usize>)>,
}

impl FoundState {
    /// Reads a state from the bytes of its file.
    ///
    /// Errors: what was expected.
    pub(super) fn parse(bytes: Vec<u8>) -> Result<Self, String> {
        if bytes.starts_with(MAGIC_OF_IMAGE) {
            return Self::parse_image(bytes);
        }
        let (header, mut at) = header(&bytes)?;
        let mut next = || {
            let length = framed(&bytes, at)?.len();
            let first = at + frame(&[]).len();
            at = first + length;
            Some(first..at)
        };
        let damaged = || "a complete state with its checksums: it is cut off or damaged".to_string();
        let outline = next().ok_or_else(damaged)?;
        let mut pieces = Vec::new();
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
            if position != SAMPLES {
                pieces.push((position, piece));
            }
        }
        Ok(Self { header, outline, pieces, bytes })
    }

    fn parse_image(bytes: Vec<u8>) -> Result<Self, String> {
        let start = MAGIC_OF_IMAGE.len() + 8 + 4;
        let generation = number(&bytes[MAGIC_OF_IMAGE.len()..]);
        match bytes.get(start - 4..).and_then(|rest| rest.split_at_checked(4)) {
            Some((expected, image)) if *expected == checksum(image) => {
                let outline = start..bytes.len();
                let header = Header { generation, ..Header::default() };
                Ok(Self { header, outline, pieces: Vec::new(), bytes })
            }
            _ => Err("an image with its checksum: it is cut off or damaged".into()),
        }
    }

    /// The same state with another header; `None`: it is of an earlier build, whose header lacks something of it.
    pub(super) fn with_header(&self, header: Header) -> Option<Vec<u8>> {
        let mut bytes = self.bytes.clone();
        bytes.starts_with(MAGIC).then(|| bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes()))?;
        Some(bytes)
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
    header(&start).ok().map(|(header, _)| header.generation)
}

/// The header, and where the outline's frame is.
///
/// Errors: what was expected.
fn header(bytes: &[u8]) -> Result<(Header, usize), String> {
    let plain =
        |numbers: &[u8]| Header { generation: number(numbers), start: number(&numbers[8..]), ..Header::default() };
    if let Some(numbers) = bytes.get(..OLD_HEADER_BYTES).and_then(|start| start.strip_prefix(OLD_MAGIC)) {
        return Ok((plain(numbers), OLD_HEADER_BYTES));
    }
    let size = match bytes.get(..MAGIC.len()) {
        Some(magic) if magic == MAGIC => HEADER_BYTES,
        Some(magic) if magic == MAGIC_3 => HEADER_3_BYTES,
        Some(magic)
            if magic.starts_with(NAME) && magic.ends_with(b"\n") && (b'5'..=b'9').contains(&magic[NAME.len()]) =>
        {
            let form = char::from(magic[NAME.len()]);
            return Err(format!("\"emmclab state 4\" or an earlier form, found form {form}: a newer emmclab wrote it"));
        }
        _ => return Err("\"emmclab state 4\" at byte 0".into()),
    };
    let damaged = || "a header with its checksum: it is damaged".to_string();
    let (found, of_header) = bytes.get(..size).ok_or_else(damaged)?.split_at(size - 4);
    if checksum(found) != of_header {
        return Err(damaged());
    }
    let flags = found[FLAGS_AT..].first_chunk().map_or(0, |flags| u32::from_le_bytes(*flags));
    Ok((
        Header {
            follow: Some(flags & FOLLOW != 0),
            accepts: flags & ACCEPTS != 0,
            profile: found.get(PROFILE_AT..).and_then(|rest| rest.first_chunk().copied()),
            ..plain(&found[MAGIC.len()..])
        },
        size,
    ))
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
        let header = Header { generation: 7, start: 24, follow: Some(true), accepts: false, profile: Some(*b"prof") };
        let mut state = NewState::create(&path, header, b"outline").unwrap();
        state.add(24, b"one").unwrap();
        state.add(99, b"").unwrap();
        state.place(&name, true).unwrap();
        let whole = std::fs::read(&name).unwrap();
        let found = FoundState::parse(whole.clone()).unwrap();
        assert_eq!(found.header, header);
        let accepting = Header { accepts: true, follow: Some(false), ..header };
        let changed = FoundState::parse(found.with_header(accepting).unwrap()).unwrap();
        assert_eq!((changed.header, changed.pieces().count()), (accepting, 2));
        assert_eq!(found.outline(), b"outline");
        assert_eq!(found.pieces().collect::<Vec<_>>(), [(24, &b"one"[..]), (99, b"")]);
        assert_eq!((generation_of(&name), generation_of(&path)), (Some(7), None));
        for cut in 0..whole.len() {
            let error = FoundState::parse(whole[..cut].to_vec()).unwrap_err();
            let expected = ["emmclab state 4", "cut off", "a header with its checksum"];
            assert!(expected.iter().any(|part| error.contains(part)), "{cut}: {error}");
        }
        for at in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 1;
            assert!(FoundState::parse(wrong).is_err(), "{at}");
        }
        let mut newer = whole.clone();
        newer[14] = b'5';
        assert!(FoundState::parse(newer).unwrap_err().contains("a newer emmclab wrote it"));
    }
}
