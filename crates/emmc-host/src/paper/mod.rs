//! The white paper's tables, computed: every figure beside the printed one, and the paper's contradictions.
//!
//! Conventions that fit: its MB/s are MiB/s and its KB are KiB, throughout. Three cells are not reproduced by any
//! convention; they are named ([`Verdict::NotReproduced`]), and no parameter is tuned for them.
//!
//! Source: Micron, *Linux Storage System Analysis for e.MMC With Command Queuing*; as data in
//! testdata/cq_tables/cq_tables.json.

mod inconsistencies;
mod measurements;
mod overheads;
mod queueing;
mod tables;

pub use inconsistencies::Inconsistency;
pub use measurements::{MeasuredSpeed, PerRecord};
pub use overheads::{OverheadShare, OverheadVerdict};
pub use queueing::QueueGain;
use serde::Serialize;
pub use tables::{Figure, TableCell, Verdict};

/// Everything that the paper prints and the model computes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reproduction {
    /// What is reproduced.
    pub source: &'static str,
    /// Tables 2 and 3 and the speeds in the text.
    pub cells: Vec<TableCell>,
    /// The lists of software's share.
    pub overheads: Vec<OverheadShare>,
    /// Speeds that a program saw, in the system model.
    pub measured: Vec<MeasuredSpeed>,
    /// The gain of command queueing on the Zynq.
    pub queue_gains: Vec<QueueGain>,
    /// Where the paper contradicts itself or the model.
    pub inconsistencies: Vec<Inconsistency>,
}

/// Computes all of it.
pub fn reproduce() -> Reproduction {
    Reproduction {
        source: "Micron, Linux Storage System Analysis for e.MMC With Command Queuing (white paper), Tables 1 to 3",
        cells: tables::cells(),
        overheads: overheads::overheads(),
        measured: measurements::measured(),
        queue_gains: queueing::queue_gains(),
        inconsistencies: inconsistencies::INCONSISTENCIES.to_vec(),
    }
}
