//! The one block interface: a card's areas, addressed in bytes, with the card's time.
//!
//! Calls return immediately: the model does the work and returns the instant at which the card would have finished. The
//! front waits until then ([`Block::due`]) before it replies to the client, so any number of requests may be
//! outstanding.

use std::ops::Range;
use std::time::Instant as Wall;

use emmc_card::device::Area;
use emmc_card::nand::Landing;
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
    /// The preferred write granularity: the mapping unit. Unit: bytes.
    pub preferred_bytes: u32,
    /// What unmapped bytes read as: 0x00 or 0xFF (`ERASED_MEM_CONT`).
    pub erased_byte: u8,
    /// Writes are refused.
    pub read_only: bool,
}

/// A range of bytes that is mapped or unmapped throughout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Unit: bytes from the area's start.
    pub range: Range<u64>,
    /// Whether the card holds content for it. If not, it was trimmed or never written, and reads as erased.
    pub mapped: bool,
}

/// A request to an area.
#[derive(Debug)]
#[expect(missing_docs, reason = "`offset` and `bytes` are in bytes from the area's start")]
pub enum Request<'a> {
    /// Fill the buffer from `offset` on.
    Read { offset: u64, into: &'a mut [u8] },
    /// Write; `through` is FUA: it bypasses the volatile cache.
    Write { offset: u64, data: &'a [u8], through: bool },
    /// Make the range read as zeros; it may be deallocated.
    Zero { offset: u64, bytes: u64, through: bool },
    /// TRIM: deallocate the range. It reads as erased afterwards.
    Trim { offset: u64, bytes: u64 },
    /// Write the card's volatile cache to flash.
    Flush,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// Outside the area, or no such area.
    #[error("bytes {}..{} lie outside an area of {size_bytes} bytes", range.start, range.end)]
    OutOfRange {
        /// The request.
        range: Range<u64>,
        /// The area's size.
        size_bytes: u64,
    },
    /// Not whole sectors.
    #[error("bytes {}..{} are not whole sectors of 512 bytes", range.start, range.end)]
    Misaligned {
        /// The request.
        range: Range<u64>,
    },
    /// The area or the card takes no writes.
    #[error("the area is write-protected")]
    ReadOnly,
    /// The card has no power.
    #[error("the card has no power")]
    PowerLost,
    /// The card failed: uncorrectable error, worn out, or an injected error.
    #[error("{0}")]
    Medium(String),
    /// The folder's files could not be written; no further request is acknowledged.
    #[error("the card's folder: {0}")]
    Store(String),
}

/// Areas of a card as block devices.
pub trait Block: Send + Sync {
    /// The areas of the card.
    fn exports(&self) -> Vec<Export>;

    /// Performs a request in the model; returns the instant at which the card has finished it.
    ///
    /// Shape: offsets and lengths are multiples of 512 bytes.
    /// Errors: out of range, misaligned, write-protected, no power, medium, store.
    fn submit(&self, area: Area, request: Request<'_>) -> Result<Instant, BlockError>;

    /// Which of the bytes are mapped: ascending, without gaps, equal neighbours merged.
    ///
    /// Errors: out of range, misaligned.
    fn mapped(&self, area: Area, range: Range<u64>) -> Result<Vec<Mapped>, BlockError>;

    /// Memory for the data of a long write that a client still sends, so that it need not be copied later. `None`: it
    /// is received elsewhere. Followed by [`Block::end_landing`], after [`Block::submit`] or instead of it.
    fn landing(&self, _area: Area, _offset: u64, _bytes: usize) -> Option<Landing> {
        None
    }

    /// The data that was received there is written, or will not be.
    fn end_landing(&self, _landing: Landing) {}

    /// How often the power was cut so far, for layers that lose something then.
    fn power_cuts(&self) -> u64 {
        0
    }

    /// When a client may get the reply to work that ends at `at`; `None`: now.
    fn due(&self, at: Instant) -> Option<Wall>;

    /// A client has just got the reply to work that ended at `at`. Used to measure lateness.
    fn answered(&self, _at: Instant) {}
}
