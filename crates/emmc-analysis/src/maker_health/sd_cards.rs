//! SD cards of Innodisk, Swissbit, and of those that want a CMD56 write before the read.
//!
//! Source: sdmon; for Swissbit its author had the maker's document. ATP cards answer to CMD56 argument 0x11000001, but
//! nobody published what the bytes mean.

use super::builder::Builder;
use super::layout::{Field, Form, at, read};
use super::meaning::{
    BUS_SPEED_MODE, BUS_WIDTH, CONTROLLER, CRC_ERRORS, FIRMWARE, FLASH_ID, GOOD_BLOCKS_PERCENT, INITIAL_BAD_BLOCKS,
    LATER_BAD_BLOCKS, LATER_BAD_BLOCKS_SYSTEM, LIFE_LEFT_PERCENT, POWER_CYCLES, POWER_LOSSES, REFRESHES,
    SPARE_BLOCKS_LEFT, SPARE_BLOCKS_SYSTEM, SPARE_BLOCKS_TOTAL, SPARE_USED_PERCENT, SPEED_CLASS, Stat, UHS_SPEED_GRADE,
    WRITTEN_BYTES, count, erases, identity,
};
use super::model::{Area, Confidence, VendorHealth};
use super::refusal::hex;
use super::{Family, Refusal, reply_source};

use Confidence::{Documented, Uncertain};

/// Data lines in use: SSR's DAT_BUS_WIDTH in the upper half of a byte.
pub(super) const WIDTHS: [(u8, &str); 2] = [(0x00, "1 bit"), (0x10, "4 bits")];
/// SSR's SPEED_CLASS.
pub(super) const CLASSES: [(u8, &str); 5] =
    [(0, "Class 0"), (1, "Class 2"), (2, "Class 4"), (3, "Class 6"), (4, "Class 10")];
/// SSR's UHS_SPEED_GRADE.
pub(super) const GRADES: [(u8, &str); 3] =
    [(0, "less than 10 MB/s"), (1, "U1: 10 MB/s and more"), (3, "U3: 30 MB/s and more")];
const MODES: [(u8, &str); 7] = [
    (0x00, "default speed"),
    (0x01, "high speed"),
    (0x10, "SDR12"),
    (0x11, "SDR25"),
    (0x12, "SDR50"),
    (0x14, "DDR50"),
    (0x18, "SDR104"),
];

const INNODISK: [Field; 13] = [
    at(16, Form::Code(&WIDTHS), BUS_WIDTH),
    at(18, Form::Code(&CLASSES), SPEED_CLASS),
    at(19, Form::Code(&GRADES), UHS_SPEED_GRADE),
    at(24, Form::U8, SPARE_BLOCKS_TOTAL),
    at(25, Form::U8, INITIAL_BAD_BLOCKS),
    at(26, Form::U8, LATER_BAD_BLOCKS),
    at(27, Form::U8, SPARE_USED_PERCENT),
    at(28, Form::Be32, count("power_loss_recoveries_failed")),
    at(32, Form::Be32, erases(Area::Global, Stat::Min)),
    at(36, Form::Be32, erases(Area::Global, Stat::Max)),
    at(40, Form::Be32, erases(Area::Global, Stat::Total)),
    at(44, Form::Be32, erases(Area::Global, Stat::Average)),
    at(53, Form::Ascii(16), FIRMWARE),
];

const SWISSBIT: [Field; 19] = [
    at(86, Form::Code(&MODES), BUS_SPEED_MODE).sure(Documented),
    at(87, Form::Code(&WIDTHS), BUS_WIDTH).sure(Documented),
    at(32, Form::Ascii(16), FIRMWARE).sure(Documented),
    at(48, Form::Be32, erases(Area::User, Stat::Rated)).sure(Documented),
    at(52, Form::Be32, erases(Area::User, Stat::Max)).sure(Documented),
    at(56, Form::Be32, erases(Area::User, Stat::Total)).sure(Documented),
    at(60, Form::Be32, erases(Area::User, Stat::Average)).sure(Documented),
    at(68, Form::Be32, erases(Area::System, Stat::Max)).sure(Documented),
    at(72, Form::Be32, erases(Area::System, Stat::Total)).sure(Documented),
    at(76, Form::Be32, erases(Area::System, Stat::Average)).sure(Documented),
    at(80, Form::U8, LIFE_LEFT_PERCENT).sure(Documented),
    at(88, Form::Be32, SPARE_BLOCKS_LEFT).sure(Documented),
    at(92, Form::Be32, SPARE_BLOCKS_SYSTEM).sure(Documented),
    at(96, Form::Be32, LATER_BAD_BLOCKS).sure(Documented),
    at(100, Form::Be32, LATER_BAD_BLOCKS_SYSTEM).sure(Documented),
    at(104, Form::Be32, REFRESHES).sure(Documented),
    at(108, Form::Be32, count("block_refreshes_system")).sure(Documented),
    at(112, Form::Be32, CRC_ERRORS).sure(Documented),
    at(116, Form::Be32, POWER_CYCLES).sure(Documented),
];

