//! Bytes 192..=511: the properties segment: what the device is and can do, and how worn it says it is.

use super::field::Access::*;
use super::field::{Field, Unit, bit, field};
use crate::Persistence::*;

pub(super) const TABLE: [Field; 85] = [
    field("EXT_CSD_REV", 192, 1, &[R], 0, "")
        .values(&[(0, "1.0 (MMC 4.0)"), (1, "1.1 (MMC 4.1)"), (2, "1.2 (MMC 4.2)"), (3, "1.3 (MMC 4.3)"), (4, "1.4 (obsolete; 4.4)"), (5, "1.5 (4.41)"), (6, "1.6 (4.5/4.51)"), (7, "1.7 (5.0/5.01)"), (8, "1.8 (5.1)"), (9, "1.9 (5.1B, JESD84-B51B, 2025)")])
        .source("Linux EXT_CSD_REV, U-Boot EXT_CSD_REV, mmc-utils EXT_CSD_REV"),
    field("RESERVED", 193, 1, &[Reserved], 0, ""),
    field("CSD_STRUCTURE", 194, 1, &[R], 0, "")
        .values(&[(0, "CSD 1.0"), (1, "CSD 1.1"), (2, "CSD 1.2 (4.1 and later)"), (3, "see EXT_CSD")])
        .source("Linux EXT_CSD_STRUCTURE"),
    field("RESERVED", 195, 1, &[Reserved], 0, ""),
    field("DEVICE_TYPE", 196, 1, &[R], 0, "bus modes supported (was CARD_TYPE)")
        .bits(&[bit(0, 0, "HS 26 MHz", "", None), bit(1, 1, "HS 52 MHz", "", None), bit(2, 2, "HS DDR 52 1.8/3 V", "", None), bit(3, 3, "HS DDR 52 1.2 V", "", None), bit(4, 4, "HS200 1.8 V", "", None), bit(5, 5, "HS200 1.2 V", "", None), bit(6, 6, "HS400 1.8 V", "", None), bit(7, 7, "HS400 1.2 V", "", None)])
        .source("Linux EXT_CSD_CARD_TYPE, U-Boot EXT_CSD_CARD_TYPE"),
    field("DRIVER_STRENGTH", 197, 1, &[R], 7, "")
        .bits(&[bit(0, 0, "type 0 50 ohm", "", None), bit(1, 1, "type 1 33 ohm", "", None), bit(2, 2, "type 2 66 ohm", "", None), bit(3, 3, "type 3 100 ohm", "", None), bit(4, 4, "type 4 40 ohm", "(5.1)", None)])
        .source("Linux EXT_CSD_DRIVER_STRENGTH"),
    field("OUT_OF_INTERRUPT_TIME", 198, 1, &[R], 5, "max time from HPI to ready")
        .unit(Unit::Linear(10, "ms"))
        .source("Linux EXT_CSD_OUT_OF_INTERRUPT_TIME"),
    field("PARTITION_SWITCH_TIME", 199, 1, &[R], 5, "")
        .unit(Unit::Linear(10, "ms"))
        .source("Linux EXT_CSD_PART_SWITCH_TIME, mmc-utils EXT_CSD_PART_SWITCH_TIME"),
    field("PWR_CL_52_195", 200, 1, &[R], 0, "")
        .unit(Unit::PowerClass)
        .bits(&[bit(7, 4, "8-bit bus", "", None), bit(3, 0, "4-bit bus", "", None)])
        .source("Linux EXT_CSD_PWR_CL_52_195"),
    field("PWR_CL_26_195", 201, 1, &[R], 0, "")
        .unit(Unit::PowerClass)
        .bits(&[bit(7, 4, "8-bit bus", "", None), bit(3, 0, "4-bit bus", "", None)])
        .source("Linux EXT_CSD_PWR_CL_26_195"),
    field("PWR_CL_52_360", 202, 1, &[R], 0, "")
        .unit(Unit::PowerClass)
        .bits(&[bit(7, 4, "8-bit bus", "", None), bit(3, 0, "4-bit bus", "", None)])
        .source("Linux EXT_CSD_PWR_CL_52_360"),
    field("PWR_CL_26_360", 203, 1, &[R], 0, "")
        .unit(Unit::PowerClass)
        .bits(&[bit(7, 4, "8-bit bus", "", None), bit(3, 0, "4-bit bus", "", None)])
        .source("Linux EXT_CSD_PWR_CL_26_360"),
    field("RESERVED", 204, 1, &[Reserved], 0, ""),
    field("MIN_PERF_R_4_26", 205, 1, &[R], 0, "0 = below class A (2.4 MB/s)")
        .unit(Unit::Linear(300, "kB/s"))
        .source("mmc-utils extcsd read"),
    field("MIN_PERF_W_4_26", 206, 1, &[R], 0, "0 = below class A (2.4 MB/s)")
        .unit(Unit::Linear(300, "kB/s"))
        .source("mmc-utils extcsd read"),
    field("MIN_PERF_R_8_26_4_52", 207, 1, &[R], 0, "0 = below class A (2.4 MB/s)")
        .unit(Unit::Linear(300, "kB/s"))
        .source("mmc-utils extcsd read"),
    field("MIN_PERF_W_8_26_4_52", 208, 1, &[R], 0, "0 = below class A (2.4 MB/s)")
        .unit(Unit::Linear(300, "kB/s"))
        .source("mmc-utils extcsd read"),
    field("MIN_PERF_R_8_52", 209, 1, &[R], 0, "0 = below class A (2.4 MB/s)")
        .unit(Unit::Linear(300, "kB/s"))
        .source("mmc-utils extcsd read"),
    field("MIN_PERF_W_8_52", 210, 1, &[R], 0, "0 = below class A (2.4 MB/s)")
        .unit(Unit::Linear(300, "kB/s"))
        .source("mmc-utils extcsd read"),
    field("SECURE_WP_INFO", 211, 1, &[R], 8, "")
        .bits(&[bit(0, 0, "SECURE_WP_SUPPORT", "", None), bit(1, 1, "SECURE_WP_EN_STATUS", "", None).persists(NotSpecified, "JESD84-B51 7.4: a state, set through the RPMB")])
        .source("mmc-utils EXT_CSD_SECURE_WP_INFO"),
    field("SEC_COUNT", 212, 4, &[R], 2, "user area size in 512-byte sectors, also with 4 KiB native sectors")
        .unit(Unit::Linear(1, "sectors"))
        .source("Linux EXT_CSD_SEC_CNT, U-Boot EXT_CSD_SEC_CNT, mmc-utils EXT_CSD_SEC_COUNT"),
    field("SLEEP_NOTIFICATION_TIME", 216, 1, &[R], 7, "")
        .unit(Unit::Exp2 { step: 10, unit: "us", bias: 0, raw_max: 0x17 })
        .values(&[(0, "undefined")])
        .source("barebox mmc_extcsd"),
    field("S_A_TIMEOUT", 217, 1, &[R], 3, "sleep/awake timeout; max 0x17")
        .unit(Unit::Exp2 { step: 100, unit: "ns", bias: 0, raw_max: 0x17 })
        .source("Linux EXT_CSD_S_A_TIMEOUT"),
    field("PRODUCTION_STATE_AWARENESS_TIMEOUT", 218, 1, &[R], 7, "max 0x17")
        .unit(Unit::Exp2 { step: 100, unit: "us", bias: 0, raw_max: 0x17 })
        .source("barebox mmc_extcsd"),
    field("S_C_VCCQ", 219, 1, &[R], 3, "sleep current VCCQ; max 0xD")
        .unit(Unit::Exp2 { step: 1, unit: "uA", bias: 0, raw_max: 0x0d })
        .source("mmc-utils extcsd read"),
    field("S_C_VCC", 220, 1, &[R], 3, "sleep current VCC; max 0xD")
        .unit(Unit::Exp2 { step: 1, unit: "uA", bias: 0, raw_max: 0x0d })
        .source("mmc-utils extcsd read"),
    field("HC_WP_GRP_SIZE", 221, 1, &[R], 3, "high-capacity write-protect group size")
        .unit(Unit::EraseGroups)
        .source("Linux EXT_CSD_HC_WP_GRP_SIZE, U-Boot EXT_CSD_HC_WP_GRP_SIZE, mmc-utils EXT_CSD_HC_WP_GRP_SIZE"),
    field("REL_WR_SEC_C", 222, 1, &[R], 3, "reliable write sector count")
        .unit(Unit::Linear(1, "sectors"))
        .source("Linux EXT_CSD_REL_WR_SEC_C"),
    field("ERASE_TIMEOUT_MULT", 223, 1, &[R], 3, "per high-capacity erase group")
        .unit(Unit::Linear(300, "ms"))
        .source("Linux EXT_CSD_ERASE_TIMEOUT_MULT"),
    field("HC_ERASE_GRP_SIZE", 224, 1, &[R], 3, "high-capacity erase unit")
        .unit(Unit::Linear(524_288, "B"))
        .source("Linux EXT_CSD_HC_ERASE_GRP_SIZE, U-Boot EXT_CSD_HC_ERASE_GRP_SIZE, mmc-utils EXT_CSD_HC_ERASE_GRP_SIZE"),
    field("ACC_SIZE", 225, 1, &[R], 3, "super page size")
        .unit(Unit::Exp2 { step: 512, unit: "B", bias: 1, raw_max: 0x0f })
        .bits(&[bit(3, 0, "SUPER_PAGE_SIZE", "", None)])
        .source("mmc-utils extcsd read"),
    field("BOOT_SIZE_MULT", 226, 1, &[R], 3, "size of each boot partition")
        .unit(Unit::Linear(131_072, "B"))
        .source("Linux EXT_CSD_BOOT_MULT, U-Boot EXT_CSD_BOOT_MULT, mmc-utils EXT_CSD_BOOT_MULT"),
    field("RESERVED", 227, 1, &[Reserved], 0, ""),
    field("BOOT_INFO", 228, 1, &[R], 3, "")
        .bits(&[bit(0, 0, "ALT_BOOT_MODE", "", None), bit(1, 1, "DDR_BOOT_MODE", "", None), bit(2, 2, "HS_BOOT_MODE", "", None)])
        .source("mmc-utils EXT_CSD_BOOT_INFO"),
    field("SEC_TRIM_MULT", 229, 1, &[R], 5, "secure trim timeout (obsolete from 4.51)")
        .unit(Unit::SecureTimeout)
        .source("Linux EXT_CSD_SEC_TRIM_MULT"),
    field("SEC_ERASE_MULT", 230, 1, &[R], 5, "secure erase timeout (obsolete from 4.51)")
        .unit(Unit::SecureTimeout)
        .source("Linux EXT_CSD_SEC_ERASE_MULT"),
    field("SEC_FEATURE_SUPPORT", 231, 1, &[R], 5, "")
        .bits(&[bit(0, 0, "SECURE_ER_EN", "", None), bit(2, 2, "SEC_BD_BLK_EN", "", None), bit(4, 4, "SEC_GB_CL_EN", "(trim)", None), bit(6, 6, "SEC_SANITIZE", "(4.5)", None)])
        .source("Linux EXT_CSD_SEC_FEATURE_SUPPORT, mmc-utils EXT_CSD_SEC_FEATURE_SUPPORT"),
    field("TRIM_MULT", 232, 1, &[R], 5, "trim/discard timeout per erase group")
        .unit(Unit::Linear(300, "ms"))
        .source("Linux EXT_CSD_TRIM_MULT"),
    field("RESERVED", 233, 1, &[Reserved], 0, ""),
    field("MIN_PERF_DDR_R_8_52", 234, 1, &[R], 5, "")
        .unit(Unit::Linear(600, "kB/s"))
        .source("mmc-utils extcsd read"),
    field("MIN_PERF_DDR_W_8_52", 235, 1, &[R], 5, "")
        .unit(Unit::Linear(600, "kB/s"))
        .source("mmc-utils extcsd read"),
    field("PWR_CL_200_130", 236, 1, &[R], 6, "VCCQ 1.3 V, VCC 3.6 V (Linux/barebox label it PWR_CL_200_195)")
        .unit(Unit::PowerClass)
        .bits(&[bit(7, 4, "8-bit", "", None), bit(3, 0, "4-bit", "", None)])
        .source("Linux EXT_CSD_PWR_CL_200_195 (which name it after the supply one step higher)"),
    field("PWR_CL_200_195", 237, 1, &[R], 6, "VCCQ 1.95 V, VCC 3.6 V (Linux/barebox label it PWR_CL_200_360)")
        .unit(Unit::PowerClass)
        .bits(&[bit(7, 4, "8-bit", "", None), bit(3, 0, "4-bit", "", None)])
        .source("Linux EXT_CSD_PWR_CL_200_360 (which name it after the supply one step higher)"),
    field("PWR_CL_DDR_52_195", 238, 1, &[R], 5, "")
        .unit(Unit::PowerClass)
        .bits(&[bit(7, 4, "8-bit", "", None), bit(3, 0, "4-bit", "", None)])
        .source("Linux EXT_CSD_PWR_CL_DDR_52_195"),
    field("PWR_CL_DDR_52_360", 239, 1, &[R], 5, "")
        .unit(Unit::PowerClass)
        .bits(&[bit(7, 4, "8-bit", "", None), bit(3, 0, "4-bit", "", None)])
        .source("Linux EXT_CSD_PWR_CL_DDR_52_360"),
    field("CACHE_FLUSH_POLICY", 240, 1, &[R], 8, "")
        .bits(&[bit(0, 0, "FIFO", "", None)])
        .source("barebox mmc_extcsd"),
    field("INI_TIMEOUT_AP", 241, 1, &[R], 5, "first initialisation after partitioning: wait this long after the power cycle that follows PARTITION_SETTING_COMPLETED")
        .unit(Unit::Linear(100, "ms"))
        .values(&[(0, "not defined")])
        .source("mmc-utils extcsd read"),
    field("CORRECTLY_PRG_SECTORS_NUM", 242, 4, &[R], 5, "correctly programmed sectors of last interrupted (HPI) write")
        .unit(Unit::Linear(1, "sectors"))
        .persists(NotSpecified, "JESD84-B51 7.4: a state, of the last interrupted write")
        .source("barebox mmc_extcsd"),
    field("BKOPS_STATUS", 246, 1, &[R], 5, "")
        .bits(&[bit(1, 0, "OUTSTANDING", "", None)])
        .values(&[(0, "none"), (1, "outstanding, non critical"), (2, "performance impacted"), (3, "critical")])
        .persists(NotSpecified, "JESD84-B51 7.4: a state, which changes as the card works")
        .source("Linux EXT_CSD_BKOPS_STATUS"),
    field("POWER_OFF_LONG_TIME", 247, 1, &[R], 6, "")
        .unit(Unit::Linear(10, "ms"))
        .source("Linux EXT_CSD_POWER_OFF_LONG_TIME"),
    field("GENERIC_CMD6_TIME", 248, 1, &[R], 6, "")
        .unit(Unit::Linear(10, "ms"))
        .source("Linux EXT_CSD_GENERIC_CMD6_TIME"),
    field("CACHE_SIZE", 249, 4, &[R], 6, "volatile cache; the register counts kilobits (JESD84-B51 7.4.30), which some tools read as kilobytes")
        .unit(Unit::Linear(128, "B"))
        .source("Linux EXT_CSD_CACHE_SIZE, mmc-utils EXT_CSD_CACHE_SIZE"),
    field("PWR_CL_DDR_200_360", 253, 1, &[R], 7, "HS400 VCC 3.6 V")
        .unit(Unit::PowerClass)
        .bits(&[bit(7, 4, "8-bit", "", None), bit(3, 0, "4-bit", "", None)])
        .source("Linux EXT_CSD_PWR_CL_DDR_200_360"),
    field("FIRMWARE_VERSION", 254, 8, &[R], 7, "vendor format, not always ASCII")
        .source("Linux EXT_CSD_FIRMWARE_VERSION, mmc-utils EXT_CSD_FIRMWARE_VERSION"),
    field("DEVICE_VERSION", 262, 2, &[R], 7, "vendor format")
        .source("barebox mmc_extcsd"),
    field("OPTIMAL_TRIM_UNIT_SIZE", 264, 1, &[R], 7, "0 = not defined; max 0x15")
        .unit(Unit::Exp2 { step: 4096, unit: "B", bias: 1, raw_max: 0x15 })
        .source("barebox mmc_extcsd"),
    field("OPTIMAL_WRITE_SIZE", 265, 1, &[R], 7, "0 = not defined")
        .unit(Unit::Linear(4096, "B"))
        .values(&[(0, "not defined")])
        .source("barebox mmc_extcsd"),
    field("OPTIMAL_READ_SIZE", 266, 1, &[R], 7, "0 = not defined")
        .unit(Unit::Linear(4096, "B"))
        .values(&[(0, "not defined")])
        .source("barebox mmc_extcsd"),
    field("PRE_EOL_INFO", 267, 1, &[R], 7, "consumed reserved blocks")
        .values(&[(0, "not defined"), (1, "normal"), (2, "warning (80 % of reserved blocks consumed)"), (3, "urgent (90 %)")])
        .source("Linux EXT_CSD_PRE_EOL_INFO, mmc-utils EXT_CSD_PRE_EOL_INFO"),
    field("DEVICE_LIFE_TIME_EST_TYP_A", 268, 1, &[R], 7, "wear of type A cells (usually SLC/pSLC area; vendor dependent)")
        .unit(Unit::LifeBand)
        .values(&[(0, "not defined"), (11, "exceeded maximum estimated life")])
        .source("Linux EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_A, mmc-utils EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_A"),
    field("DEVICE_LIFE_TIME_EST_TYP_B", 269, 1, &[R], 7, "wear of type B cells (usually MLC/TLC; vendor dependent)")
        .unit(Unit::LifeBand)
        .values(&[(0, "not defined"), (11, "exceeded maximum estimated life")])
        .source("Linux EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_B, mmc-utils EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_B"),
    field("VENDOR_PROPRIETARY_HEALTH_REPORT", 270, 32, &[R], 7, "vendor format")
        .persists(NotSpecified, "JESD84-B51 7.4: the vendor's")
        .source("barebox mmc_extcsd"),
    field("NUMBER_OF_FW_SECTORS_CORRECTLY_PROGRAMMED", 302, 4, &[R], 7, "FFU progress")
        .unit(Unit::Linear(1, "sectors"))
        .persists(NotSpecified, "JESD84-B51 7.4: a state of the firmware update in progress")
        .source("mmc-utils EXT_CSD_NUM_OF_FW_SEC_PROG"),
    field("RESERVED", 306, 1, &[Reserved], 0, ""),
    field("CMDQ_DEPTH", 307, 1, &[R], 8, "")
        .unit(Unit::PlusOne(1, "tasks"))
        .bits(&[bit(4, 0, "N", "", None)])
        .source("Linux EXT_CSD_CMDQ_DEPTH, mmc-utils EXT_CSD_CMDQ_DEPTH"),
    field("CMDQ_SUPPORT", 308, 1, &[R], 8, "")
        .bits(&[bit(0, 0, "CMDQ supported", "", None)])
        .source("Linux EXT_CSD_CMDQ_SUPPORT, mmc-utils EXT_CSD_CMDQ_SUPPORT"),
    field("RESERVED", 309, 177, &[Reserved], 0, ""),
    field("BARRIER_SUPPORT", 486, 1, &[R], 8, "")
        .bits(&[bit(0, 0, "supported", "", None)])
        .source("barebox mmc_extcsd"),
    field("FFU_ARG", 487, 4, &[R], 7, "argument (address) for CMD23+25/CMD24 download")
        .source("mmc-utils EXT_CSD_FFU_ARG"),
    field("OPERATION_CODES_TIMEOUT", 491, 1, &[R], 7, "max 0x17; 0 undefined")
        .unit(Unit::Exp2 { step: 100, unit: "us", bias: 0, raw_max: 0x17 })
        .source("barebox mmc_extcsd"),
    field("FFU_FEATURES", 492, 1, &[R], 7, "")
        .bits(&[bit(0, 0, "SUPPORTED_MODE_OPERATION_CODES", "", None)])
        .source("mmc-utils EXT_CSD_FFU_FEATURES"),
    field("SUPPORTED_MODES", 493, 1, &[R], 7, "")
        .bits(&[bit(0, 0, "FFU", "", None), bit(1, 1, "VSM", "", None)])
        .source("Linux EXT_CSD_SUPPORTED_MODE, mmc-utils EXT_CSD_SUPPORTED_MODES"),
    field("EXT_SUPPORT", 494, 1, &[R], 6, "")
        .bits(&[bit(0, 0, "system code", "", None), bit(1, 1, "non-persistent", "", None)])
        .source("mmc-utils extcsd read"),
    field("LARGE_UNIT_SIZE_M1", 495, 1, &[R], 6, "")
        .unit(Unit::PlusOne(1_048_576, "B"))
        .source("mmc-utils extcsd read"),
    field("CONTEXT_CAPABILITIES", 496, 1, &[R], 6, "")
        .bits(&[bit(3, 0, "MAX_CONTEXT_ID", "", None), bit(6, 4, "LARGE_UNIT_MAX_MULTIPLIER_M1", "", None)])
        .source("mmc-utils extcsd read"),
    field("TAG_RES_SIZE", 497, 1, &[R], 6, "")
        .unit(Unit::Linear(1, "tag units"))
        .source("mmc-utils extcsd read"),
    field("TAG_UNIT_SIZE", 498, 1, &[R], 6, "")
        .unit(Unit::Exp2 { step: 512, unit: "B", bias: 0, raw_max: 0x1f })
        .source("Linux EXT_CSD_TAG_UNIT_SIZE"),
    field("DATA_TAG_SUPPORT", 499, 1, &[R], 6, "")
        .bits(&[bit(0, 0, "SYSTEM_DATA_TAG_SUPPORT", "", None)])
        .source("Linux EXT_CSD_DATA_TAG_SUPPORT"),
    field("MAX_PACKED_WRITES", 500, 1, &[R], 6, "")
        .unit(Unit::Linear(1, "commands"))
        .source("Linux EXT_CSD_MAX_PACKED_WRITES"),
    field("MAX_PACKED_READS", 501, 1, &[R], 6, "")
        .unit(Unit::Linear(1, "commands"))
        .source("Linux EXT_CSD_MAX_PACKED_READS"),
    field("BKOPS_SUPPORT", 502, 1, &[R], 5, "")
        .bits(&[bit(0, 0, "supported", "", None)])
        .source("Linux EXT_CSD_BKOPS_SUPPORT, U-Boot EXT_CSD_BKOPS_SUPPORT, mmc-utils EXT_CSD_BKOPS_SUPPORT"),
    field("HPI_FEATURES", 503, 1, &[R], 5, "")
        .bits(&[bit(0, 0, "HPI_SUPPORT", "", None), bit(1, 1, "HPI_IMPLEMENTATION", "(0 CMD13, 1 CMD12)", None)])
        .source("Linux EXT_CSD_HPI_FEATURES, mmc-utils EXT_CSD_HPI_FEATURE"),
    field("S_CMD_SET", 504, 1, &[R], 0, "")
        .bits(&[bit(0, 0, "standard MMC", "", None), bit(4, 1, "allocated by MMCA", "", None)])
        .source("mmc-utils EXT_CSD_S_CMD_SET"),
    field("EXT_SECURITY_ERR", 505, 1, &[R], 6, "")
        .bits(&[bit(0, 0, "SEC_INVALID_COMMAND_PARAMETERS", "", None), bit(1, 1, "ACCESS_DENIED", "", None)])
        .persists(NotSpecified, "JESD84-B51 7.4: a state, of the last extended security command")
        .source("barebox mmc_extcsd"),
    field("RESERVED", 506, 6, &[Reserved], 0, ""),
];
