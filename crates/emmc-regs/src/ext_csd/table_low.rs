//! Bytes 0..=127: run-time control, contexts, exception events, vendor bytes.

use super::field::Access::*;
use super::field::{Danger, Field, Unit, bit, field};
use crate::Persistence::*;

pub(super) const TABLE: [Field; 27] = [
    field("RESERVED", 0, 15, &[Reserved], 0, ""),
    field("CMDQ_MODE_EN", 15, 1, &[RWEp], 8, "command queue on/off")
        .bits(&[bit(0, 0, "CMDQ_EN", "", None)])
        .values(&[(0, "disabled"), (1, "enabled")])
        .source("Linux EXT_CSD_CMDQ_MODE_EN, mmc-utils EXT_CSD_CMDQ_MODE_EN"),
    field("SECURE_REMOVAL_TYPE", 16, 1, &[W1, R], 7, "how secure removal is done: [5:4] configure (R/W = one time), [3:0] supported (R)")
        .bits(&[bit(3, 0, "SUPPORTED_SECURE_REMOVAL_TYPE", "(b0 erase, b1 overwrite with a character then erase, b2 overwrite with character, complement, random, b3 vendor defined)", Some(R)), bit(5, 4, "CONFIGURE_SECURE_REMOVAL_TYPE", "(0..3 same order)", Some(W1))])
        .danger(Danger::OneTimePart)
        .source("mmc-utils EXT_CSD_SECURE_REMOVAL_TYPE"),
    field("PRODUCT_STATE_AWARENESS_ENABLEMENT", 17, 1, &[RWE, R], 7, "")
        .bits(&[bit(0, 0, "MANUAL_SUPPORT", "", Some(R)), bit(1, 1, "AUTO_SUPPORT", "", Some(R)), bit(4, 4, "PROD_STATE_AWARENESS_EN", "", Some(RWE)), bit(5, 5, "AUTO_EN", "", Some(RWE))])
        .source("barebox mmc_extcsd"),
    field("MAX_PRE_LOADING_DATA_SIZE", 18, 4, &[R], 7, "maximum data loadable before soldering")
        .unit(Unit::DataSectors)
        .source("Assumed: JESD84-B51 order; barebox swaps it with its neighbour"),
    field("PRE_LOADING_DATA_SIZE", 22, 4, &[RWEp], 7, "data that will be pre-loaded")
        .unit(Unit::DataSectors)
        .source("Assumed: JESD84-B51 order; barebox swaps it with its neighbour"),
    field("FFU_STATUS", 26, 1, &[R], 7, "result of last firmware update")
        .values(&[(0, "success"), (16, "general error"), (17, "firmware install error"), (18, "firmware download error")])
        .persists(NotSpecified, "JESD84-B51 7.4: the result of the last firmware update; not said how long it stays")
        .source("mmc-utils EXT_CSD_FFU_STATUS"),
    field("RESERVED", 27, 2, &[Reserved], 0, ""),
    field("MODE_OPERATION_CODES", 29, 1, &[WEp], 7, "")
        .values(&[(0, "reserved"), (1, "FFU_INSTALL"), (2, "FFU_ABORT")])
        .danger(Danger::Action)
        .source("mmc-utils EXT_CSD_MODE_OPERATION_CODES"),
    field("MODE_CONFIG", 30, 1, &[RWEp], 7, "")
        .values(&[(0, "normal"), (1, "FFU"), (16, "vendor specific mode (VSM)")])
        .danger(Danger::Action)
        .source("mmc-utils EXT_CSD_MODE_CONFIG"),
    field("BARRIER_CTRL", 31, 1, &[W1], 8, "cache barrier; sources differ on whether it is one-time: its access type R/W says so, its description is of a switch. Count on once")
        .bits(&[bit(0, 0, "BARRIER_EN", "", None)])
        .persists(NotSpecified, "Sources differ: R/W by its access type, which is one-time, but described as a switch of the barrier")
        .source("mmc-utils extcsd read"),
    field("FLUSH_CACHE", 32, 1, &[WEp], 6, "")
        .bits(&[bit(0, 0, "FLUSH", "", None), bit(1, 1, "BARRIER", "(5.1)", None)])
        .danger(Danger::Action)
        .source("Linux EXT_CSD_FLUSH_CACHE"),
    field("CACHE_CTRL", 33, 1, &[RWEp], 6, "")
        .bits(&[bit(0, 0, "CACHE_EN", "", None)])
        .source("Linux EXT_CSD_CACHE_CTRL, mmc-utils EXT_CSD_CACHE_CTRL"),
    field("POWER_OFF_NOTIFICATION", 34, 1, &[RWEp], 6, "")
        .values(&[(0, "NO_POWER_NOTIFICATION"), (1, "POWERED_ON"), (2, "POWER_OFF_SHORT"), (3, "POWER_OFF_LONG"), (4, "SLEEP_NOTIFICATION (5.0)")])
        .source("Linux EXT_CSD_POWER_OFF_NOTIFICATION"),
    field("PACKED_FAILURE_INDEX", 35, 1, &[R], 6, "first failing entry of a packed command")
        .persists(NotSpecified, "JESD84-B51 7.4: a state, of the last packed command")
        .source("Linux EXT_CSD_PACKED_FAILURE_INDEX"),
    field("PACKED_COMMAND_STATUS", 36, 1, &[R], 6, "")
        .bits(&[bit(0, 0, "ERROR", "", None), bit(1, 1, "INDEXED_ERROR", "", None)])
        .persists(NotSpecified, "JESD84-B51 7.4: a state, of the last packed command")
        .source("Linux EXT_CSD_PACKED_CMD_STATUS"),
    field("CONTEXT_CONF", 37, 15, &[RWEp], 6, "one byte per context id 1..15 (byte 37 = context 1)")
        .bits(&[bit(1, 0, "ACTIVATION", "(0 closed, 1 write only, 2 read only, 3 read/write)", None), bit(2, 2, "LARGE_UNIT_CONTEXT", "", None), bit(5, 3, "LARGE_UNIT_MULTIPLIER", "(n+1)", None), bit(7, 6, "RELIABILITY_MODE", "(0 MODE0 normal, 1 MODE1 non-large-unit rollback, 2 MODE2 large-unit)", None)])
        .source("mmc-utils extcsd read"),
    field("EXT_PARTITIONS_ATTRIBUTE", 52, 2, &[W1], 6, "one nibble per GP partition, GP1 lowest")
        .bits(&[bit(3, 0, "EXT_1", "", None), bit(7, 4, "EXT_2", "", None), bit(11, 8, "EXT_3", "", None), bit(15, 12, "EXT_4", "", None)])
        .values(&[(0, "default"), (1, "system code"), (2, "non-persistent")])
        .danger(Danger::OneTime)
        .persists(OneTimeOnceCommitted, "JESD84-B51 6.2.4: lost with power until PARTITION_SETTING_COMPLETED is set")
        .source("mmc-utils EXT_CSD_EXT_PARTITIONS_ATTRIBUTE"),
    field("EXCEPTION_EVENTS_STATUS", 54, 2, &[R], 6, "")
        .bits(&[bit(0, 0, "URGENT_BKOPS", "", None), bit(1, 1, "DYNCAP_NEEDED", "", None), bit(2, 2, "SYSPOOL_EXHAUSTED", "", None), bit(3, 3, "PACKED_FAILURE", "", None), bit(4, 4, "EXTENDED_SECURITY_FAILURE", "", None)])
        .persists(NotSpecified, "JESD84-B51 7.4: a state, cleared when its cause is gone")
        .source("Linux EXT_CSD_EXP_EVENTS_STATUS"),
    field("EXCEPTION_EVENTS_CTRL", 56, 2, &[RWEp], 6, "")
        .bits(&[bit(1, 1, "DYNCAP_EVENT_EN", "", None), bit(2, 2, "SYSPOOL_EVENT_EN", "", None), bit(3, 3, "PACKED_EVENT_EN", "", None), bit(4, 4, "EXTENDED_SECURITY_EN", "", None)])
        .source("Linux EXT_CSD_EXP_EVENTS_CTRL"),
    field("DYNCAP_NEEDED", 58, 1, &[R], 6, "number of write-protect groups the host should release")
        .persists(NotSpecified, "JESD84-B51 7.4: a state, cleared when its cause is gone")
        .source("mmc-utils extcsd read"),
    field("CLASS_6_CTRL", 59, 1, &[RWEp], 6, "meaning of class 6 commands")
        .values(&[(0, "write protect"), (1, "dynamic capacity")])
        .source("mmc-utils extcsd read"),
    field("INI_TIMEOUT_EMU", 60, 1, &[R], 6, "init timeout after leaving 512 B emulation")
        .unit(Unit::Linear(100, "ms"))
        .source("mmc-utils extcsd read"),
    field("DATA_SECTOR_SIZE", 61, 1, &[R], 6, "current sector size")
        .values(&[(0, "512 B"), (1, "4 KiB")])
        .source("Linux EXT_CSD_DATA_SECTOR_SIZE, mmc-utils EXT_CSD_DATA_SECTOR_SIZE"),
    field("USE_NATIVE_SECTOR", 62, 1, &[W1], 6, "leave 512 B emulation (needs power cycle)")
        .values(&[(0, "512 B emulated"), (1, "native")])
        .danger(Danger::OneTime)
        .source("mmc-utils EXT_CSD_USE_NATIVE_SECTOR"),
    field("NATIVE_SECTOR_SIZE", 63, 1, &[R], 6, "")
        .values(&[(0, "512 B"), (1, "4 KiB")])
        .source("mmc-utils EXT_CSD_NATIVE_SECTOR_SIZE"),
    field("VENDOR_SPECIFIC_FIELD", 64, 64, &[Vendor], 5, "vendor defined; known uses: Micron 71..95 self refresh / 125 boot partition resize, SanDisk 87/88/94/96 health (old), 113 CMD38 argument (SanDisk quirk), Samsung 102 OSV")
        .danger(Danger::Vendor)
        .source("mmc-utils extcsd read"),
];
