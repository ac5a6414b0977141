//! Wear that was not simulated.

use super::Nand;

impl Nand {
    /// Sets the erase count of a block, at most to its endurance.
    pub(crate) fn set_erase_count(&mut self, block: u32, erase_count: u32) {
        let limit = self.endurance_of(block).saturating_sub(1);
        self.blocks[block as usize].erase_count = erase_count.min(limit);
    }
}
