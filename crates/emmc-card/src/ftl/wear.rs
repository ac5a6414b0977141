//! Static wear levelling: blocks with static data stay unworn, so their data is moved now and then.
//!
//! A block is static when its content has lasted several times as long as that of the blocks that are collected. A
//! little worn block with younger data is left alone: it will be collected for its space soon, at less cost.
//!
//! Dynamic levelling (the least worn free block first) is the pool's ([`crate::ftl::pool::TakeOrder`]).

use crate::nand::Nand;

/// Decides when data is moved for wear levelling alone.
#[derive(Clone, Copy, Debug)]
pub struct Levelling {
    gap: u32,
    every: u32,
    waited: u32,
    /// Blocks opened in the life of a collected block's content, on average; in parts of [`LIVES`].
    life: u64,
}

/// The average goes over about this number of collected blocks.
const LIVES: u64 = 64;
/// Static is what has lasted this many times as long as that average. Assumed.
const STATIC_LIVES: u64 = 4;
/// After a move the next check comes sooner, by this factor: a big card has many blocks to move.
const HURRY: u32 = 16;

/// Collections between two checks of the wear, as a share of the blocks: a check visits all of them.
const LOOKS_PER_ROUND: u32 = 64;

impl Levelling {
    /// Levelling by moves to blocks with more than `gap` erases more; 0: never.
    pub fn new(gap: u32, blocks: u32) -> Self {
        Self { gap, every: (blocks / LOOKS_PER_ROUND).max(1), waited: 0, life: 0 }
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

    /// The next check is due soon.
    pub fn hurry(&mut self) {
        self.waited = self.every - self.every.div_ceil(HURRY);
    }

    /// A block was collected for its space; `opened` blocks had been opened since it was.
    pub fn note_life(&mut self, opened: u64) {
        self.life = self.life - self.life / LIVES + opened;
    }

    /// Whether the content of a block is static; `opened` blocks were opened since it was.
    pub fn is_static(&self, opened: u64) -> bool {
        opened > STATIC_LIVES * self.life / LIVES
    }

    /// The least worn of blocks with data, if a block with `target` erases is too far from it.
    pub fn choose(&self, nand: &Nand, with_data: impl Iterator<Item = u32>, target: u32) -> Option<u32> {
        let (least, block) = with_data.map(|block| (nand.block(block).erase_count, block)).min()?;
        (self.gap > 0 && target - least.min(target) > self.gap).then_some(block)
    }
}
