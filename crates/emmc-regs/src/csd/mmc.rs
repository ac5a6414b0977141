use super::scale;
use crate::Persistence::*;
use crate::cid::crc_value;
use crate::layout::{BitField, number, of, within};
use crate::row::FieldValue;

/// CSD of MMC and eMMC.
///
/// Source: JESD84-B51 clause 7.3, Linux `drivers/mmc/core/mmc.c`, mmc-utils `lsmmc.c`.
pub(super) const FIELDS: [BitField; 33] = [
    of("CSD_STRUCTURE", 127, 126, "", structure),
    of("SPEC_VERS", 125, 122, "", spec_version),
    of("TAAC", 119, 112, "ns", scale::taac_value),
    of("NSAC", 111, 104, "clocks", |raw| FieldValue::Number(raw * 100)),
    of("TRAN_SPEED", 103, 96, "Hz", |raw| scale::mmc_tran_speed_hz(raw).into()),
    of("CCC", 95, 84, "", |raw| FieldValue::flags(raw, &CLASSES)),
    of("READ_BL_LEN", 83, 80, "B", |raw| scale::mmc_block_bytes(raw).into()),
    number("READ_BL_PARTIAL", 79, 79, ""),
    number("WRITE_BLK_MISALIGN", 78, 78, ""),
    number("READ_BLK_MISALIGN", 77, 77, ""),
    number("DSR_IMP", 76, 76, ""),
    of("C_SIZE", 73, 62, "", c_size),
    of("VDD_R_CURR_MIN", 61, 59, "mA", scale::current_min_value),
    of("VDD_R_CURR_MAX", 58, 56, "mA", scale::current_max_value),
    of("VDD_W_CURR_MIN", 55, 53, "mA", scale::current_min_value),
    of("VDD_W_CURR_MAX", 52, 50, "mA", scale::current_max_value),
    of("C_SIZE_MULT", 49, 47, "", |raw| FieldValue::Number(4 << raw)),
    of("ERASE_GRP_SIZE", 46, 42, "", |raw| FieldValue::Number(raw + 1)),
    of("ERASE_GRP_MULT", 41, 37, "", |raw| FieldValue::Number(raw + 1)),
    of("WP_GRP_SIZE", 36, 32, "erase groups", |raw| FieldValue::Number(raw + 1)),
    number("WP_GRP_ENABLE", 31, 31, ""),
    of("DEFAULT_ECC", 30, 29, "", ecc),
    of("R2W_FACTOR", 28, 26, "x", |raw| FieldValue::Number(1 << raw)),
    of("WRITE_BL_LEN", 25, 22, "B", |raw| scale::mmc_block_bytes(raw).into()),
    number("WRITE_BL_PARTIAL", 21, 21, ""),
    number("CONTENT_PROT_APP", 16, 16, ""),
    number("FILE_FORMAT_GRP", 15, 15, "").persists(OneTime),
    number("COPY", 14, 14, "").persists(OneTime),
    number("PERM_WRITE_PROTECT", 13, 13, "").persists(OneTime),
    number("TMP_WRITE_PROTECT", 12, 12, ""),
    within("FILE_FORMAT", 11, 10, scale::file_format_value).persists(OneTime),
    of("ECC", 9, 8, "", ecc),
    within("CRC", 7, 1, crc_value),
];

/// Command classes of eMMC.
pub(super) const CLASSES: [(u8, &str); 12] = [
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
    if raw == 0xfff { "see EXT_CSD SEC_COUNT".into() } else { FieldValue::Number(raw + 1) }
}

fn ecc(raw: u64) -> FieldValue {
    match raw {
        0 => "none".into(),
        1 => "BCH(542, 512)".into(),
        _ => FieldValue::Undefined,
    }
}
