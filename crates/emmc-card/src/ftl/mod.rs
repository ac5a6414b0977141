//! The translation layer: the place of each logical unit, and the cost of maintaining it.
//!
//! One narrow trait, [`Ftl`]; strategies behind it. A layer holds the memory of a controller; data that must survive a
//! power cut is in flash, and [`Ftl::recover`] rebuilds the rest from it. Absent on purpose: sectors, areas and
//! registers (`card`).

pub mod gc;
pub mod map;
pub mod mapping_cache;
pub mod page;
pub mod pool;
pub mod refresh;
pub mod segment;
pub mod slc_front;
pub mod trim_log;
mod unsure;
pub mod wear;

mod build;

use emmc_units::Instant;

pub use build::build;

use crate::nand::{CellMode, Nand, NandError};

/// An error of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FtlError {
    /// Power went.
    #[error("power lost")]
    PowerLost,
    /// No block is left to write to: the part is read-only.
    #[error("no spare block is left")]
    WornOut,
    /// A unit cannot be read.
    #[error("unit {unit} cannot be corrected")]
    Uncorrectable {
        /// The logical unit.
        unit: u32,
    },
}

impl From<NandError> for FtlError {
    /// For paths on which only a power cut is possible.
    fn from(_: NandError) -> Self {
        Self::PowerLost
    }
}

/// When a write counts as complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// In the controller's memory: it may wait until its page is full.
    Buffered,
    /// In flash; older data may be at risk meanwhile (WR_REL_SET off).
    Flash,
    /// In flash, without risk to acknowledged data (WR_REL_SET on, reliable write).
    Reliable,
}

/// How units become invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimKind {
    /// The content may come back or not: cheapest.
    Discard,
    /// Reads as erased from now on, also after a power cut.
    Trim,
}

/// Counters of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FtlStats {
    /// Units that the host wrote.
    pub host_units: u64,
    /// Units copied by garbage collection, folding, merging and wear levelling, and the rest of a page of the log.
    pub copied_units: u64,
    /// Units programmed to fill a page that could not wait.
    pub padding_units: u64,
    /// Blocks collected.
    pub collections: u64,
    /// Blocks folded from the SLC cache.
    pub folds: u64,
    /// Full merges: complete copies of an allocation unit.
    pub full_merges: u64,
    /// Partial merges: only the rest is copied.
    pub partial_merges: u64,
    /// Switch merges, which copy nothing.
    pub switch_merges: u64,
    /// Blocks moved by static wear levelling.
    pub wear_moves: u64,
    /// Blocks copied because they were read often, or because their data was old.
    #[serde(default)]
    pub refreshes: u64,
    /// Mapping pages read because they were not in memory.
    pub map_misses: u64,
    /// Mapping pages written back.
    pub map_writes: u64,
    /// Units trimmed.
    pub trimmed_units: u64,
    /// Blocks that went bad and were replaced.
    pub replaced_blocks: u64,
    /// Times that the host waited for a collection, a fold or a merge.
    pub foreground_stalls: u64,
}

impl FtlStats {
    /// The sum of both.
    pub fn plus(self, other: &Self) -> Self {
        Self {
            host_units: self.host_units + other.host_units,
            copied_units: self.copied_units + other.copied_units,
            padding_units: self.padding_units + other.padding_units,
            collections: self.collections + other.collections,
            folds: self.folds + other.folds,
            full_merges: self.full_merges + other.full_merges,
            partial_merges: self.partial_merges + other.partial_merges,
            switch_merges: self.switch_merges + other.switch_merges,
            wear_moves: self.wear_moves + other.wear_moves,
            refreshes: self.refreshes + other.refreshes,
            map_misses: self.map_misses + other.map_misses,
            map_writes: self.map_writes + other.map_writes,
            trimmed_units: self.trimmed_units + other.trimmed_units,
            replaced_blocks: self.replaced_blocks + other.replaced_blocks,
            foreground_stalls: self.foreground_stalls + other.foreground_stalls,
        }
    }
}

/// The part of the flash that a layer gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSpec {
    /// Its blocks, bad ones included, spares last.
    pub blocks: Vec<u32>,
    /// Their cell mode. The layer sets the mode of every block when it is created.
    pub mode: CellMode,
    /// Logical units that it offers.
    pub units: u32,
    /// How many of the blocks are spares for bad blocks.
    pub spares: u32,
    /// Blocks, of the above, that make the SLC cache; 0: none.
    pub slc_blocks: u32,
    /// Seed of random choices.
    pub seed: u64,
}

