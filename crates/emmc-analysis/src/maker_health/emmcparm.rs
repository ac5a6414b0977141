//! Micron's emmcparm output: 4.x with a `Feature name` above each table, 1.0 without.
//!
//! Its labels are the maker's own, so areas and spare blocks are certain here where the raw replies leave them open.

use super::builder::Builder;
use super::meaning::{
    FIRMWARE, INITIAL_BAD_BLOCKS, LATER_BAD_BLOCKS, Meaning, SPARE_BLOCKS_TOTAL, SPARE_USED_PERCENT, Stat, count,
    erases, identity,
};
use super::model::{Area, BlockWear, Cell, Confidence, Value, VendorHealth};
use super::{Family, Refusal};

use Confidence::{Documented, SingleSource, Uncertain};

const NUMBERS: [(&str, Meaning, Confidence); 5] = [
    ("Total spare block count", SPARE_BLOCKS_TOTAL, Documented),
    ("Total initial bad block count", INITIAL_BAD_BLOCKS, Documented),
    ("Total later bad block count", LATER_BAD_BLOCKS, Documented),
    ("Self Refresh Loop Count", count("self_refresh_loops"), SingleSource),
    ("Refresh Count", count("block_refreshes"), SingleSource),
];

const TEXTS: [(&str, Meaning); 3] =
    [("Name", identity("product")), ("Manuf ID", identity("manufacturer_id")), ("PRV", FIRMWARE)];

/// Erase counts in three columns; 4.x separates them by bars, 1.0 by blanks.
const AREAS: [(&str, Area); 5] = [
    ("Global erase count", Area::Global),
    ("Enhanced area (SLC)", Area::Enhanced),
    ("Normal area (MLC)", Area::Mlc),
    ("SLC area erase count Min/Max/Ave", Area::Enhanced),
    ("MLC area erase count Min/Max/Ave", Area::Mlc),
];

/// Reads emmcparm's output: any of its tables, in any order, repeated or not.
///
/// Errors: the text holds none of its health tables.
pub fn parse_emmcparm(text: &[u8]) -> Result<VendorHealth, Refusal> {
    let text = String::from_utf8_lossy(text);
    let mut builder = Builder::new(Family::Micron, "emmcparm text");
    let mut seen = Seen::default();
    let mut in_blocks = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("Block#") {
            in_blocks = true;
        } else if let Some(row) = in_blocks.then(|| block(line)).flatten() {
            put_block(&mut builder, row);
            seen.health = true;
        } else {
            in_blocks &= line.is_empty() || line == "...";
            read_line(&mut builder, line, &mut seen);
        }
    }
    if !seen.health {
        return Err(Refusal::not_health(match seen.emmcparm {
            true => "this emmcparm output has no health tables",
            false => "this is not emmcparm output",
        }));
    }
    if let Some(percent) = seen.spare_used {
        spare_used(&mut builder, percent, seen.version_4);
    }
    Ok(builder.finish())
}

/// What the text is, as far as it was read.
#[derive(Default)]
struct Seen {
    emmcparm: bool,
    version_4: bool,
    health: bool,
    spare_used: Option<f64>,
}

fn read_line(builder: &mut Builder, line: &str, seen: &mut Seen) {
    let Some((key, value)) = line.split_once([':', '=']) else { return };
    let (key, value) = (key.trim(), value.trim());
    seen.version_4 |= key == "Feature name";
    seen.emmcparm |= key == "Feature name" || key == "EXT_CSD revision [192]" || key.starts_with("FIRMWARE_VERSION");
    let source = || format!("emmcparm, \"{key}\"");
    if let Some((_, meaning)) = TEXTS.iter().find(|(name, _)| *name == key) {
        builder.put(meaning, Value::Text(value.to_owned()), source(), Documented);
    } else if let Some((_, meaning, confidence)) = NUMBERS.iter().find(|(name, ..)| *name == key) {
        let Ok(number) = value.parse::<u32>() else { return };
        seen.health = true;
        put_count(builder, meaning, number, source(), *confidence);
    } else if key == "Used spare blocks[%]" {
        // Printed with two decimals: with fewer the value was cut.
        let whole = value.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 2);
        let Some(percent) = value.parse::<f64>().ok().filter(|_| whole) else { return };
        seen.health = true;
        seen.spare_used.get_or_insert(percent);
    } else if let Some((_, area)) = AREAS.iter().find(|(name, _)| *name == key) {
        let numbers: Vec<u32> =
            value.split(['|', ' ', '\t']).filter(|cell| !cell.is_empty()).map_while(|cell| cell.parse().ok()).collect();
        let [min, max, average] = numbers[..] else { return };
        seen.health = true;
        for (stat, number) in [(Stat::Min, min), (Stat::Max, max), (Stat::Average, average)] {
            put_count(builder, &erases(*area, stat), number, source(), Documented);
        }
    }
}

/// The reply's counters have 16 bits: all bits set is not a count.
fn put_count(builder: &mut Builder, meaning: &Meaning, number: u32, source: String, confidence: Confidence) {
    match number {
        0xffff | u32::MAX => {
            builder.flag(meaning, number.to_string(), "a count: all bits set means unset or overflowed", source);
        }
        number => builder.put(meaning, Value::Integer(i64::from(number)), source, confidence),
    }
}

