//! The form of saved content in a file.
//!
//! ```text
//! byte 0      header: text, padded with spaces to 4096 bytes (`head -c 4096 FILE` shows it)
//! byte 4096   the content: byte N of the range at 4096 + N; what was a hole there is one here
//! table_at    the chunks with their checksums
//! ```
//! The header is written last, so that a file without it is a partial one.

use super::chunk::{CHUNK_BYTES, Chunk, checksum};
use super::identity::{Identity, line as one_line};

/// Unit: bytes.
pub(super) const HEADER_BYTES: u64 = 4096;
const FIRST_LINE: &str = "emmclab saved content 1";
const OLDER: &str = "emmclab saved content ";
/// A table of this many bytes describes 4 TiB. Unit: bytes.
const TABLE_BYTES_MAX: u64 = 64 << 20;

/// What a file of saved content says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) target: String,
    pub(super) from_bytes: u64,
    pub(super) to_bytes: u64,
    /// Holes of the range were allocated too.
    pub(super) is_allocated: bool,
    pub(super) identity: Identity,
    pub(super) chunks: u64,
    pub(super) table_checksum: u32,
}

/// Why a file is no saved content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FormatError {
    #[error("is no saved content of emmclab: expected {FIRST_LINE:?} at its start")]
    Foreign,
    #[error("is partial: it has no header, because it was not completely written")]
    Partial,
    #[error("was written by a newer emmclab ({0:?}; this one reads {FIRST_LINE:?})")]
    Newer(String),
    #[error("is damaged: {0}")]
    Damaged(String),
}

fn damaged(what: impl Into<String>) -> FormatError {
    FormatError::Damaged(what.into())
}

impl Header {
    /// Where the table of chunks begins. Unit: bytes.
    pub(super) fn table_at(&self) -> u64 {
        (HEADER_BYTES + self.to_bytes.saturating_sub(self.from_bytes)).next_multiple_of(HEADER_BYTES)
    }

    /// Unit: bytes.
    pub(super) fn table_bytes(&self) -> u64 {
        self.chunks.saturating_mul(Chunk::BYTES as u64)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("{FIRST_LINE}\n");
        let mut line = |name: &str, value: String| text.push_str(&format!("{name}: {value}\n"));
        line("target", one_line(&self.target));
        line("from_bytes", self.from_bytes.to_string());
        line("to_bytes", self.to_bytes.to_string());
        line("allocated", self.is_allocated.to_string());
        line("chunks", self.chunks.to_string());
        line("table_crc32", format!("{:08x}", self.table_checksum));
        for (name, value) in &self.identity.0 {
            line(&format!("is.{name}"), value.clone());
        }
        let sum = checksum(text.as_bytes());
        text.push_str(&format!("header_crc32: {sum:08x}\n"));
        let mut bytes = text.into_bytes();
        bytes.resize(bytes.len().max(HEADER_BYTES as usize), b' ');
        bytes
    }

