//! Micron eMMC and SD: CMD56 reads, one argument per table.
//!
//! Argument: bits 0 read, 1..8 index, 8..16 and 16..24 what the index wants (die, table).
//! Sources: Micron's emmcparm 1.0 in public copies; a Denso kernel module that cites TN-FC-42; the mmc plugins of
//! collectd and ncollectd; a Spansion kernel patch; Unisoc's sprd-mmc-health; sdmon for SD.
//! Absent on purpose: argument 0xA7, which starts a refresh.

use super::builder::Builder;
use super::layout::{Field, Form, at, number, read};
use super::meaning::{
    FIRMWARE, FIRMWARE_UPDATES, INITIAL_BAD_BLOCKS, LATER_BAD_BLOCKS, LIFE_USED_PERCENT_SLC, LIFE_USED_PERCENT_TLC,
    POWER_CYCLES, POWER_LOSSES, READ_RECLAIMS, SPARE_BLOCKS_TOTAL, SPARE_USED_PERCENT, Stat, WRITTEN_BYTES, bad_blocks,
    count, erases, life,
};
use super::model::{Area, BlockWear, Cell, Confidence, Value, VendorHealth};
use super::{Family, Refusal, reply_source};

use Confidence::{Documented, SeveralSources, SingleSource, Uncertain};

/// Rows in a table of blocks.
const TABLE_ROWS: usize = 128;

const BAD_BLOCKS: [Field; 3] = [
    at(0, Form::Be16, INITIAL_BAD_BLOCKS).sure(Documented),
    at(2, Form::Be16, LATER_BAD_BLOCKS).sure(Documented),
    at(4, Form::Be16, SPARE_BLOCKS_TOTAL).sure(Uncertain).remark("all spare blocks or those left: sources differ"),
];

const fn min_max_average(area: Area, confidence: Confidence, remark: &'static str) -> [Field; 3] {
    [
        at(0, Form::Be16, erases(area, Stat::Min)).sure(confidence).remark(remark),
        at(2, Form::Be16, erases(area, Stat::Max)).sure(confidence).remark(remark),
        at(4, Form::Be16, erases(area, Stat::Average)).sure(confidence).remark(remark),
    ]
}

const ALL: [Field; 3] = min_max_average(Area::Global, SeveralSources, "");
const AREA_23: [Field; 3] = min_max_average(Area::Enhanced, Uncertain, "enhanced or normal area: sources differ");
const AREA_25: [Field; 3] = min_max_average(Area::Mlc, Uncertain, "enhanced or normal area: sources differ");

const AREA_NOTE: &str = "arguments 0x23 and 0x25: the Denso module and collectd read 0x23 as the enhanced (SLC) \
    area and 0x25 as the normal (MLC) one, emmcparm 1.0 and the Spansion patch the other way round; shown as the \
    former";
const SPARE_NOTE: &str = "emmcparm 1.0 takes bytes 4..6 of argument 0x11 as all spare blocks and counts \
    factory-bad blocks as used ones; TN-FC-42, after the Denso module, takes them as the spare blocks left";

/// The report that arguments 0x39 and 0x0D share.
const SMART: [Field; 11] = [
    at(0, Form::Be16, INITIAL_BAD_BLOCKS).sure(SeveralSources),
    at(2, Form::Be16, LATER_BAD_BLOCKS).sure(SeveralSources),
    at(4, Form::Be16, super::meaning::SPARE_BLOCKS_LEFT).sure(SeveralSources),
    at(0x10, Form::Be32, erases(Area::Mlc, Stat::Min)).sure(SeveralSources),
    at(0x14, Form::Be32, erases(Area::Mlc, Stat::Max)).sure(SeveralSources),
    at(0x18, Form::Be32, erases(Area::Mlc, Stat::Average)).sure(SeveralSources),
    at(0x1c, Form::Be32, erases(Area::Mlc, Stat::Total)).sure(SeveralSources),
    at(0x20, Form::Be32, erases(Area::Slc, Stat::Min)).sure(SeveralSources),
    at(0x24, Form::Be32, erases(Area::Slc, Stat::Max)).sure(SeveralSources),
    at(0x28, Form::Be32, erases(Area::Slc, Stat::Average)).sure(SeveralSources),
    at(0x2c, Form::Be32, erases(Area::Slc, Stat::Total)).sure(SeveralSources),
];

