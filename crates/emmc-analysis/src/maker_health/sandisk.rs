//! SanDisk and Western Digital: the eMMC device report (CMD62, then CMD63) and the SD one (CMD56 argument 1).
//!
//! Sources for eMMC: hekate, the kernel trees of BlackBerry and Unisoc, ncollectd; they agree word for word but on
//! names: what hekate calls EUDA, the enhanced user data area, ncollectd calls SLC. For SD: sdmon and its Rust port.

use super::builder::Builder;
use super::layout::{Field, Form, at, number, read};
use super::meaning::{
    FIRMWARE_UPDATES, INITIAL_BAD_BLOCKS, LATER_BAD_BLOCKS_SLC, LATER_BAD_BLOCKS_SYSTEM, LIFE_USED_PERCENT,
    POWER_CYCLES, PRODUCT, Stat, UNCORRECTABLE_ERRORS, VOLTAGE_DROPS, WRITTEN_BYTES, bad_blocks, bytes, celsius, count,
    erases, identity, life, life_state,
};
use super::model::{Area, Confidence, Value, VendorHealth};
use super::{Family, Refusal, reply_source};

use Confidence::{SeveralSources, Uncertain};

const HUNDRED_MB: u64 = 100_000_000;
const MB: &str = "100 MB each; MB or MiB is not said";

/// Words that every report has.
const BASE: [Field; 21] = [
    at(0x00, Form::Le32, erases(Area::System, Stat::Average)).sure(SeveralSources),
    at(0x04, Form::Le32, erases(Area::Slc, Stat::Average)).sure(SeveralSources),
    at(0x08, Form::Le32, erases(Area::Mlc, Stat::Average)).sure(SeveralSources),
    at(0x0c, Form::Le32, count("read_reclaims_system")).sure(SeveralSources),
    at(0x10, Form::Le32, count("read_reclaims_slc")).sure(SeveralSources),
    at(0x14, Form::Le32, count("read_reclaims_mlc")).sure(SeveralSources),
    at(0x18, Form::Le32, INITIAL_BAD_BLOCKS).sure(SeveralSources),
    at(0x1c, Form::Le32, LATER_BAD_BLOCKS_SYSTEM).sure(SeveralSources),
    at(0x20, Form::Le32, LATER_BAD_BLOCKS_SLC).sure(SeveralSources),
    at(0x24, Form::Le32, bad_blocks("later_bad_blocks_mlc")).sure(SeveralSources),
    at(0x28, Form::Le32, FIRMWARE_UPDATES).sure(SeveralSources),
    at(0x2c, Form::Ascii(12), identity("firmware_date")).sure(SeveralSources),
    at(0x38, Form::Ascii(8), identity("firmware_time")).sure(SeveralSources),
    at(0x40, Form::Le32, WRITTEN_BYTES).times(HUNDRED_MB).sure(SeveralSources).remark(MB),
    at(0x44, Form::Le32, VOLTAGE_DROPS).sure(SeveralSources),
    at(0x48, Form::Le32, count("voltage_droops")).sure(SeveralSources),
    at(0x4c, Form::Le32, count("data_recoveries_failed")).sure(SeveralSources),
    at(0x50, Form::Le32, count("data_recoveries")).sure(SeveralSources),
    at(0x54, Form::Le32, bytes("written_bytes_slc")).times(HUNDRED_MB).sure(SeveralSources).remark(MB),
    at(0x58, Form::Le32, bytes("written_bytes_mlc"))
        .times(HUNDRED_MB)
        .sure(Uncertain)
        .remark("MLC, or big files past the SLC cache: sources differ"),
    at(0x5c, Form::Le32, count("big_file_limit_exceeded")).sure(SeveralSources),
];

