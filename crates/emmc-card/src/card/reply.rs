//! The card's output on its command and data lines.

use emmc_regs::command::{DataDirection, Response};
use emmc_units::Instant;

/// The response to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The response on the command line; `Response::None` if the card is silent.
    pub response: Response,
    /// End of busy on the data line; absent: no busy.
    pub busy_until: Option<Instant>,
    /// The data that follows.
    pub data: Option<DataPhase>,
}

/// The data that follows a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPhase {
    /// Its direction.
    pub direction: DataDirection,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Blocks; absent: until CMD12.
    pub blocks: Option<u32>,
    /// To the host: when the first block has arrived; to the card: when it accepts the first.
    pub ready: Instant,
}

/// The card's answer to a block from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataStatus {
    /// Correct.
    Accepted {
        /// End of busy on the data line; absent: no busy.
        busy_until: Option<Instant>,
    },
    /// Wrong checksum or length: dropped, with the rest of this transfer.
    Rejected,
    /// The card expects no data.
    Ignored,
}

/// A block for the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataBlock {
    /// Its content; zeros if the card stores no data.
    pub bytes: Vec<u8>,
    /// When its last bit has been transferred.
    pub at: Instant,
}

impl Reply {
    /// No response.
    pub(crate) const SILENT: Self = Self { response: Response::None, busy_until: None, data: None };

    /// A response only.
    pub(crate) fn with(response: Response) -> Self {
        Self { response, ..Self::SILENT }
    }
}
