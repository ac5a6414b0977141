//! The report of a bench.

mod context;
mod grids;
mod speed;
mod study;
mod sure;

pub use study::with_benches;

use emmc_analysis::Finding;
use emmc_units::Bytes;
use emmc_workload::{BenchResult, Measurement, Outcome, Pivot};

use crate::{Align, Block, Cell, Document, Drawing, KeyValue, Matrix, Picture, Table, Tone};

/// A table with this number of rows and columns, or more, is drawn.
const MATRIX_MIN: usize = 3;

/// The report of a bench.
pub fn bench(result: &BenchResult, findings: &[Finding]) -> Document {
    let outcome = &result.outcome;
    let mut document = Document::new(format!("Bench {} of {}", outcome.suite, result.target));
    document.subtitle = Some(outcome.about.clone());
    let section = document.section("summary", "Summary");
    section.push(vec![
        KeyValue::new("target", format!("{}, {}", Bytes(result.size_bytes).rounded(), result.engine)),
        KeyValue::new("written", Bytes(outcome.written_bytes).rounded())
            .note(format!("{:.2} times its size", outcome.written_bytes as f64 / result.size_bytes.max(1) as f64)),
        KeyValue::new("read", Bytes(outcome.read_bytes).rounded()),
        KeyValue::new("time", format!("{:.2} s", outcome.time_s)),
        sure::state(result),
    ]);
    // A remark that is also a finding is not repeated.
    let is_new = |remark: &&String| findings.is_empty() || !remark.starts_with("Verdict:");
    for remark in outcome.remarks.iter().filter(is_new) {
        section.note(Tone::Notice, remark.clone());
    }
    if !findings.is_empty() {
        document.section("findings", "Findings").push(findings.to_vec());
    }
    context::doubts(&result.doubts, &mut document);
    tables(outcome, &mut document);
    speed::causes(&result.causes, &mut document);
    context::context(&result.context, &mut document);
    document
}

/// The outcome of one suite of several in a result.
pub(super) fn outcome(outcome: &Outcome, document: &mut Document) {
    let section = document.section(grids::anchor(&outcome.suite), outcome.suite.clone());
    section.paragraph(outcome.about.clone());
    for remark in &outcome.remarks {
        section.note(Tone::Notice, remark.clone());
    }
    tables(outcome, document);
}

/// All tables of an outcome.
fn tables(outcome: &Outcome, document: &mut Document) {
    for pivot in &outcome.tables {
        let section = document.section(grids::anchor(&pivot.table), pivot.table.clone());
        section.push(pivot_block(outcome, pivot, pivot.caption.clone()));
    }
    grids::grids(outcome, document);
    figures(outcome, document);
    sure::sure(outcome, document);
}

fn figures(outcome: &Outcome, document: &mut Document) {
    if !outcome.figures.is_empty() {
        document.section("figures", "Figures").push(figure_rows(outcome));
    }
}

fn figure_rows(outcome: &Outcome) -> Vec<KeyValue> {
    outcome
        .figures
        .iter()
        .map(|figure| {
            let value = match (figure.value, &figure.interval) {
                (None, _) => Cell::new("cannot tell", Tone::Muted),
                (Some(value), None) => Cell::from(format!("{} {}", number(value), figure.unit)),
                (Some(value), Some(interval)) => {
                    let (low, high) = (number(interval.low), number(interval.high));
                    Cell::from(format!("{} {} ({low} to {high})", number(value), figure.unit))
                }
            };
            KeyValue::new(figure.name.clone(), value).note(figure.note.clone())
        })
        .collect()
}

/// Rows and columns in the order of measurement.
fn pivot_table(outcome: &Outcome, pivot: &Pivot) -> Table {
    let of_table = || outcome.measurements.iter().filter(|measurement| measurement.table == pivot.table);
    let mut columns: Vec<&str> = Vec::new();
    let mut rows: Vec<&str> = Vec::new();
    for measurement in of_table() {
        for (names, name) in [(&mut columns, &measurement.column), (&mut rows, &measurement.row)] {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
    }
    let titles = std::iter::once((pivot.rows.as_str(), Align::Right));
    let mut table = Table::new(titles.chain(columns.iter().map(|column| (*column, Align::Right))));
    for row in rows {
        let cell = |column: &&str| {
            let found = of_table().find(|measurement| measurement.row == row && measurement.column == **column);
            Cell::from(found.map_or(String::new(), |measurement| number(figure(measurement, &pivot.unit))))
        };
        table.row(std::iter::once(Cell::from(row)).chain(columns.iter().map(cell)));
    }
    table
}

/// A table of measurements; drawn as a matrix if it has several rows and columns of numbers, like iozone's.
fn pivot_block(outcome: &Outcome, pivot: &Pivot, caption: String) -> Block {
    let table = pivot_table(outcome, pivot).caption(caption);
    let columns: Vec<String> = table.columns.iter().skip(1).map(|column| column.title.clone()).collect();
    let rows: Vec<String> = table.rows.iter().filter_map(|row| row.first()).map(|cell| cell.text.clone()).collect();
    let is_numbered = rows.iter().all(|row| row.parse::<f64>().is_ok());
    if rows.len() < MATRIX_MIN || columns.len() < MATRIX_MIN || !is_numbered {
        return table.into();
    }
    let found = |row: &String, column: &String| {
        let mut cells = outcome.measurements.iter().filter(|cell| cell.table == pivot.table);
        let cell = cells.find(|cell| cell.row == *row && cell.column == *column)?;
        Some(figure(cell, &pivot.unit))
    };
    let values = rows.iter().map(|row| columns.iter().map(|column| found(row, column)).collect()).collect();
    let matrix = Matrix { rows_title: pivot.rows.clone(), rows, columns, unit: pivot.unit.clone(), values };
    Picture {
        title: format!("{}, {}", pivot.table, pivot.unit),
        caption: pivot.caption.clone(),
        drawing: Drawing::Matrix(matrix),
        table,
    }
    .into()
}

/// The figure of a measurement in a given unit.
fn figure(measurement: &Measurement, unit: &str) -> f64 {
    let latency = [&measurement.read_us, &measurement.write_us, &measurement.trim_us].into_iter().flatten().next();
    let mean_us = latency.map_or(0.0, |latency| latency.mean);
    match unit {
        "KiB/s" => measurement.mb_per_s * 1e6 / 1024.0,
        "MiB/s" => measurement.mb_per_s * 1e6 / 1_048_576.0,
        "IOPS" => measurement.iops,
        "us" => mean_us,
        "ms" => mean_us / 1e3,
        _ => measurement.mb_per_s,
    }
}

/// A number with three significant digits.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
