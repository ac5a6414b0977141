//! The flash: blocks and pages that must be erased before they are programmed, and that wear.
//!
//! State changes at once, time is answered: an operation issued at `now` ends at `max(now, busy) + t`. The contract
//! enforces itself: programming out of order, into a bad block or over data stops the program in debug builds and is
//! counted in release ([`Counters::violations`]). What survives a power cut is what this module holds and nothing else.
//! Absent on purpose: where data lies and why (`ftl`), and what the host calls it (`card`).

mod cell;
mod geometry;
mod timing;

use emmc_units::Instant;

pub use cell::CellMode;
pub use geometry::Geometry;

use crate::profile::NandConfig;
use crate::sim::Rng;
use timing::Timing;

/// In the spare area of a unit that holds no host data.
pub const NO_UNIT: u32 = u32::MAX;

/// Why the flash did not do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NandError {
    /// Power went; nothing works until it is back.
    #[error("power lost")]
    PowerLost,
    /// The page did not program; the block is to be retired. The page counts as used.
    #[error("program failed in block {block}")]
    ProgramFailed {
        /// The block.
        block: u32,
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

/// The flash of a card.
#[derive(Clone, Debug)]
pub struct Nand {
    geometry: Geometry,
    timing: Timing,
    blocks: Vec<Block>,
    /// Spare area: the logical unit that each physical unit holds.
    spare: Vec<u32>,
    counters: Counters,
}

impl Nand {
    /// New flash: all blocks erased and, but for the factory's bad ones, good.
    pub fn new(config: &NandConfig, geometry: Geometry, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let timing = Timing::new(config, &geometry, Rng::new(rng.next_u64()));
        let block = Block {
            erase_count: 0,
            endurance: config.native.endurance,
            next_page: 0,
            mode: geometry.native,
            health: BlockHealth::Good,
        };
        Self {
            geometry,
            timing,
            blocks: vec![block; geometry.blocks as usize],
            spare: vec![NO_UNIT; geometry.blocks as usize * geometry.units_per_block() as usize],
            counters: Counters::default(),
        }
    }

    /// Its shape.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// A block's state.
    pub fn block(&self, block: u32) -> &Block {
        &self.blocks[block as usize]
    }

    /// All blocks.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// What has been done so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Pages of a block in its present mode.
    pub fn pages_of(&self, block: u32) -> u32 {
        self.geometry.pages_in(self.block(block).mode)
    }

    /// Units of a block in its present mode.
    pub fn units_of(&self, block: u32) -> u32 {
        self.geometry.units_in(self.block(block).mode)
    }

    /// The logical units that the units of a block hold, [`NO_UNIT`] for padding; as many as have been programmed.
    pub fn spare(&self, block: u32) -> &[u32] {
        let first = self.geometry.first_unit(block, 0) as usize;
        &self.spare[first..first + (self.block(block).next_page * self.geometry.units_per_page) as usize]
    }

    /// The logical unit in a physical one.
    pub fn logical(&self, unit: u32) -> u32 {
        self.spare[unit as usize]
    }

    /// Reads part of a page.
    ///
    /// Errors: [`NandError::Uncorrectable`], [`NandError::PowerLost`].
    #[inline]
    pub fn read(&mut self, block: u32, page: u32, bytes: u32, now: Instant) -> Result<Instant, NandError> {
        self.counters.page_reads += 1;
        let mode = self.blocks[block as usize].mode;
        Ok(self.timing.read(&self.geometry, mode, page, bytes, now))
    }

    /// Programs the next page of a block: `units` are the logical units that its units hold.
    ///
    /// Shape: `units` has units_per_page entries; `data` is a page, or absent where payload is not simulated.
    /// Errors: [`NandError::ProgramFailed`], [`NandError::PowerLost`].
    #[inline]
    pub fn program(
        &mut self,
        block: u32,
        page: u32,
        units: &[u32],
        _data: Option<&[u8]>,
        now: Instant,
    ) -> Result<Instant, NandError> {
        let state = self.blocks[block as usize];
        let in_order = page == state.next_page && page < self.geometry.pages_in(state.mode);
        if !in_order || state.health != BlockHealth::Good || units.len() != self.geometry.units_per_page as usize {
            self.violation("program");
        }
        self.blocks[block as usize].next_page = page + 1;
        let first = self.geometry.first_unit(block, page) as usize;
        self.spare[first..first + units.len()].copy_from_slice(units);
        self.counters.page_programs += 1;
        self.counters.unit_programs += units.len() as u64;
        Ok(self.timing.program(&self.geometry, state.mode, block, page, now))
    }

    /// Erases a block.
    ///
    /// Errors: [`NandError::EraseFailed`] when its endurance is used up, [`NandError::PowerLost`].
    pub fn erase(&mut self, block: u32, now: Instant) -> Result<Instant, NandError> {
        if self.block(block).health != BlockHealth::Good {
            self.violation("erase");
        }
        let mode = self.block(block).mode;
        let state = &mut self.blocks[block as usize];
        state.next_page = 0;
        state.erase_count += 1;
        self.counters.erases += 1;
        Ok(self.timing.erase(&self.geometry, mode, now))
    }

    /// Changes how a block is used. It must be erased.
    pub fn set_mode(&mut self, block: u32, mode: CellMode) {
        if self.block(block).next_page != 0 {
            self.violation("set_mode");
        }
        self.blocks[block as usize].mode = mode;
    }

    /// When nothing is under way any more.
    pub fn quiet_at(&self) -> Instant {
        self.timing.quiet_at()
    }

    /// Power goes at `now`, between two operations.
    pub fn power_off(&mut self, now: Instant) {
        self.timing.stop(now);
    }

    #[cold]
    fn violation(&mut self, what: &str) {
        debug_assert!(false, "the contract of the flash is broken: {what}");
        self.counters.violations += 1;
    }
}