const TWO_STEP: [Field; 17] = [
    at(0, Form::Hex(9), FLASH_ID),
    at(9, Form::Hex(2), CONTROLLER),
    at(11, Form::Hex(2), FIRMWARE),
    at(14, Form::U8, identity("chip_enables")),
    at(16, Form::Be16, SPARE_BLOCKS_TOTAL).remark("the most bad blocks that can be replaced"),
    at(32, Form::Sum(32), INITIAL_BAD_BLOCKS),
    at(64, Form::Be16, GOOD_BLOCKS_PERCENT).per(100),
    at(80, Form::Be32, erases(Area::Global, Stat::Total)),
    at(96, Form::Be16, LIFE_LEFT_PERCENT).per(100),
    at(104, Form::Split(98), erases(Area::Global, Stat::Average)),
    at(106, Form::Split(100), erases(Area::Global, Stat::Min)),
    at(108, Form::Split(102), erases(Area::Global, Stat::Max)),
    at(112, Form::Be32, POWER_CYCLES),
    at(128, Form::Be16, POWER_LOSSES),
    at(160, Form::Be16, REFRESHES),
    at(176, Form::Ascii(8), identity("product_marker")),
    at(184, Form::Sum(32), LATER_BAD_BLOCKS),
];

/// sdmon found this number to move as sectors are written, on cards with one flash.
const KINGSTON_SDCE: [Field; 1] = [at(328, Form::Be32, WRITTEN_BYTES).times(512).sure(Uncertain).remark("guessed")];
const KINGSTON_SDCE_FLASH: [u8; 9] = [0x98, 0x3e, 0xa8, 0x03, 0x7a, 0xe4, 0x08, 0x16, 0x00];

/// The first byte of a NAND chip's ID: its maker, as JEDEC numbers them.
const NAND_MAKERS: [u8; 9] = [0x01, 0x2c, 0x45, 0x89, 0x98, 0x9b, 0xad, 0xc2, 0xec];

/// Whether a byte is a NAND maker's number: what a two-step report has in place of a signature.
pub(super) fn is_nand_maker(byte: u8) -> bool {
    NAND_MAKERS.contains(&byte)
}

/// Decodes an Innodisk report.
pub(super) fn decode_innodisk(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let mut builder = Builder::new(Family::InnodiskSd, reply_source(Family::InnodiskSd, argument));
    read(&mut builder, reply, &INNODISK);
    Ok(builder.finish())
}

/// Decodes a Swissbit report.
pub(super) fn decode_swissbit(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let mut builder = Builder::new(Family::SwissbitSd, reply_source(Family::SwissbitSd, argument));
    read(&mut builder, reply, &SWISSBIT);
    Ok(builder.finish())
}

/// Decodes a two-step report.
///
/// Errors: it does not start with a NAND chip's ID.
pub(super) fn decode_two_step(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let id = reply.get(..2).unwrap_or_default();
    if !id.first().copied().is_some_and(is_nand_maker) {
        return Err(no_flash_id(&hex(id)));
    }
    let mut builder = Builder::new(Family::TwoStepSd, reply_source(Family::TwoStepSd, argument));
    read(&mut builder, reply, &TWO_STEP);
    if reply.starts_with(&KINGSTON_SDCE_FLASH) {
        read(&mut builder, reply, &KINGSTON_SDCE);
    }
    Ok(builder.finish())
}

