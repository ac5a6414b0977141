//! Blocks, cell modes in use, counters and errors.

use emmc_units::Instant;

use super::CellMode;

/// In the spare area of a unit that holds no host data.
pub const NO_UNIT: u32 = u32::MAX;

/// An error of the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NandError {
    /// Power is off; every operation fails until it returns.
    #[error("power lost")]
    PowerLost,
    /// The page did not program; the block is to be retired. The page counts as used.
    #[error("program failed in block {block}")]
    ProgramFailed {
        /// The block.
        block: u32,
        /// When the die's status told so: the program has taken its time, and a power cut before could damage pages on
        /// the same word line.
        done: Instant,
    },
    /// The block did not erase and is bad from now on.
    #[error("erase failed in block {block}")]
    EraseFailed {
        /// The block.
        block: u32,
    },
    /// The page cannot be read: torn by a power cut.
    #[error("block {block} page {page} cannot be corrected")]
    Uncorrectable {
        /// The block.
        block: u32,
        /// The page.
        page: u32,
    },
}

/// What is wrong with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum BlockHealth {
    /// Nothing.
    #[default]
    Good,
    /// Bad when the part was made.
    FactoryBad,
    /// Went bad in use.
    GrownBad,
}

/// A block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Erases so far.
    pub erase_count: u32,
    /// Erases that it will bear in its built mode.
    pub endurance: u32,
    /// The next page to program; equal to the pages of its mode when full.
    pub next_page: u32,
    /// How it is used.
    pub mode: CellMode,
    /// Whether it may be used.
    pub health: BlockHealth,
}

/// What the flash has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counters {
    /// Pages read.
    pub page_reads: u64,
    /// Pages programmed.
    pub page_programs: u64,
    /// Units programmed, padding included.
    pub unit_programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Programs that failed.
    pub program_failures: u64,
    /// Erases that failed.
    pub erase_failures: u64,
    /// Breaches of the contract by the layer above.
    pub violations: u64,
}

/// What the flash model stores of programmed data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoredContent {
    /// The mapping only: plain simulation. Power cuts do no damage, and recovery has nothing to scan.
    #[default]
    Nothing,
    /// Also sequence numbers, stamps, records, and the state of every page: power cuts are realistic.
    Orders,
    /// Also the host's bytes.
    Data,
}
