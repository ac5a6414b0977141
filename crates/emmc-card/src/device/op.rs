//! Requests to the card's storage, independent of the command.

pub use emmc_regs::Area;
use emmc_units::{Instant, Nanos};

use crate::ftl::FtlError;

/// The durability of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteFlags {
    /// Reliable write: atomic, and no other data is at risk.
    pub reliable: bool,
    /// Bypasses the volatile cache (FUA, forced programming).
    pub force: bool,
}

/// Completion times of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostDone {
    /// When the last data has been transferred.
    pub transferred: Instant,
    /// When the card is no longer busy: acknowledged.
    pub done: Instant,
}

impl HostDone {
    /// The time since the request.
    pub fn latency(&self, asked: Instant) -> Nanos {
        self.done.since(asked)
    }
}

/// Content with every bit inverted.
pub(super) fn inverted(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

/// A storage error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The sectors lie outside the area, or there is no such area.
    #[error("sectors {lba}..{} lie outside {area:?} of {size} sectors", lba + sectors)]
    OutOfRange {
        /// The area.
        area: Area,
        /// First requested sector.
        lba: u64,
        /// Number of requested sectors.
        sectors: u64,
        /// Sectors of the area.
        size: u64,
    },
    /// An error of the translation layer.
    #[error(transparent)]
    Ftl(#[from] FtlError),
}

impl StorageError {
    /// Whether power was lost: no more replies.
    pub fn is_power_loss(&self) -> bool {
        matches!(self, Self::Ftl(FtlError::PowerLost))
    }
}
