//! The measurements of a card, as parts of its study: the speed and its limits, then each other suite in a section of
//! its own.

use emmc_workload::{BenchResult, Measurement, Outcome, Pivot};

use super::{figure, figure_rows, grids, pivot_block, speed};
use crate::{Bars, Document, Section, Tone};

/// A table with at most this many cells is drawn as bars.
const BARS_MAX: usize = 16;

/// A study with sections on measurements, before the capacity.
pub fn with_benches(mut document: Document, speed: Option<&BenchResult>, others: &[BenchResult]) -> Document {
    let place = document.sections.iter().position(|known| known.id == "capacity").unwrap_or(document.sections.len());
    if let (Some(lead), Some(bars)) = (&mut document.lead, speed.and_then(speed::bars)) {
        lead.pictures.insert(lead.pictures.len().min(1), bars);
    }
    let mut sections: Vec<Section> = speed.map(speed::section).into_iter().collect();
    for (index, result) in others.iter().enumerate() {
        let before = others[..index].iter().filter(|other| other.outcome.suite == result.outcome.suite).count();
        sections.push(section(result, before));
    }
    sections.iter_mut().for_each(|section| section.is_detail = true);
    document.sections.splice(place..place, sections);
    document
}

/// A suite's section; `before` is the number of earlier sections of the same suite.
fn section(result: &BenchResult, before: usize) -> Section {
    let outcome = &result.outcome;
    let mut id = format!("bench-{}", grids::anchor(&outcome.suite));
    if before > 0 {
        id = format!("{id}-{}", before + 1);
    }
    let mut section = Section::new(id, format!("Measured: {}", outcome.suite));
    section.paragraph(format!("{}.", outcome.about));
    for pivot in &outcome.tables {
        match bars(outcome, pivot) {
            Some(bars) => section.push(bars),
            None => {
                let title = format!("{}, {}: {}", pivot.table, pivot.unit, pivot.caption);
                section.push(pivot_block(outcome, pivot, title))
            }
        };
    }
    for grid in &outcome.grids {
        section.push(grids::block(grid, &format!("{}: {}", grid.name, grid.caption)));
    }
    if !outcome.figures.is_empty() {
        section.push(figure_rows(outcome));
    }
    for remark in &outcome.remarks {
        section.note(Tone::Notice, remark.clone());
    }
    for doubt in &result.doubts {
        section.note(Tone::Warn, format!("{}: {}", doubt.what, doubt.evidence));
    }
    section.note(Tone::Muted, speed::measured_on(result));
    section
}

/// A table of a few named items, e.g. states of a target; none if its rows are numbers, such as record sizes.
fn bars(outcome: &Outcome, pivot: &Pivot) -> Option<Bars> {
    let found: Vec<&Measurement> = outcome.measurements.iter().filter(|found| found.table == pivot.table).collect();
    let is_named = found.iter().all(|found| found.row.parse::<f64>().is_err());
    if found.is_empty() || found.len() > BARS_MAX || !is_named {
        return None;
    }
    let mut columns: Vec<&str> = Vec::new();
    for found in &found {
        if !columns.contains(&found.column.as_str()) {
            columns.push(&found.column);
        }
    }
    let mut bars = Bars::rows(pivot.table.clone(), pivot.unit.clone());
    // Compared values stand together: all rows of a column.
    for column in columns {
        let rows = found.iter().filter(|found| found.column == column);
        bars.items.extend(rows.map(|row| {
            let value = figure(row, &pivot.unit);
            speed::item(format!("{column}, {}", row.row), value, &pivot.unit, Tone::Plain)
        }));
    }
    Some(bars)
}
