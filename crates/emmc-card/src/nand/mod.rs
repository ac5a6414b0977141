//! The flash: blocks and pages with erase before program, and wear.
//!
//! State changes immediately, and the time is returned: an operation issued at `now` ends at `max(now, busy) + t`. The
//! contract enforces itself: programming out of sequence, into a bad block or over data panics in debug builds and is
//! counted in release ([`Counters::violations`]). Only the content of this module survives a power cut;
//! `fault` describes the effects of a cut. Absent on purpose: the placement of data (`ftl`), the host's
//! addresses (`card`). What wear, time and reads do to the times is in `timing/aged.rs`; no data is lost by them.

mod age;
mod cell;
mod changes;
mod content;
mod copy;
mod failures;
mod fault;
mod free_slots;
mod geometry;
mod image;
mod journal;
mod landing;
mod ops;
mod page_store;
mod payload;
mod power;
mod preset;
mod scan;
mod state;
mod sums;
#[cfg(test)]
mod tests;
mod timing;

use emmc_units::{Instant, Rng};

pub use cell::CellMode;
pub(crate) use content::Content;
pub(crate) use copy::{PageCopy, copy_few};
pub use fault::FaultPlan;
pub use geometry::Geometry;
pub(crate) use image::{BytesAre, NandImage};
pub use landing::{Landing, LandingMemory};
pub use payload::Payload;
pub use scan::{FoundBlock, FoundPage, PageScan, Soundness, Survey, session_of};
pub use state::{Block, BlockHealth, Counters, NO_UNIT, NandError, StoredContent};
pub use sums::ContentsCheck;

use crate::profile::NandConfig;
use failures::Failing;
use page_store::PageStore;
use power::Power;
use timing::Timing;

/// The flash of a card.
#[derive(Clone, Debug)]
pub struct Nand {
    geometry: Geometry,
    timing: Timing,
    blocks: Vec<Block>,
    /// Spare area: the logical unit that each physical unit holds.
    spare: Vec<u32>,
    counters: Counters,
    /// Programs and erases issued so far, and the step of the next special event.
    steps: u64,
    alarm: u64,
    /// Whether reads need extra checks: pages may be torn, or power is off.
    wary: bool,
    failing: Failing,
    power: Power,
    store: Option<Box<PageStore>>,
}

impl Nand {
    /// New flash: all blocks erased and, except the factory's bad ones, good. It stores no data ([`Nand::keeping`]).
    pub fn new(config: &NandConfig, geometry: Geometry, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let timing = Timing::new(config, &geometry, Rng::new(rng.next_u64()));
        let mut failing = Failing::new(config, Rng::new(rng.next_u64()));
        let blocks = failing.blocks(config, &geometry);
        let mut nand = Self {
            geometry,
            timing,
            blocks,
            spare: vec![NO_UNIT; geometry.blocks as usize * geometry.units_per_block() as usize],
            counters: Counters::default(),
            steps: 0,
            alarm: 0,
            wary: false,
            failing,
            power: Power::new(rng.next_u64()),
            store: None,
        };
        nand.set_alarm();
        nand
    }

    /// The same flash with another content model. For new flash only.
    pub fn keeping(mut self, keep: StoredContent) -> Self {
        if self.steps != 0 {
            self.violation("keeping, after the first program");
        }
        self.store = (keep != StoredContent::Nothing).then(|| Box::new(PageStore::new(&self.geometry, keep)));
        self.wary = self.store.is_some();
        self
    }

    /// The content model.
    pub fn keep(&self) -> StoredContent {
        match &self.store {
            None => StoredContent::Nothing,
            Some(store) if store.keeps_data() => StoredContent::Data,
            Some(_) => StoredContent::Orders,
        }
    }

    /// Whether it has the host's bytes.
    pub fn keeps_data(&self) -> bool {
        self.keep() == StoredContent::Data
    }

    /// Whether a layer can rebuild its map by scanning ([`Survey`]); if not, it keeps its memory over a power cycle and
    /// only spends the time.
    pub fn keeps_orders(&self) -> bool {
        self.store.is_some()
    }

