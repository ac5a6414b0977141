//! YMTC eMMC and what shares its layout: Hosin, and a Phison controller of 128 GB parts.
//!
//! Sources: Unisoc's sprd-mmc-health for the layouts, Xiaomi's mi_memory driver for the commands. All of them unlock
//! the report first, by a CMD56 read or CMD60 with a magic argument.

use super::builder::Builder;
use super::layout::{Field, Form, at, read};
use super::meaning::{
    BAD_BLOCKS_ERASE, BAD_BLOCKS_PROGRAM, BAD_BLOCKS_READ, FIRMWARE_UPDATES, FIRMWARE_UPDATES_FAILED,
    INITIAL_BAD_BLOCKS, LATER_BAD_BLOCKS, LATER_BAD_BLOCKS_SLC, LATER_BAD_BLOCKS_TLC, LIFE_USED_PERCENT_SLC,
    LIFE_USED_PERCENT_TLC, POWER_CYCLES, POWER_LOSSES, READ_BYTES, READ_RECLAIMS, READ_RECLAIMS_SLC, READ_RECLAIMS_TLC,
    SPARE_BLOCKS_LEFT, SPARE_BLOCKS_SLC, SPARE_BLOCKS_TLC, Stat, UNCORRECTABLE_ERRORS, VOLTAGE_DROPS, WRITTEN_BYTES,
    celsius, count, erases, spare_blocks,
};
use super::model::{Area, Confidence, VendorHealth};
use super::{Family, Refusal, reply_source};

use Confidence::Uncertain;

const MIB: u64 = 1 << 20;
const MB: &str = "MB or MiB is not said";

/// The report of EC110 parts, 512 bytes.
const EC110: [Field; 25] = [
    at(0, Form::Be32, INITIAL_BAD_BLOCKS),
    at(4, Form::Be32, SPARE_BLOCKS_TLC),
    at(8, Form::Be32, SPARE_BLOCKS_SLC),
    at(12, Form::Be32, LATER_BAD_BLOCKS_TLC),
    at(20, Form::Be32, BAD_BLOCKS_ERASE),
    at(24, Form::Be32, BAD_BLOCKS_PROGRAM),
    at(28, Form::Be32, BAD_BLOCKS_READ),
    at(32, Form::Be32, UNCORRECTABLE_ERRORS),
    at(44, Form::Be32, READ_RECLAIMS_SLC),
    at(48, Form::Be32, READ_RECLAIMS_TLC),
    at(52, Form::Be32, VOLTAGE_DROPS),
    at(64, Form::Be32, count("power_loss_recoveries")),
    at(68, Form::Be32, count("power_loss_recoveries_failed")),
    at(92, Form::Be32, erases(Area::Slc, Stat::Min)),
    at(96, Form::Be32, erases(Area::Slc, Stat::Max)),
    at(100, Form::Be32, erases(Area::Slc, Stat::Average)),
    at(104, Form::Be32, erases(Area::Tlc, Stat::Min)),
    at(108, Form::Be32, erases(Area::Tlc, Stat::Max)),
    at(112, Form::Be32, erases(Area::Tlc, Stat::Average)),
    at(116, Form::Be32, READ_BYTES).times(MIB).remark(MB),
    at(120, Form::Be32, WRITTEN_BYTES).times(MIB).remark(MB),
    at(124, Form::Be32, POWER_CYCLES),
    at(176, Form::Be32, LIFE_USED_PERCENT_SLC).sure(Uncertain).remark("scale not said"),
    at(180, Form::Be32, LIFE_USED_PERCENT_TLC).sure(Uncertain).remark("scale not said"),
    at(188, Form::Be32, FIRMWARE_UPDATES_FAILED),
];