/// The refusal for a two-step report that starts with something else than a NAND chip's ID.
pub(super) fn no_flash_id(found: &str) -> Refusal {
    let expected = "a NAND chip's ID (98, 45, 2c, ad, ec, ...)".to_owned();
    Refusal::WrongSignature { family: Family::TwoStepSd, expected, found: found.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maker_health::{Value, decode_reply};

    fn two_step() -> [u8; 512] {
        let mut reply = [0u8; 512];
        reply[..9].copy_from_slice(&[0x98, 0x3c, 0x98, 0xb3, 0x76, 0x72, 0x08, 0x0e, 0x00]);
        (reply[17], reply[32], reply[63], reply[115]) = (46, 70, 2, 55);
        reply[64..66].copy_from_slice(&9756u16.to_be_bytes());
        reply[80..84].copy_from_slice(&1380u32.to_be_bytes());
        reply[96..98].copy_from_slice(&9997u16.to_be_bytes());
        (reply[99], reply[101], reply[103]) = (1, 1, 5);
        reply
    }

    #[test]
    fn a_report_of_two_replies_is_read_from_distant_halves() {
        let health = decode_reply(Some(Family::TwoStepSd), Some(0x21), &two_step()).unwrap();
        assert_eq!(health.number("initial_bad_blocks"), Some(72.0));
        assert_eq!(health.reading("life_left_percent").unwrap().value, Value::Decimal(99.97));
        assert_eq!(health.number("good_blocks_percent"), Some(97.56));
        let global = health.area(Area::Global).unwrap();
        let values: Vec<_> = global.readings().filter_map(|reading| reading.value.as_i64()).collect();
        assert_eq!(values, [1, 5, 1, 1380]);
        let mut reply = two_step();
        reply[109] = 1;
        let health = decode_reply(Some(Family::TwoStepSd), None, &reply).unwrap();
        assert_eq!(health.area(Area::Global).unwrap().max.as_ref().unwrap().value, Value::Integer(65_541));
    }

    #[test]
    fn a_life_of_453_percent_is_flagged_and_a_wrong_start_refused() {
        let mut reply = two_step();
        reply[96..98].copy_from_slice(&[0xb0, 0xf4]);
        let health = decode_reply(Some(Family::TwoStepSd), None, &reply).unwrap();
        assert_eq!((health.number("life_left_percent"), health.implausible[0].found.as_str()), (None, "453.00"));
        reply[96..98].fill(0xff);
        let health = decode_reply(Some(Family::TwoStepSd), None, &reply).unwrap();
        assert_eq!(health.implausible[0].found, "0xffff");
        reply[0] = 0x12;
        let refused = decode_reply(Some(Family::TwoStepSd), None, &reply);
        assert!(matches!(refused, Err(Refusal::WrongSignature { .. })));
    }

    #[test]
    fn kingstons_sector_counter_is_read_for_one_flash_type_only() {
        let mut reply = two_step();
        reply[331] = 8;
        assert_eq!(decode_reply(Some(Family::TwoStepSd), None, &reply).unwrap().number("written_bytes"), None);
        reply[..9].copy_from_slice(&KINGSTON_SDCE_FLASH);
        let health = decode_reply(Some(Family::TwoStepSd), None, &reply).unwrap();
        assert_eq!(health.number("written_bytes"), Some(4096.0));
    }

    #[test]
    fn swissbit_and_innodisk_are_recognised_by_signature() {
        let mut reply = [0u8; 512];
        reply[..2].copy_from_slice(b"Sw");
        reply[48..52].copy_from_slice(&100_000u32.to_be_bytes());
        (reply[55], reply[80], reply[119]) = (3, 99, 19);
        reply[32..37].copy_from_slice(b"W0112");
        let health = decode_reply(None, Some(0x5342_0001), &reply).unwrap();
        let user = health.area(Area::User).unwrap();
        assert_eq!(user.rated.as_ref().unwrap().value, Value::Integer(100_000));
        assert_eq!((health.number("life_left_percent"), health.number("power_cycles")), (Some(99.0), Some(19.0)));
        let mut reply = [0u8; 512];
        reply[..2].copy_from_slice(b"LX");
        (reply[24], reply[25], reply[27], reply[39]) = (40, 3, 101, 7);
        let health = decode_reply(None, Some(0x1100_05fd), &reply).unwrap();
        assert_eq!((health.family, health.number("initial_bad_blocks")), (Family::InnodiskSd, Some(3.0)));
        assert_eq!(health.implausible[0].name, "spare_used_percent");
    }

    #[test]
    fn atp_is_known_and_not_decoded() {
        let mut reply = [0u8; 512];
        reply[3] = 1;
        assert_eq!(
            decode_reply(None, Some(0x1100_0001), &reply),
            Err(Refusal::LayoutNotPublic { family: Family::AtpSd })
        );
    }
}
