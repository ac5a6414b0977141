//! What a host asks of the card's storage, whatever command carried it.

pub use emmc_regs::Area;
use emmc_units::{Instant, Nanos};

use crate::ftl::FtlError;

/// How a write is to be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteFlags {
    /// Reliable write: nothing is ever torn or put at risk.
    pub reliable: bool,
    /// Past the volatile cache (FUA, forced programming).
    pub force: bool,
}

/// When a request is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostDone {
    /// When the last data has crossed the bus.
    pub transferred: Instant,
    /// When the card is no longer busy with it: acknowledged.
    pub done: Instant,
}

impl HostDone {
    /// The time since the request.
    pub fn latency(&self, asked: Instant) -> Nanos {
        self.done.since(asked)
    }
}

/// Content with every bit the other way round.
pub(super) fn inverted(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

/// Why the storage refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The sectors lie outside the area, or there is no such area.
    #[error("sectors {lba}..{} lie outside {area:?} of {size} sectors", lba + sectors)]
    OutOfRange {
        /// The area.
        area: Area,
        /// First sector asked for.
        lba: u64,
        /// Sectors asked for.
        sectors: u64,
        /// Sectors of the area.
        size: u64,
    },
    /// The translation layer could not do it.
    #[error(transparent)]
    Ftl(#[from] FtlError),
}

impl StorageError {
    /// Whether power went: nothing is answered any more.
    pub fn is_power_loss(&self) -> bool {
        matches!(self, Self::Ftl(FtlError::PowerLost))
    }
}
