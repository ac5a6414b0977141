//! SD cards with Silicon Motion controllers: the report under signature 09 41 (AData and others) and Transcend's own.
//!
//! A card may answer to both arguments: an AData IUDD33K passes as Transcend, and a Transcend 460T as AData.
//! Sources: SDeMMCHealth and sdmon for the former, Transcend's mmc-utils patch for the latter.

use super::builder::Builder;
use super::layout::{Field, Form, at, number, read};
use super::meaning::{
    BUS_WIDTH, CONTROLLER, CRC_ERRORS, ERASES_MAX, FIRMWARE, FLASH_ID, INITIAL_BAD_BLOCKS, LATER_BAD_BLOCKS,
    LIFE_LEFT_PERCENT, POWER_CYCLES, POWER_LOSSES, PRODUCT, READ_RECLAIMS_SLC, READ_RECLAIMS_TLC, REFRESHES,
    SPARE_BLOCKS_LEFT, SPARE_BLOCKS_SLC, SPARE_BLOCKS_TLC, SPEED_CLASS, Stat, UHS_SPEED_GRADE, count, erases,
};
use super::model::{Area, Confidence, VendorHealth};
use super::sd_cards::{CLASSES, GRADES, WIDTHS};
use super::{Family, Refusal, reply_source};

use Confidence::{Documented, SeveralSources, SingleSource, Uncertain};

/// How Transcend's tool reads the rating, of both reports: in hundreds.
pub(super) const RATED_STEP: u64 = 100;
pub(super) const RATED_REMARK: &str = "in hundreds, as Transcend's tool reads it";

/// A count of spare blocks left would be an alarm there.
pub(super) const SPARE_REMARK: &str = "0 on a new AData card, so not what is left";

const ADATA: [Field; 25] = [
    at(24, Form::Be16, INITIAL_BAD_BLOCKS),
    at(26, Form::U8, LATER_BAD_BLOCKS),
    at(27, Form::U8, SPARE_BLOCKS_SLC),
    at(30, Form::Be16, SPARE_BLOCKS_TLC).sure(Uncertain).remark(SPARE_REMARK),
    at(32, Form::Be32, erases(Area::User, Stat::Min)),
    at(36, Form::Be32, erases(Area::User, Stat::Max)),
    at(40, Form::Be32, erases(Area::User, Stat::Total)),
    at(44, Form::Be32, erases(Area::User, Stat::Average)),
    at(48, Form::Be32, erases(Area::System, Stat::Min)),
    at(52, Form::Be32, erases(Area::System, Stat::Max)),
    at(56, Form::Be32, erases(Area::System, Stat::Total)),
    at(60, Form::Be32, erases(Area::System, Stat::Average)),
    at(64, Form::Be32, count("raw_capacity_megabytes")),
    at(68, Form::Be16, erases(Area::User, Stat::Rated)).times(RATED_STEP).sure(Uncertain).remark(RATED_REMARK),
    at(70, Form::U8, LIFE_LEFT_PERCENT).sure(SeveralSources),
    at(76, Form::Be32, POWER_CYCLES).sure(SeveralSources),
    at(80, Form::Hex(7), FLASH_ID),
    at(88, Form::Ascii(6), CONTROLLER),
    at(96, Form::Be16, READ_RECLAIMS_TLC),
    at(98, Form::Be16, READ_RECLAIMS_SLC),
    at(100, Form::Be16, REFRESHES),
    at(104, Form::Be32, count("read_reclaim_threshold_tlc")),
    at(108, Form::Be32, count("read_reclaim_threshold_slc")),
    at(128, Form::Ascii(6), FIRMWARE),
    at(136, Form::Be32, count("block_refreshes_tlc")),
];

/// Both sources skip byte 142, so where the number starts is open.
const ADATA_SLC_REFRESHES: [Field; 1] = [at(143, Form::Be16, count("block_refreshes_slc")).sure(Uncertain)];

const TRANSCEND: [Field; 14] = [
    at(0, Form::Ascii(16), PRODUCT).sure(Documented),
    at(16, Form::Code(&WIDTHS), BUS_WIDTH),
    at(18, Form::Code(&CLASSES), SPEED_CLASS),
    at(19, Form::Code(&GRADES), UHS_SPEED_GRADE),
    at(26, Form::U8, LATER_BAD_BLOCKS).sure(Documented),
    at(30, Form::Be16, SPARE_BLOCKS_LEFT).sure(Documented),
    at(68, Form::Be16, erases(Area::Global, Stat::Rated)).times(RATED_STEP).sure(Documented),
    at(70, Form::U8, LIFE_LEFT_PERCENT).sure(Documented),
    at(72, Form::Be32, CRC_ERRORS).sure(Documented),
    at(76, Form::Be32, POWER_CYCLES).sure(Documented),
    at(80, Form::Hex(6), FLASH_ID).sure(Documented),
    at(88, Form::Ascii(8), CONTROLLER).sure(Documented),
    at(128, Form::Ascii(6), FIRMWARE).sure(Documented),
    at(164, Form::Be32, POWER_LOSSES).sure(Documented),
];

