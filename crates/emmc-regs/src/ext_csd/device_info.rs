//! The register in typed form: each value absent where its bits are not known.

use std::fmt;

use emmc_units::{Bytes, Sectors};
use serde::{Deserialize, Serialize};

use super::ExtCsd;

/// DEVICE_LIFE_TIME_EST_TYP_A or _B: tenths of the estimated life that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct LifeTime(pub u8);

impl LifeTime {
    /// Lower and upper bound in percent; the upper one is absent past the estimated life. `None` where the register
    /// says nothing (0) or what the standard does not assign.
    pub fn used_percent(self) -> Option<(u8, Option<u8>)> {
        match self.0 {
            1..=0x0a => Some(((self.0 - 1) * 10, Some(self.0 * 10))),
            0x0b => Some((100, None)),
            _ => None,
        }
    }
}

impl fmt::Display for LifeTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.used_percent()) {
            (0, _) => f.write_str("unknown"),
            (_, Some((lower, Some(upper)))) => write!(f, "{lower} % to {upper} % of life used"),
            (_, Some((_, None))) => f.write_str("past 100 % of estimated life"),
            (raw, None) => write!(f, "not assigned ({raw:#04x})"),
        }
    }
}

/// PRE_EOL_INFO: how many of the reserved blocks are consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct PreEol(pub u8);

impl fmt::Display for PreEol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("unknown"),
            1 => f.write_str("normal"),
            2 => f.write_str("warning: 80 % of reserved blocks consumed"),
            3 => f.write_str("urgent: 90 % of reserved blocks consumed"),
            raw => write!(f, "not assigned ({raw:#04x})"),
        }
    }
}

/// The hardware-partitioning registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HwPartition {
    /// PARTITIONING_SUPPORT.PARTITIONING_EN.
    pub partitioning_supported: Option<bool>,
    /// PARTITIONING_SUPPORT.ENH_ATTRIBUTE_EN.
    pub enh_supported: Option<bool>,
    /// PARTITIONING_SUPPORT.EXT_ATTRIBUTE_EN.
    pub ext_supported: Option<bool>,
    /// PARTITION_SETTING_COMPLETED: these values cannot change any more.
    pub completed: Option<bool>,
    /// PARTITIONS_ATTRIBUTE.
    pub attributes: Option<u8>,
    /// MAX_ENH_SIZE_MULT, in write-protect groups.
    pub max_enh_groups: Option<u64>,
    /// ENH_SIZE_MULT, in write-protect groups.
    pub enh_user_groups: Option<u64>,
    /// ENH_START_ADDR, in bytes.
    pub enh_start: Option<Bytes>,
    /// GP_SIZE_MULT_1 to _4, in write-protect groups.
    pub gp_groups: [Option<u64>; 4],
    /// WR_REL_PARAM.HS_CTRL_REL: WR_REL_SET can be written.
    pub wr_rel_writable: Option<bool>,
    /// WR_REL_SET.
    pub wr_rel_set: Option<u8>,
}

/// PARTITION_CONFIG and BOOT_INFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BootConfig {
    /// BOOT_PARTITION_ENABLE: 0 none, 1 boot1, 2 boot2, 7 user area.
    pub boot_partition_enable: Option<u8>,
    /// BOOT_ACK.
    pub boot_ack: Option<bool>,
    /// BOOT_BUS_CONDITIONS.
    pub bus_conditions: Option<u8>,
    /// BOOT_WP_STATUS.
    pub wp_status: Option<u8>,
}