/// Words of newer reports, all zero in older ones.
const ADVANCED: [Field; 20] = [
    at(0x60, Form::Le32, erases(Area::Hybrid, Stat::Average)).sure(SeveralSources).unless_zero(),
    at(0x64, Form::Le32, POWER_CYCLES).sure(SeveralSources),
    at(0x68, Form::Le32, erases(Area::System, Stat::Max)).sure(SeveralSources),
    at(0x6c, Form::Le32, erases(Area::Slc, Stat::Max)).sure(SeveralSources),
    at(0x70, Form::Le32, erases(Area::Mlc, Stat::Max)).sure(SeveralSources),
    at(0x74, Form::Le32, erases(Area::System, Stat::Min)).sure(SeveralSources),
    at(0x78, Form::Le32, erases(Area::Slc, Stat::Min)).sure(SeveralSources),
    at(0x7c, Form::Le32, erases(Area::Mlc, Stat::Min)).sure(SeveralSources),
    at(0x80, Form::Le32, erases(Area::Enhanced, Stat::Max)).sure(SeveralSources),
    at(0x84, Form::Le32, erases(Area::Enhanced, Stat::Min)).sure(SeveralSources),
    at(0x88, Form::Le32, erases(Area::Enhanced, Stat::Average)).sure(SeveralSources),
    at(0x8c, Form::Le32, count("read_reclaims_enhanced")),
    at(0x90, Form::Le32, bad_blocks("later_bad_blocks_enhanced")).sure(SeveralSources),
    at(0x94, Form::Le32, life_state("pre_eol_enhanced")).unless_zero(),
    at(0x98, Form::Le32, life_state("pre_eol_system")).unless_zero(),
    at(0x9c, Form::Le32, life_state("pre_eol_mlc")).sure(SeveralSources).unless_zero(),
    at(0xa0, Form::Le32, UNCORRECTABLE_ERRORS).sure(SeveralSources),
    at(0xa4, Form::Le32, celsius("temperature_celsius")).sure(SeveralSources),
    at(0xa8, Form::Le32, celsius("temperature_min_celsius")).sure(SeveralSources),
    at(0xac, Form::Le32, celsius("temperature_max_celsius")).sure(SeveralSources),
];

/// Raw 1 is all life left, 101 is none; 0 is not told.
const HEALTH: [(usize, &str); 3] =
    [(0xb0, "life_left_percent_enhanced"), (0xb4, "life_left_percent_system"), (0xb8, "life_left_percent_mlc")];

const SD: [Field; 6] = [
    at(2, Form::Ascii(6), identity("manufactured_yymmdd")).sure(SeveralSources),
    at(8, Form::U8, LIFE_USED_PERCENT).sure(SeveralSources).remark("a step of one percent: 1 is 0 % to 1 %"),
    at(11, Form::U8, identity("feature_revision")).sure(SeveralSources),
    at(14, Form::U8, identity("generation")).sure(SeveralSources),
    at(24, Form::Be24, POWER_CYCLES).sure(SeveralSources),
    at(49, Form::Ascii(32), PRODUCT).sure(SeveralSources),
];

/// Decodes the device report of an eMMC.
pub(super) fn decode(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let mut builder = Builder::new(Family::SandiskEmmc, reply_source(Family::SandiskEmmc, argument));
    read(&mut builder, reply, &BASE);
    let advanced = reply.get(0x60..0xc8).is_some_and(|words| words.iter().any(|&byte| byte != 0));
    if advanced {
        read(&mut builder, reply, &ADVANCED);
        for (at, name) in HEALTH {
            life_left(&mut builder, reply, at, name);
        }
        builder.note("the enhanced user data area, EUDA in hekate, is called SLC by ncollectd");
    } else {
        builder.note("the report has no advanced block: it stops at word 23");
    }
    Ok(builder.finish())
}

fn life_left(builder: &mut Builder, reply: &[u8], at: usize, name: &'static str) {
    let Some((raw, _)) = number(reply, at, Form::Le32) else { return };
    let source = format!("{}, bytes {at}..{}, little-endian, 101 - raw", builder.source(), at + 4);
    match raw {
        0 => {}
        1..=101 => builder.put(&life(name), Value::Integer(101 - raw as i64), source, Uncertain),
        raw => builder.flag(&life(name), format!("raw {raw}"), "raw 1 to 101", source),
    }
}

