//! sdmon's keys, the older spellings among them, and what each means.

use super::meaning::{
    BUS_SPEED_MODE, BUS_WIDTH, CONTROLLER, CRC_ERRORS, FIRMWARE, FLASH_ID, GOOD_BLOCKS_PERCENT, INITIAL_BAD_BLOCKS,
    LATER_BAD_BLOCKS, LATER_BAD_BLOCKS_SYSTEM, LIFE_LEFT_PERCENT, LIFE_USED_PERCENT, LIFE_USED_PERCENT_SLC,
    LIFE_USED_PERCENT_TLC, Meaning, POWER_CYCLES, POWER_LOSSES, PRODUCT, READ_RECLAIMS_SLC, READ_RECLAIMS_TLC,
    REFRESHES, SPARE_BLOCKS_LEFT, SPARE_BLOCKS_SLC, SPARE_BLOCKS_SYSTEM, SPARE_BLOCKS_TLC, SPARE_BLOCKS_TOTAL,
    SPARE_USED_PERCENT, SPEED_CLASS, Stat, UHS_SPEED_GRADE, WRITTEN_BYTES, count, erases, identity, life, spare_blocks,
};
use super::model::{Area, Confidence};
use super::silicon_motion::{RATED_REMARK, RATED_STEP, SPARE_REMARK};

use Confidence::{SeveralSources, SingleSource, Uncertain};

/// A key of sdmon's.
#[derive(Clone, Copy)]
pub(super) struct Key {
    pub(super) names: &'static [&'static str],
    pub(super) meaning: Meaning,
    pub(super) confidence: Confidence,
    pub(super) times: u64,
    pub(super) remark: &'static str,
    /// What the field holds where all its bits are set, if that is narrower than 16 bits.
    pub(super) ones: u64,
    /// The most that the number can be, and what a larger one is.
    pub(super) most: (u64, &'static str),
}

/// What a larger count of power losses is that sdmon prints for Transcend.
const MISREAD_LOSSES: &str = "a count below 65536: sdmon takes the spare blocks that are left for its upper half, and \
                              Transcend's own tool reads the count elsewhere";

const fn key(names: &'static [&'static str], meaning: Meaning) -> Key {
    Key { names, meaning, confidence: SingleSource, times: 1, remark: "", ones: u64::MAX, most: (u64::MAX, "") }
}

impl Key {
    const fn sure(self, confidence: Confidence) -> Self {
        Self { confidence, ..self }
    }

    const fn times(self, times: u64, remark: &'static str) -> Self {
        Self { times, remark, ..self }
    }

    const fn at_most(self, most: u64, otherwise: &'static str) -> Self {
        Self { most: (most, otherwise), ..self }
    }

    const fn ones(self, ones: u64) -> Self {
        Self { ones, ..self }
    }
}

/// Keys that every run may have.
pub(super) const RUN: [Key; 1] = [key(&["date"], identity("read_at"))];

pub(super) const SANDISK: [Key; 6] = [
    key(&["manufactureYYMMDD"], identity("manufactured_yymmdd")).sure(SeveralSources),
    key(&["healthStatusPercentUsed"], LIFE_USED_PERCENT).sure(SeveralSources),
    key(&["featureRevision"], identity("feature_revision")).sure(SeveralSources),
    key(&["generationIdentifier"], identity("generation")).sure(SeveralSources),
    key(&["productString"], PRODUCT).sure(SeveralSources),
    key(&["powerOnTimes"], POWER_CYCLES).ones(0xff_ffff),
];

pub(super) const LONGSYS: [Key; 11] = [
    key(&["SMARTVersions"], identity("report_version")),
    key(&["originalBadBlock"], INITIAL_BAD_BLOCKS),
    key(&["increaseBadBlock"], LATER_BAD_BLOCKS),
    key(&["writeAllSectNum"], WRITTEN_BYTES).times(512, "sectors of 512 bytes"),
    key(&["replaceBlockLeft"], SPARE_BLOCKS_LEFT),
    key(&["degreeOfWear", "degreOfWear", "degreeeOfWear"], erases(Area::Global, Stat::Average)),
    key(&["sectorTotal"], count("sectors")),
    key(&["remainLifeTime"], LIFE_LEFT_PERCENT),
    key(&["lifeTimeTotal"], erases(Area::Global, Stat::Rated)),
    key(&["remainWrGBNum"], count("writes_left_gigabytes")).times(1024, "rounded by sdmon"),
    key(&["phyWrGBNum"], count("flash_written_gigabytes")).times(1024, "rounded by sdmon"),
];