/// A translation layer over a fixed set of blocks.
///
/// Logical units count from 0. Every call gets `now` and returns its completion time; the caller's next `now` may be
/// earlier than that (queueing), but never earlier than the last `now`.
pub trait Ftl: std::fmt::Debug + Send {
    /// Logical units that it offers.
    fn units(&self) -> u32;

    /// Writes `count` units from `first`.
    ///
    /// Shape: `data` is `count` units, or absent where payload is not simulated.
    /// Errors: any; after [`FtlError::WornOut`] reads still work.
    fn write(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        data: Option<&[u8]>,
        durability: Durability,
        now: Instant,
    ) -> Result<Instant, FtlError>;

    /// The host is about to write inside the block that it has just written, rather than after it. Returns when the
    /// layer is ready for that.
    ///
    /// Errors: as [`Ftl::write`].
    fn step_back(&mut self, _nand: &mut Nand, _unit: u32, now: Instant) -> Result<Instant, FtlError> {
        Ok(now)
    }

    /// Writes single units, each as a buffered write of its own at `now`, up to the first that fails. Returns how many
    /// that were, and when all are done. Payload is not simulated.
    fn write_each(&mut self, nand: &mut Nand, units: &[u32], now: Instant) -> (usize, Result<Instant, FtlError>) {
        let mut done = now;
        for (index, &unit) in units.iter().enumerate() {
            match self.write(nand, unit, 1, None, Durability::Buffered, now) {
                Ok(written) => done = done.max(written),
                Err(error) => return (index + 1, Err(error)),
            }
        }
        (units.len(), Ok(done))
    }

    /// Announces units that will be read or written soon, and some announced before that come next, so that a layer can
    /// prefetch what it knows of them.
    fn foresee(&self, _soon: &[u32], _next: &[u32]) {}

    /// Reads `count` units from `first` into `out`, which gets 0x00 for units never written or trimmed.
    ///
    /// Shape: `out` is `count` units, or absent where payload is not simulated.
    fn read(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        out: Option<&mut [u8]>,
        now: Instant,
    ) -> Result<Instant, FtlError>;

    /// Deallocates `count` units from `first`.
    fn trim(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        kind: TrimKind,
        now: Instant,
    ) -> Result<Instant, FtlError>;

    /// A newer copy of a unit is durable in a layer above: this layer need not keep its copy, nor record that. The copy
    /// may come back after a power cut, which the layer above handles.
    fn supersede(&mut self, _unit: u32) {}

    /// Writes everything buffered to flash.
    fn flush(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError>;

    /// The same, and the next write begins a row, the pages that the planes of a die program together, unless a program
    /// fails meanwhile.
    fn flush_row(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        self.flush(nand, now)
    }

    /// Whether a unit holds data (written and not trimmed since).
    fn is_mapped(&self, unit: u32) -> bool;

    /// One bounded step of background work: collecting, folding or levelling one block; `None` if there is none.
    fn background(&mut self, nand: &mut Nand, now: Instant) -> Result<Option<Instant>, FtlError>;

    /// How urgent background work is: 0 none, 1 not critical, 2 performance suffers, 3 critical (BKOPS_STATUS).
    fn urgency(&self, nand: &Nand) -> u8;

    /// Physically erases all blocks that hold no valid data (sanitize), moving valid data out of them first.
    fn purge(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError>;

    /// Drops all memory and rebuilds it from flash, as after a power cut.
    fn recover(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError>;

    /// The same below a layer that holds newer copies of some units, which no cut can undo any more.
    ///
    /// Blocks whose units were superseded have been free, perhaps all free ones. They are needed again at once.
    fn recover_below(
        &mut self,
        nand: &mut Nand,
        _is_superseded: &dyn Fn(u32) -> bool,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        self.recover(nand, now)
    }

    /// Spare blocks left and spare blocks in all.
    fn spares(&self) -> (u32, u32);

    /// Blocks that it owns.
    fn blocks(&self) -> &[u32];

    /// Mapped units, in flash or in incomplete pages; a unit in two layers counts once.
    fn mapped_units(&self) -> u32;

    /// Valid units of one of its blocks, for the map of blocks; `None` if it does not count them.
    fn valid_in(&self, _block: u32) -> Option<u32> {
        None
    }

    /// What it has done.
    fn stats(&self) -> &FtlStats;

    /// Checks every invariant between memory and flash: each mapped unit points at a page that holds it, valid counts
    /// agree, no block has two roles.
    ///
    /// Errors: a description of the violation.
    fn audit(&self, nand: &Nand) -> Result<(), String>;
}
