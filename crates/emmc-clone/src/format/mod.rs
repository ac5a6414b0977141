//! The file of a clone, version 1: a header, records with their content, an end. `docs/clone.md` has the table.
//!
//! Every part has a checksum, and the end has one over all records: a file that is cut, damaged or lacks a record is
//! refused with the place named. Numbers are little endian. Absent on purpose: reading and writing files, compression.

mod header;
mod record;

pub use header::{AreaShape, HEAD_BYTES, HEADER_BYTES_MAX, Head, Header, SourceKind};
pub use record::{Coding, Content, RECORD_BYTES, Record, Sequence};

/// The version that this writes and reads.
pub const VERSION: u32 = 1;
/// The most content of one data record. Unit: bytes.
pub const PIECE_BYTES_MAX: u32 = 1 << 20;
/// The most that a record stores; compression may lengthen content a little. Unit: bytes.
pub const STORED_BYTES_MAX: u32 = PIECE_BYTES_MAX + (64 << 10);

/// Why a file is no clone, or not a whole one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Its first bytes are others.
    #[error("no clone of emmclab: it does not begin with EMMCLONE")]
    Other,
    /// A version that this cannot read.
    #[error("a clone of version {found}; this emmclab reads version {VERSION}")]
    Version {
        /// The file's.
        found: u32,
    },
    /// Bytes that differ from their checksum, or make no sense.
    #[error("damaged at byte {at}: {what}")]
    Damaged {
        /// The place in the file. Unit: bytes.
        at: u64,
        /// What is wrong.
        what: String,
    },
    /// It ends before its end record.
    #[error("cut off: it ends at byte {at}, before its end record")]
    Cut {
        /// The end of the file, or of its last whole record. Unit: bytes.
        at: u64,
    },
}

impl FormatError {
    /// An error at a place in the file.
    pub fn damaged(at: u64, what: impl Into<String>) -> Self {
        Self::Damaged { at, what: what.into() }
    }
}
