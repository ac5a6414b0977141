//! Inspection of a card: mapping, counters of the layers, consistency with the flash.

use super::storage::Storage;
use super::{Area, Device};
use emmc_port::TargetFill;

use crate::ftl::FtlStats;
use crate::nand::{BlockHealth, CellMode};
use crate::profile::RegionRole;

impl Device {
    /// Whether a host can flush something: the volatile cache is on.
    pub fn takes_flushes(&self) -> bool {
        self.path.cache_on && !self.has_write_buffer()
    }

    /// Whether the unit of a sector is mapped in flash; cached data does not count.
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

    /// The byte that unmapped sectors read as (ERASED_MEM_CONT).
    pub fn erased_byte(&self) -> u8 {
        if self.erases_to_ones() { 0xff } else { 0 }
    }

    /// Valid units of each block, if its layer counts them.
    pub fn valid_units(&self) -> Vec<Option<u32>> {
        let mut valid = vec![None; self.storage.nand.blocks().len()];
        for region in &self.storage.regions {
            for &block in region.ftl.blocks() {
                valid[block as usize] = region.ftl.valid_in(block);
            }
        }
        valid
    }

    /// Fill and use of the user area. Cached data does not count; blocks of the SLC log and bad ones do not count as
    /// use.
    pub fn fullness(&self) -> TargetFill {
        let Storage { nand, regions, .. } = &self.storage;
        let (mut units, mut mapped, mut blocks, mut erased) = (0u64, 0u64, 0u64, 0u64);
        for region in
            regions.iter().enumerate().filter(|(index, _)| self.storage.is_user(*index)).map(|(_, found)| found)
        {
            units += u64::from(region.ftl.units());
            mapped += u64::from(region.ftl.mapped_units());
            let mode = if region.role == RegionRole::Main { nand.geometry().native } else { CellMode::Slc };
            let states = region.ftl.blocks().iter().map(|block| nand.block(*block));
            for state in states.filter(|state| state.health == BlockHealth::Good && state.mode == mode) {
                blocks += 1;
                erased += u64::from(state.erase_count > 0);
            }
        }
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        TargetFill { holds_share: share(mapped, units), erased_share: share(erased, blocks) }
    }

    /// How urgent background work is, 0 to 3 (BKOPS_STATUS).
    pub fn urgency(&self) -> u8 {
        let Storage { nand, regions, .. } = &self.storage;
        regions.iter().map(|region| region.ftl.urgency(nand)).max().unwrap_or(0)
    }

    /// Counters of all translation layers, summed up.
    pub fn stats(&self) -> FtlStats {
        let sum = self.storage.regions.iter().fold(FtlStats::default(), |sum, region| sum.plus(region.ftl.stats()));
        // To a layer, what the data path copies is a write like the host's.
        let again = self.path.written_again().min(sum.host_units);
        FtlStats { host_units: sum.host_units - again, copied_units: sum.copied_units + again, ..sum }
    }

    /// Checks every invariant of every layer.
    ///
    /// Errors: a description of the violation.
    pub fn audit(&self) -> Result<(), String> {
        for region in &self.storage.regions {
            region.ftl.audit(&self.storage.nand).map_err(|what| format!("{:?} region: {what}", region.role))?;
        }
        Ok(())
    }
}