    /// Errors: every form that [`Header::to_bytes`] does not make.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(FormatError::Partial);
        }
        if !bytes.starts_with(OLDER.as_bytes()) {
            return Err(FormatError::Foreign);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("its header is no text"))?;
        let first = text.lines().next().unwrap_or_default();
        if first != FIRST_LINE {
            return Err(FormatError::Newer(first.to_owned()));
        }
        let (checked, sum) = text.split_once("header_crc32: ").ok_or_else(|| damaged("its header is incomplete"))?;
        let is_whole = u32::from_str_radix(sum.trim(), 16).is_ok_and(|sum| sum == checksum(checked.as_bytes()));
        if !is_whole {
            return Err(damaged("the checksum of its header"));
        }
        let lines = || checked.lines().skip(1).filter_map(|line| line.split_once(": "));
        let text = |name: &str| {
            let found = lines().find(|(known, _)| *known == name).map(|(_, value)| value);
            found.ok_or_else(|| damaged(format!("its header has no {name}")))
        };
        let number = |name: &str| {
            let value = text(name)?;
            value.parse::<u64>().map_err(|_| damaged(format!("its header has {name} {value:?}; expected a number")))
        };
        let marks = lines().filter_map(|(name, value)| Some((name.strip_prefix("is.")?.to_owned(), value.to_owned())));
        let header = Self {
            target: text("target")?.into(),
            from_bytes: number("from_bytes")?,
            to_bytes: number("to_bytes")?,
            is_allocated: text("allocated")? == "true",
            identity: Identity(marks.collect()),
            chunks: number("chunks")?,
            table_checksum: u32::from_str_radix(text("table_crc32")?, 16).map_err(|_| damaged("its table_crc32"))?,
        };
        // No file of Linux is longer.
        let is_too_far = header.to_bytes > i64::MAX as u64 - HEADER_BYTES;
        if is_too_far || header.from_bytes > header.to_bytes || header.table_bytes() > TABLE_BYTES_MAX {
            return Err(damaged("its header names an impossible range"));
        }
        Ok(header)
    }

    /// The chunks of a table.
    ///
    /// Errors: another checksum; chunks out of order or outside of the range.
    pub(super) fn table(&self, bytes: &[u8]) -> Result<Vec<Chunk>, FormatError> {
        if checksum(bytes) != self.table_checksum {
            return Err(damaged("the checksum of its table"));
        }
        let (mut chunks, mut end) = (Vec::with_capacity(bytes.len() / Chunk::BYTES), self.from_bytes);
        for entry in bytes.chunks_exact(Chunk::BYTES) {
            let chunk = entry.try_into().map(Chunk::from_bytes).map_err(|_| damaged("its table"))?;
            if chunk.at < end || chunk.end() > self.to_bytes || u64::from(chunk.length) > CHUNK_BYTES {
                return Err(damaged("its table has a chunk outside of its range"));
            }
            end = chunk.end();
            chunks.push(chunk);
        }
        Ok(chunks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            target: "/dev/mmcblk1\u{1b}[2J".into(),
            from_bytes: 4096,
            to_bytes: 3 << 20,
            is_allocated: true,
            identity: Identity(vec![("kind".into(), "device".into()), ("cid".into(), "15".into())]),
            chunks: 2,
            table_checksum: 0xdead_beef,
        }
    }

    #[test]
    fn a_header_is_text_and_reads_back() {
        let bytes = header().to_bytes();
        assert_eq!(bytes.len() as u64, HEADER_BYTES);
        let read = Header::from_bytes(&bytes).unwrap();
        assert_eq!(read, Header { target: "/dev/mmcblk1\\u{1b}[2J".into(), ..header() });
        assert_eq!(read.table_at() % HEADER_BYTES, 0);
    }

    #[test]
    fn no_flip_in_a_header_goes_unseen() {
        let bytes = header().to_bytes();
        let text = bytes.iter().rposition(|byte| *byte == b'\n').unwrap();
        for at in 0..text {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                // An upper-case digit of the checksum is the same number.
                let read = Header::from_bytes(&flipped);
                assert!(read.is_err() || read == Header::from_bytes(&bytes), "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn a_range_that_no_file_has_is_refused() {
        let range = |from_bytes, to_bytes| Header::from_bytes(&Header { from_bytes, to_bytes, ..header() }.to_bytes());
        assert!(range(0, i64::MAX as u64 - HEADER_BYTES).is_ok());
        for (from, to) in [(0, u64::MAX), (0, i64::MAX as u64), (4096, 0)] {
            assert!(matches!(range(from, to), Err(FormatError::Damaged(_))), "{from} to {to}");
        }
    }

    #[test]
    fn other_files_are_no_saved_content() {
        assert_eq!(Header::from_bytes(&[0; 4096]), Err(FormatError::Partial));
        assert_eq!(Header::from_bytes(b"text"), Err(FormatError::Foreign));
        let newer = b"emmclab saved content 2\n".to_vec();
        assert!(matches!(Header::from_bytes(&newer), Err(FormatError::Newer(_))));
        assert!(matches!(Header::from_bytes(b"emmclab saved content 1\nx"), Err(FormatError::Damaged(_))));
    }

    #[test]
    fn chunks_out_of_order_or_outside_are_refused() {
        let chunk = |at, length| Chunk { at, length, checksum: 7 };
        let read = |chunks: &[Chunk]| {
            let bytes: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.to_bytes()).collect();
            Header { table_checksum: checksum(&bytes), ..header() }.table(&bytes)
        };
        let good = [chunk(4096, 512), chunk(8192, 1 << 20)];
        assert_eq!(read(&good), Ok(good.to_vec()));
        for bad in [
            [good[1], good[0]],
            [chunk(0, 512), good[1]],
            [good[0], chunk(3 << 20, 1)],
            [chunk(4096, 2 << 20), good[1]],
        ] {
            assert!(read(&bad).is_err(), "{bad:?}");
        }
    }
}
