//! Static wear levelling: blocks with static data stay unworn, so their data is moved now and then.
//!
//! Dynamic levelling (the least worn free block first) is the pool's ([`crate::ftl::pool::TakeOrder`]).

use crate::nand::Nand;

/// Decides when data is moved for wear levelling alone.
#[derive(Clone, Copy, Debug)]
pub struct Levelling {
    gap: u32,
    every: u32,
    waited: u32,
}

/// Collections between two checks of the wear, as a share of the blocks: a check visits all of them.
const LOOKS_PER_ROUND: u32 = 64;

impl Levelling {
    /// Levelling that starts when erase counts differ by more than `gap`; 0: never.
    pub fn new(gap: u32, blocks: u32) -> Self {
        Self { gap, every: (blocks / LOOKS_PER_ROUND).max(1), waited: 0 }
    }

    /// Whether a check is due; called once per collection.
    pub fn is_due(&mut self) -> bool {
        self.waited += 1;
        let is_due = self.gap > 0 && self.waited >= self.every;
        if is_due {
            self.waited = 0;
        }
        is_due
    }

    /// The least worn of blocks with data, if its distance to the most worn of all blocks is too large.
    pub fn choose(&self, nand: &Nand, with_data: impl Iterator<Item = u32>, most: u32) -> Option<u32> {
        let (least, block) = with_data.map(|block| (nand.block(block).erase_count, block)).min()?;
        (self.gap > 0 && most - least.min(most) > self.gap).then_some(block)
    }
}
