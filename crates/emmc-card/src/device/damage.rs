//! The damage of a power cut, and a block's content, as sectors of the host; for checks.

use super::op::Area;
use super::{Device, Storage};

impl Device {
    /// Area and first sector of every completed unit that the last cut damaged ([`crate::nand::Nand::damaged_pairs`]).
    pub fn damaged_pairs(&self) -> Vec<(Area, u64)> {
        let Storage { nand, regions, .. } = &self.storage;
        let pairs = nand.damaged_pairs().iter();
        pairs
            .filter_map(|&(block, unit)| {
                let region = regions.iter().position(|region| region.ftl.blocks().contains(&block))?;
                self.storage.sector_of(region, unit)
            })
            .collect()
    }

    /// Area and first sector of every unit with a valid copy in a block.
    pub fn sectors_in(&self, block: u32) -> Vec<(Area, u64)> {
        let Storage { nand, regions, .. } = &self.storage;
        let Some(region) = regions.iter().position(|region| region.ftl.blocks().contains(&block)) else {
            return Vec::new();
        };
        let units = nand.spare(block).iter();
        let mapped = units.filter(|unit| **unit < regions[region].ftl.units() && regions[region].ftl.is_mapped(**unit));
        mapped.filter_map(|&unit| self.storage.sector_of(region, unit)).collect()
    }

    /// Sectors of a mapping unit: the granularity of damage.
    pub fn unit_sectors(&self) -> u32 {
        self.storage.unit_sectors()
    }
}