pub(super) const INNODISK: [Key; 13] = [
    key(&["Bus width"], BUS_WIDTH),
    key(&["Speed mode"], SPEED_CLASS),
    key(&["UHS speed grade"], UHS_SPEED_GRADE),
    key(&["Total spare blocks cnt"], SPARE_BLOCKS_TOTAL).ones(0xff),
    key(&["Factory bad blocks cnt"], INITIAL_BAD_BLOCKS).ones(0xff),
    key(&["Runtime bad blocks cnt"], LATER_BAD_BLOCKS).ones(0xff),
    key(&["Spare utilization rate"], SPARE_USED_PERCENT),
    key(&["SPOR failure cnt"], count("power_loss_recoveries_failed")),
    key(&["Minimum erase cnt"], erases(Area::Global, Stat::Min)),
    key(&["Maximum erase cnt"], erases(Area::Global, Stat::Max)),
    key(&["Total erase cnt"], erases(Area::Global, Stat::Total)),
    key(&["Average erase cnt"], erases(Area::Global, Stat::Average)),
    key(&["FW version"], FIRMWARE),
];

pub(super) const ADATA: [Key; 26] = [
    key(&["Factory bad block cnt"], INITIAL_BAD_BLOCKS),
    key(&["Grown bad block cnt"], LATER_BAD_BLOCKS).ones(0xff),
    key(&["Spare SLC block cnt"], SPARE_BLOCKS_SLC).ones(0xff),
    key(&["Spare block cnt"], SPARE_BLOCKS_TLC).times(1, SPARE_REMARK).sure(Uncertain),
    key(&["Data area minimum erase cnt"], erases(Area::User, Stat::Min)),
    key(&["Data area maximum erase cnt"], erases(Area::User, Stat::Max)),
    key(&["Data area total erase cnt"], erases(Area::User, Stat::Total)),
    key(&["Data area average erase cnt"], erases(Area::User, Stat::Average)),
    key(&["System area minimum erase cnt"], erases(Area::System, Stat::Min)),
    key(&["System area maximum erase cnt"], erases(Area::System, Stat::Max)),
    key(&["System area total erase count", "System area total erase cnt"], erases(Area::System, Stat::Total)),
    key(&["System area average erase cnt"], erases(Area::System, Stat::Average)),
    key(&["Raw card capacity"], count("raw_capacity_megabytes")),
    key(&["PE Cycle life"], erases(Area::User, Stat::Rated)).times(RATED_STEP, RATED_REMARK).sure(Uncertain),
    key(&["Remaining life"], LIFE_LEFT_PERCENT).sure(SeveralSources),
    key(&["Power cycle cnt", "Power cucle cnt"], POWER_CYCLES).sure(SeveralSources),
    key(&["Flash ID"], FLASH_ID),
    key(&["Controller"], CONTROLLER),
    key(&["TLC read reclaim"], READ_RECLAIMS_TLC),
    key(&["SLC read reclaim"], READ_RECLAIMS_SLC),
    key(&["Firmware block refresh"], REFRESHES),
    key(&["TLC read threshold"], count("read_reclaim_threshold_tlc")),
    key(&["SLC read threshold"], count("read_reclaim_threshold_slc")),
    key(&["FW version"], FIRMWARE),
    key(&["TLC refresh cnt"], count("block_refreshes_tlc")),
    key(&["SLC refresh cnt"], count("block_refreshes_slc")).sure(Uncertain),
];

/// `Total erase cnt` and `Power cycle cnt` are left out: sdmon sums the bytes of the former and reads the upper half of
/// the latter. Of `Abnormal power loss` the upper half is the spare blocks that are left, so that only a number without
/// it may be a count.
pub(super) const TRANSCEND: [Key; 15] = [
    key(&["Secured mode"], identity("secured_mode")),
    key(&["Bus width"], BUS_WIDTH),
    key(&["Speed mode"], SPEED_CLASS),
    key(&["UHS speed grade"], UHS_SPEED_GRADE),
    key(&["Abnormal power loss"], POWER_LOSSES).sure(Uncertain).at_most(0xffff, MISREAD_LOSSES),
    key(&["NAND flash ID"], FLASH_ID).sure(SeveralSources),
    key(&["New bad blocks cnt"], LATER_BAD_BLOCKS).sure(SeveralSources).ones(0xff),
    key(&["Runtime spare blocks cnt"], spare_blocks("spare_blocks_runtime")).ones(0xff),
    key(&["Minimum erase cnt"], erases(Area::Global, Stat::Min)).sure(Uncertain),
    key(&["Maximum erase cnt"], erases(Area::Global, Stat::Max)).sure(Uncertain),
    key(&["Average erase cnt"], erases(Area::Global, Stat::Average)).sure(Uncertain),
    key(&["Remaining card life"], LIFE_LEFT_PERCENT).sure(SeveralSources),
    key(&["Total write CRC cnt"], CRC_ERRORS).sure(SeveralSources),
    key(&["IC"], CONTROLLER),
    key(&["fw version", "FW version"], FIRMWARE).sure(SeveralSources),
];

