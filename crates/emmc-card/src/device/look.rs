//! A card looked at from above and below: what is mapped, what its layers have done, whether they agree with the flash.

use super::storage::Storage;
use super::{Area, Device};
use crate::ftl::FtlStats;

impl Device {
    /// Whether the unit of a sector holds data in flash; data that waits in the cache does not count.
    pub fn is_mapped(&self, area: Area, lba: u64) -> bool {
        if self.storage.check(area, lba, 1).is_err() {
            return false;
        }
        let run = self.storage.run(area, lba, 1);
        self.storage.regions[usize::from(run.region)].ftl.is_mapped(run.unit)
    }

    /// Whether a sector's unit holds data, in flash or in the cache.
    pub fn holds(&self, area: Area, lba: u64) -> bool {
        if self.storage.check(area, lba, 1).is_err() {
            return false;
        }
        let run = self.storage.run(area, lba, 1);
        self.path.cache.find(run.region, run.unit).is_some()
            || self.storage.regions[usize::from(run.region)].ftl.is_mapped(run.unit)
    }

    /// What a sector without data reads as, every byte of it (ERASED_MEM_CONT).
    pub fn erased_byte(&self) -> u8 {
        if self.erases_to_ones() { 0xff } else { 0 }
    }

    /// Units of each block that hold valid data, where its layer counts them.
    pub fn valid_units(&self) -> Vec<Option<u32>> {
        let mut valid = vec![None; self.storage.nand.blocks().len()];
        for region in &self.storage.regions {
            for &block in region.ftl.blocks() {
                valid[block as usize] = region.ftl.valid_in(block);
            }
        }
        valid
    }

    /// How urgent background work is, 0 to 3 (BKOPS_STATUS).
    pub fn urgency(&self) -> u8 {
        let Storage { nand, regions, .. } = &self.storage;
        regions.iter().map(|region| region.ftl.urgency(nand)).max().unwrap_or(0)
    }

    /// What all translation layers have done together.
    pub fn stats(&self) -> FtlStats {
        self.storage.regions.iter().fold(FtlStats::default(), |sum, region| sum.plus(region.ftl.stats()))
    }

    /// Checks every invariant of every layer.
    ///
    /// Errors: what is wrong, in words.
    pub fn audit(&self) -> Result<(), String> {
        for region in &self.storage.regions {
            region.ftl.audit(&self.storage.nand).map_err(|what| format!("{:?} region: {what}", region.role))?;
        }
        Ok(())
    }
}
