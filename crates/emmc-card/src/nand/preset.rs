//! Wear that was not simulated.

use super::Nand;

impl Nand {
    /// Makes a block look as if it had been erased so often. Never beyond what it endures.
    pub(crate) fn set_erase_count(&mut self, block: u32, erase_count: u32) {
        let limit = self.endurance_of(block).saturating_sub(1);
        self.blocks[block as usize].erase_count = erase_count.min(limit);
    }
}