/// What the EXT_CSD says, in typed form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceInfo {
    /// EXT_CSD_REV; see [`mmc_version`].
    pub rev: Option<u8>,
    /// SEC_COUNT.
    pub user_sectors: Option<Sectors>,
    /// HC_ERASE_GRP_SIZE in bytes.
    pub hc_erase_group: Option<Bytes>,
    /// HC_WP_GRP_SIZE in bytes.
    pub hc_wp_group: Option<Bytes>,
    /// ERASE_GROUP_DEF.ENABLE.
    pub erase_group_def: Option<bool>,
    /// BOOT_SIZE_MULT in bytes: each of the two boot areas.
    pub boot: Option<Bytes>,
    /// RPMB_SIZE_MULT in bytes.
    pub rpmb: Option<Bytes>,
    /// Hardware partitioning.
    pub hw_partition: HwPartition,
    /// Boot.
    pub boot_config: BootConfig,
    /// DEVICE_LIFE_TIME_EST_TYP_A.
    pub life_a: Option<LifeTime>,
    /// DEVICE_LIFE_TIME_EST_TYP_B.
    pub life_b: Option<LifeTime>,
    /// PRE_EOL_INFO.
    pub pre_eol: Option<PreEol>,
    /// CACHE_SIZE in bytes.
    pub cache: Option<Bytes>,
    /// CACHE_CTRL.CACHE_EN.
    pub cache_on: Option<bool>,
    /// BKOPS_SUPPORT.
    pub bkops_supported: Option<bool>,
    /// BKOPS_EN.MANUAL_EN.
    pub bkops_manual: Option<bool>,
    /// BKOPS_EN.AUTO_EN.
    pub bkops_auto: Option<bool>,
    /// BKOPS_STATUS.OUTSTANDING, 0 to 3.
    pub bkops_status: Option<u8>,
    /// HPI_FEATURES.HPI_SUPPORT.
    pub hpi_supported: Option<bool>,
    /// HPI_MGMT.HPI_EN.
    pub hpi_on: Option<bool>,
    /// CMDQ_SUPPORT.
    pub cmdq_supported: Option<bool>,
    /// CMDQ_DEPTH in tasks, 1 to 32.
    pub cmdq_depth: Option<u8>,
    /// CMDQ_MODE_EN; the kernel switches it off around ioctls, so a live read shows 0.
    pub cmdq_on: Option<bool>,
    /// DEVICE_TYPE: bus modes.
    pub device_type: Option<u8>,
    /// STROBE_SUPPORT.
    pub strobe: Option<bool>,
    /// HS_TIMING.TIMING_INTERFACE.
    pub hs_timing: Option<u8>,
    /// RST_n_FUNCTION.RST_n_ENABLE.
    pub rst_n_function: Option<u8>,
    /// SEC_FEATURE_SUPPORT.
    pub sec_features: Option<u8>,
    /// SUPPORTED_MODES.FFU.
    pub ffu: Option<bool>,
    /// FW_CONFIG.UPDATE_DISABLE.
    pub fw_update_disabled: Option<bool>,
    /// FIRMWARE_VERSION, eight bytes as in the register.
    pub firmware: Option<u64>,
    /// DATA_SECTOR_SIZE is 4 KiB.
    pub data_sector_4k: Option<bool>,
    /// REL_WR_SEC_C.
    pub reliable_write_sectors: Option<u8>,
    /// WR_REL_PARAM.EN_REL_WR.
    pub enhanced_reliable_write: Option<bool>,
    /// OPTIMAL_READ_SIZE, OPTIMAL_WRITE_SIZE and OPTIMAL_TRIM_UNIT_SIZE in bytes; absent where not defined.
    pub optimal_read_write_trim: [Option<Bytes>; 3],
    /// EXCEPTION_EVENTS_STATUS.
    pub exception_events: Option<u64>,
    /// INI_TIMEOUT_AP in milliseconds.
    pub init_timeout_ap_ms: Option<u64>,
    /// USER_WP.
    pub user_wp: Option<u8>,
}

impl DeviceInfo {
    pub(super) fn new(csd: &ExtCsd) -> Self {
        let scaled =
            |offset, width, step| csd.uint(offset, width).and_then(|raw: u64| raw.checked_mul(step)).map(Bytes);
        let nonzero = |bytes: Option<Bytes>| bytes.filter(|bytes| bytes.0 > 0);
        let trim_unit = csd.byte(264).filter(|raw| (1..=0x15).contains(raw)).map(|raw| Bytes(4096 << (raw - 1)));
        Self {
            rev: csd.byte(192),
            user_sectors: csd.uint(212, 4).map(Sectors),
            hc_erase_group: hc_erase_group_bytes(csd).map(Bytes),
            hc_wp_group: hc_wp_group_bytes(csd).map(Bytes),
            erase_group_def: csd.bit(175, 0),
            boot: scaled(226, 1, 131_072),
            rpmb: scaled(168, 1, 131_072),
            hw_partition: hw_partition(csd),
            boot_config: BootConfig {
                boot_partition_enable: csd.bits(179, 0x38).map(|bits| bits >> 3),
                boot_ack: csd.bit(179, 6),
                bus_conditions: csd.byte(177),
                wp_status: csd.byte(174),
            },
            life_a: csd.byte(268).map(LifeTime),
            life_b: csd.byte(269).map(LifeTime),
            pre_eol: csd.byte(267).map(PreEol),
            cache: scaled(249, 4, 128),
            cache_on: csd.bit(33, 0),
            bkops_supported: csd.bit(502, 0),
            bkops_manual: csd.bit(163, 0),
            bkops_auto: csd.bit(163, 1),
            bkops_status: csd.bits(246, 3),
            hpi_supported: csd.bit(503, 0),
            hpi_on: csd.bit(161, 0),
            cmdq_supported: csd.bit(308, 0),
            cmdq_depth: csd.bits(307, 0x1f).map(|depth| depth + 1),
            cmdq_on: csd.bit(15, 0),
            device_type: csd.byte(196),
            strobe: csd.bit(184, 0),
            hs_timing: csd.bits(185, 0x0f),
            rst_n_function: csd.bits(162, 3),
            sec_features: csd.byte(231),
            ffu: csd.bit(493, 0),
            fw_update_disabled: csd.bit(169, 0),
            firmware: csd.uint(254, 8),
            data_sector_4k: csd.bit(61, 0),
            reliable_write_sectors: csd.byte(222),
            enhanced_reliable_write: csd.bit(166, 2),
            optimal_read_write_trim: [nonzero(scaled(266, 1, 4096)), nonzero(scaled(265, 1, 4096)), trim_unit],
            exception_events: csd.uint(54, 2),
            init_timeout_ap_ms: csd.byte(241).map(|raw| 100 * u64::from(raw)),
            user_wp: csd.byte(171),
        }
    }
}

