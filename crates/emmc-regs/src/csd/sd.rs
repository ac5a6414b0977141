//! CSD of SD cards: version 1.0 of SDSC, 2.0 of SDHC and SDXC, 3.0 of SDUC.
//!
//! In the versions from 2.0 on most fields are fixed, and C_SIZE counts 512 KiB; 3.0 gave it six more bits.
//!
//! Source: SD physical layer simplified specification 7.10, clauses 5.3.2 to 5.3.4; Linux `drivers/mmc/core/sd.c`.

use super::scale;
use crate::Persistence::*;
use crate::crc::crc_value;
use crate::layout::{BitField, bit, layout, of, within};
use crate::row::FieldValue;

/// Values of CSD_STRUCTURE.
pub(super) const V1: u64 = 0;
pub(super) const V2: u64 = 1;
pub(super) const V3: u64 = 2;

layout! {
    CSD_STRUCTURE = of(127, 126, "", structure);
    TAAC = of(119, 112, "ns", scale::taac_value);
    NSAC = of(111, 104, "clocks", |raw| FieldValue::Number(raw * 100));
    /// It follows the bus mode.
    TRAN_SPEED = of(103, 96, "Hz", |raw| scale::sd_tran_speed_hz(raw).into()).persists(NotSpecified);
    CCC = of(95, 84, "", |raw| FieldValue::flags(raw, &CLASSES));
    READ_BL_LEN = of(83, 80, "B", |raw| scale::sd_block_bytes(raw).into());
    READ_BL_PARTIAL = bit(79);
    WRITE_BLK_MISALIGN = bit(78);
    READ_BLK_MISALIGN = bit(77);
    DSR_IMP = bit(76);
    C_SIZE_V3 = large_size(75).in_versions(&[V3]);
    C_SIZE = of(73, 62, "", |raw| FieldValue::Number(raw + 1)).in_versions(&[V1]);
    C_SIZE_V2 = large_size(69).in_versions(&[V2]);
    VDD_R_CURR_MIN = of(61, 59, "mA", scale::current_min_value).in_versions(&[V1]);
    VDD_R_CURR_MAX = of(58, 56, "mA", scale::current_max_value).in_versions(&[V1]);
    VDD_W_CURR_MIN = of(55, 53, "mA", scale::current_min_value).in_versions(&[V1]);
    VDD_W_CURR_MAX = of(52, 50, "mA", scale::current_max_value).in_versions(&[V1]);
    C_SIZE_MULT = of(49, 47, "", |raw| FieldValue::Number(4 << raw)).in_versions(&[V1]);
    ERASE_BLK_EN = bit(46);
    SECTOR_SIZE = of(45, 39, "blocks", |raw| FieldValue::Number(raw + 1));
    WP_GRP_SIZE = of(38, 32, "erase sectors", |raw| FieldValue::Number(raw + 1));
    WP_GRP_ENABLE = bit(31);
    R2W_FACTOR = of(28, 26, "x", |raw| (raw <= 5).then_some(1 << raw).into());
    WRITE_BL_LEN = of(25, 22, "B", |raw| scale::sd_block_bytes(raw).into());
    WRITE_BL_PARTIAL = bit(21);
    FILE_FORMAT_GRP = bit(15).persists(OneTime);
    COPY = bit(14).persists(OneTime);
    PERM_WRITE_PROTECT = bit(13).persists(OneTime);
    TMP_WRITE_PROTECT = bit(12);
    FILE_FORMAT = within(11, 10, super::mmc::file_format).persists(OneTime);
    WP_UPC = bit(9).persists(UntilPowerCycle);
    CRC = within(7, 1, crc_value);
}

/// The fields of one version; of a version that nobody knows, those that no version moved.
pub(super) fn fields(version: u64) -> impl Iterator<Item = &'static &'static BitField> {
    let of_version = move |field: &BitField| match version {
        V1..=V3 => field.is_in_version(version),
        _ => [CSD_STRUCTURE.name(), CRC.name()].contains(&field.name()),
    };
    FIELDS.iter().filter(move |field| of_version(field))
}

/// C_SIZE of the cards above 2 GiB.
const fn large_size(hi: u16) -> BitField {
    of(hi, 48, "KiB", |raw| FieldValue::Number((raw + 1) * 512)).spelled("C_SIZE")
}

fn structure(raw: u64) -> FieldValue {
    match raw {
        V1 => "1.0 (SDSC)".into(),
        V2 => "2.0 (SDHC, SDXC)".into(),
        V3 => "3.0 (SDUC)".into(),
        _ => FieldValue::Undefined,
    }
}

/// Command classes of SD.
const CLASSES: [(u8, &str); 12] = [
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