    /// Its shape.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// A block's state.
    #[inline]
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

    /// Programs and erases issued so far: the steps at which [`Nand::arm`] can cut.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Pages of a block in its present mode.
    pub fn pages_of(&self, block: u32) -> u32 {
        self.geometry.pages_in(self.block(block).mode)
    }

    /// Units of a block in its present mode.
    pub fn units_of(&self, block: u32) -> u32 {
        self.geometry.units_in(self.block(block).mode)
    }

    /// Erases that a block bears in its present mode.
    pub fn endurance_of(&self, block: u32) -> u32 {
        self.failing.endurance_in(self.block(block), self.geometry.native)
    }

    /// The logical units that the units of a block hold, [`NO_UNIT`] for padding and for empty pages; one entry per
    /// programmed unit.
    pub fn spare(&self, block: u32) -> &[u32] {
        let first = self.geometry.first_unit(block, 0) as usize;
        &self.spare[first..first + (self.block(block).next_page * self.geometry.units_per_page) as usize]
    }

    /// The logical units of a page.
    pub fn page_units(&self, block: u32, page: u32) -> &[u32] {
        let first = self.geometry.first_unit(block, page) as usize;
        &self.spare[first..first + self.geometry.units_per_page as usize]
    }

    /// The logical unit in a physical one.
    #[inline]
    pub fn logical(&self, unit: u32) -> u32 {
        self.spare[unit as usize]
    }

    /// The bytes of a physical unit. A caller that reads for the host must [`Nand::read`] the page too, which takes the
    /// time and may fail. `None` if no data is stored, the page cannot be read, or it is not programmed.
    pub fn unit_data(&self, unit: u32) -> Option<&[u8]> {
        self.bytes_of(self.content_of(unit))
    }

    /// Where the bytes of a physical unit are, for [`Nand::bytes_of`] before anything changes.
    #[inline]
    pub(crate) fn content_of(&self, unit: u32) -> Content {
        self.store.as_ref().map_or(Content::NONE, |store| store.readable_content(&self.geometry, unit))
    }

    /// As [`Nand::unit_data`].
    #[inline]
    pub(crate) fn bytes_of(&self, content: Content) -> Option<&[u8]> {
        self.store.as_ref()?.slots.as_ref()?.get(content)
    }

    /// These bytes are read soon.
    #[inline]
    pub(crate) fn prefetch(&self, content: Content) {
        if let Some(slots) = self.store.as_ref().and_then(|store| store.slots.as_ref()) {
            slots.prefetch(content);
        }
    }

    /// The record of a page that [`Nand::program_record`] made. `None` where it cannot be read, or none is kept.
    pub fn record(&self, block: u32, page: u32) -> Option<&[u8]> {
        self.store.as_ref()?.record(&self.geometry, block, page)
    }

    /// The stamp of a block; `None` when none of its pages can be read, none was set, or none is kept.
    pub fn stamp(&self, block: u32) -> Option<u32> {
        self.store.as_ref()?.stamp(&self.geometry, block)
    }

    /// The sequence number of a page: rises with each program over the whole flash, and over power cycles. `None` when
    /// the page cannot be read or is erased, or none is kept.
    pub fn order(&self, block: u32, page: u32) -> Option<u64> {
        self.store.as_ref()?.order(&self.geometry, block, page)
    }

    /// The time at which no operation is in progress any more.
    pub fn quiet_at(&self) -> Instant {
        self.timing.quiet_at()
    }

    /// Whether a program takes the same page of all planes of a die.
    pub const fn is_multi_plane(&self) -> bool {
        self.timing.is_multi_plane()
    }

    /// Units that can be programmed as built while a block with one bit a cell is erased.
    pub fn units_in_erase(&self) -> u32 {
        self.timing.units_in_erase(&self.geometry)
    }

    #[cold]
    fn violation(&mut self, what: &str) {
        debug_assert!(false, "the contract of the flash is broken: {what}");
        self.counters.violations += 1;
    }
}
