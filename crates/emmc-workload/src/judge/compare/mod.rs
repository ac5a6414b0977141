//! Results side by side: matching figures, their ratio, and whether the difference is significant.
//!
//! The first result is the baseline. Figures are matched by their measurement: names of tables, rows and columns where
//! both have the same, else operation, order, block size and depth. Absent on purpose: a verdict on which card is
//! better, and any correction for different conditions: those are listed.

mod circumstances;
mod entries;
mod significance;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::import::SavedResult;
use crate::stats::interval::Interval;
use entries::{Entry, entries, same};
pub(crate) use significance::of_intervals;
pub use significance::{Certainty, ComparedPercentile, RankTest, rank_test};

/// Results side by side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// The results; the first is the baseline.
    pub results: Vec<Compared>,
    /// Figures that at least two of them have.
    pub rows: Vec<Row>,
    /// Why they may not be comparable.
    pub warnings: Vec<String>,
}

/// One of the results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compared {
    /// Its name as given by the user.
    pub name: String,
    /// What was measured.
    pub target: Option<String>,
    /// The suites or tools in it.
    pub suites: Vec<String>,
    /// Figures in it that no other result has.
    pub alone: usize,
    /// Notes on it.
    pub notes: Vec<String>,
}

/// A figure that several results have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Row {
    /// Its table, suite or list.
    pub table: String,
    /// What it is, e.g. `4 random write`.
    pub what: String,
    /// Unit of its values.
    pub unit: String,
    /// Unit: bytes.
    pub block_bytes: Option<u64>,
    /// Requests outstanding.
    pub queue_depth: Option<u32>,
    /// One for each result, in their order.
    pub cells: Vec<Cell>,
}

/// A result's value in a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cell {
    /// Absent if it has none.
    pub value: Option<f64>,
    /// The 95 % confidence interval.
    pub interval: Option<Interval>,
    /// Its own name for this, if that differs.
    pub called: Option<String>,
    /// The value over the first result's.
    pub ratio: Option<f64>,
    /// Whether it differs from the first result's; absent if one of the two is missing.
    pub certainty: Option<Certainty>,
    /// The test behind the verdict.
    pub evidence: String,
    /// The same for percentiles of latencies, if both results have confidence intervals.
    #[serde(default)]
    pub percentiles: Vec<ComparedPercentile>,
}

/// Compares results with the first one.
pub fn compare(results: &[SavedResult]) -> Comparison {
    let mut lists: Vec<Vec<Entry<'_>>> = results.iter().map(entries).collect();
    let mut rows = Vec::new();
    // Compared with the first result that has the row.
    let mut states: Vec<circumstances::States> = results.iter().map(|_| circumstances::States::default()).collect();
    let counts: Vec<usize> = lists.iter().map(Vec::len).collect();
    for first in 0..lists.len().saturating_sub(1) {
        let (before, rest) = lists.split_at_mut(first + 1);
        let own = std::mem::take(&mut before[first]);
        let mut found: Vec<Vec<Option<Entry<'_>>>> = own.iter().map(|_| Vec::new()).collect();
        for other in rest {
            for (place, entry) in same(&own, other).into_iter().enumerate() {
                found[place].push(entry);
            }
        }
        for (entry, others) in own.into_iter().zip(found) {
            for (at, other) in others.iter().enumerate() {
                states[first + 1 + at].look_at(&entry, other.as_ref());
            }
            if others.iter().any(Option::is_some) {
                rows.push(row(first, entry, others));
            }
        }
    }
    let compared = results.iter().enumerate().map(|(index, result)| {
        let aligned = rows.iter().filter(|row| row.cells[index].evidence != NONE).count();
        Compared {
            name: result.name.clone(),
            target: result.target.clone(),
            suites: result.outcomes.iter().map(|outcome| outcome.suite.clone()).collect(),
            alone: counts[index].saturating_sub(aligned),
            notes: result.outcomes.iter().flat_map(|outcome| outcome.remarks.clone()).collect(),
        }
    });
    let compared: Vec<Compared> = compared.collect();
    let mut warnings = circumstances::warnings(results);
    for (result, states) in results.iter().zip(&states) {
        warnings.extend(states.warnings(&result.name));
    }
    if rows.is_empty() && results.len() > 1 {
        warnings.push("they have no figure in common".into());
    }
    for row in &mut rows {
        row.cells.iter_mut().filter(|cell| cell.evidence == NONE).for_each(|cell| cell.evidence.clear());
    }
    Comparison { results: compared, rows, warnings }
}

/// Marks a missing value.
const NONE: &str = "-";

fn row(first: usize, entry: Entry<'_>, others: Vec<Option<Entry<'_>>>) -> Row {
    let none = || Cell { evidence: NONE.into(), ..Cell::default() };
    let mut cells: Vec<Cell> = (0..first).map(|_| none()).collect();
    cells.push(Cell { value: entry.value, interval: entry.interval, ..Cell::default() });
    for other in others {
        let Some(other) = other else {
            cells.push(none());
            continue;
        };
        let mut cell = Cell { value: other.value, interval: other.interval, ..Cell::default() };
        cell.called = (other.what() != entry.what()).then(|| other.what());
        if let (Some(value), Some(base)) = (other.value, entry.value) {
            cell.ratio = (base != 0.0).then_some(value / base);
            let (certainty, evidence) = significance::certainty(&entry, &other);
            (cell.certainty, cell.evidence) = (Some(certainty), evidence);
            if let Some((ours, theirs)) = entry.latency.zip(other.latency) {
                cell.percentiles = significance::percentiles(ours, theirs);
            }
        }
        cells.push(cell);
    }
    Row {
        table: entry.table.into(),
        what: entry.what(),
        unit: entry.unit.into(),
        block_bytes: entry.base.as_ref().map(|base| base.block_bytes),
        queue_depth: entry.base.as_ref().map(|base| base.queue_depth),
        cells,
    }
}