/// Decodes the report of an SD card; both signatures share it.
pub(super) fn decode_sd(family: Family, reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let mut builder = Builder::new(family, reply_source(family, argument));
    read(&mut builder, reply, &SD);
    if builder.health().implausible.iter().any(|flagged| flagged.name == LIFE_USED_PERCENT.name) {
        builder.note("SanDisk lets used life pass 100 %: a card past its estimated life may report more");
    }
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maker_health::decode_reply;

    fn report(words: &[(usize, u32)]) -> [u8; 512] {
        let mut reply = [0u8; 512];
        for &(word, value) in words {
            reply[4 * word..4 * word + 4].copy_from_slice(&value.to_le_bytes());
        }
        reply
    }

    #[test]
    fn words_are_assigned_to_their_areas() {
        let mut reply =
            report(&[(0, 3), (1, 40), (2, 55), (6, 21), (16, 4321), (25, 900), (28, 80), (31, 12), (41, 35)]);
        reply[0x2c..0x38].copy_from_slice(b"Jan 05 2017\0");
        let health = decode_reply(Some(Family::SandiskEmmc), None, &reply).unwrap();
        let mlc = health.area(Area::Mlc).unwrap();
        let values: Vec<_> = mlc.readings().map(|reading| reading.value.as_i64().unwrap()).collect();
        assert_eq!(values, [12, 80, 55]);
        assert_eq!(health.number("initial_bad_blocks"), Some(21.0));
        assert_eq!(health.number("written_bytes"), Some(432_100_000_000.0));
        assert_eq!(health.number("power_cycles"), Some(900.0));
        assert_eq!(health.number("temperature_celsius"), Some(35.0));
        assert_eq!(health.reading("firmware_date").unwrap().value, Value::Text("Jan 05 2017".to_owned()));
        assert_eq!(health.source, "CMD62 argument 0x96c9d71c, CMD63 argument 0");
    }

    #[test]
    fn life_left_counts_down_from_101() {
        let raw =
            |value| decode_reply(Some(Family::SandiskEmmc), None, &report(&[(2, 1), (28, 2), (46, value)])).unwrap();
        assert_eq!(raw(1).number("life_left_percent_mlc"), Some(100.0));
        assert_eq!(raw(101).number("life_left_percent_mlc"), Some(0.0));
        assert_eq!(raw(0).number("life_left_percent_mlc"), None);
        assert_eq!(raw(102).number("life_left_percent_mlc"), None);
        assert_eq!(raw(102).implausible.len(), 1);
    }

    #[test]
    fn a_missing_advanced_block_gives_no_zeros() {
        let health = decode_reply(Some(Family::SandiskEmmc), None, &report(&[(0, 3), (1, 40), (2, 55)])).unwrap();
        assert_eq!(health.number("power_cycles"), None);
        assert_eq!(health.number("temperature_celsius"), None);
        assert!(health.area(Area::Mlc).unwrap().max.is_none());
    }

    fn sd(second: u8, used: u8) -> [u8; 512] {
        let mut reply = [0u8; 512];
        reply[..8].copy_from_slice(&[0x44, second, b'2', b'1', b'1', b'1', b'2', b'2']);
        (reply[8], reply[11], reply[14], reply[26]) = (used, 0x1f, 5, 14);
        reply[49..56].copy_from_slice(b"SanDisk");
        reply
    }

    #[test]
    fn sd_cards_are_recognised_by_their_signature() {
        let health = decode_reply(None, Some(1), &sd(0x53, 1)).unwrap();
        assert_eq!((health.family, health.number("life_used_percent")), (Family::SandiskSd, Some(1.0)));
        assert_eq!(health.number("power_cycles"), Some(14.0));
        assert_eq!(health.reading("manufactured_yymmdd").unwrap().value, Value::Text("211122".to_owned()));
        let health = decode_reply(None, Some(1), &sd(0x57, 199)).unwrap();
        assert_eq!((health.family, health.number("life_used_percent")), (Family::WesternDigitalSd, None));
        assert_eq!(health.implausible[0].found, "199");
        let refused = decode_reply(Some(Family::SandiskSd), None, &sd(0x57, 1));
        assert!(matches!(refused, Err(Refusal::WrongSignature { .. })));
    }
}