/// The report of EC230 parts, three sectors of which the first holds all that is known.
const EC230: [Field; 26] = [
    at(0, Form::Be32, INITIAL_BAD_BLOCKS),
    at(12, Form::Be32, LATER_BAD_BLOCKS_TLC),
    at(16, Form::Be32, LATER_BAD_BLOCKS_SLC),
    at(20, Form::Be32, BAD_BLOCKS_ERASE),
    at(24, Form::Be32, BAD_BLOCKS_PROGRAM),
    at(28, Form::Be32, BAD_BLOCKS_READ),
    at(32, Form::Be32, UNCORRECTABLE_ERRORS),
    at(52, Form::Be32, VOLTAGE_DROPS),
    at(56, Form::Be32, count("voltage_drops_vccq")),
    at(60, Form::Be32, POWER_LOSSES),
    at(76, Form::Be32, erases(Area::Slc, Stat::Min)),
    at(80, Form::Be32, erases(Area::Slc, Stat::Max)),
    at(84, Form::Be32, erases(Area::Slc, Stat::Average)),
    at(92, Form::Be32, erases(Area::Tlc, Stat::Min)),
    at(96, Form::Be32, erases(Area::Tlc, Stat::Max)),
    at(100, Form::Be32, erases(Area::Tlc, Stat::Average)),
    at(104, Form::Be32, READ_BYTES).times(MIB).remark(MB),
    at(108, Form::Be32, WRITTEN_BYTES).times(MIB).remark(MB),
    at(112, Form::Be32, POWER_CYCLES),
    at(124, Form::Be32, celsius("temperature_min_celsius")),
    at(128, Form::Be32, celsius("temperature_max_celsius")),
    at(148, Form::Be32, SPARE_BLOCKS_SLC),
    at(152, Form::Be32, SPARE_BLOCKS_TLC),
    at(160, Form::Be32, spare_blocks("reserved_blocks_tlc")),
    at(168, Form::Be32, READ_RECLAIMS_SLC),
    at(172, Form::Be32, READ_RECLAIMS_TLC),
];

/// What HFCS 64 GB parts tell by the two commands that Hosin parts are asked by.
const HOSIN: [Field; 14] = [
    at(0, Form::Be32, INITIAL_BAD_BLOCKS).sure(Uncertain),
    at(12, Form::Be32, LATER_BAD_BLOCKS_TLC).sure(Uncertain),
    at(16, Form::Be32, LATER_BAD_BLOCKS_SLC).sure(Uncertain),
    at(20, Form::Be32, BAD_BLOCKS_ERASE).sure(Uncertain),
    at(24, Form::Be32, BAD_BLOCKS_PROGRAM).sure(Uncertain),
    at(28, Form::Be32, BAD_BLOCKS_READ).sure(Uncertain),
    at(92, Form::Be32, erases(Area::Slc, Stat::Min)).sure(Uncertain),
    at(96, Form::Be32, erases(Area::Slc, Stat::Max)).sure(Uncertain),
    at(100, Form::Be32, erases(Area::Slc, Stat::Average)).sure(Uncertain),
    at(104, Form::Be32, erases(Area::Tlc, Stat::Min)).sure(Uncertain),
    at(108, Form::Be32, erases(Area::Tlc, Stat::Max)).sure(Uncertain),
    at(112, Form::Be32, erases(Area::Tlc, Stat::Average)).sure(Uncertain),
    at(116, Form::Be32, READ_BYTES).times(MIB).sure(Uncertain).remark(MB),
    at(120, Form::Be32, WRITTEN_BYTES).times(MIB).sure(Uncertain).remark(MB),
];