fn spare_used(builder: &mut Builder, percent: f64, version_4: bool) {
    let source = "emmcparm, \"Used spare blocks[%]\"".to_owned();
    if version_4 || percent == 0.0 {
        return builder.put(&SPARE_USED_PERCENT, Value::Decimal(percent), source, Documented);
    }
    // 1.0 divides and prints without the factor of 100.
    builder.put(&SPARE_USED_PERCENT, Value::Decimal(percent * 100.0), source + ", x 100", Uncertain);
    builder.note("emmcparm 1.0 prints the share of used spare blocks as a fraction under the name of a percentage");
}

fn block(line: &str) -> Option<BlockWear> {
    let mut cells = line.split_whitespace();
    let (block, erases) = (cells.next()?.parse().ok()?, cells.next()?.parse().ok()?);
    let cell = match cells.next() {
        Some(kind) if kind.eq_ignore_ascii_case("SLC") => Some(Cell::Slc),
        Some(kind) if kind.eq_ignore_ascii_case("MLC") || kind.eq_ignore_ascii_case("TLC") => Some(Cell::Multi),
        _ => None,
    };
    Some(BlockWear { block, erases: Some(erases), cell })
}

fn put_block(builder: &mut Builder, row: BlockWear) {
    match row.erases {
        Some(0xffff | u32::MAX) => {
            let source = format!("emmcparm, block {}", row.block);
            let expected = "a count: all bits set means unset or overflowed";
            builder.flag(&erases(Area::Global, Stat::Max), "all bits set", expected, source);
        }
        _ => builder.health().blocks.push(row),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");

    fn seed(name: &str) -> VendorHealth {
        let text = std::fs::read(format!("{TESTDATA}/seeds_console/emmcparm_{name}.txt")).unwrap();
        parse_emmcparm(&text).unwrap()
    }

    fn values(health: &VendorHealth, area: Area) -> Vec<i64> {
        health.area(area).unwrap().readings().map(|reading| reading.value.as_i64().unwrap()).collect()
    }

    #[test]
    fn the_board_vendors_spare_and_bad_blocks() {
        let health = seed("spare_block");
        assert_eq!(health.reading("spare_blocks_total").unwrap().value, Value::Integer(72));
        assert_eq!(health.reading("spare_used_percent").unwrap().value, Value::Decimal(0.0));
        let health = seed("bad_block");
        assert_eq!(health.reading("initial_bad_blocks").unwrap().value, Value::Integer(0));
        assert_eq!(health.reading("later_bad_blocks").unwrap().value, Value::Integer(0));
    }

    #[test]
    fn the_board_vendors_erase_counts() {
        let health = seed("erase_count");
        assert_eq!(values(&health, Area::Global), [1, 1689, 619]);
        assert_eq!(values(&health, Area::Enhanced), [1, 687, 567]);
        assert_eq!(values(&health, Area::Mlc), [1, 1689, 1441]);
        assert!(health.implausible.is_empty());
        assert_eq!(health.area(Area::Mlc).unwrap().max.as_ref().unwrap().confidence, Documented);
    }

    #[test]
    fn the_board_vendors_table_of_blocks() {
        let rows: Vec<_> = seed("sect_count").blocks.iter().map(|row| (row.block, row.erases, row.cell)).collect();
        let expected = [(74, 1689), (96, 1654), (49, 1689), (95, 1689)];
        assert_eq!(rows, expected.map(|(block, erases)| (block, Some(erases), None)));
    }

    #[test]
    fn four_texts_merge_into_one_report() {
        let mut health = seed("spare_block");
        for name in ["bad_block", "erase_count", "sect_count"] {
            health.merge(seed(name)).unwrap();
        }
        assert_eq!((health.areas.len(), health.blocks.len(), health.source.as_str()), (3, 4, "emmcparm text"));
    }

    #[test]
    fn identification_alone_gives_no_health() {
        for file in ["emmcparm_V.txt", "emmcparm_I_excerpt.txt"] {
            let text = std::fs::read(format!("{TESTDATA}/emmcparm/cisco-hynix-hbg4e/{file}")).unwrap();
            let Err(Refusal::NotHealth { why }) = parse_emmcparm(&text) else { panic!("{file}") };
            assert!(why.contains("no health tables"), "{why}");
        }
        assert!(matches!(parse_emmcparm(b""), Err(Refusal::NotHealth { .. })));
        let utf16: Vec<u8> = "Total spare block count: 72".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert!(matches!(parse_emmcparm(&utf16), Err(Refusal::NotHealth { .. })));
    }

    #[test]
    fn version_1_prints_a_fraction_and_other_columns() {
        let text =
            "Total spare block count: 72 \nUsed spare blocks[%]: 0.25 \nMLC area erase count Min/Max/Ave: 1 90 40 \n";
        let health = parse_emmcparm(text.as_bytes()).unwrap();
        assert_eq!(health.reading("spare_used_percent").unwrap().value, Value::Decimal(25.0));
        assert_eq!(health.reading("spare_used_percent").unwrap().confidence, Uncertain);
        assert_eq!(values(&health, Area::Mlc), [1, 90, 40]);
    }

    #[test]
    fn impossible_figures_are_flagged() {
        let text = "Feature name: Spare Block\nUsed spare blocks[%]: 199.00\nTotal later bad block count: 65535\n\
            Global erase count: 9 | 3 | 5\n";
        let health = parse_emmcparm(text.as_bytes()).unwrap();
        assert_eq!(health.readings().count(), 0);
        assert_eq!(health.implausible.len(), 5);
    }
}
