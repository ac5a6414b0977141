//! CSD of MMC and eMMC.
//!
//! Source: JESD84-B51 clause 7.3, Linux `drivers/mmc/core/mmc.c`, mmc-utils `lsmmc.c`.

use super::scale;
use crate::Persistence::*;
use crate::crc::crc_value;
use crate::layout::{BitField, bit, layout, number, of, within};
use crate::row::FieldValue;

layout! {
    CSD_STRUCTURE = of(127, 126, "", structure);
    SPEC_VERS = of(125, 122, "", spec_version);
    TAAC = of(119, 112, "ns", scale::taac_value);
    NSAC = of(111, 104, "clocks", |raw| FieldValue::Number(raw * 100));
    TRAN_SPEED = of(103, 96, "Hz", |raw| scale::mmc_tran_speed_hz(raw).into());
    CCC = of(95, 84, "", |raw| FieldValue::flags(raw, &CLASSES));
    READ_BL_LEN = of(83, 80, "B", |raw| scale::mmc_block_bytes(raw).into());
    READ_BL_PARTIAL = bit(79);
    WRITE_BLK_MISALIGN = bit(78);
    READ_BLK_MISALIGN = bit(77);
    DSR_IMP = bit(76);
    C_SIZE = of(73, 62, "", c_size);
    VDD_R_CURR_MIN = of(61, 59, "mA", scale::current_min_value);
    VDD_R_CURR_MAX = of(58, 56, "mA", scale::current_max_value);
    VDD_W_CURR_MIN = of(55, 53, "mA", scale::current_min_value);
    VDD_W_CURR_MAX = of(52, 50, "mA", scale::current_max_value);
    C_SIZE_MULT = of(49, 47, "", |raw| FieldValue::Number(4 << raw));
    ERASE_GRP_SIZE = of(46, 42, "", |raw| FieldValue::Number(raw + 1));
    ERASE_GRP_MULT = of(41, 37, "", |raw| FieldValue::Number(raw + 1));
    WP_GRP_SIZE = of(36, 32, "erase groups", |raw| FieldValue::Number(raw + 1));
    WP_GRP_ENABLE = bit(31);
    DEFAULT_ECC = of(30, 29, "", ecc);
    R2W_FACTOR = of(28, 26, "x", |raw| FieldValue::Number(1 << raw));
    WRITE_BL_LEN = of(25, 22, "B", |raw| scale::mmc_block_bytes(raw).into());
    WRITE_BL_PARTIAL = bit(21);
    CONTENT_PROT_APP = bit(16);
    FILE_FORMAT_GRP = bit(15).persists(OneTime);
    COPY = bit(14).persists(OneTime);
    PERM_WRITE_PROTECT = bit(13).persists(OneTime);
    TMP_WRITE_PROTECT = bit(12);
    FILE_FORMAT = within(11, 10, file_format).persists(OneTime);
    ECC = of(9, 8, "", ecc);
    CRC = within(7, 1, crc_value);
}

/// Bits 121:120, which no version uses: 0.
pub const RESERVED_120: &BitField = &number(121, 120, "").named("RESERVED_120");

/// Command classes of eMMC.
const CLASSES: [(u8, &str); 12] = [
    (0, "basic"),
    (1, "stream read"),
    (2, "block read"),
    (3, "stream write"),
    (4, "block write"),
    (5, "erase"),
    (6, "write protection"),
    (7, "lock card"),
    (8, "application specific"),
    (9, "I/O mode"),
    (10, "security protocols"),
    (11, "command queue"),
];

fn structure(raw: u64) -> FieldValue {
    match raw {
        0 => "1.0".into(),
        1 => "1.1".into(),
        2 => "1.2".into(),
        _ => "see EXT_CSD CSD_STRUCTURE".into(),
    }
}

fn spec_version(raw: u64) -> FieldValue {
    match raw {
        0 => "1.0 to 1.2".into(),
        1 => "1.4".into(),
        2 => "2.0 to 2.2".into(),
        3 => "3.1 to 3.31".into(),
        4 => "4.0 and later".into(),
        _ => FieldValue::Undefined,
    }
}

/// C_SIZE counts from 0; 0xFFF says that the capacity is elsewhere.
fn c_size(raw: u64) -> FieldValue {
    if raw == super::C_SIZE_IN_EXT_CSD { "see EXT_CSD SEC_COUNT".into() } else { FieldValue::Number(raw + 1) }
}

fn ecc(raw: u64) -> FieldValue {
    match raw {
        0 => "none".into(),
        1 => "BCH(542, 512)".into(),
        _ => FieldValue::Undefined,
    }
}

/// The type of file system that the card claims to hold, from two fields in the same place on every kind of card.
pub(super) fn file_format(csd: &[u8]) -> FieldValue {
    match (FILE_FORMAT_GRP.get(csd), FILE_FORMAT.get(csd)) {
        (0, 0) => "hard disk with partition table".into(),
        (0, 1) => "DOS FAT without partition table".into(),
        (0, 2) => "universal file format".into(),
        (0, _) => "other".into(),
        _ => FieldValue::Undefined,
    }
}
