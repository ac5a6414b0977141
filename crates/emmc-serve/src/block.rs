//! The one block interface: a card's areas, in bytes, with the card's time.
//!
//! Calls return at once: the work is done in the model, and the answer is when the card would have been done. Who
//! serves a client waits until then ([`Block::due`]) before answering, so any number of requests may be under way.

use std::ops::Range;
use std::time::Instant as Wall;

use emmc_card::device::Area;
use emmc_units::Instant;

/// An area as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// `user`, `boot0`, `boot1`, `gp1` to `gp4`.
    pub name: String,
    /// The area.
    pub area: Area,
    /// Unit: bytes.
    pub size_bytes: u64,
    /// What a write had best be a multiple of: the mapping unit. Unit: bytes.
    pub preferred_bytes: u32,
    /// What bytes that hold nothing read as: 0x00 or 0xFF (`ERASED_MEM_CONT`).
    pub erased_byte: u8,
    /// Writes are refused.
    pub read_only: bool,
}

/// A run of bytes that are mapped, or hold nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Unit: bytes from the area's start.
    pub range: Range<u64>,
    /// Whether the card keeps content for it; else it was trimmed or never written, and reads as erased.
    pub mapped: bool,
}

/// What is asked of an area.
#[derive(Debug)]
#[expect(missing_docs, reason = "`offset` and `bytes` are in bytes from the area's start")]
pub enum Request<'a> {
    /// Fill the buffer from `offset` on.
    Read { offset: u64, into: &'a mut [u8] },
    /// Write; `through` is FUA: past the volatile cache.
    Write { offset: u64, data: &'a [u8], through: bool },
    /// Make it read as zeros; may give it up.
    Zero { offset: u64, bytes: u64, through: bool },
    /// Give it up: TRIM. It reads as erased afterwards.
    Trim { offset: u64, bytes: u64 },
    /// Bring what is only in the card's memory to flash.
    Flush,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// Outside the area, or no such area.
    #[error("bytes {}..{} lie outside an area of {size_bytes} bytes", range.start, range.end)]
    OutOfRange {
        /// What was asked for.
        range: Range<u64>,
        /// The area's size.
        size_bytes: u64,
    },
    /// Not whole sectors.
    #[error("bytes {}..{} are not whole sectors of 512 bytes", range.start, range.end)]
    Misaligned {
        /// What was asked for.
        range: Range<u64>,
    },
    /// The area or the card takes no writes.
    #[error("the area is write-protected")]
    ReadOnly,
    /// The card has no power.
    #[error("the card has no power")]
    PowerLost,
    /// The card could not: uncorrectable, worn out, injected.
    #[error("{0}")]
    Medium(String),
    /// The folder's files could not be written: nothing more is acknowledged.
    #[error("the card's folder: {0}")]
    Store(String),
}

/// Areas of a card as block devices.
pub trait Block: Send + Sync {
    /// The areas that there are.
    fn exports(&self) -> Vec<Export>;

    /// Does a request in the model; answers when the card is done with it.
    ///
    /// Shape: offsets and lengths are multiples of 512 bytes.
    /// Errors: out of range, misaligned, write-protected, no power, medium, store.
    fn submit(&self, area: Area, request: Request<'_>) -> Result<Instant, BlockError>;

    /// Which of the bytes are mapped, in order, without gaps, neighbours alike joined.
    ///
    /// Errors: out of range, misaligned.
    fn mapped(&self, area: Area, range: Range<u64>) -> Result<Vec<Mapped>, BlockError>;

    /// When a client may be told of what is done at `at`; `None`: now.
    fn due(&self, at: Instant) -> Option<Wall>;

    /// A client was just told of what was done at `at`: for the count of how late that is.
    fn answered(&self, _at: Instant) {}
}
