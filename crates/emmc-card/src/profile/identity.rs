use serde::{Deserialize, Serialize};

/// What CID, CSD and EXT_CSD say of the part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// MID of the CID.
    pub manufacturer_id: u8,
    /// OID of the CID.
    pub oem_id: u16,
    /// PNM of the CID: six characters for eMMC, five for SD.
    pub product: String,
    /// PRV of the CID.
    #[serde(default)]
    pub revision: u8,
    /// PSN of the CID.
    #[serde(default)]
    pub serial: u32,
    /// Year of making.
    #[serde(default = "year")]
    pub year: u16,
    /// Month of making, 1 to 12.
    #[serde(default = "month")]
    pub month: u8,
    /// EXT_CSD_REV: 5 is 4.41, 6 is 4.5, 7 is 5.0, 8 is 5.1. eMMC only.
    #[serde(default = "revision")]
    pub ext_csd_rev: u8,
    /// Eight characters of FIRMWARE_VERSION. eMMC only.
    #[serde(default)]
    pub firmware: String,
    /// SD only.
    #[serde(default)]
    pub sd: Option<SdIdentity>,
}

/// What SCR and SD status say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SdIdentity {
    /// Speed class 2, 4, 6 or 10.
    pub speed_class: u8,
    /// UHS grade 0, 1 or 3.
    #[serde(default)]
    pub uhs_grade: u8,
    /// Application class 0, 1 or 2.
    #[serde(default)]
    pub app_class: u8,
    /// Allocation unit that the SD status states.
    pub au_bytes: u32,
}

/// The areas that the host sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Areas {
    /// User area. Unit: bytes, a multiple of 512.
    pub user_bytes: u64,
    /// Each of the two boot areas. Unit: bytes, a multiple of 128 KiB.
    #[serde(default)]
    pub boot_bytes: u32,
    /// RPMB. Unit: bytes, a multiple of 128 KiB.
    #[serde(default)]
    pub rpmb_bytes: u32,
    /// HC_ERASE_GRP_SIZE in bytes: a multiple of 512 KiB.
    #[serde(default = "erase_group")]
    pub erase_group_bytes: u32,
    /// Write protection group in bytes: a multiple of the erase group.
    #[serde(default = "wp_group")]
    pub wp_group_bytes: u32,
    /// MAX_ENH_SIZE_MULT: write protection groups that can be enhanced; 0: no partitioning.
    #[serde(default)]
    pub enhanced_groups_max: u32,
}

fn year() -> u16 {
    2020
}

fn month() -> u8 {
    1
}

fn revision() -> u8 {
    8
}

fn erase_group() -> u32 {
    512 << 10
}

fn wp_group() -> u32 {
    8 << 20
}
