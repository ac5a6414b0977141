//! Samsung eMMC: the moviNAND report of eMMC 4.3 to 4.5, and the vendor-specific mode of 5.x.
//!
//! Sources: SDeMMCHealth and BlackBerry's kernel tree for moviNAND, which agree; SDeMMCHealth alone for 5.x.
//! Absent on purpose: how to ask for either. In moviNAND's vendor mode a read of sector 0 returns the report instead of
//! the sector, and some parts do not leave the mode again; 5.x wants a password written.

use super::builder::Builder;
use super::layout::{Field, Form, ascii, at, number, read};
use super::meaning::{
    CONTROLLER, FIRMWARE_UPDATES, INITIAL_BAD_BLOCKS, LATER_BAD_BLOCKS, POWER_CYCLES, READ_BYTES, READ_RECLAIMS,
    SPARE_BLOCKS_LEFT, Stat, VOLTAGE_DROPS, WRITTEN_BYTES, count, erases, identity,
};
use super::model::{Area, Confidence, Value, VendorHealth};
use super::{Family, Refusal, reply_source};

use Confidence::{SeveralSources, SingleSource, Uncertain};

/// First bytes of each bank's initial, later and reserved blocks.
const BANKS: [usize; 8] = [20, 32, 44, 56, 352, 364, 376, 388];

const MOVINAND: [Field; 13] = [
    at(4, Form::Le32, identity("super_block_size")),
    at(8, Form::Le32, identity("super_page_size")),
    at(12, Form::Le32, identity("optimal_write_size")),
    at(16, Form::Le32, identity("banks")).sure(SeveralSources),
    at(68, Form::Le32, erases(Area::Global, Stat::Max)).sure(SeveralSources),
    at(72, Form::Le32, erases(Area::Global, Stat::Min)).sure(SeveralSources),
    at(76, Form::Le32, erases(Area::Global, Stat::Average)).sure(SeveralSources),
    at(120, Form::Le32, erases(Area::Slc, Stat::Max)).sure(SeveralSources),
    at(124, Form::Le32, erases(Area::Slc, Stat::Min)).sure(SeveralSources),
    at(128, Form::Le32, erases(Area::Slc, Stat::Average)).sure(SeveralSources),
    at(132, Form::Le32, erases(Area::Mlc, Stat::Max)).sure(SeveralSources),
    at(136, Form::Le32, erases(Area::Mlc, Stat::Min)).sure(SeveralSources),
    at(140, Form::Le32, erases(Area::Mlc, Stat::Average)).sure(SeveralSources),
];

const RECLAIMS: [Field; 1] =
    [at(80, Form::Le32, READ_RECLAIMS).sure(Uncertain).remark("uncorrectable errors on eMMC 4.3")];

const VSM: [Field; 20] = [
    at(0, Form::Le32, erases(Area::Global, Stat::Max)),
    at(4, Form::Le32, erases(Area::Global, Stat::Min)),
    at(8, Form::Le32, erases(Area::Global, Stat::Average)),
    at(12, Form::Le32, READ_RECLAIMS),
    at(16, Form::Le32, INITIAL_BAD_BLOCKS),
    at(20, Form::Le32, LATER_BAD_BLOCKS),
    at(24, Form::Le32, SPARE_BLOCKS_LEFT),
    at(28, Form::Le32, count("firmware_update_trials")),
    at(32, Form::Hex(4), identity("firmware_date_raw")),
    at(36, Form::Le32, WRITTEN_BYTES).times(100_000_000).remark("100 MB each; MB or MiB is not said"),
    at(40, Form::Le32, POWER_CYCLES),
    at(44, Form::Le32, erases(Area::Slc, Stat::Max)),
    at(48, Form::Le32, erases(Area::Slc, Stat::Min)),
    at(52, Form::Le32, erases(Area::Slc, Stat::Average)),
    at(56, Form::Le32, erases(Area::Mlc, Stat::Max)),
    at(60, Form::Le32, erases(Area::Mlc, Stat::Min)),
    at(64, Form::Le32, erases(Area::Mlc, Stat::Average)),
    at(68, Form::Le32, FIRMWARE_UPDATES),
    at(72, Form::Le32, READ_BYTES).times(100_000_000).remark("100 MB each; MB or MiB is not said"),
    at(76, Form::Le32, VOLTAGE_DROPS),
];

