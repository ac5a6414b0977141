//! What a fit and a check report.

use serde::Serialize;

use crate::cell::{Cell, Column, time};
use crate::part::Firmware;

/// A fitted twin, and how well it matches.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Twin {
    /// The measurements.
    pub measurements: String,
    /// What they were made on, if that is known.
    pub target: Option<String>,
    /// The kind of firmware that matches best.
    pub firmware: Firmware,
    /// Each parameter.
    pub parameters: Vec<ParameterFound>,
    /// Measured and simulated speeds.
    pub cells: Vec<CellError>,
    /// Of all cells.
    pub error: ErrorSummary,
    /// Of cells that another fit has not seen.
    pub held_out: Option<HeldOut>,
    /// Simulated tables.
    pub simulations: u64,
    /// Measurements that would narrow the intervals, the most useful one first.
    pub next: Vec<NextMeasurement>,
    /// Measurements that were not used, and why.
    pub left_out: Vec<String>,
    /// What to know of the measurements.
    pub notes: Vec<String>,
}

/// A measurement that was not made.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NextMeasurement {
    /// What is measured.
    pub what: &'static str,
    /// The command that does.
    pub command: String,
    /// How much narrower the intervals are expected to become, their geometric mean. Unit: %.
    pub narrower_percent: f64,
    /// The parameters whose intervals become narrower by 30 % or more, at most four.
    pub parameters: Vec<&'static str>,
}

/// A fitted parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ParameterFound {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Its value.
    pub value: f64,
    /// The lower end of the 95 % interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The measurements bound it to a factor of two or better.
    pub is_determined: bool,
    /// Parameters that the measurements cannot tell from it: correlated by more than 0.9.
    pub confounded_with: Vec<&'static str>,
}

/// A measured and a simulated speed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CellError {
    /// What was done.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub column: Column,
    /// The size of a record or request. Unit: KiB.
    pub record_kib: u64,
    /// Unit: KiB a second; of a burst, KiB before the rate falls.
    pub measured_kib_per_s: f64,
    /// Unit: KiB a second; of a burst, KiB before the rate falls.
    pub twin_kib_per_s: f64,
    /// The twin's over the measured speed, less one. Unit: %.
    pub error_percent: f64,
}

/// The sizes of errors, signs aside.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorSummary {
    /// Unit: %.
    pub median: f64,
    /// The 90th percentile. Unit: %.
    pub p90: f64,
    /// How many cells.
    pub cells: usize,
}

/// Errors of predictions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldOut {
    /// What was left out.
    pub split: HoldOut,
    /// Unit: %.
    pub median: f64,
    /// The 90th percentile. Unit: %.
    pub p90: f64,
    /// The predicted cells.
    pub cells: Vec<CellError>,
    /// A line for each column, fitted to the same cells; absent where it predicts nothing.
    pub lines: Option<ErrorSummary>,
    /// One column taken for another; absent where it predicts nothing.
    pub copied: Option<ErrorSummary>,
}

/// Which cells are left out of a fit and predicted by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum HoldOut {
    /// Every second record size, then the other half.
    EverySecond,
    /// Rewrite, reread and random write.
    Columns,
}

/// A profile beside measurements.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checked {
    /// The measurements.
    pub measurements: String,
    /// What they were made on, if that is known.
    pub target: Option<String>,
    /// The profile.
    pub profile: String,
    /// Measured and simulated speeds.
    pub cells: Vec<CellError>,
    /// Of all cells.
    pub error: ErrorSummary,
    /// Measurements that were not used, and why.
    pub left_out: Vec<String>,
    /// What to know of the measurements.
    pub notes: Vec<String>,
}

/// What a fit of a table must beat.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Baseline {
    /// The tables.
    pub measurements: Vec<String>,
    /// A line for each column, fitted to all cells.
    pub lines: ErrorSummary,
    /// The same, fitted to every second record size; absent where a half has only one.
    pub lines_every_second: Option<ErrorSummary>,
    /// Writes taken for rewrites and random writes, reads for rereads; absent without those columns.
    pub copied: Option<ErrorSummary>,
}

impl ErrorSummary {
    /// Of errors in percent; `None` without any.
    pub fn of(errors: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sizes: Vec<f64> = errors.into_iter().map(f64::abs).collect();
        sizes.sort_by(f64::total_cmp);
        let at =
            |share: f64| sizes.get(((sizes.len() as f64 * share) as usize).min(sizes.len().saturating_sub(1))).copied();
        Some(Self { median: at(0.5)?, p90: at(0.9)?, cells: sizes.len() })
    }

    pub(crate) fn of_cells(cells: &[CellError]) -> Option<Self> {
        Self::of(cells.iter().map(|cell| cell.error_percent))
    }
}

/// The measured cells that are simulated too, side by side.
pub(crate) fn side_by_side(measured: &[Cell], simulated: &[Cell]) -> Vec<CellError> {
    let pair = |cell: &Cell| {
        let twin = Cell { us: time(simulated, cell.column, cell.kib)?, ..*cell };
        Some(CellError {
            column: cell.column,
            record_kib: cell.kib,
            measured_kib_per_s: cell.kib_per_s(),
            twin_kib_per_s: twin.kib_per_s(),
            error_percent: (cell.us / twin.us - 1.0) * 100.0,
        })
    };
    measured.iter().filter_map(pair).collect()
}
