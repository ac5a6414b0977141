//! The age of blocks, for the layers and for saving.

use emmc_units::Instant;

use super::Nand;

impl Nand {
    /// Senses of a block since its erase; 0 where the flash does not age.
    pub fn reads_of(&self, block: u32) -> u32 {
        self.timing.aged.as_ref().map_or(0, |aged| aged.reads(block))
    }

    /// When the oldest data of a block was programmed; the start of time where the flash does not age.
    pub fn programmed_at(&self, block: u32) -> Instant {
        self.timing.aged.as_ref().map_or(Instant::START, |aged| aged.programmed(block))
    }

    /// Whether wear, time and reads change it.
    pub fn ages(&self) -> bool {
        self.timing.aged.is_some()
    }

    /// The next operation uses a block.
    #[inline(never)]
    pub(super) fn turn_to(&mut self, block: u32, now: Instant) {
        let state = &self.blocks[block as usize];
        let wear = f64::from(state.erase_count) / f64::from(self.failing.rating_in(state.mode, self.geometry.native));
        if let Some(aged) = self.timing.aged.as_deref_mut() {
            aged.turn_to(block, wear, now);
        }
    }

    /// The first page of a block is programmed.
    pub(super) fn begin_block(&mut self, block: u32, now: Instant) {
        let Some(aged) = self.timing.aged.as_deref_mut() else { return };
        aged.begin(block, now);
        if let Some(changes) = self.store.as_deref_mut().and_then(|store| store.changes.as_mut()) {
            changes.age(block, now);
        }
    }

    /// When each block's oldest data was programmed; empty where the flash does not age.
    pub(crate) fn data_ages(&self) -> Vec<Instant> {
        let blocks = if self.ages() { self.geometry.blocks } else { 0 };
        (0..blocks).map(|block| self.programmed_at(block)).collect()
    }

    /// Restores [`Nand::data_ages`]. `false`: these are of other flash.
    pub(crate) fn set_data_ages(&mut self, ages: &[Instant]) -> bool {
        let Some(aged) = self.timing.aged.as_deref_mut() else { return true };
        (0..).zip(ages).for_each(|(block, at)| aged.begin(block, *at));
        ages.len() == self.geometry.blocks as usize
    }
}
