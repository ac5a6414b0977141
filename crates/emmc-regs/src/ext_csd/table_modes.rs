//! Bytes 128..=191: the modes segment: partitioning, write protection, boot, background operations, bus.

use super::field::Access::*;
use super::field::{Danger, Field, Unit, bit, field};
use crate::Persistence::*;

pub(super) const TABLE: [Field; 48] = [
    field("RESERVED", 128, 2, &[Reserved], 0, ""),
    field("PROGRAM_CID_CSD_DDR_SUPPORT", 130, 1, &[R], 6, "")
        .bits(&[bit(0, 0, "supported", "", None)])
        .source("mmc-utils extcsd read"),
    field("PERIODIC_WAKEUP", 131, 1, &[RWE], 6, "")
        .bits(&[bit(7, 5, "WAKEUP_UNIT", "(0 infinity, 1 months, 2 weeks, 3 days, 4 hours, 5 minutes)", None), bit(4, 0, "WAKEUP_PERIOD", "", None)])
        .source("mmc-utils extcsd read"),
    field("TCASE_SUPPORT", 132, 1, &[WEp], 6, "package case temperature requested by host")
        .unit(Unit::Linear(1, "degC"))
        .source("barebox mmc_extcsd"),
    field("PRODUCTION_STATE_AWARENESS", 133, 1, &[RWE], 7, "")
        .values(&[(0, "NORMAL"), (1, "PRE_SOLDERING_WRITES"), (2, "PRE_SOLDERING_POST_WRITES"), (3, "AUTO_PRE_SOLDERING")])
        .source("barebox mmc_extcsd"),
    field("SEC_BAD_BLK_MGMNT", 134, 1, &[W1], 5, "erase retired blocks before retiring")
        .bits(&[bit(0, 0, "SEC_BAD_BLK", "", None)])
        .danger(Danger::OneTime)
        .source("mmc-utils extcsd read"),
    field("RESERVED", 135, 1, &[Reserved], 0, ""),
    field("ENH_START_ADDR", 136, 4, &[W1], 5, "start of enhanced user area; must be WP-group aligned")
        .unit(Unit::StartAddress)
        .danger(Danger::OneTime)
        .persists(OneTimeOnceCommitted, "JESD84-B51 6.2.4: lost with power until PARTITION_SETTING_COMPLETED is set")
        .source("U-Boot EXT_CSD_ENH_START_ADDR, mmc-utils EXT_CSD_ENH_START_ADDR"),
    field("ENH_SIZE_MULT", 140, 3, &[W1], 5, "size of enhanced user area")
        .unit(Unit::WpGroups)
        .danger(Danger::OneTime)
        .persists(OneTimeOnceCommitted, "JESD84-B51 6.2.4: lost with power until PARTITION_SETTING_COMPLETED is set")
        .source("U-Boot EXT_CSD_ENH_SIZE_MULT, mmc-utils EXT_CSD_ENH_SIZE_MULT"),
    field("GP_SIZE_MULT_1", 143, 3, &[W1], 5, "size of general purpose partition 1")
        .unit(Unit::WpGroups)
        .danger(Danger::OneTime)
        .persists(OneTimeOnceCommitted, "JESD84-B51 6.2.4: lost with power until PARTITION_SETTING_COMPLETED is set")
        .source("Linux EXT_CSD_GP_SIZE_MULT, U-Boot EXT_CSD_GP_SIZE_MULT, mmc-utils EXT_CSD_GP_SIZE_MULT_1"),
    field("GP_SIZE_MULT_2", 146, 3, &[W1], 5, "size of general purpose partition 2")
        .unit(Unit::WpGroups)
        .danger(Danger::OneTime)
        .persists(OneTimeOnceCommitted, "JESD84-B51 6.2.4: lost with power until PARTITION_SETTING_COMPLETED is set")
        .source("mmc-utils EXT_CSD_GP_SIZE_MULT_2"),
    field("GP_SIZE_MULT_3", 149, 3, &[W1], 5, "size of general purpose partition 3")
        .unit(Unit::WpGroups)
        .danger(Danger::OneTime)
        .persists(OneTimeOnceCommitted, "JESD84-B51 6.2.4: lost with power until PARTITION_SETTING_COMPLETED is set")
        .source("mmc-utils EXT_CSD_GP_SIZE_MULT_3"),
    field("GP_SIZE_MULT_4", 152, 3, &[W1], 5, "size of general purpose partition 4")
        .unit(Unit::WpGroups)
        .danger(Danger::OneTime)
        .persists(OneTimeOnceCommitted, "JESD84-B51 6.2.4: lost with power until PARTITION_SETTING_COMPLETED is set")
        .source("mmc-utils EXT_CSD_GP_SIZE_MULT_4"),
    field("PARTITION_SETTING_COMPLETED", 155, 1, &[W1], 5, "commits the partitioning registers; irreversible")
        .bits(&[bit(0, 0, "PARTITION_SETTING_COMPLETED", "", None)])
        .danger(Danger::OneTime)
        .source("Linux EXT_CSD_PARTITION_SETTING_COMPLETED, U-Boot EXT_CSD_PARTITION_SETTING, mmc-utils EXT_CSD_PARTITION_SETTING_COMPLETED"),
    field("PARTITIONS_ATTRIBUTE", 156, 1, &[W1], 5, "enhanced attribute")
        .bits(&[bit(0, 0, "ENH_USR", "", None), bit(1, 1, "ENH_1", "", None), bit(2, 2, "ENH_2", "", None), bit(3, 3, "ENH_3", "", None), bit(4, 4, "ENH_4", "", None)])
        .danger(Danger::OneTime)
        .persists(OneTimeOnceCommitted, "JESD84-B51 6.2.4: lost with power until PARTITION_SETTING_COMPLETED is set")
        .source("Linux EXT_CSD_PARTITION_ATTRIBUTE, U-Boot EXT_CSD_PARTITIONS_ATTRIBUTE, mmc-utils EXT_CSD_PARTITIONS_ATTRIBUTE"),
    field("MAX_ENH_SIZE_MULT", 157, 3, &[R], 5, "upper bound for sum of enhanced user area + enhanced GPs")
        .unit(Unit::WpGroups)
        .source("U-Boot EXT_CSD_MAX_ENH_SIZE_MULT, mmc-utils EXT_CSD_MAX_ENH_SIZE_MULT"),
    field("PARTITIONING_SUPPORT", 160, 1, &[R], 5, "")
        .bits(&[bit(0, 0, "PARTITIONING_EN", "", None), bit(1, 1, "ENH_ATTRIBUTE_EN", "", None), bit(2, 2, "EXT_ATTRIBUTE_EN", "(4.5)", None)])
        .source("Linux EXT_CSD_PARTITION_SUPPORT, U-Boot EXT_CSD_PARTITIONING_SUPPORT, mmc-utils EXT_CSD_PARTITIONING_SUPPORT"),
    field("HPI_MGMT", 161, 1, &[RWEp], 5, "")
        .bits(&[bit(0, 0, "HPI_EN", "", None)])
        .source("Linux EXT_CSD_HPI_MGMT"),
    field("RST_n_FUNCTION", 162, 1, &[W1], 5, "hardware reset pin")
        .bits(&[bit(1, 0, "RST_n_ENABLE", "", None)])
        .values(&[(0, "temporarily disabled (default)"), (1, "permanently enabled"), (2, "permanently disabled")])
        .danger(Danger::OneTime)
        .source("Linux EXT_CSD_RST_N_FUNCTION, U-Boot EXT_CSD_RST_N_FUNCTION, mmc-utils EXT_CSD_RST_N_FUNCTION"),
    field("BKOPS_EN", 163, 1, &[W1, RWE], 5, "background operations")
        .bits(&[bit(0, 0, "MANUAL_EN", "", Some(W1)), bit(1, 1, "AUTO_EN", "", Some(RWE))])
        .danger(Danger::OneTimePart)
        .source("Linux EXT_CSD_BKOPS_EN, U-Boot EXT_CSD_BKOPS_EN, mmc-utils EXT_CSD_BKOPS_EN"),
    field("BKOPS_START", 164, 1, &[WEp], 5, "any write starts background operations")
        .danger(Danger::Action)
        .source("Linux EXT_CSD_BKOPS_START"),
    field("SANITIZE_START", 165, 1, &[WEp], 6, "any write purges unmapped data")
        .danger(Danger::Destructive)
        .source("Linux EXT_CSD_SANITIZE_START, mmc-utils EXT_CSD_SANITIZE_START"),
    field("WR_REL_PARAM", 166, 1, &[R], 5, "")
        .bits(&[bit(0, 0, "HS_CTRL_REL", "(WR_REL_SET is writable)", None), bit(2, 2, "EN_REL_WR", "(enhanced reliable write)", None), bit(4, 4, "EN_RPMB_REL_WR", "(5.1: 8 KiB RPMB writes)", None)])
        .source("Linux EXT_CSD_WR_REL_PARAM, U-Boot EXT_CSD_WR_REL_PARAM, mmc-utils EXT_CSD_WR_REL_PARAM"),
    field("WR_REL_SET", 167, 1, &[W1], 5, "write reliability per area: data protected if power fails")
        .bits(&[bit(0, 0, "WR_DATA_REL_USR", "", None), bit(1, 1, "WR_DATA_REL_1", "", None), bit(2, 2, "WR_DATA_REL_2", "", None), bit(3, 3, "WR_DATA_REL_3", "", None), bit(4, 4, "WR_DATA_REL_4", "", None)])
        .danger(Danger::OneTime)
        .persists(OneTimeOnceCommitted, "JESD84-B51 6.2.4: lost with power until PARTITION_SETTING_COMPLETED is set")
        .source("U-Boot EXT_CSD_WR_REL_SET, mmc-utils EXT_CSD_WR_REL_SET"),
    field("RPMB_SIZE_MULT", 168, 1, &[R], 5, "RPMB size")
        .unit(Unit::Linear(131_072, "B"))
        .source("Linux EXT_CSD_RPMB_MULT, U-Boot EXT_CSD_RPMB_MULT"),
    field("FW_CONFIG", 169, 1, &[W1], 5, "")
        .bits(&[bit(0, 0, "UPDATE_DISABLE", "", None)])
        .danger(Danger::OneTime)
        .source("Linux EXT_CSD_FW_CONFIG, mmc-utils EXT_CSD_FW_CONFIG"),
    field("RESERVED", 170, 1, &[Reserved], 0, ""),
    field("USER_WP", 171, 1, &[W1, RWCp, RWEp], 5, "")
        .bits(&[bit(0, 0, "US_PWR_WP_EN", "", Some(RWEp)), bit(2, 2, "US_PERM_WP_EN", "", Some(RWEp)), bit(3, 3, "US_PWR_WP_DIS", "", Some(RWCp)), bit(4, 4, "US_PERM_WP_DIS", "", Some(W1)), bit(6, 6, "CD_PERM_WP_DIS", "", Some(W1)), bit(7, 7, "PERM_PSWD_DIS", "", Some(W1))])
        .danger(Danger::OneTimePart)
        .source("mmc-utils EXT_CSD_USER_WP"),
    field("RESERVED", 172, 1, &[Reserved], 0, ""),
    field("BOOT_WP", 173, 1, &[W1, RWCp], 5, "")
        .bits(&[bit(0, 0, "B_PWR_WP_EN", "", Some(RWCp)), bit(1, 1, "B_PWR_WP_SEC_SEL", "", Some(RWCp)), bit(2, 2, "B_PERM_WP_EN", "", Some(W1)), bit(3, 3, "B_PERM_WP_SEC_SEL", "", Some(RWCp)), bit(4, 4, "B_PERM_WP_DIS", "", Some(W1)), bit(6, 6, "B_PWR_WP_DIS", "", Some(RWCp)), bit(7, 7, "B_SEC_WP_SEL", "", Some(RWCp))])
        .danger(Danger::OneTimePart)
        .source("Linux EXT_CSD_BOOT_WP, mmc-utils EXT_CSD_BOOT_WP"),
    field("BOOT_WP_STATUS", 174, 1, &[R], 6, "")
        .bits(&[bit(1, 0, "B_AREA_1_WP", "(0 none, 1 power-on, 2 permanent)", None), bit(3, 2, "B_AREA_2_WP", "", None)])
        .persists(NotSpecified, "JESD84-B51 7.4: a state: 1 lasts until the next power cycle, 2 for ever")
        .source("mmc-utils EXT_CSD_BOOT_WP_STATUS"),
    field("ERASE_GROUP_DEF", 175, 1, &[RWEp], 3, "use high-capacity erase and WP groups")
        .bits(&[bit(0, 0, "ENABLE", "", None)])
        .source("Linux EXT_CSD_ERASE_GROUP_DEF, U-Boot EXT_CSD_ERASE_GROUP_DEF, mmc-utils EXT_CSD_ERASE_GROUP_DEF"),
    field("RESERVED", 176, 1, &[Reserved], 0, ""),
    field("BOOT_BUS_CONDITIONS", 177, 1, &[RWE], 3, "")
        .bits(&[bit(4, 3, "BOOT_MODE", "(0 SDR backward compatible, 1 SDR high speed, 2 DDR)", None), bit(2, 2, "RESET_BOOT_BUS_CONDITIONS", "(0 reset to x1 SDR after boot, 1 keep)", None), bit(1, 0, "BOOT_BUS_WIDTH", "(0 x1 SDR / x4 DDR, 1 x4, 2 x8)", None)])
        .source("U-Boot EXT_CSD_BOOT_BUS_WIDTH, mmc-utils EXT_CSD_BOOT_BUS_CONDITIONS"),
    field("BOOT_CONFIG_PROT", 178, 1, &[W1, RWCp], 5, "lock of boot configuration")
        .bits(&[bit(0, 0, "PWR_BOOT_CONFIG_PROT", "", Some(RWCp)), bit(4, 4, "PERM_BOOT_CONFIG_PROT", "", Some(W1))])
        .danger(Danger::OneTimePart)
        .source("mmc-utils extcsd read"),
    field("PARTITION_CONFIG", 179, 1, &[RWE, RWEp], 3, "")
        .bits(&[bit(6, 6, "BOOT_ACK", "", Some(RWE)), bit(5, 3, "BOOT_PARTITION_ENABLE", "(0 none, 1 boot1, 2 boot2, 7 user)", Some(RWE)), bit(2, 0, "PARTITION_ACCESS", "(0 user, 1 boot1, 2 boot2, 3 RPMB, 4..7 GP1..4)", Some(RWEp))])
        .source("Linux EXT_CSD_PART_CONFIG, U-Boot EXT_CSD_PART_CONF, mmc-utils EXT_CSD_BOOT_CFG"),
    field("RESERVED", 180, 1, &[Reserved], 0, ""),
    field("ERASED_MEM_CONT", 181, 1, &[R], 3, "content of erased memory")
        .values(&[(0, "zeros"), (1, "ones")])
        .source("Linux EXT_CSD_ERASED_MEM_CONT"),
    field("RESERVED", 182, 1, &[Reserved], 0, ""),
    field("BUS_WIDTH", 183, 1, &[WEp], 0, "")
        .bits(&[bit(7, 7, "ENHANCED_STROBE", "(5.1)", None), bit(3, 0, "BUS_MODE", "", None)])
        .values(&[(0, "x1 SDR"), (1, "x4 SDR"), (2, "x8 SDR"), (5, "x4 DDR"), (6, "x8 DDR")])
        .source("Linux EXT_CSD_BUS_WIDTH, U-Boot EXT_CSD_BUS_WIDTH"),
    field("STROBE_SUPPORT", 184, 1, &[R], 8, "")
        .bits(&[bit(0, 0, "ENHANCED_STROBE supported", "", None)])
        .source("Linux EXT_CSD_STROBE_SUPPORT"),
    field("HS_TIMING", 185, 1, &[RWEp], 0, "")
        .bits(&[bit(3, 0, "TIMING_INTERFACE", "", None), bit(7, 4, "SELECTED_DRIVER_STRENGTH", "", None)])
        .values(&[(0, "backward compatible"), (1, "High Speed"), (2, "HS200"), (3, "HS400")])
        .source("Linux EXT_CSD_HS_TIMING, U-Boot EXT_CSD_HS_TIMING"),
    field("RESERVED", 186, 1, &[Reserved], 0, ""),
    field("POWER_CLASS", 187, 1, &[RWEp], 0, "current power class")
        .bits(&[bit(3, 0, "POWER_CLASS", "", None)])
        .source("Linux EXT_CSD_POWER_CLASS"),
    field("RESERVED", 188, 1, &[Reserved], 0, ""),
    field("CMD_SET_REV", 189, 1, &[R], 0, "command set revision")
        .values(&[(0, "v4.0")])
        .source("mmc-utils extcsd read"),
    field("RESERVED", 190, 1, &[Reserved], 0, ""),
    field("CMD_SET", 191, 1, &[RWEp], 0, "active command set")
        .values(&[(0, "standard MMC")])
        .source("mmc-utils extcsd read"),
];