const SMART_39: [Field; 6] = [
    at(0x30, Form::Le32, POWER_CYCLES),
    at(0x34, Form::Le32, READ_RECLAIMS),
    at(0x44, Form::Le32, WRITTEN_BYTES).times(100_000_000).remark("100 MB each; MB or MiB is not said"),
    at(0xc0, Form::Le32, POWER_LOSSES),
    at(0xd0, Form::Le32, count("refresh_reads")),
    at(0xd4, Form::Le32, count("refresh_scan_progress")),
];

const SMART_0D: [Field; 5] = [
    at(0x30, Form::Be32, POWER_CYCLES),
    at(0x34, Form::Be32, READ_RECLAIMS),
    at(0x44, Form::Be32, WRITTEN_BYTES).times(100_000_000).remark("100 MB each; MB or MiB is not said"),
    at(0x74, Form::Be16, count("firmware_update_trials")),
    at(0x76, Form::Be16, FIRMWARE_UPDATES),
];

const FIRMWARE_FIELDS: [Field; 1] = [at(0, Form::Hex(16), FIRMWARE).sure(Uncertain)];
const TABLES: [Field; 1] = [at(0, Form::U8, count("erase_tables"))];

const SD: [Field; 3] = [
    at(7, Form::U8, life("life_used_step_percent")),
    at(8, Form::U8, LIFE_USED_PERCENT_TLC),
    at(9, Form::U8, LIFE_USED_PERCENT_SLC),
];

/// Decodes a reply of a Micron eMMC.
///
/// Errors: no argument, because the tables look alike; an argument of no known table.
pub(super) fn decode(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let Some(argument) = argument else {
        return Err(Refusal::not_health("a Micron reply is meaningless without its CMD56 argument"));
    };
    let mut builder = Builder::new(Family::Micron, reply_source(Family::Micron, Some(argument)));
    match argument {
        0x01 => read(&mut builder, reply, &FIRMWARE_FIELDS),
        0x0d => {
            read(&mut builder, reply, &SMART);
            read(&mut builder, reply, &SMART_0D);
        }
        0x11 => bad_and_spare(&mut builder, reply),
        0x21 => read(&mut builder, reply, &ALL),
        0x23 | 0x25 => {
            read(&mut builder, reply, if argument == 0x23 { &AREA_23 } else { &AREA_25 });
            builder.note(AREA_NOTE);
        }
        0x39 => {
            read(&mut builder, reply, &SMART);
            read(&mut builder, reply, &SMART_39);
        }
        0x83 => read(&mut builder, reply, &TABLES),
        _ => match argument & 0xff {
            0x81 => bad_block_records(&mut builder, reply),
            0x85 if argument <= 0xffff => erase_table(&mut builder, reply),
            0x87 if argument <= 0xffff => type_table(&mut builder, reply),
            _ => {
                return Err(Refusal::not_health(format!(
                    "no Micron report is known for CMD56 argument {argument:#010x}"
                )));
            }
        },
    }
    Ok(builder.finish())
}

fn bad_and_spare(builder: &mut Builder, reply: &[u8]) {
    read(builder, reply, &BAD_BLOCKS);
    builder.note(SPARE_NOTE);
    let field = |at| number(reply, at, Form::Be16).filter(|(_, all_ones)| !all_ones).map(|(value, _)| value);
    let (Some(initial), Some(later), Some(spare)) = (field(0), field(2), field(4)) else { return };
    let bad = initial + later;
    let source = format!("{}, (bytes 0..2 + bytes 2..4) / bytes 4..6", builder.source());
    if spare == 0 {
        return;
    }
    if bad > spare {
        builder.health().spares.retain(|reading| reading.name != SPARE_BLOCKS_TOTAL.name);
        let expected = format!("at least the {bad} bad blocks, if it counts all spare blocks");
        builder.flag(&SPARE_BLOCKS_TOTAL, spare.to_string(), expected, source);
        return;
    }
    builder.put(&SPARE_USED_PERCENT, Value::Decimal(100.0 * bad as f64 / spare as f64), source, Uncertain);
}

