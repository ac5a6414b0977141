//! A card's speed and its limits, as part of its study.

use emmc_units::Bytes;
use emmc_workload::{BenchResult, Cause, Measurement};

use super::{number, sure};
use crate::{Align, BarItem, Bars, Cell, Document, Section, Table, Tone};

/// The section on speed.
pub(super) fn section(result: &BenchResult) -> Section {
    let mut section = Section::new("speed", "Speed");
    if let Some(bars) = bars(result) {
        section.push(bars);
    }
    let small: Vec<&Measurement> = of_table(result, "speed, IOPS");
    if !small.is_empty() {
        let mut bars = Bars::rows("Small random requests", "IOPS");
        bars.items.extend(small.iter().map(|found| item(label(found), found.iops, "IOPS", Tone::Plain)));
        section.push(bars);
        section.push(latencies(&small));
    }
    if !result.causes.is_empty() {
        section.push(cause_table(&result.causes));
    }
    for doubt in &result.doubts {
        section.note(Tone::Warn, format!("{}: {}", doubt.what, doubt.evidence));
    }
    section.note(Tone::Muted, measured_on(result));
    section
}

/// Large requests, compared with the bus speed.
pub(super) fn bars(result: &BenchResult) -> Option<Bars> {
    let large: Vec<&Measurement> = of_table(result, "speed, MB/s");
    if large.is_empty() {
        return None;
    }
    let mut bars = Bars::rows("Speed of large requests", "MB/s");
    if let Some(bus) = &result.context.bus {
        let mut ceiling = item("bus limit".into(), bus.mb_per_s_max, "MB/s", Tone::Muted);
        ceiling.note = Some(format!("{}, {} lines", bus.mode, bus.lines));
        bars.items.push(ceiling);
    }
    bars.items.extend(large.iter().map(|found| item(label(found), found.mb_per_s, "MB/s", Tone::Plain)));
    Some(bars)
}

/// The target of a measurement, and its cost.
pub(super) fn measured_on(result: &BenchResult) -> String {
    let outcome = &result.outcome;
    format!(
        "Measured on {} ({}; card state before: {}) by the suite {}: {} written, {} read, {:.2} s.",
        result.target,
        result.engine,
        outcome.state_before.describe(),
        outcome.suite,
        Bytes(outcome.written_bytes).rounded(),
        Bytes(outcome.read_bytes).rounded(),
        outcome.time_s
    )
}

/// What limits the speeds, as a section of a bench.
pub(super) fn causes(causes: &[Cause], document: &mut Document) {
    if !causes.is_empty() {
        document.section("causes", "Limits").push(cause_table(causes));
    }
}

fn of_table<'a>(result: &'a BenchResult, table: &str) -> Vec<&'a Measurement> {
    result.outcome.measurements.iter().filter(|found| found.table == table).collect()
}

fn label(found: &Measurement) -> String {
    format!("{} {}", found.column, found.row)
}

pub(super) fn item(label: String, to: f64, unit: &str, tone: Tone) -> BarItem {
    BarItem { label, from: 0.0, to, value: Some(format!("{} {unit}", number(to))), tone, note: None }
}

fn latencies(found: &[&Measurement]) -> Table {
    let right = Align::Right;
    let mut table = Table::new([
        ("requests", Align::Left),
        ("mean us", right),
        ("p50 us", right),
        ("99 % within", right),
        ("longest", right),
        ("stalls over 100 ms", right),
    ]);
    for measurement in found {
        let latency = [&measurement.read_us, &measurement.write_us].into_iter().flatten().next();
        let Some(latency) = latency else { continue };
        let sure = &latency.intervals;
        let [half, most] = [sure::with(latency.p50, sure.p50), sure::with(latency.p99, sure.p99)];
        let cells = [number(latency.mean), half, most, number(latency.max)];
        let stalls = measurement.stalls.as_ref().map_or(String::new(), |stalls| stalls.over_100_ms.to_string());
        table.row(std::iter::once(label(measurement)).chain(cells).chain([stalls]).map(Cell::from));
    }
    table
        .optional(&["stalls over 100 ms", "mean us"])
        .caption("Latency of small requests in microseconds; 95 % confidence intervals in parentheses")
}

fn cause_table(causes: &[Cause]) -> Table {
    let mut table = Table::new([("speed", Align::Left), ("limit", Align::Left), ("evidence", Align::Left)]);
    for cause in causes {
        table.row([cause.of.as_str(), cause.limit.as_str(), cause.evidence.as_str()].map(Cell::from));
    }
    table
}