fn hw_partition(csd: &ExtCsd) -> HwPartition {
    HwPartition {
        partitioning_supported: csd.bit(160, 0),
        enh_supported: csd.bit(160, 1),
        ext_supported: csd.bit(160, 2),
        completed: csd.bit(155, 0),
        attributes: csd.bits(156, 0x1f),
        max_enh_groups: csd.uint(157, 3),
        enh_user_groups: csd.uint(140, 3),
        enh_start: match (csd.uint(136, 4), is_sector_addressed(csd)) {
            (Some(0), _) => Some(Bytes(0)),
            (Some(start), Some(true)) => Sectors(start).bytes(),
            (Some(start), Some(false)) => Some(Bytes(start)),
            _ => None,
        },
        gp_groups: [143, 146, 149, 152].map(|offset| csd.uint(offset, 3)),
        wr_rel_writable: csd.bit(166, 0),
        wr_rel_set: csd.bits(167, 0x1f),
    }
}

/// HC_ERASE_GRP_SIZE x 512 KiB.
pub(super) fn hc_erase_group_bytes(csd: &ExtCsd) -> Option<u64> {
    csd.byte(224).map(|size| u64::from(size) * 524_288)
}

/// HC_WP_GRP_SIZE x HC_ERASE_GRP_SIZE x 512 KiB: the unit of every size in hardware partitioning.
pub(super) fn hc_wp_group_bytes(csd: &ExtCsd) -> Option<u64> {
    Some(u64::from(csd.byte(221)?) * hc_erase_group_bytes(csd)?)
}

/// Whether addresses count sectors. OCR bit 30 decides on a live card; in a dump, more than 2 GiB of SEC_COUNT does.
pub(super) fn is_sector_addressed(csd: &ExtCsd) -> Option<bool> {
    csd.uint(212, 4).map(|sectors| sectors > 4_194_304)
}

/// The version of the standard that an EXT_CSD_REV stands for.
pub fn mmc_version(rev: u8) -> Option<&'static str> {
    ["4.0", "4.1", "4.2", "4.3", "4.4", "4.41", "4.5", "5.0", "5.1", "5.1B"].get(usize::from(rev)).copied()
}

/// The bus modes that DEVICE_TYPE offers, slowest first.
pub fn bus_modes(device_type: u8) -> impl Iterator<Item = &'static str> {
    const NAMES: [&str; 8] = [
        "HS 26 MHz",
        "HS 52 MHz",
        "DDR52 1.8 V or 3 V",
        "DDR52 1.2 V",
        "HS200 1.8 V",
        "HS200 1.2 V",
        "HS400 1.8 V",
        "HS400 1.2 V",
    ];
    NAMES.into_iter().enumerate().filter(move |(bit, _)| device_type >> bit & 1 == 1).map(|(_, name)| name)
}

/// What RST_n_FUNCTION.RST_n_ENABLE says.
pub fn rst_n_name(function: u8) -> &'static str {
    match function {
        0 => "temporarily disabled (default, can still be decided once)",
        1 => "permanently enabled",
        2 => "permanently disabled",
        _ => "not assigned",
    }
}
