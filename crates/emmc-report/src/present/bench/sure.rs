//! Confidence intervals of a bench, and the card's state.

use emmc_workload::{BenchResult, Interval, Latency, Measurement, Outcome};

use super::number;
use crate::{Align, Cell, Document, KeyValue, Table, Tone};

/// The maximum number of measurements with a row each; of more only the widest intervals are listed.
const ROWS_MAX: usize = 24;
/// A speed after warm-up that differs by less gets no line.
const WARM_UP: f64 = 0.05;

/// The card's state before and after.
pub(super) fn state(result: &BenchResult) -> KeyValue {
    let (before, after) = (result.outcome.state_before.describe(), result.outcome.state_after.describe());
    let mut told = if before == after { "the same after".into() } else { format!("after: {after}") };
    let filesystem = result.context.filesystem.as_ref().filter(|found| found.size_bytes > 0);
    if let Some(found) = filesystem.filter(|_| result.outcome.state_before.is_unknown()) {
        let free = found.available_bytes as f64 / found.size_bytes as f64 * 100.0;
        told += &format!("; {free:.0} % of its filesystem is free, which the card may not know");
    }
    KeyValue::new("card's state", before).note(told)
}

/// Intervals of speeds and percentiles, each measurement's state, and warm-ups.
pub(super) fn sure(outcome: &Outcome, document: &mut Document) {
    let told: Vec<&Measurement> = outcome.measurements.iter().filter(|cell| is_sure(cell)).collect();
    if told.is_empty() {
        return;
    }
    let section = document.section("sure", "Confidence");
    let text = "95 % confidence intervals are in parentheses; with too few requests there is none. Speeds exclude \
                the flush at the end, which happens only once.";
    section.paragraph(text);
    match told.len() <= ROWS_MAX {
        true => section.push(table(&told)),
        false => section.push(widest(&told)),
    };
    for cell in told {
        if let Some(warm_up) = &cell.warm_up {
            if (warm_up.mb_per_s / unflushed(cell).max(1e-9) - 1.0).abs() > WARM_UP {
                let line = match warm_up.is_settled {
                    true => format!(
                        "{}: {} MB/s after a warm-up of {} requests ({:.2} s)",
                        name(cell),
                        number(warm_up.mb_per_s),
                        warm_up.requests,
                        warm_up.time_s
                    ),
                    false => {
                        format!("{}: the speed still changed in the second half; measure longer", name(cell))
                    }
                };
                section.note(Tone::Notice, line);
            }
        }
    }
}

fn is_sure(cell: &Measurement) -> bool {
    cell.mb_per_s_interval.is_some() || latency(cell).is_some_and(|latency| latency.intervals.p50.is_some())
}

fn latency(cell: &Measurement) -> Option<&Latency> {
    [&cell.read_us, &cell.write_us, &cell.trim_us].into_iter().find_map(Option::as_ref)
}

fn name(cell: &Measurement) -> String {
    if cell.row.is_empty() { cell.column.clone() } else { format!("{} {}", cell.row, cell.column) }
}

/// The speed without flushes, like its interval. Unit: MB a second.
fn unflushed(cell: &Measurement) -> f64 {
    let times = cell.time_s.zip(cell.flush_s).map(|(time, flush)| (time, time - flush));
    times.filter(|(_, rest)| *rest > 0.0).map_or(cell.mb_per_s, |(time, rest)| cell.mb_per_s * time / rest)
}

/// A value and its interval.
pub(super) fn with(value: f64, interval: Option<Interval>) -> String {
    match interval {
        Some(found) => format!("{} ({} to {})", number(value), number(found.low), number(found.high)),
        None => number(value),
    }
}

fn table(cells: &[&Measurement]) -> Table {
    let titles = ["what", "state before", "speed, MB/s", "p50, us", "p99, us", "p99.9, us"];
    let aligns = [Align::Left, Align::Left, Align::Right, Align::Right, Align::Right, Align::Right];
    let mut table = Table::new(titles.into_iter().zip(aligns));
    let twice = |cell: &Measurement| cells.iter().filter(|other| name(other) == name(cell)).count() > 1;
    for cell in cells {
        let what = if twice(cell) { format!("{}: {}", cell.table, name(cell)) } else { name(cell) };
        let state = cell.state.as_ref().map_or(String::new(), |state| state.describe());
        let ranks = match latency(cell) {
            Some(found) => {
                let sure = &found.intervals;
                [with(found.p50, sure.p50), with(found.p99, sure.p99), with(found.p999, sure.p999)]
            }
            None => Default::default(),
        };
        let line = [what, state, with(unflushed(cell), cell.mb_per_s_interval)];
        table.row(line.into_iter().chain(ranks).map(Cell::from));
    }
    table
}

/// A value of a measurement, with its interval if it has one.
type Sure = fn(&Measurement) -> Option<(f64, Option<Interval>)>;

/// The widest interval of each kind, and the median.
fn widest(cells: &[&Measurement]) -> Vec<KeyValue> {
    let kinds: [(&str, Sure); 4] = [
        ("speeds", |cell| Some((unflushed(cell), cell.mb_per_s_interval))),
        ("p50", |cell| latency(cell).map(|found| (found.p50, found.intervals.p50))),
        ("p99", |cell| latency(cell).map(|found| (found.p99, found.intervals.p99))),
        ("p99.9", |cell| latency(cell).map(|found| (found.p999, found.intervals.p999))),
    ];
    let half = |sure: Sure, cell: &Measurement| {
        let (value, interval) = sure(cell)?;
        interval.map(|found| (found.high - found.low) / 2.0 / value.max(1e-9) * 100.0)
    };
    kinds
        .into_iter()
        .filter_map(|(kind, sure)| {
            let mut widths: Vec<(f64, String)> =
                cells.iter().filter_map(|cell| Some((half(sure, cell)?, name(cell)))).collect();
            widths.sort_by(|left, right| left.0.total_cmp(&right.0));
            let (most, at) = widths.last()?;
            let value = format!("median +-{} %, at most +-{} %", number(widths[widths.len() / 2].0), number(*most));
            Some(KeyValue::new(kind, value).note(format!("{} of {}; widest: {at}", widths.len(), cells.len())))
        })
        .collect()
}