pub(super) const MICRON: [Key; 3] = [
    key(&["Percentange step utilization", "Percentage step utilization"], life("life_used_step_percent")),
    key(&["TLC area utilization"], LIFE_USED_PERCENT_TLC),
    key(&["SLC area utilization"], LIFE_USED_PERCENT_SLC),
];

pub(super) const SWISSBIT: [Key; 19] = [
    key(&["Speed mode"], BUS_SPEED_MODE),
    key(&["Bus width"], BUS_WIDTH),
    key(&["fwVersion"], FIRMWARE),
    key(&["User area rated cycles"], erases(Area::User, Stat::Rated)),
    key(&["User area max cycle cnt"], erases(Area::User, Stat::Max)),
    key(&["User area total cycle cnt"], erases(Area::User, Stat::Total)),
    key(&["User area average cycle cnt"], erases(Area::User, Stat::Average)),
    key(&["System area max cycle cnt"], erases(Area::System, Stat::Max)),
    key(&["System area total cycle cnt"], erases(Area::System, Stat::Total)),
    key(&["System area average cycle cnt"], erases(Area::System, Stat::Average)),
    key(&["Remaining Lifetime Percent"], LIFE_LEFT_PERCENT),
    key(&["User area spare blocks cnt"], SPARE_BLOCKS_LEFT),
    key(&["System area spare blocks cnt"], SPARE_BLOCKS_SYSTEM),
    key(&["User area runtime bad blocks cnt"], LATER_BAD_BLOCKS),
    key(&["System area runtime bad blocks cnt"], LATER_BAD_BLOCKS_SYSTEM),
    key(&["User area refresh cnt"], REFRESHES),
    key(&["System area refresh cnt"], count("block_refreshes_system")),
    key(&["Interface crc cnt"], CRC_ERRORS),
    key(&["Power cycle cnt"], POWER_CYCLES),
];

pub(super) const TWO_STEP: [Key; 18] = [
    key(&["flashId"], FLASH_ID),
    key(&["icVersion"], CONTROLLER),
    key(&["fwVersion"], FIRMWARE),
    key(&["ceNumber"], identity("chip_enables")),
    key(&["spareBlockCount"], SPARE_BLOCKS_TOTAL),
    key(&["initialBadBlockCount"], INITIAL_BAD_BLOCKS).ones(32 * 0xff),
    key(&["goodBlockRatePercent"], GOOD_BLOCKS_PERCENT),
    key(&["totalEraseCount", "totalEreaseCount"], erases(Area::Global, Stat::Total)),
    key(&["enduranceRemainLifePercent"], LIFE_LEFT_PERCENT),
    key(&["avgEraseCount", "avgEreaseCount"], erases(Area::Global, Stat::Average)),
    key(&["minEraseCount", "minEreaseCount"], erases(Area::Global, Stat::Min)),
    key(&["maxEraseCount", "maxEreaseCount"], erases(Area::Global, Stat::Max)),
    key(&["powerUpCount"], POWER_CYCLES),
    key(&["abnormalPowerOffCount"], POWER_LOSSES),
    key(&["totalRefreshCount"], REFRESHES),
    key(&["productMarker"], identity("product_marker")),
    key(&["laterBadBlockCount"], LATER_BAD_BLOCKS).ones(32 * 0xff),
    key(&["bytesWrittenCount", "bytesWritten"], WRITTEN_BYTES).sure(Uncertain),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_family_has_a_key_or_a_meaning_twice() {
        let tables: [&[Key]; 8] = [&SANDISK, &LONGSYS, &INNODISK, &ADATA, &TRANSCEND, &MICRON, &SWISSBIT, &TWO_STEP];
        for table in tables {
            for (place, key) in table.iter().enumerate() {
                for earlier in &table[..place] {
                    assert_ne!(earlier.meaning, key.meaning, "{:?}", key.names);
                    assert!(earlier.names.iter().all(|name| !key.names.contains(name)), "{:?}", key.names);
                }
            }
        }
    }
}
