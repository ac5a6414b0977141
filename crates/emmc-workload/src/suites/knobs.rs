//! Options of suites, and which suite supports which.

use super::{Options, Suite, suites};
use crate::drive::stream::BenchError;

/// An option of suites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Knob {
    /// [`Options::from_bytes`].
    From,
    /// [`Options::size_bytes`].
    Size,
    /// [`Options::rows`].
    Rows,
    /// [`Options::read_only`].
    ReadOnly,
    /// [`Options::queue_depth`].
    QueueDepth,
    /// [`Options::write_budget_bytes`].
    WriteBudget,
    /// [`Options::replay`].
    Trace,
}

impl Knob {
    /// All of them, in list order.
    pub const ALL: [Self; 7] =
        [Self::From, Self::Size, Self::Rows, Self::ReadOnly, Self::QueueDepth, Self::WriteBudget, Self::Trace];

    /// The option of the command line.
    pub fn option(self) -> &'static str {
        match self {
            Self::From => "--from",
            Self::Size => "--size",
            Self::Rows => "--rows",
            Self::ReadOnly => "--read-only",
            Self::QueueDepth => "--queue-depth",
            Self::WriteBudget => "--write-budget",
            Self::Trace => "--trace",
        }
    }

    fn is_in(self, options: &Options) -> bool {
        match self {
            Self::From => options.from_bytes > 0,
            Self::Size => options.size_bytes.is_some(),
            Self::Rows => !options.rows.is_empty(),
            Self::ReadOnly => options.read_only,
            Self::QueueDepth => options.queue_depth.is_some(),
            Self::WriteBudget => options.write_budget_bytes.is_some(),
            Self::Trace => options.replay.is_some(),
        }
    }
}

/// Checks that a suite supports every given option.
///
/// Errors: the first that it does not support, and which suites do.
pub fn follows(suite: &dyn Suite, told: &[Knob]) -> Result<(), BenchError> {
    let Some(knob) = told.iter().find(|knob| !suite.follows().contains(knob)) else { return Ok(()) };
    let can: Vec<&str> =
        suites().iter().filter(|other| other.follows().contains(knob)).map(|other| other.name()).collect();
    Err(BenchError::CannotFollow { suite: suite.name(), option: knob.option(), suites: can.join(", ") })
}

/// The given options.
pub(super) fn given(options: &Options) -> Vec<Knob> {
    Knob::ALL.into_iter().filter(|knob| knob.is_in(options)).collect()
}
