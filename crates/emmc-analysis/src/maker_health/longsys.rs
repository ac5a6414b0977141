//! Longsys: FORESEE eMMC (CMD56 0x110005F1, or 0x200005F1 on older parts) and SD (CMD56 argument 1).
//!
//! Sources: Unisoc's sprd-mmc-health and SDeMMCHealth for eMMC, which read different byte orders; sdmon for SD.

use super::builder::Builder;
use super::layout::{Field, Form, at, number, read};
use super::meaning::{
    INITIAL_BAD_BLOCKS, LATER_BAD_BLOCKS, LIFE_LEFT_PERCENT, READ_RECLAIMS_TLC, SPARE_BLOCKS_LEFT, Stat, VOLTAGE_DROPS,
    WRITTEN_BYTES, count, erases, identity,
};
use super::model::{Area, Confidence, VendorHealth};
use super::{Family, Refusal, reply_source};

use Confidence::Uncertain;

const ORDER: &str = "big-endian in one source, little-endian in the other";

/// CMD56 argument 0x110005F1.
const EMMC: [Field; 5] = [
    at(25, Form::Be16, INITIAL_BAD_BLOCKS).sure(Uncertain).remark(ORDER),
    at(27, Form::Be16, LATER_BAD_BLOCKS).sure(Uncertain).remark(ORDER),
    at(36, Form::Be32, erases(Area::Global, Stat::Max)).sure(Uncertain).remark(ORDER),
    at(44, Form::Be32, erases(Area::Global, Stat::Average)).sure(Uncertain).remark(ORDER),
    at(112, Form::Be64, WRITTEN_BYTES).times(512).sure(Uncertain),
];

/// CMD56 argument 0x200005F1.
const EMMC_OLD: [Field; 10] = [
    at(0, Form::Le32, erases(Area::Slc, Stat::Min)),
    at(4, Form::Le32, erases(Area::Slc, Stat::Max)),
    at(8, Form::Le32, erases(Area::Slc, Stat::Average)),
    at(12, Form::Le32, erases(Area::Tlc, Stat::Min)),
    at(16, Form::Le32, erases(Area::Tlc, Stat::Max)),
    at(20, Form::Le32, erases(Area::Tlc, Stat::Average)),
    at(32, Form::U8, INITIAL_BAD_BLOCKS),
    at(50, Form::Le16, READ_RECLAIMS_TLC),
    at(52, Form::Le16, VOLTAGE_DROPS),
    at(96, Form::Le64, WRITTEN_BYTES).times(512),
];

const SD: [Field; 11] = [
    at(4, Form::Le32, identity("report_version")),
    at(16, Form::Le32, INITIAL_BAD_BLOCKS),
    at(20, Form::Le32, LATER_BAD_BLOCKS),
    at(24, Form::Le64, WRITTEN_BYTES).times(512),
    at(32, Form::Le32, SPARE_BLOCKS_LEFT),
    at(36, Form::Le32, erases(Area::Global, Stat::Average)).per(1000),
    at(40, Form::Le32, count("sectors")),
    at(44, Form::Le32, LIFE_LEFT_PERCENT),
    at(48, Form::Le32, count("writes_left_gigabytes")),
    at(52, Form::Le32, erases(Area::Global, Stat::Rated)),
    at(56, Form::Le32, count("flash_written_gigabytes")),
];

/// Decodes a reply of a FORESEE eMMC.
///
/// Errors: an argument of no known report.
pub(super) fn decode(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let mut builder = Builder::new(Family::LongsysEmmc, reply_source(Family::LongsysEmmc, argument));
    match argument {
        None | Some(0x1100_05f1) => {
            read(&mut builder, reply, &EMMC);
            builder
                .note("Unisoc's driver and SDeMMCHealth read this report in different byte orders; shown big-endian");
            let (bad, _) = number(reply, 24, Form::Be16).unwrap_or_default();
            if bad != 0 {
                builder.note(
                    "bytes 24..26 are not empty: cards with Silicon Motion controllers keep factory-bad blocks there",
                );
            }
        }
        Some(0x2000_05f1) => read(&mut builder, reply, &EMMC_OLD),
        Some(other) => {
            return Err(Refusal::not_health(format!("no Longsys report is known for CMD56 argument {other:#010x}")));
        }
    }
    Ok(builder.finish())
}

/// Decodes a reply of a Longsys SD card.
pub(super) fn decode_sd(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let mut builder = Builder::new(Family::LongsysSd, reply_source(Family::LongsysSd, argument));
    read(&mut builder, reply, &SD);
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maker_health::{Value, decode_reply};

    #[test]
    fn an_sd_report_is_decoded() {
        let mut reply = [0u8; 512];
        reply[..2].copy_from_slice(&[0x70, 0x58]);
        for (at, value) in [(16, 4u32), (20, 1), (24, 2048), (32, 90), (36, 1500), (44, 98), (52, 3000)] {
            reply[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        let health = decode_reply(None, Some(1), &reply).unwrap();
        assert_eq!((health.family, health.number("life_left_percent")), (Family::LongsysSd, Some(98.0)));
        assert_eq!(health.number("written_bytes"), Some(1_048_576.0));
        let global = health.area(Area::Global).unwrap();
        assert_eq!(global.average.as_ref().unwrap().value, Value::Decimal(1.5));
        assert_eq!(global.rated.as_ref().unwrap().value, Value::Integer(3000));
        reply[44..48].copy_from_slice(&453u32.to_le_bytes());
        let health = decode_reply(None, None, &reply).unwrap();
        assert_eq!((health.number("life_left_percent"), health.implausible[0].found.as_str()), (None, "453"));
    }

    #[test]
    fn emmc_reports_are_decoded_by_argument() {
        let mut reply = [0u8; 512];
        (reply[26], reply[28], reply[39], reply[47], reply[119]) = (7, 1, 30, 12, 4);
        let health = decode_reply(Some(Family::LongsysEmmc), Some(0x1100_05f1), &reply).unwrap();
        assert_eq!((health.number("initial_bad_blocks"), health.number("later_bad_blocks")), (Some(7.0), Some(1.0)));
        assert_eq!(health.number("written_bytes"), Some(2048.0));
        let mut reply = [0u8; 512];
        (reply[0], reply[4], reply[8], reply[32], reply[96]) = (1, 9, 4, 2, 6);
        let health = decode_reply(Some(Family::LongsysEmmc), Some(0x2000_05f1), &reply).unwrap();
        assert_eq!(health.area(Area::Slc).unwrap().max.as_ref().unwrap().value, Value::Integer(9));
        assert_eq!(health.number("written_bytes"), Some(3072.0));
    }
}