/// Address and count of each row: big-endian, addresses in the first half, what belongs to them in the second.
fn rows(reply: &[u8]) -> Vec<(u32, u32)> {
    let word = |at| number(reply, at, Form::Be16).map_or(0, |(value, _)| value as u32);
    let mut rows: Vec<(u32, u32)> =
        (0..TABLE_ROWS).map(|row| (word(2 * row), word(2 * TABLE_ROWS + 2 * row))).collect();
    // A table that is not full is padded; a block 0 that was never erased can stand first only.
    while rows.len() > 1 && rows.last().is_some_and(|&(block, value)| (block, value) == (0, 0) || block == 0xffff) {
        rows.pop();
    }
    rows.retain(|&(block, _)| block != 0xffff);
    rows
}

fn erase_table(builder: &mut Builder, reply: &[u8]) {
    let source = builder.source().to_owned();
    for (block, erases_of_block) in rows(reply) {
        if erases_of_block == 0xffff {
            let meaning = erases(Area::Global, Stat::Max);
            let source = format!("{source}, block {block}");
            builder.flag(&meaning, "0xffff", "a count: all bits set means unset or overflowed", source);
            continue;
        }
        builder.health().blocks.push(BlockWear { block, erases: Some(erases_of_block), cell: None });
    }
}

fn type_table(builder: &mut Builder, reply: &[u8]) {
    builder.note("block types come from one source: any type but 0 is SLC");
    for (block, kind) in rows(reply) {
        let cell = Some(if kind == 0 { Cell::Multi } else { Cell::Slc });
        builder.health().blocks.push(BlockWear { block, erases: None, cell });
    }
}

/// Eight bytes a record: block and page little-endian, type 0x01 or 0x10 erase, 0x02 or 0x11 program, plane.
fn bad_block_records(builder: &mut Builder, reply: &[u8]) {
    let (mut by_erase, mut by_program) = (0, 0);
    for record in reply.chunks_exact(8) {
        match record.get(4) {
            Some(0x01 | 0x10) => by_erase += 1,
            Some(0x02 | 0x11) => by_program += 1,
            _ => break,
        }
    }
    let source = builder.source().to_owned();
    let records = |kind: &str| format!("{source}, records of 8 bytes, {kind}");
    builder.put(
        &bad_blocks("listed_bad_blocks_by_erase"),
        Value::Integer(by_erase),
        records("type 01 or 10"),
        SingleSource,
    );
    builder.put(
        &bad_blocks("listed_bad_blocks_by_program"),
        Value::Integer(by_program),
        records("type 02 or 11"),
        SingleSource,
    );
}

