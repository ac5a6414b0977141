//! The card's wear: the source of the health registers and the vendor report.

use super::storage::Storage;
use crate::nand::{BlockHealth, CellMode, Nand};
use crate::profile::{NandConfig, RegionRole};

/// Erase counts of a set of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EraseCounts {
    /// Blocks counted; bad ones are not.
    pub blocks: u32,
    /// Fewest erases of a block.
    pub min: u32,
    /// Most erases of a block.
    pub max: u32,
    /// Erases of all blocks together.
    pub total: u64,
}

impl EraseCounts {
    fn of<'a>(counts: impl Iterator<Item = &'a crate::nand::Block>) -> Self {
        let mut sum = Self { min: u32::MAX, ..Self::default() };
        for block in counts {
            sum.blocks += 1;
            sum.min = sum.min.min(block.erase_count);
            sum.max = sum.max.max(block.erase_count);
            sum.total += u64::from(block.erase_count);
        }
        if sum.blocks == 0 {
            sum.min = 0;
        }
        sum
    }

    /// Mean erases of a block.
    pub fn mean(&self) -> f64 {
        if self.blocks == 0 { 0.0 } else { self.total as f64 / f64::from(self.blocks) }
    }
}

/// The wear of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    /// All usable blocks.
    pub all: EraseCounts,
    /// Blocks used with one bit a cell, whatever their native mode.
    pub single_bit: EraseCounts,
    /// Blocks used in their native mode, if that is more than one bit.
    pub multi_bit: EraseCounts,
    /// Used share of the rated erases of the single-bit blocks; absent: no such blocks.
    pub used_single_bit: Option<f64>,
    /// The same for the multi-bit blocks.
    pub used_multi_bit: Option<f64>,
    /// Blocks bad from the factory.
    pub factory_bad: u32,
    /// Blocks that went bad in use.
    pub grown_bad: u32,
    /// Spare blocks left.
    pub spares_left: u32,
    /// Spare blocks in all.
    pub spares: u32,
}

impl Health {
    /// Reads the wear from the flash.
    pub(crate) fn of(storage: &Storage, config: &NandConfig) -> Self {
        let nand = &storage.nand;
        let good = || nand.blocks().iter().filter(|block| block.health == BlockHealth::Good);
        let is_single = |mode: CellMode| mode.bits() == 1;
        let single_bit = EraseCounts::of(good().filter(|block| is_single(block.mode)));
        let multi_bit = EraseCounts::of(good().filter(|block| !is_single(block.mode)));
        let rated = |mode: CellMode| rating(config, mode);
        // A block that retires keeps its share: without its erases the life time would go back.
        let once_good = |wanted: bool| {
            let blocks = nand.blocks().iter().filter(|block| block.health != BlockHealth::FactoryBad);
            EraseCounts::of(blocks.filter(move |block| is_single(block.mode) == wanted))
        };
        let used = |counts: &EraseCounts, mode| {
            let all = once_good(is_single(mode));
            (counts.blocks > 0).then(|| all.mean() / f64::from(rated(mode)))
        };
        let spares = storage.regions.iter().filter(|region| region.role != RegionRole::System).map(|r| r.ftl.spares());
        let (spares_left, spares) = spares.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        Self {
            all: EraseCounts::of(good()),
            used_single_bit: used(&single_bit, config.cell.single_bit()),
            used_multi_bit: used(&multi_bit, config.cell),
            single_bit,
            multi_bit,
            factory_bad: count(nand, BlockHealth::FactoryBad),
            grown_bad: count(nand, BlockHealth::GrownBad),
            spares_left,
            spares,
        }
    }

    /// DEVICE_LIFE_TIME_EST_TYP_A: the single-bit blocks, in tenths of the rating; 0 if there are none.
    pub fn life_time_a(&self) -> u8 {
        self.used_single_bit.map_or(0, band)
    }

    /// DEVICE_LIFE_TIME_EST_TYP_B: the multi-bit blocks.
    pub fn life_time_b(&self) -> u8 {
        self.used_multi_bit.map_or(0, band)
    }

    /// PRE_EOL_INFO: 1 normal, 2 warning from 80 % of the spares used, 3 urgent from 90 %; 0 if there are no spares.
    pub fn pre_eol_info(&self) -> u8 {
        if self.spares == 0 {
            return 0;
        }
        // Spares used up by factory bad blocks count too, as in makers' reports.
        let (used, reserve) = (self.spares - self.spares_left + self.factory_bad, self.spares + self.factory_bad);
        match u64::from(used) * 100 / u64::from(reserve) {
            0..80 => 1,
            80..90 => 2,
            _ => 3,
        }
    }
}

/// The rated erases of a block in a mode.
pub(crate) fn rating(config: &NandConfig, mode: CellMode) -> u32 {
    if mode == config.cell { &config.native } else { config.slc.as_ref().unwrap_or(&config.native) }.endurance
}

fn count(nand: &Nand, health: BlockHealth) -> u32 {
    nand.blocks().iter().filter(|block| block.health == health).count() as u32
}

/// The band of a used share: 1 up to 10 %, ... 10 up to 100 %, 11 beyond.
fn band(used: f64) -> u8 {
    if used >= 1.0 { 11 } else { (used * 10.0) as u8 + 1 }
}

#[cfg(test)]
mod tests {
    use emmc_units::Instant;

    use super::*;
    use crate::device::{Device, DeviceOptions};
    use crate::nand::StoredContent;

    /// The most worn block goes bad: the mean of the others is lower, the life time is not.
    #[test]
    fn a_block_that_retires_takes_no_wear_along() {
        let mut profile = crate::profile::shipped::named("generic-8g").unwrap();
        profile.areas.user_bytes = 128 << 20;
        profile.areas.enhanced_groups_max = 0;
        profile.nand.over_provisioning = 0.5;
        let mut device = Device::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 }).unwrap();
        let native = device.profile().nand.cell;
        let block = device.nand().blocks().iter().position(|block| block.mode == native).unwrap() as u32;
        device.storage.nand.set_erase_count(block, u32::MAX);
        let before = device.health();
        device.storage.nand.mark_bad(block, Instant::START);
        let after = device.health();
        assert!(after.multi_bit.mean() < before.multi_bit.mean());
        assert_eq!((after.used_multi_bit, after.grown_bad), (before.used_multi_bit, before.grown_bad + 1));
    }

    #[test]
    fn life_time_registers_step_at_each_tenth() {
        for (used, register) in [(0.0, 1), (0.099, 1), (0.1, 2), (0.95, 10), (1.0, 11), (3.0, 11)] {
            assert_eq!(band(used), register, "{used}");
        }
        for (left, register) in [(100, 1), (21, 1), (20, 2), (11, 2), (10, 3), (0, 3)] {
            let health = Health { spares: 100, spares_left: left, ..Health::default() };
            assert_eq!(health.pre_eol_info(), register, "{left} left");
        }
        let health = Health { spares: 100, spares_left: 25, factory_bad: 30, ..Health::default() };
        assert_eq!(health.pre_eol_info(), 2, "105 of 130");
    }
}