/// Decodes a moviNAND report.
pub(super) fn decode(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let mut builder = Builder::new(Family::SamsungMovinand, reply_source(Family::SamsungMovinand, argument));
    read(&mut builder, reply, &MOVINAND);
    // eMMC 4.3 has no figures per area, and zeros in their place.
    let by_area = reply.get(120..144).is_some_and(|words| words.iter().any(|&byte| byte != 0));
    if !by_area {
        builder.health().areas.retain(|wear| wear.area == Area::Global);
        builder.note("no erase counts by area: the report is that of eMMC 4.3");
    }
    read(&mut builder, reply, &RECLAIMS);
    sum_banks(&mut builder, reply);
    if let Some(name) = reply.get(312..316).and_then(ascii) {
        let source = format!("{}, bytes 312..316, ASCII", builder.source());
        builder.put(&CONTROLLER, Value::Text(name), source, SingleSource);
    }
    Ok(builder.finish())
}

fn sum_banks(builder: &mut Builder, reply: &[u8]) {
    let word = |at| number(reply, at, Form::Le32).map_or((0, false), |word| word);
    let banks = word(16).0 as usize;
    let source = format!("{}, {banks} banks summed, little-endian", builder.source());
    if !(1..=BANKS.len()).contains(&banks) {
        let expected = format!("1 to {} banks", BANKS.len());
        return builder.flag(&identity("banks"), banks.to_string(), expected, source);
    }
    for (meaning, place) in [(INITIAL_BAD_BLOCKS, 0), (LATER_BAD_BLOCKS, 4), (SPARE_BLOCKS_LEFT, 8)] {
        let words = BANKS.iter().take(banks).map(|bank| word(bank + place));
        let (sum, ones) = words.fold((0u64, false), |(sum, ones), (value, all)| (sum + value, ones || all));
        match ones {
            true => builder.flag(&meaning, "a bank with all bits set", "a count in every bank", source.clone()),
            false => builder.put(&meaning, Value::Integer(sum as i64), source.clone(), SeveralSources),
        }
    }
}

/// Decodes the report of the vendor-specific mode.
pub(super) fn decode_vsm(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let mut builder = Builder::new(Family::SamsungVsm, reply_source(Family::SamsungVsm, argument));
    read(&mut builder, reply, &VSM);
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maker_health::decode_reply;

    fn report(words: &[(usize, u32)]) -> [u8; 512] {
        let mut reply = [0u8; 512];
        for &(at, value) in words {
            reply[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        reply
    }

    #[test]
    fn the_present_banks_are_summed() {
        let words =
            [(16, 2), (20, 5), (24, 1), (28, 30), (32, 7), (36, 2), (40, 31), (44, 99), (68, 900), (72, 1), (76, 400)];
        let health = decode_reply(Some(Family::SamsungMovinand), None, &report(&words)).unwrap();
        assert_eq!(health.number("initial_bad_blocks"), Some(12.0));
        assert_eq!(health.number("later_bad_blocks"), Some(3.0));
        assert_eq!(health.number("spare_blocks_left"), Some(61.0));
        let values: Vec<_> = health.area(Area::Global).unwrap().readings().map(|r| r.value.as_i64().unwrap()).collect();
        assert_eq!(values, [1, 900, 400]);
        assert!(health.area(Area::Slc).is_none(), "zeros of an older report are no readings");
    }

    #[test]
    fn eight_banks_are_in_two_places_and_nine_are_refused() {
        let words = [(16, 5), (20, 1), (352, 10), (364, 100), (120, 7), (124, 2), (128, 3)];
        let health = decode_reply(Some(Family::SamsungMovinand), None, &report(&words)).unwrap();
        assert_eq!(health.number("initial_bad_blocks"), Some(11.0));
        assert!(health.area(Area::Slc).is_some());
        let health = decode_reply(Some(Family::SamsungMovinand), None, &report(&[(16, 9), (20, 1)])).unwrap();
        assert_eq!(health.number("initial_bad_blocks"), None);
        assert!(health.implausible.iter().any(|flagged| flagged.name == "banks" && flagged.found == "9"));
    }

    #[test]
    fn the_vendor_specific_mode_is_decoded() {
        let words = [(0, 120), (4, 1), (8, 60), (36, 12), (40, 9), (56, 100), (60, 3), (64, 50)];
        let health = decode_reply(Some(Family::SamsungVsm), None, &report(&words)).unwrap();
        assert_eq!(health.number("written_bytes"), Some(1_200_000_000.0));
        assert_eq!(health.area(Area::Mlc).unwrap().max.as_ref().unwrap().value, Value::Integer(100));
        assert_eq!(health.number("power_cycles"), Some(9.0));
    }
}
