//! Static wear levelling: the data of a little worn block goes to a much worn one, apart from all other data.
//!
//! What moves is static, so it must not mix with data that changes: each later collection would copy it again. It has a
//! frontier of its own, whose block is closed with the end of the move. That block is the most worn of the free ones:
//! it rests from now on, and the little worn one is free for data that wears it. What counts is the difference between
//! these two. The most worn of all blocks may rest already: by it, moves would go on until every block had rested.

use emmc_units::Instant;

use super::PageFtl;
use super::steps::Reason;
use crate::ftl::FtlError;
use crate::nand::Nand;

impl PageFtl {
    /// Notes for how long a victim's content has lasted: what static data is measured by.
    pub(super) fn note_life(&mut self, victim: u32) {
        self.levelling.note_life(self.age_of(victim));
    }

    /// How many blocks were opened after this one.
    fn age_of(&self, block: u32) -> u64 {
        self.opened - self.states[(block - self.first_block) as usize].opened
    }

    /// The least worn block with static data if the wear is too uneven.
    fn least_worn(&mut self, nand: &Nand) -> Option<u32> {
        // It takes a block before it frees one.
        if self.pool.free() < self.low_blocks.max(1) {
            return None;
        }
        let target = self.pool.iter().map(|block| nand.block(block).erase_count).max()?;
        let is_static = |block: &u32| self.levelling.is_static(self.age_of(*block));
        let found = self.levelling.choose(nand, self.victims.iter().filter(is_static), target);
        if found.is_some() {
            self.levelling.hurry();
        }
        found
    }

    /// Moves the data of the least worn block with static data at once if the wear is too uneven. `None`: it is not.
    pub(super) fn level(&mut self, nand: &mut Nand, now: Instant) -> Result<Option<Instant>, FtlError> {
        let Some(block) = self.least_worn(nand) else { return Ok(None) };
        self.victims.remove(block);
        let done = self.collect(nand, block, self.roles.still, now)?;
        self.stats.collections -= 1;
        self.stats.wear_moves += 1;
        self.close_still(nand, done).map(Some)
    }

    /// Takes the same block as the next victim of steps. Returns whether there is one.
    pub(super) fn begin_levelling(&mut self, nand: &Nand) -> bool {
        let Some(block) = self.least_worn(nand) else { return false };
        self.victims.remove(block);
        self.begin(block, Reason::Wear);
        true
    }

    /// Ends the block of static data: what comes later does not belong to it.
    pub(super) fn close_still(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let role = self.roles.still;
        let done = self.settle(nand, role, now)?;
        if !self.frontiers[role].is_exhausted() {
            self.close(role);
        }
        Ok(done)
    }
}