/// Decodes a reply of a Micron SD card.
pub(super) fn decode_sd(reply: &[u8], argument: Option<u32>) -> Result<VendorHealth, Refusal> {
    let mut builder = Builder::new(Family::MicronSd, reply_source(Family::MicronSd, argument));
    read(&mut builder, reply, &SD);
    Ok(builder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maker_health::decode_reply;

    fn words(values: &[(usize, u16)]) -> [u8; 512] {
        let mut reply = [0u8; 512];
        for &(at, value) in values {
            reply[at..at + 2].copy_from_slice(&value.to_be_bytes());
        }
        reply
    }

    fn micron(argument: u32, reply: &[u8]) -> VendorHealth {
        decode_reply(Some(Family::Micron), Some(argument), reply).unwrap()
    }

    #[test]
    fn bad_and_spare_blocks_give_the_used_share() {
        let health = micron(0x11, &words(&[(0, 9), (2, 9), (4, 72)]));
        assert_eq!(health.number("initial_bad_blocks"), Some(9.0));
        assert_eq!(health.number("later_bad_blocks"), Some(9.0));
        assert_eq!(health.number("spare_blocks_total"), Some(72.0));
        assert_eq!(health.number("spare_used_percent"), Some(25.0));
        assert_eq!(health.reading("spare_blocks_total").unwrap().confidence, Uncertain);
        assert_eq!(health.reading("initial_bad_blocks").unwrap().confidence, Documented);
        let source = &health.reading("initial_bad_blocks").unwrap().source;
        assert_eq!(source, "CMD56 argument 0x00000011, bytes 0..2, big-endian");
    }

    #[test]
    fn more_bad_than_spare_blocks_is_flagged() {
        let health = micron(0x11, &words(&[(0, 60), (2, 20), (4, 72)]));
        assert_eq!((health.number("spare_blocks_total"), health.number("spare_used_percent")), (None, None));
        assert_eq!(health.implausible[0].name, "spare_blocks_total");
        assert_eq!(health.number("initial_bad_blocks"), Some(60.0));
        let health = micron(0x11, &words(&[(0, 0xffff), (2, 1), (4, 72)]));
        assert_eq!(health.reading("initial_bad_blocks"), None);
        assert_eq!(health.implausible[0].found, "0xffff");
    }

    #[test]
    fn erase_counts_by_area_report_a_conflict() {
        let health = micron(0x21, &words(&[(0, 1), (2, 1689), (4, 619)]));
        let global = health.area(Area::Global).unwrap();
        let values: Vec<_> = global.readings().map(|reading| reading.value.as_i64().unwrap()).collect();
        assert_eq!(values, [1, 1689, 619]);
        let health = micron(0x23, &words(&[(0, 1), (2, 687), (4, 567)]));
        let area = health.area(Area::Enhanced).unwrap();
        assert_eq!(area.max.as_ref().unwrap().confidence, Uncertain);
        assert!(health.notes.iter().any(|note| note.contains("emmcparm 1.0")));
        assert!(micron(0x25, &words(&[(0, 1), (2, 9), (4, 5)])).area(Area::Mlc).is_some());
    }

    #[test]
    fn the_erase_table_ends_where_the_padding_starts() {
        let mut reply =
            words(&[(0, 74), (2, 96), (4, 49), (6, 95), (256, 1689), (258, 1654), (260, 1689), (262, 0xffff)]);
        let health = micron(0x0385, &reply);
        let rows: Vec<_> = health.blocks.iter().map(|row| (row.block, row.erases.unwrap())).collect();
        assert_eq!(rows, [(74, 1689), (96, 1654), (49, 1689)]);
        assert_eq!(health.implausible.len(), 1);
        reply[8..256].fill(0xff);
        assert_eq!(micron(0x85, &reply).blocks.len(), 3);
    }

    #[test]
    fn both_arguments_give_the_smart_report() {
        let mut reply = words(&[(0, 12), (2, 1), (4, 60)]);
        reply[0x1b] = 100;
        reply[0x17] = 200;
        reply[0x2f] = 9;
        reply[0x30] = 77;
        reply[0x44] = 5;
        let health = micron(0x39, &reply);
        assert_eq!(health.number("power_cycles"), Some(77.0));
        assert_eq!(health.number("written_bytes"), Some(500_000_000.0));
        assert_eq!(health.number("spare_blocks_left"), Some(60.0));
        let mlc = health.area(Area::Mlc).unwrap();
        assert_eq!(mlc.average.as_ref().unwrap().value, Value::Integer(100));
        assert_eq!(micron(0x0d, &reply).number("power_cycles"), Some(f64::from(77 << 24)));
    }

    #[test]
    fn an_unknown_argument_is_refused() {
        for argument in [0xa7, 0x13, 0x0100_0085, u32::MAX] {
            let refused = decode_reply(Some(Family::Micron), Some(argument), &words(&[(0, 1)]));
            assert!(matches!(refused, Err(Refusal::NotHealth { .. })), "{argument:#x}");
        }
        assert!(decode_reply(Some(Family::Micron), None, &words(&[(0, 1)])).is_err());
    }

    #[test]
    fn bad_block_records_are_counted_by_kind() {
        let mut reply = [0u8; 512];
        for (record, kind) in [0x01, 0x10, 0x11].into_iter().enumerate() {
            reply[8 * record + 4] = kind;
        }
        let health = micron(0x0001_0281, &reply);
        assert_eq!(health.number("listed_bad_blocks_by_erase"), Some(2.0));
        assert_eq!(health.number("listed_bad_blocks_by_program"), Some(1.0));
    }
}