const fn transcend_erases(form: Form, confidence: Confidence) -> [Field; 4] {
    [
        at(32, form, erases(Area::Global, Stat::Min)).sure(confidence),
        at(36, form, erases(Area::Global, Stat::Max)).sure(confidence),
        at(40, form, erases(Area::Global, Stat::Total)).sure(confidence),
        at(44, form, erases(Area::Global, Stat::Average)).sure(confidence),
    ]
}

/// Decodes the report under signature 09 41.
pub(super) fn decode_adata(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let mut builder = Builder::new(Family::AdataSd, reply_source(Family::AdataSd, argument));
    read(&mut builder, reply, &ADATA);
    read(&mut builder, reply, &ADATA_SLC_REFRESHES);
    Ok(builder.finish())
}

/// Decodes Transcend's report.
pub(super) fn decode_transcend(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let mut builder = Builder::new(Family::TranscendSd, reply_source(Family::TranscendSd, argument));
    read(&mut builder, reply, &TRANSCEND);
    let words = |form| [32, 36, 44].map(|at| number(reply, at, form).map_or(u64::MAX, |(value, _)| value));
    let possible = |[min, max, average]: [u64; 3]| min <= max && average <= max && max <= ERASES_MAX as u64;
    match (possible(words(Form::Be32)), possible(words(Form::Le32))) {
        (false, true) => {
            read(&mut builder, reply, &transcend_erases(Form::Le32, SingleSource));
            builder.note("erase counts read little-endian, as a 230I card has them: big-endian they could not be");
        }
        (true, true) if words(Form::Be32) != words(Form::Le32) => {
            read(&mut builder, reply, &transcend_erases(Form::Be32, Uncertain));
            builder.note("erase counts read big-endian, as Transcend's tool does; a 230I card has them little-endian");
        }
        _ => read(&mut builder, reply, &transcend_erases(Form::Be32, Documented)),
    }
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maker_health::decode_reply;

    #[test]
    fn the_report_of_a_transcend_460t_does_not_name_its_maker() {
        let mut reply = [0u8; 512];
        reply[..2].copy_from_slice(&[0x09, 0x41]);
        (reply[25], reply[27], reply[31], reply[39], reply[55], reply[69], reply[70]) = (5, 34, 198, 2, 2, 30, 100);
        reply[42..44].copy_from_slice(&405u16.to_be_bytes());
        reply[88..94].copy_from_slice(b"SM2706");
        (reply[59], reply[63], reply[144]) = (54, 1, 116);
        let health = decode_reply(None, Some(0x1100_05f1), &reply).unwrap();
        assert_eq!(health.family, Family::AdataSd);
        assert!(health.label.contains("uncertain") && health.label.contains("Transcend"));
        assert_eq!(health.number("initial_bad_blocks"), Some(5.0));
        assert_eq!(health.number("block_refreshes_slc"), Some(116.0));
        let user = health.area(Area::User).unwrap();
        assert_eq!(user.total.as_ref().unwrap().value.as_i64(), Some(405));
        assert_eq!(user.rated.as_ref().unwrap().value.as_i64(), Some(3000));
        assert!(health.implausible.is_empty());
    }

    fn transcend(max: [u8; 4]) -> VendorHealth {
        let mut reply = [0u8; 512];
        reply[..2].copy_from_slice(b"Tr");
        reply[36..40].copy_from_slice(&max);
        reply[70] = 100;
        decode_reply(None, Some(0x1100_05f9), &reply).unwrap()
    }

    #[test]
    fn transcends_byte_order_is_the_plausible_one() {
        let max = |health: &VendorHealth| health.area(Area::Global).unwrap().max.clone().unwrap();
        assert_eq!(
            (max(&transcend([0, 0, 0, 9])).value.as_i64(), max(&transcend([0, 0, 0, 9])).confidence),
            (Some(9), Documented)
        );
        assert_eq!(
            (max(&transcend([1, 0, 0, 0])).value.as_i64(), max(&transcend([1, 0, 0, 0])).confidence),
            (Some(1), SingleSource)
        );
        assert_eq!(
            (max(&transcend([0, 1, 2, 0])).value.as_i64(), max(&transcend([0, 1, 2, 0])).confidence),
            (Some(66_048), Uncertain)
        );
        let health = transcend([9, 9, 9, 9]);
        assert!(health.area(Area::Global).unwrap().max.is_none());
        assert_eq!(health.implausible.len(), 1);
    }
}
