//! Vendor health as sections: one for each report, and one for refused reports.

use emmc_analysis::maker_health::{AreaWear, BlockWear, Reading, Refusal, VendorHealth};
use emmc_analysis::{Finding, Severity};

use crate::{Align, Cell, Chart, Document, KeyValue, Section, Table, Tone};

/// Rows of a per-block table in text; the chart shows them all.
const BLOCK_ROWS: usize = 20;
/// Blocks in the chart: more than a real part has, but few enough for a browser.
const BLOCKS_DRAWN: usize = 32_768;

/// Every decoded report, and every refused one with its reason.
pub fn vendor_sections(reports: &[VendorHealth], refused: &[Refusal], document: &mut Document) {
    for (index, report) in reports.iter().enumerate() {
        let id = if index == 0 { "vendor".to_owned() } else { format!("vendor-{}", index + 1) };
        let section = document.section(id, "Vendor health");
        section
            .push(vec![KeyValue::new("card", report.label.as_str()), KeyValue::new("source", report.source.as_str())]);
        readings(report, section);
        areas(&report.areas, section);
        blocks(&report.blocks, section);
        implausible(report, section);
        for note in &report.notes {
            section.note(Tone::Notice, note.as_str());
        }
    }
    if !refused.is_empty() {
        let section = document.section("vendor-refused", "Vendor reports that were not decoded");
        let findings = refused.iter().map(|refusal| {
            Finding::new(Severity::Unknown, "vendor-refused", refusal.to_string())
                .advice("the report was not used; the card's health is unknown, not bad")
        });
        section.push(findings.collect::<Vec<_>>());
    }
}

fn readings(report: &VendorHealth, section: &mut Section) {
    let mut table = Table::new([
        ("what", Align::Left),
        ("value", Align::Right),
        ("from", Align::Left),
        ("confidence", Align::Left),
    ]);
    let groups = [&report.life, &report.spares, &report.bad_blocks, &report.counters, &report.identity];
    for reading in groups.into_iter().flatten() {
        table.row([
            Cell::from(reading.name.replace('_', " ")),
            Cell::from(value(reading)),
            Cell::new(reading.source.as_str(), Tone::Muted),
            Cell::new(reading.confidence.to_string(), Tone::Muted),
        ]);
    }
    if !table.rows.is_empty() {
        section.push(table);
    }
}

fn value(reading: &Reading) -> String {
    match reading.unit {
        Some("percent") => format!("{} %", reading.value),
        // The name contains the unit.
        Some("count") | None => reading.value.to_string(),
        Some(unit) => format!("{} {unit}", reading.value),
    }
}

fn areas(list: &[AreaWear], section: &mut Section) {
    if list.is_empty() {
        return;
    }
    let mut table = Table::new([
        ("erase counts", Align::Left),
        ("min", Align::Right),
        ("max", Align::Right),
        ("average", Align::Right),
        ("total", Align::Right),
        ("rated", Align::Right),
        ("confidence", Align::Left),
    ]);
    for wear in list {
        let all = [&wear.min, &wear.max, &wear.average, &wear.total, &wear.rated];
        let figures = all.map(|reading| reading.as_ref().map_or("-".to_owned(), |reading| reading.value.to_string()));
        let confidence =
            all.into_iter().flatten().next().map_or(String::new(), |reading| reading.confidence.to_string());
        let mut row = vec![Cell::from(wear.area.to_string())];
        row.extend(figures.map(Cell::from));
        row.push(Cell::new(confidence, Tone::Muted));
        table.row(row);
    }
    section.push(table);
}

fn blocks(list: &[BlockWear], section: &mut Section) {
    let mut worst: Vec<(u32, u32)> = list.iter().filter_map(|block| Some((block.block, block.erases?))).collect();
    if worst.is_empty() {
        return;
    }
    let mut text: Vec<String> = Vec::new();
    worst.sort_by_key(|(block, erases)| (std::cmp::Reverse(*erases), *block));
    for (block, erases) in worst.iter().take(BLOCK_ROWS) {
        text.push(format!("block {block:>6}  {erases:>8} erases"));
    }
    if worst.len() > BLOCK_ROWS {
        text.push(format!("and {} more blocks", worst.len() - BLOCK_ROWS));
    }
    let mut drawn: Vec<_> = worst.into_iter().take(BLOCKS_DRAWN).collect();
    drawn.sort_by_key(|(block, _)| *block);
    let values: Vec<_> =
        drawn.iter().map(|(block, erases)| serde_json::json!({"block": block, "erases": erases})).collect();
    section.push(Chart {
        title: "Erase counts block by block".into(),
        description: "Erase count of each listed block; even heights mean that wear levelling works".into(),
        spec: serde_json::json!({
            "data": {"values": values},
            "height": 220,
            "mark": {"type": "bar", "tooltip": true},
            "encoding": {
                "x": {"field": "block", "type": "ordinal", "title": "block", "axis": {"labelOverlap": true}},
                "y": {"field": "erases", "type": "quantitative", "title": "erases"}
            }
        }),
        text,
    });
}

fn implausible(report: &VendorHealth, section: &mut Section) {
    let findings: Vec<Finding> = report
        .implausible
        .iter()
        .map(|one| {
            let area = one.area.map_or(String::new(), |area| format!(" of {area}"));
            let what = format!("{}{area} is impossible: {}", one.name.replace('_', " "), one.found);
            Finding::new(Severity::Unknown, "implausible", what)
                .evidence(format!("expected {}", one.expected))
                .evidence(one.source.as_str())
        })
        .collect();
    if !findings.is_empty() {
        section.push(findings);
    }
}

#[cfg(test)]
mod tests {
    use emmc_analysis::maker_health::{Confidence, Value};

    use super::*;
    use crate::Block;

    #[test]
    fn units_are_printed_as_usual() {
        for (number, unit, shown) in [
            (Value::Decimal(0.0), Some("percent"), "0.00 %"),
            (Value::Integer(72), Some("blocks"), "72 blocks"),
            (Value::Integer(55), Some("count"), "55"),
            (Value::Text("SM2706".into()), None, "SM2706"),
        ] {
            let source = String::new();
            let reading = Reading { name: "x", value: number, unit, source, confidence: Confidence::Documented };
            assert_eq!(value(&reading), shown);
        }
    }

    #[test]
    fn a_chart_of_too_many_blocks_draws_the_worst() {
        let wear = |block: u32| BlockWear { block, erases: Some(block), cell: None };
        let list: Vec<_> = (0..BLOCKS_DRAWN as u32 + 10).map(wear).collect();
        let mut document = Document::new("x");
        blocks(&list, document.section("vendor", "Vendor health"));
        let Some(Block::Chart(chart)) = document.sections[0].blocks.first() else { panic!("no chart") };
        let drawn = chart.spec["data"]["values"].as_array().unwrap();
        assert_eq!((drawn.len(), &drawn[0]["block"]), (BLOCKS_DRAWN, &serde_json::json!(10)));
        assert_eq!(chart.text.last().unwrap(), &format!("and {} more blocks", BLOCKS_DRAWN + 10 - BLOCK_ROWS));
    }
}
