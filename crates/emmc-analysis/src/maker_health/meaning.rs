//! Meaning of a value in a report: stable name, unit, place in the model, and limits.

use super::model::Area;

/// Which figure of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stat {
    Min,
    Max,
    Average,
    Total,
    Rated,
}

/// The place of a reading in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    BadBlocks,
    Spares,
    Life,
    Counters,
    Identity,
    Erases(Area, Stat),
}

/// Limits of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// Anything but all bits set.
    Count,
    /// 0 to 100.
    Percent,
    /// 1 to 100, as SanDisk counts used life: 1 is less than one percent.
    PercentFromOne,
    /// Possible erase counts of a NAND block.
    Erases,
    /// Possible temperatures of silicon, in degrees Celsius.
    Celsius,
    /// Anything.
    Free,
}

/// A value's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    pub(super) name: &'static str,
    pub(super) unit: Option<&'static str>,
    pub(super) group: Group,
    pub(super) limit: Limit,
}

/// The most that any NAND block is rated for is 100 000; ten times that is a misread number.
pub(super) const ERASES_MAX: i64 = 1_000_000;

const fn blocks(name: &'static str, group: Group) -> Meaning {
    Meaning { name, unit: Some("blocks"), group, limit: Limit::Count }
}

const fn percent(name: &'static str, group: Group) -> Meaning {
    Meaning { name, unit: Some("percent"), group, limit: Limit::Percent }
}

/// A plain counter.
pub(super) const fn count(name: &'static str) -> Meaning {
    Meaning { name, unit: Some("count"), group: Group::Counters, limit: Limit::Count }
}

/// A counter of bytes.
pub(super) const fn bytes(name: &'static str) -> Meaning {
    Meaning { name, unit: Some("bytes"), group: Group::Counters, limit: Limit::Count }
}

/// A temperature.
pub(super) const fn celsius(name: &'static str) -> Meaning {
    Meaning { name, unit: Some("degrees Celsius"), group: Group::Counters, limit: Limit::Celsius }
}

/// A state of life that the maker numbers, as PRE_EOL_INFO does.
pub(super) const fn life_state(name: &'static str) -> Meaning {
    Meaning { name, unit: None, group: Group::Life, limit: Limit::Count }
}

/// Text, or a code that is no quantity.
pub(super) const fn identity(name: &'static str) -> Meaning {
    Meaning { name, unit: None, group: Group::Identity, limit: Limit::Free }
}

/// An erase count of an area.
pub(super) const fn erases(area: Area, stat: Stat) -> Meaning {
    let (name, limit) = match stat {
        Stat::Min => ("erase_count_min", Limit::Erases),
        Stat::Max => ("erase_count_max", Limit::Erases),
        Stat::Average => ("erase_count_average", Limit::Erases),
        Stat::Total => ("erase_count_total", Limit::Count),
        Stat::Rated => ("rated_erase_count", Limit::Erases),
    };
    Meaning { name, unit: Some("erases"), group: Group::Erases(area, stat), limit }
}

/// Life used, under a name that says of what.
pub(super) const fn life(name: &'static str) -> Meaning {
    percent(name, Group::Life)
}

/// Bad blocks, under a name that says where.
pub(super) const fn bad_blocks(name: &'static str) -> Meaning {
    blocks(name, Group::BadBlocks)
}

/// Spare blocks, under a name that says where.
pub(super) const fn spare_blocks(name: &'static str) -> Meaning {
    blocks(name, Group::Spares)
}

pub(super) const INITIAL_BAD_BLOCKS: Meaning = bad_blocks("initial_bad_blocks");
pub(super) const LATER_BAD_BLOCKS: Meaning = bad_blocks("later_bad_blocks");
pub(super) const LATER_BAD_BLOCKS_SLC: Meaning = bad_blocks("later_bad_blocks_slc");
pub(super) const LATER_BAD_BLOCKS_TLC: Meaning = bad_blocks("later_bad_blocks_tlc");
pub(super) const LATER_BAD_BLOCKS_SYSTEM: Meaning = bad_blocks("later_bad_blocks_system");
pub(super) const BAD_BLOCKS_ERASE: Meaning = bad_blocks("later_bad_blocks_by_erase");
pub(super) const BAD_BLOCKS_PROGRAM: Meaning = bad_blocks("later_bad_blocks_by_program");
pub(super) const BAD_BLOCKS_READ: Meaning = bad_blocks("later_bad_blocks_by_read");
pub(super) const GOOD_BLOCKS_PERCENT: Meaning = percent("good_blocks_percent", Group::BadBlocks);
pub(super) const SPARE_BLOCKS_TOTAL: Meaning = spare_blocks("spare_blocks_total");
pub(super) const SPARE_BLOCKS_LEFT: Meaning = spare_blocks("spare_blocks_left");
pub(super) const SPARE_BLOCKS_SLC: Meaning = spare_blocks("spare_blocks_slc");
pub(super) const SPARE_BLOCKS_TLC: Meaning = spare_blocks("spare_blocks_tlc");
pub(super) const SPARE_BLOCKS_SYSTEM: Meaning = spare_blocks("spare_blocks_system");
pub(super) const SPARE_USED_PERCENT: Meaning = percent("spare_used_percent", Group::Spares);
pub(super) const LIFE_LEFT_PERCENT: Meaning = life("life_left_percent");
pub(super) const LIFE_USED_PERCENT: Meaning = Meaning { limit: Limit::PercentFromOne, ..life("life_used_percent") };
pub(super) const LIFE_USED_PERCENT_SLC: Meaning = life("life_used_percent_slc");
pub(super) const LIFE_USED_PERCENT_TLC: Meaning = life("life_used_percent_tlc");
pub(super) const POWER_CYCLES: Meaning = count("power_cycles");
pub(super) const POWER_LOSSES: Meaning = count("power_losses");
pub(super) const WRITTEN_BYTES: Meaning = bytes("written_bytes");
pub(super) const READ_BYTES: Meaning = bytes("read_bytes");
pub(super) const READ_RECLAIMS: Meaning = count("read_reclaims");
pub(super) const READ_RECLAIMS_SLC: Meaning = count("read_reclaims_slc");
pub(super) const READ_RECLAIMS_TLC: Meaning = count("read_reclaims_tlc");
pub(super) const UNCORRECTABLE_ERRORS: Meaning = count("uncorrectable_errors");
pub(super) const VOLTAGE_DROPS: Meaning = count("voltage_drops");
pub(super) const FIRMWARE_UPDATES: Meaning = count("firmware_updates");
pub(super) const FIRMWARE_UPDATES_FAILED: Meaning = count("firmware_updates_failed");
pub(super) const REFRESHES: Meaning = count("block_refreshes");
pub(super) const CRC_ERRORS: Meaning = count("interface_crc_errors");
/// The speed class that the card promises, `Class 10`.
pub(super) const SPEED_CLASS: Meaning = identity("speed_class");
/// The UHS speed grade that the card promises.
pub(super) const UHS_SPEED_GRADE: Meaning = identity("uhs_speed_grade");
/// The bus mode in use when the report was read.
pub(super) const BUS_SPEED_MODE: Meaning = identity("bus_speed_mode");
/// The data lines in use when the report was read.
pub(super) const BUS_WIDTH: Meaning = identity("bus_width");
pub(super) const FIRMWARE: Meaning = identity("firmware");
pub(super) const FLASH_ID: Meaning = identity("flash_id");
pub(super) const CONTROLLER: Meaning = identity("controller");
pub(super) const PRODUCT: Meaning = identity("product");
