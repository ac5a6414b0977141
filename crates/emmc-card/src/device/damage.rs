//! What a power cut hit, as the host knows it; for checks.

use super::op::Area;
use super::{Device, Storage};

impl Device {
    /// Area and first sector of every unit that the last cut damaged though it was done ([`crate::nand::Nand::damaged_pairs`]).
    pub(crate) fn damaged_pairs(&self) -> Vec<(Area, u64)> {
        let Storage { nand, regions, .. } = &self.storage;
        let pairs = nand.damaged_pairs().iter();
        pairs
            .filter_map(|&(block, unit)| {
                let region = regions.iter().position(|region| region.ftl.blocks().contains(&block))?;
                self.storage.sector_of(region, unit)
            })
            .collect()
    }

    /// Sectors of a mapping unit: what is damaged together.
    pub(crate) fn unit_sectors(&self) -> u32 {
        self.storage.unit_sectors()
    }
}
