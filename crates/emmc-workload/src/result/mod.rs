//! Results, as serialised: measurements, tables, the state of the card, the conditions, and what was found in them.

pub mod context;
mod finding;
pub(crate) mod grid;
pub(crate) mod measurement;
pub(crate) mod state;

use serde::{Deserialize, Serialize};

use context::Context;
pub use finding::{Cause, Doubt};
use grid::Grid;
use measurement::Measurement;
use state::CardState;

use crate::stats::interval::Interval;

/// The outcome of a suite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// The suite.
    pub suite: String,
    /// What it measures.
    pub about: String,
    /// Duration in the target's time. Unit: seconds.
    pub time_s: f64,
    /// All that was written for this: by the suite, to fill a new file before, to put saved content back after. Unit:
    /// bytes.
    pub written_bytes: u64,
    /// Unit: bytes.
    pub read_bytes: u64,
    /// Unit: bytes.
    pub trimmed_bytes: u64,
    /// How the measurements are laid out.
    pub tables: Vec<Pivot>,
    /// Every measurement.
    pub measurements: Vec<Measurement>,
    /// Tables that the suite has computed.
    #[serde(default)]
    pub grids: Vec<Grid>,
    /// Other results.
    pub figures: Vec<Figure>,
    /// Remarks on the results.
    pub remarks: Vec<String>,
    /// The card's state before the first request.
    #[serde(default)]
    pub state_before: CardState,
    /// The card's state after the last request.
    #[serde(default)]
    pub state_after: CardState,
    /// Why it ended early: cancelled, a device that disappeared; absent if it did not.
    #[serde(default)]
    pub ended_early: Option<String>,
}

/// A table of measurements: rows and columns as [`Measurement::row`] and [`Measurement::column`] name them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pivot {
    /// Which measurements: their `table`.
    pub table: String,
    /// The heading of the rows, e.g. `record KiB`.
    pub rows: String,
    /// The figure shown: `KiB/s`, `MB/s`, `MiB/s`, `IOPS`, `ms` or `us`.
    pub unit: String,
    /// Explanation of the table.
    pub caption: String,
}

/// A single figure of a suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// Its value; absent if it could not be determined.
    pub value: Option<f64>,
    /// Its unit; empty for a plain number.
    pub unit: String,
    /// The 95 % confidence interval, if known.
    pub interval: Option<Interval>,
    /// How it was found, or why not.
    pub note: String,
}

/// The document of `bench`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BenchResult {
    /// The target, as named by the user.
    pub target: String,
    /// `device`, `file` or `simulated`.
    pub target_kind: emmc_port::TargetKind,
    /// Unit: bytes.
    pub size_bytes: u64,
    /// How requests were submitted.
    pub engine: String,
    /// Seed of everything random.
    pub seed: u64,
    /// The outcome of the suite.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The conditions of the measurement.
    #[serde(default)]
    pub context: Context,
    /// Reasons to doubt it.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
    /// What limits its speeds, where that is known.
    #[serde(default)]
    pub causes: Vec<Cause>,
}

impl BenchResult {
    /// Scales the shares of states to the whole disk, if the target is a part of it: the state of the rest is unknown.
    /// Call it once, when the context is known.
    pub fn scale_states(&mut self) {
        let disk = self.context.disk.as_ref().and_then(|disk| disk.size_bytes).unwrap_or(self.size_bytes);
        let share = self.size_bytes as f64 / disk.max(1) as f64;
        if share >= 1.0 {
            return;
        }
        let outcome = &mut self.outcome;
        let of_cells = outcome.measurements.iter_mut().filter_map(|cell| cell.state.as_mut());
        for state in of_cells.chain([&mut outcome.state_before, &mut outcome.state_after]) {
            state.of_share = state.of_share.map(|of_share| of_share * share);
        }
    }
}

impl Figure {
    /// A figure without an interval.
    pub fn new(name: impl Into<String>, value: impl Into<Option<f64>>, unit: &str, note: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), unit: unit.into(), interval: None, note: note.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::context::DiskFacts;
    use crate::result::state::StateKind;

    /// A partition: the rest of the disk is unknown.
    #[test]
    fn the_state_of_a_partition_covers_a_part_of_the_disk() {
        let state = CardState { kind: StateKind::Trimmed, of_share: Some(1.0), ..CardState::default() };
        let cell = Measurement { state: Some(state.clone()), ..Measurement::default() };
        let outcome = Outcome {
            state_before: CardState::default(),
            state_after: state,
            measurements: vec![cell],
            ..Outcome::default()
        };
        let disk = DiskFacts { size_bytes: Some(4 << 30), ..DiskFacts::default() };
        let mut result = BenchResult {
            target: "/dev/mmcblk0p2".into(),
            target_kind: emmc_port::TargetKind::Device,
            size_bytes: 1 << 30,
            engine: "pread".into(),
            seed: 1,
            outcome,
            context: Context { disk: Some(disk), ..Context::default() },
            doubts: Vec::new(),
            causes: Vec::new(),
        };
        result.scale_states();
        let outcome = &result.outcome;
        assert_eq!((outcome.state_before.of_share, outcome.state_after.of_share), (None, Some(0.25)));
        assert_eq!(outcome.measurements[0].state.as_ref().unwrap().of_share, Some(0.25));
        assert_eq!(outcome.state_after.describe(), "trimmed, known for 25 % of the disk");
    }
}
