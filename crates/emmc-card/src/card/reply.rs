//! What the card gives back on its command and data lines.

use emmc_regs::command::{DataDirection, Response};
use emmc_units::Instant;

/// The answer to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// What goes over the command line; `Response::None` where the card keeps silent.
    pub response: Response,
    /// When the data line is no longer held low; absent: it never was.
    pub busy_until: Option<Instant>,
    /// The data that follows.
    pub data: Option<DataPhase>,
}

/// The data that follows a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPhase {
    /// Which way it flows.
    pub direction: DataDirection,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks; absent: until CMD12.
    pub blocks: Option<u32>,
    /// From when on: to the host, when the first block has arrived; to the card, when it takes the first.
    pub ready: Instant,
}

/// What the card says of a block from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataStatus {
    /// It is right.
    Accepted {
        /// When the data line is no longer held low; absent: at once.
        busy_until: Option<Instant>,
    },
    /// Its checksum or its length is wrong: it is dropped, and so is all that follows of this transfer.
    Rejected,
    /// The card waits for no data.
    Ignored,
}

/// A block for the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataBlock {
    /// Its content; zeros where the card keeps no data.
    pub bytes: Vec<u8>,
    /// When its last bit has crossed the bus.
    pub at: Instant,
}

impl Reply {
    /// No answer.
    pub(crate) const SILENT: Self = Self { response: Response::None, busy_until: None, data: None };

    /// An answer and nothing else.
    pub(crate) fn with(response: Response) -> Self {
        Self { response, ..Self::SILENT }
    }
}
