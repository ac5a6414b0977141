//! Results of a run, as serialised.

use emmc_port::BlockOp;
use emmc_units::{Instant, Nanos};
use serde::Serialize;

use super::series::Series;
use super::sums::Sums;
use crate::drive::measured::Measured;
use crate::stats::latency::{Latencies, Latency};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Ended {
    /// The job was completed.
    #[serde(rename = "done")]
    Done,
    /// The card had no spare block left and turned read-only.
    #[serde(rename = "worn out")]
    WornOut,
    /// Cancelled by the caller.
    #[serde(rename = "stopped")]
    Stopped,
}

/// Results of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunResult {
    /// The seed of the job.
    pub seed: u64,
    /// How it ended.
    pub ended: Ended,
    /// The work of all phases.
    #[serde(flatten)]
    pub work: Work,
    /// Size of a mapping unit.
    pub unit_bytes: u32,
    /// Uncorrectable reads.
    pub read_errors: u64,
    /// Results of each phase.
    pub phases: Vec<PhaseResult>,
    /// Speed over time.
    pub series: Series,
    /// The instant at which it ended, since the card was made.
    #[serde(skip)]
    pub now: Instant,
}

/// Results of a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PhaseResult {
    /// Its name in the job.
    pub kind: &'static str,
    /// Its work.
    #[serde(flatten)]
    pub work: Work,
}

/// The work of a run or of a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Work {
    /// Its simulated duration.
    pub simulated_s: f64,
    /// Requests that the host made.
    pub host_requests: u64,
    /// Bytes that it wrote.
    pub host_written_bytes: u64,
    /// Bytes that it read.
    pub host_read_bytes: u64,
    /// Bytes that it trimmed.
    pub host_trimmed_bytes: u64,
    /// Host writes in mapping units of the card.
    pub host_writes: u64,
    /// Mapping units programmed, padding and the layer's own data included.
    pub nand_programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// `nand_programs` over `host_writes`; absent without writes.
    pub write_amplification: Option<f64>,
    /// Units copied.
    pub copied_units: u64,
    /// Times that the host waited for a collection, a fold or a merge.
    pub stalls: u64,
    /// Requests a second of simulated time.
    pub requests_per_s: f64,
    /// Bytes written, read and trimmed a second.
    ///
    /// Unit: MB (10^6 bytes) a second.
    pub mb_per_s: f64,
    /// Latencies, counted from when the host made the requests, or wanted to make them while its queue was full.
    pub latency_us: LatencyResult,
}

/// Latencies of all requests, and of each kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyResult {
    /// Of all requests.
    #[serde(flatten)]
    pub all: Latency,
    /// Of writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Latency>,
    /// Of reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Latency>,
    /// Of trims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trim: Option<Latency>,
    /// Of flushes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<Latency>,
}

impl LatencyResult {
    fn of(measured: &Measured, seed: u64) -> Self {
        let of = |op| measured.latencies(op);
        let kinds = [BlockOp::Write, BlockOp::Read, BlockOp::Trim, BlockOp::Flush].map(of);
        let [write, read, trim, flush] = kinds.map(|kind| kind.latency(seed));
        let all = match [&write, &read, &trim, &flush].map(Option::as_ref) {
            [Some(only), None, None, None]
            | [None, Some(only), None, None]
            | [None, None, Some(only), None]
            | [None, None, None, Some(only)] => only.clone(),
            [None, None, None, None] => Latency::default(),
            _ => Latencies::summary(kinds),
        };
        Self { all, write, read, trim, flush }
    }
}

fn rate(amount: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { amount / seconds } else { 0.0 }
}

impl Work {
    pub(super) fn of(sums: &Sums, measured: &Measured, time: Nanos, unit_bytes: u32, seed: u64) -> Self {
        let (unit_bytes, seconds) = (u64::from(unit_bytes), time.as_secs_f64());
        let bytes = sums.written_bytes + sums.read_bytes + sums.trimmed_bytes;
        Self {
            simulated_s: seconds,
            host_requests: sums.requests,
            host_written_bytes: sums.written_bytes,
            host_read_bytes: sums.read_bytes,
            host_trimmed_bytes: sums.trimmed_bytes,
            host_writes: sums.host_writes(unit_bytes),
            nand_programs: sums.card.programs,
            erases: sums.card.erases,
            write_amplification: sums.write_amplification(unit_bytes),
            copied_units: sums.card.copied_units,
            stalls: sums.card.stalls,
            requests_per_s: rate(sums.requests as f64, seconds),
            mb_per_s: rate(bytes as f64 / 1e6, seconds),
            latency_us: LatencyResult::of(measured, seed),
        }
    }
}