/// CMD56 argument 0x35 of a Phison controller: the same places, but the newer counters little-endian.
pub(super) const PHISON_35: [Field; 14] = [
    at(0, Form::Be32, INITIAL_BAD_BLOCKS),
    at(4, Form::Be32, SPARE_BLOCKS_LEFT),
    at(12, Form::Be32, LATER_BAD_BLOCKS),
    at(60, Form::Le32, POWER_LOSSES),
    at(92, Form::Be32, erases(Area::Slc, Stat::Min)),
    at(96, Form::Be32, erases(Area::Slc, Stat::Max)),
    at(100, Form::Be32, erases(Area::Slc, Stat::Average)),
    at(104, Form::Be32, erases(Area::Tlc, Stat::Min)),
    at(108, Form::Be32, erases(Area::Tlc, Stat::Max)),
    at(112, Form::Be32, erases(Area::Tlc, Stat::Average)),
    at(120, Form::Le32, count("written_units")).remark("unit not known"),
    at(124, Form::Le32, POWER_CYCLES),
    at(152, Form::Le32, READ_RECLAIMS),
    at(184, Form::Le32, FIRMWARE_UPDATES),
];

/// Decodes a YMTC report; which of the two it is follows from its length.
pub(super) fn decode(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let mut builder = Builder::new(Family::Ymtc, reply_source(Family::Ymtc, argument));
    match reply.len() {
        512 => read(&mut builder, reply, &EC110),
        _ => {
            read(&mut builder, reply, &EC230);
            builder.note("1536 bytes: read as the report of EC230 parts");
        }
    }
    Ok(builder.finish())
}

/// Decodes a Hosin report.
pub(super) fn decode_hosin(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let mut builder = Builder::new(Family::Hosin, reply_source(Family::Hosin, argument));
    read(&mut builder, reply, &HOSIN);
    builder
        .note("layout taken from HFCS 64 GB parts, which are asked by the same two commands; none is public for Hosin");
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maker_health::decode_reply;

    fn report<const N: usize>(words: &[(usize, u32)]) -> [u8; N] {
        let mut reply = [0u8; N];
        for &(at, value) in words {
            reply[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        reply
    }

    #[test]
    fn the_length_distinguishes_the_two_reports() {
        let words = [(0, 31), (92, 2), (96, 40), (100, 21), (104, 1), (108, 9), (112, 5), (120, 1000), (180, 4)];
        let health = decode_reply(Some(Family::Ymtc), Some(0x29), &report::<512>(&words)).unwrap();
        let values =
            |area| -> Vec<i64> { health.area(area).unwrap().readings().filter_map(|r| r.value.as_i64()).collect() };
        assert_eq!((values(Area::Slc), values(Area::Tlc)), (vec![2, 40, 21], vec![1, 9, 5]));
        assert_eq!(health.number("written_bytes"), Some(1_048_576_000.0));
        assert_eq!(health.number("life_used_percent_tlc"), Some(4.0));
        let words = [(0, 31), (76, 2), (80, 40), (84, 21), (108, 1000), (124, -5i32 as u32), (128, 81)];
        let health = decode_reply(Some(Family::Ymtc), None, &report::<1536>(&words)).unwrap();
        assert_eq!(health.number("temperature_min_celsius"), Some(-5.0));
        assert_eq!(health.number("temperature_max_celsius"), Some(81.0));
        assert_eq!(health.area(Area::Slc).unwrap().average.as_ref().unwrap().value.as_i64(), Some(21));
        let refused = decode_reply(Some(Family::Ymtc), None, &report::<1024>(&[(0, 1)]));
        assert_eq!(refused, Err(Refusal::Length { expected: 512, found: 1024 }));
    }

    #[test]
    fn hosin_is_decoded_as_uncertain() {
        let health =
            decode_reply(Some(Family::Hosin), Some(0x29), &report::<512>(&[(0, 3), (96, 8), (120, 2)])).unwrap();
        assert!(health.readings().all(|(_, reading)| reading.confidence == Uncertain));
        assert_eq!(health.number("initial_bad_blocks"), Some(3.0));
    }

    #[test]
    fn argument_0x29_alone_is_ambiguous() {
        let refused = decode_reply(None, Some(0x29), &report::<512>(&[(0, 3)]));
        assert_eq!(refused, Err(Refusal::Ambiguous { candidates: vec![Family::Ymtc, Family::Hosin] }));
    }
}
