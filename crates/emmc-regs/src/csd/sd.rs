use super::scale;
use crate::Persistence::*;
use crate::cid::crc_value;
use crate::layout::{BitField, number, of, within};
use crate::row::FieldValue;

const STRUCTURE: BitField = of("CSD_STRUCTURE", 127, 126, "", |raw| match raw {
    0 => "1.0 (SDSC)".into(),
    1 => "2.0 (SDHC, SDXC)".into(),
    2 => "3.0 (SDUC)".into(),
    _ => FieldValue::Undefined,
});
const TAAC: BitField = of("TAAC", 119, 112, "ns", scale::taac_value);
const NSAC: BitField = of("NSAC", 111, 104, "clocks", |raw| FieldValue::Number(raw * 100));
// It follows the bus mode.
const TRAN_SPEED: BitField =
    of("TRAN_SPEED", 103, 96, "Hz", |raw| scale::sd_tran_speed_hz(raw).into()).persists(NotSpecified);
const CCC: BitField = of("CCC", 95, 84, "", |raw| FieldValue::flags(raw, &CLASSES));
const READ_BL_LEN: BitField = of("READ_BL_LEN", 83, 80, "B", |raw| scale::sd_block_bytes(raw).into());
const READ_BL_PARTIAL: BitField = number("READ_BL_PARTIAL", 79, 79, "");
const WRITE_BLK_MISALIGN: BitField = number("WRITE_BLK_MISALIGN", 78, 78, "");
const READ_BLK_MISALIGN: BitField = number("READ_BLK_MISALIGN", 77, 77, "");
const DSR_IMP: BitField = number("DSR_IMP", 76, 76, "");
const ERASE_BLK_EN: BitField = number("ERASE_BLK_EN", 46, 46, "");
const SECTOR_SIZE: BitField = of("SECTOR_SIZE", 45, 39, "blocks", |raw| FieldValue::Number(raw + 1));
const WP_GRP_SIZE: BitField = of("WP_GRP_SIZE", 38, 32, "erase sectors", |raw| FieldValue::Number(raw + 1));
const WP_GRP_ENABLE: BitField = number("WP_GRP_ENABLE", 31, 31, "");
const R2W_FACTOR: BitField = of("R2W_FACTOR", 28, 26, "x", |raw| (raw <= 5).then_some(1 << raw).into());
const WRITE_BL_LEN: BitField = of("WRITE_BL_LEN", 25, 22, "B", |raw| scale::sd_block_bytes(raw).into());
const WRITE_BL_PARTIAL: BitField = number("WRITE_BL_PARTIAL", 21, 21, "");
const FILE_FORMAT_GRP: BitField = number("FILE_FORMAT_GRP", 15, 15, "").persists(OneTime);
const COPY: BitField = number("COPY", 14, 14, "").persists(OneTime);
const PERM_WRITE_PROTECT: BitField = number("PERM_WRITE_PROTECT", 13, 13, "").persists(OneTime);
const TMP_WRITE_PROTECT: BitField = number("TMP_WRITE_PROTECT", 12, 12, "");
const FILE_FORMAT: BitField = within("FILE_FORMAT", 11, 10, scale::file_format_value).persists(OneTime);
const WP_UPC: BitField = number("WP_UPC", 9, 9, "").persists(UntilPowerCycle);
const CRC: BitField = within("CRC", 7, 1, crc_value);

/// CSD version 1.0, SDSC.
///
/// Source: SD physical layer simplified specification, clause 5.3.2; Linux `drivers/mmc/core/sd.c`.
pub(super) const FIELDS_V1: [BitField; 30] = [
    STRUCTURE,
    TAAC,
    NSAC,
    TRAN_SPEED,
    CCC,
    READ_BL_LEN,
    READ_BL_PARTIAL,
    WRITE_BLK_MISALIGN,
    READ_BLK_MISALIGN,
    DSR_IMP,
    of("C_SIZE", 73, 62, "", |raw| FieldValue::Number(raw + 1)),
    of("VDD_R_CURR_MIN", 61, 59, "mA", scale::current_min_value),
    of("VDD_R_CURR_MAX", 58, 56, "mA", scale::current_max_value),
    of("VDD_W_CURR_MIN", 55, 53, "mA", scale::current_min_value),
    of("VDD_W_CURR_MAX", 52, 50, "mA", scale::current_max_value),
    of("C_SIZE_MULT", 49, 47, "", |raw| FieldValue::Number(4 << raw)),
    ERASE_BLK_EN,
    SECTOR_SIZE,
    WP_GRP_SIZE,
    WP_GRP_ENABLE,
    R2W_FACTOR,
    WRITE_BL_LEN,
    WRITE_BL_PARTIAL,
    FILE_FORMAT_GRP,
    COPY,
    PERM_WRITE_PROTECT,
    TMP_WRITE_PROTECT,
    FILE_FORMAT,
    WP_UPC,
    CRC,
];

/// CSD version 2.0, SDHC and SDXC: most fields are fixed, C_SIZE counts 512 KiB.
///
/// Source: SD physical layer simplified specification, clause 5.3.3.
pub(super) const FIELDS_V2: [BitField; 25] = large(69);

/// CSD version 3.0, SDUC: as 2.0 with six more bits of C_SIZE.
///
/// Source: SD physical layer simplified specification 7.10, clause 5.3.4.
pub(super) const FIELDS_V3: [BitField; 25] = large(75);

/// Fields in the same place in every version.
pub(super) const FIELDS_RESERVED: [BitField; 2] = [STRUCTURE, CRC];

const fn large(c_size_hi: u16) -> [BitField; 25] {
    [
        STRUCTURE,
        TAAC,
        NSAC,
        TRAN_SPEED,
        CCC,
        READ_BL_LEN,
        READ_BL_PARTIAL,
        WRITE_BLK_MISALIGN,
        READ_BLK_MISALIGN,
        DSR_IMP,
        of("C_SIZE", c_size_hi, 48, "KiB", |raw| FieldValue::Number((raw + 1) * 512)),
        ERASE_BLK_EN,
        SECTOR_SIZE,
        WP_GRP_SIZE,
        WP_GRP_ENABLE,
        R2W_FACTOR,
        WRITE_BL_LEN,
        WRITE_BL_PARTIAL,
        FILE_FORMAT_GRP,
        COPY,
        PERM_WRITE_PROTECT,
        TMP_WRITE_PROTECT,
        FILE_FORMAT,
        WP_UPC,
        CRC,
    ]
}

/// Command classes of SD.
pub(super) const CLASSES: [(u8, &str); 12] = [
    (0, "basic"),
    (1, "command queue"),
    (2, "block read"),
    (3, "reserved"),
    (4, "block write"),
    (5, "erase"),
    (6, "write protection"),
    (7, "lock card"),
    (8, "application specific"),
    (9, "I/O mode"),
    (10, "switch"),
    (11, "extension"),
];
