//! The result of a stream, as reported.

use serde::{Deserialize, Serialize};

use super::state::CardState;
use crate::stats::interval::Interval;
use crate::stats::latency::{Latency, Stalls};

/// How much is reported of a measurement. Less of it is for searches that simulate a suite hundreds of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Everything.
    #[default]
    All,
    /// No confidence intervals and no warm-ups, whose resampling takes longer than a short simulation.
    WithoutIntervals,
    /// Speeds alone: no latencies and no state of the card either.
    Speeds,
}

/// The result of a stream, as reported.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measurement {
    /// The suite's table that it belongs to, if any.
    pub table: String,
    /// Its row, e.g. `4` KiB.
    pub row: String,
    /// Its column, e.g. `random write`.
    pub column: String,
    /// `read`, `write`, `trim` or `mixed`.
    pub op: String,
    /// Its order, e.g. `sequential`.
    pub order: String,
    /// Unit: bytes.
    pub block_bytes: u64,
    /// Requests outstanding.
    pub queue_depth: u32,
    /// Writes from one flush to the next, 1 if each is durable before the next one starts; absent if they are flushed
    /// at the end or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushed_every: Option<u64>,
    /// The part of the target that the requests are spread over, or the suite's area if it places them one by one;
    /// absent if another tool measured. Unit: bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_bytes: Option<u64>,
    /// Completed requests; absent, as the next two, if another tool measured and does not report it.
    pub requests: Option<u64>,
    /// Bytes read, written and trimmed.
    pub bytes: Option<u64>,
    /// Duration, flushes included. Unit: seconds.
    pub time_s: Option<f64>,
    /// Time in flushes; absent if another tool measured and does not report it. Unit: seconds.
    pub flush_s: Option<f64>,
    /// Unit: MB (10^6 bytes) a second.
    pub mb_per_s: f64,
    /// The 95 % confidence interval of the speed; absent if there were too few requests. Flushes at the end are not
    /// part of it. Unit: MB a second.
    pub mb_per_s_interval: Option<Interval>,
    /// The warm-up at its start, and the speed after it; absent if there was none, or too few requests.
    #[serde(default)]
    pub warm_up: Option<WarmUp>,
    /// Requests a second.
    pub iops: f64,
    /// Requests that failed.
    pub errors: u64,
    /// Latency of reads.
    pub read_us: Option<Latency>,
    /// Latency of writes.
    pub write_us: Option<Latency>,
    /// Latency of trims.
    pub trim_us: Option<Latency>,
    /// Latency of flushes.
    pub flush_us: Option<Latency>,
    /// Slow requests; absent if another tool measured and does not report them.
    pub stalls: Option<Stalls>,
    /// The card's state at its start; absent if another tool measured.
    #[serde(default)]
    pub state: Option<CardState>,
    /// It was stopped early: the figures cover the requests before the stop.
    #[serde(default)]
    pub ended_early: bool,
}

/// The warm-up of a run by MSER-5.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WarmUp {
    /// Requests that belong to it.
    pub requests: u64,
    /// Its duration. Unit: seconds.
    pub time_s: f64,
    /// Whether the run settled: the warm-up ended before its middle. Otherwise the speed was still changing, or the run
    /// was too short.
    pub is_settled: bool,
    /// The speed after it, without flushes. Unit: MB a second.
    pub mb_per_s: f64,
    /// Its 95 % confidence interval. Unit: MB a second.
    pub mb_per_s_interval: Option<Interval>,
}
