//! What a bench has to tell, as it is written out.

use serde::{Deserialize, Serialize};

use crate::causes::Cause;
use crate::context::Context;
use crate::doubts::Doubt;
use crate::grid::Grid;
use crate::interval::Interval;
use crate::measurement::Measurement;
use crate::state::CardState;

/// What came of a suite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// The suite.
    pub suite: String,
    /// What it measures.
    pub about: String,
    /// How long it took in the target's time. Unit: seconds.
    pub time_s: f64,
    /// Unit: bytes.
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
    /// What else was found out.
    pub figures: Vec<Figure>,
    /// What is to be known about them.
    pub remarks: Vec<String>,
    /// In what state the card was before the first request.
    #[serde(default)]
    pub state_before: CardState,
    /// And after the last.
    #[serde(default)]
    pub state_after: CardState,
    /// Why it did not come to its end: stopped, a device that went away; absent where it did.
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
    /// Which figure is shown: `KiB/s`, `MB/s`, `MiB/s`, `IOPS`, `ms` or `us`.
    pub unit: String,
    /// What is to be seen.
    pub caption: String,
}

/// A figure that a suite has found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// What it is.
    pub name: String,
    /// Its value; nothing where it could not be told.
    pub value: Option<f64>,
    /// Its unit; empty for a plain number.
    pub unit: String,
    /// Where the true value is in 95 of 100 cases, if that can be told.
    pub interval: Option<Interval>,
    /// How it was found, or why not.
    pub note: String,
}

/// What `bench` tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BenchResult {
    /// What was measured, as the user called it.
    pub target: String,
    /// `device`, `file` or `simulated`.
    pub target_kind: emmc_port::TargetKind,
    /// Unit: bytes.
    pub size_bytes: u64,
    /// How requests were handed over.
    pub engine: String,
    /// For everything left to chance.
    pub seed: u64,
    /// What came of the suite.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// On what and under what it was measured.
    #[serde(default)]
    pub context: Context,
    /// What speaks against it.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
    /// What limits its speeds, where that can be told.
    #[serde(default)]
    pub causes: Vec<Cause>,
}

impl BenchResult {
    /// Makes the shares of states those of the whole disk, where the target is a part of it: of the rest nothing is
    /// known. To be called once, when the context is known.
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
    use crate::context::DiskFacts;
    use crate::state::StateKind;

    /// Of a partition only: what lies beside it on the disk is not known.
    #[test]
    fn a_state_of_a_partition_is_one_of_a_part_of_the_disk() {
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
        assert_eq!(outcome.state_after.describe(), "trimmed, told of 25 % of the disk");
    }
}
