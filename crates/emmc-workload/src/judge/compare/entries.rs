//! The figures of a result, and which figures of two results match.

use crate::import::SavedResult;
use crate::result::measurement::Measurement;
use crate::result::state::CardState;
use crate::stats::interval::Interval;
use crate::stats::latency::Latency;

/// A figure of a result.
pub(super) struct Entry<'a> {
    pub(super) table: &'a str,
    pub(super) row: &'a str,
    pub(super) column: &'a str,
    pub(super) unit: &'a str,
    pub(super) value: Option<f64>,
    pub(super) interval: Option<Interval>,
    /// The same after the warm-up, if there was one and the run settled.
    pub(super) settled: Option<Interval>,
    /// The card's state, if it is known.
    pub(super) state: Option<&'a CardState>,
    /// Absent if it is not a figure of requests.
    pub(super) base: Option<Base>,
    /// The latencies of its requests, if all are of one kind.
    pub(super) latency: Option<&'a Latency>,
}

/// Which requests were made.
#[derive(PartialEq, Eq)]
pub(super) struct Base {
    op: String,
    order: String,
    pub(super) block_bytes: u64,
    pub(super) queue_depth: u32,
}

impl Entry<'_> {
    pub(super) fn what(&self) -> String {
        if self.row.is_empty() { self.column.into() } else { format!("{} {}", self.row, self.column) }
    }
}

/// A shuffle and random records count as the same order.
fn order(order: &str) -> String {
    order.replace("shuffled", "random")
}

/// Every number in a result.
pub(super) fn entries(result: &SavedResult) -> Vec<Entry<'_>> {
    let mut all = Vec::new();
    for outcome in &result.outcomes {
        all.extend(outcome.measurements.iter().map(of_measurement));
        all.extend(outcome.figures.iter().map(|figure| {
            let (scale, unit) = unit(&figure.unit);
            let scaled = |interval: Interval| Interval { low: interval.low * scale, high: interval.high * scale };
            Entry {
                table: &outcome.suite,
                row: "",
                column: &figure.name,
                unit,
                value: figure.value.map(|value| value * scale),
                interval: figure.interval.map(scaled),
                settled: None,
                state: None,
                base: None,
                latency: None,
            }
        }));
        for grid in &outcome.grids {
            for line in &grid.lines {
                all.extend(grid.columns.iter().zip(&line.values).map(|(column, value)| {
                    let (scale, unit) = unit(&column.unit);
                    Entry {
                        table: &grid.name,
                        row: &line.row,
                        column: &column.name,
                        unit,
                        value: value.map(|value| value * scale),
                        interval: None,
                        settled: None,
                        state: None,
                        base: None,
                        latency: None,
                    }
                }));
            }
        }
    }
    all
}

fn of_measurement(cell: &Measurement) -> Entry<'_> {
    let latency = match cell.op.as_str() {
        "read" => &cell.read_us,
        "write" => &cell.write_us,
        "trim" => &cell.trim_us,
        _ => &None,
    };
    Entry {
        table: &cell.table,
        row: &cell.row,
        column: &cell.column,
        unit: "MB/s",
        value: Some(cell.mb_per_s),
        interval: cell.mb_per_s_interval,
        settled: cell.warm_up.as_ref().filter(|found| found.is_settled).and_then(|found| found.mb_per_s_interval),
        state: cell.state.as_ref(),
        base: Some(Base {
            op: cell.op.clone(),
            order: order(&cell.order),
            block_bytes: cell.block_bytes,
            queue_depth: cell.queue_depth,
        }),
        latency: latency.as_ref(),
    }
}

/// Converts rates to MB (10^6 bytes) a second.
fn unit(unit: &str) -> (f64, &str) {
    match unit {
        "KiB/s" => (1024.0 / 1e6, "MB/s"),
        "MiB/s" => (1.048_576, "MB/s"),
        other => (1.0, other),
    }
}

/// For each of our figures the matching one of theirs; a match is removed from theirs.
pub(super) fn same<'a>(ours: &[Entry<'a>], theirs: &mut Vec<Entry<'a>>) -> Vec<Option<Entry<'a>>> {
    let mut found: Vec<Option<Entry<'a>>> = ours.iter().map(|_| None).collect();
    // Best match first: the same names, then the same requests in a column of the same name, then the same requests.
    let rules: [fn(&Entry<'_>, &Entry<'_>) -> bool; 3] = [
        |a, b| (a.table, a.row, a.column, a.unit) == (b.table, b.row, b.column, b.unit) && a.base == b.base,
        |a, b| a.base.is_some() && a.base == b.base && a.column == b.column && !named(a, b),
        |a, b| a.base.is_some() && a.base == b.base && a.table != b.table && !named(a, b),
    ];
    for rule in rules {
        for (place, entry) in found.iter_mut().zip(ours) {
            if place.is_none() {
                if let Some(at) = theirs.iter().position(|other| rule(entry, other)) {
                    *place = Some(theirs.remove(at));
                }
            }
        }
    }
    found
}

/// Both are in one table whose names are specific: a rewrite is not a write, seven units are not eight.
fn named(a: &Entry<'_>, b: &Entry<'_>) -> bool {
    a.table == b.table && (a.table == "iozone" || a.table.starts_with("open-au") || a.table.starts_with("find-fat"))
}
