//! Runs a job on a device in simulated time and measures the results.
//!
//! The run owns time: it passes the time of each request to the device, and gets its completion time. It runs in steps,
//! so that a caller can show progress. Absent on purpose: clocks (the real duration), files, presentation.

mod block_map;
mod drive;
mod latency;
mod phase;
mod plan;
mod queue;
mod requests;
mod result;
mod series;
mod sums;

use emmc_units::Instant;
use serde::Serialize;

pub use block_map::BlockMap;
pub use latency::{LatencyResult, Percentiles};
pub use requests::{HostRequest, requests};
pub use result::{HealthRegisters, PhaseResult, RunResult, Wear, WearBin};
pub use series::Series;

use super::job::Job;
use crate::device::{Device, StorageError};
use latency::Latencies;
use phase::Active;
use series::Buckets;
use sums::Sums;

/// Why a run stopped early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A phase does not fit the card.
    #[error("job: phase {phase} ({kind}): {rule}")]
    Phase {
        /// The phase, counted from 1.
        phase: usize,
        /// Its name in the job.
        kind: &'static str,
        /// Why it does not fit.
        rule: String,
    },
    /// An unexpected error of the card.
    #[error("phase {phase} ({kind}): {error}")]
    Storage {
        /// The phase, counted from 1.
        phase: usize,
        /// Its name in the job.
        kind: &'static str,
        /// The error.
        error: StorageError,
    },
}

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

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The current phase, counted from 1.
    pub phase: usize,
    /// Phases in all.
    pub phases: usize,
    /// Its name in the job.
    pub kind: &'static str,
    /// Completed share of the phase, 0 to 1; for a life, the used share.
    pub done_share: f64,
    /// How much of the whole run is done, 0 to 1, weighted by bytes.
    pub whole_share: f64,
    /// Simulated time since the card was made.
    pub now: Instant,
    /// Whether the work is complete.
    pub is_finished: bool,
}

/// A running job on a device.
#[derive(Debug)]
pub struct Run {
    device: Device,
    job: Job,
    started: Instant,
    now: Instant,
    /// The current phase, numbered from 0; none before the first, between two and after the last.
    active: Option<Active>,
    next_phase: usize,
    ended: Option<Ended>,
    sums: Sums,
    before: Sums,
    buckets: Buckets,
    latencies: Latencies,
    phases: Vec<PhaseResult>,
    read_errors: u64,
    payload: Vec<u8>,
    /// How much each phase moves. Unit: sectors of 512 bytes.
    weights: Vec<u64>,
}

impl Run {
    /// A job that starts at `now` on a device that may be used.
    ///
    /// Errors: a phase that does not fit the card.
    pub fn new(device: Device, job: Job, now: Instant) -> Result<Self, RunError> {
        let before = Sums::default().with(&device);
        let mut run = Self {
            started: now,
            now,
            active: None,
            next_phase: 0,
            ended: None,
            sums: before,
            before,
            buckets: Buckets::new(now, before),
            latencies: Latencies::new(),
            phases: Vec::with_capacity(job.phases.len()),
            read_errors: 0,
            payload: Vec::new(),
            weights: Vec::new(),
            device,
            job,
        };
        for index in 0..run.job.phases.len() {
            run.check(index)?;
        }
        run.weights = (0..run.job.phases.len()).map(|index| run.weight(index)).collect();
        Ok(run)
    }

    /// Runs at most `requests` further requests.
    ///
    /// Errors: [`RunError::Storage`]; a worn-out card is not an error, it ends the run.
    pub fn step(&mut self, requests: u64) -> Result<Progress, RunError> {
        if self.ended.is_none() && self.active.is_none() {
            if self.next_phase == self.job.phases.len() {
                self.ended = Some(Ended::Done);
            } else {
                self.active = Some(self.begin(self.next_phase)?);
                self.next_phase += 1;
            }
        }
        if let Some(mut active) = self.active.take() {
            let going_on = self.drive(&mut active, requests)?;
            if going_on {
                self.active = Some(active);
            } else {
                self.close(active);
            }
        }
        if self.active.is_none() && self.next_phase == self.job.phases.len() {
            self.ended.get_or_insert(Ended::Done);
        }
        Ok(self.progress())
    }

    /// Runs to the end.
    ///
    /// Errors: as [`Run::step`].
    pub fn complete(mut self) -> Result<(Device, RunResult), RunError> {
        while !self.step(1 << 20)?.is_finished {}
        Ok(self.finish())
    }

    /// The progress.
    pub fn progress(&self) -> Progress {
        let index = self.next_phase.max(1) - 1;
        let done_share = match &self.active {
            Some(active) => self.done_share(active),
            None if self.next_phase == 0 => 0.0,
            None => 1.0,
        };
        let sum = |weights: &[u64]| weights.iter().fold(0, |sum: u64, weight| sum.saturating_add(*weight)) as f64;
        let done = sum(&self.weights[..index]) + self.weights[index] as f64 * done_share;
        Progress {
            phase: index + 1,
            phases: self.job.phases.len(),
            kind: self.job.phases[index].kind,
            done_share,
            whole_share: (done / sum(&self.weights)).min(1.0),
            now: self.now,
            is_finished: self.ended.is_some(),
        }
    }

    /// Returns the device at the instant [`RunResult::now`], and the results, even before the end.
    pub fn finish(mut self) -> (Device, RunResult) {
        if let Some(active) = self.active.take() {
            self.ended.get_or_insert(Ended::Stopped);
            self.close(active);
        }
        let ended = self.ended.unwrap_or(Ended::Stopped);
        let result = self.result(ended);
        (self.device, result)
    }
}
