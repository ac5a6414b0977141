//! A study of a pipeline: closed forms, the simulation for comparison, and the times of the first requests.

use emmc_units::{Bytes, Instant};
use serde::Serialize;

use crate::paper::Reproduction;
use crate::{CqEngine, Limits, Makespan, MeasuredSpans, Pipeline, PipelineError, Platform, RequestTimes, Speed};

/// Most simulated requests; more would not change the result.
pub const REQUESTS_MAX: u64 = 10_000_000;

/// The result of `sim pipeline`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PipelineResult {
    /// The shipped platform, if one was named.
    pub platform: Option<PlatformFacts>,
    /// The pipelines, one for each workload.
    pub pipelines: Vec<PipelineStudy>,
    /// The white paper's tables, if requested.
    pub paper: Option<Reproduction>,
}

/// A shipped platform.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlatformFacts {
    /// Its name on the command line.
    pub name: &'static str,
    /// The board.
    pub title: &'static str,
    /// Processor and kernel.
    pub host: &'static str,
    /// The source of the gap between two transfers.
    pub gap_source: &'static str,
}

impl From<&Platform> for PlatformFacts {
    fn from(platform: &Platform) -> Self {
        let Platform { name, title, host, gap_source, .. } = *platform;
        Self { name, title, host, gap_source }
    }
}

/// One pipeline: parameters and results.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PipelineStudy {
    /// The workload of a shipped platform.
    pub workload: Option<&'static str>,
    /// The source of the spans; absent for the user's own.
    pub source: Option<&'static str>,
    /// Unit: microseconds.
    pub pre_us: f64,
    /// Unit: microseconds.
    pub hw_us: f64,
    /// Unit: microseconds.
    pub post_us: f64,
    /// The part of pre that only one request at a time can be in. Unit: microseconds.
    pub serial_us: f64,
    /// Between two transfers without a queue engine in hardware. Unit: microseconds.
    pub gap_us: f64,
    /// What a request transfers.
    pub chunk_bytes: Bytes,
    /// Requests in flight.
    pub depth: u32,
    /// Cores.
    pub cores: u32,
    /// What starts the next transfer.
    pub engine: CqEngine,
    /// The closed forms of the long run.
    pub limits: Limits,
    /// Number of requests for the times below.
    pub requests: u64,
    /// Their time by the closed form.
    pub makespan: Makespan,
    /// Their time in the discrete-event model. Unit: microseconds.
    pub simulated_us: f64,
    /// Their speed in the model, including the filling and draining of the pipeline.
    pub simulated: Speed,
    /// Busy time of all cores in the model. Unit: percent.
    pub cores_busy_percent: f64,
    /// The card's busy time in the model. Unit: percent.
    pub device_busy_percent: f64,
    /// The first requests in the model.
    pub timeline: Vec<TimelineRow>,
}

/// The times of a request. Unit: microseconds from the start of the first request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimelineRow {
    /// Its number, from 0.
    pub request: u64,
    /// Start of pre.
    pub pre_start_us: f64,
    /// Submitted to the card.
    pub pre_end_us: f64,
    /// Start of the transfer.
    pub hw_start_us: f64,
    /// End of the transfer.
    pub hw_end_us: f64,
    /// Start of post.
    pub post_start_us: f64,
    /// End of post.
    pub post_end_us: f64,
}

impl PipelineStudy {
    /// Studies a pipeline with `requests` requests and records the times of the first `drawn`.
    ///
    /// Errors: a parameter out of bounds.
    pub fn of(pipeline: Pipeline, requests: u64, drawn: usize) -> Result<Self, PipelineError> {
        let pipeline = pipeline.checked()?;
        if !(1..=REQUESTS_MAX).contains(&requests) {
            return Err(PipelineError::Requests(requests));
        }
        let simulated = pipeline.simulate(requests, drawn);
        let end_ns = simulated.end.0 as f64;
        let bytes = Bytes(pipeline.chunk.0.saturating_mul(requests));
        Ok(Self {
            workload: None,
            source: None,
            pre_us: pipeline.spans.pre.as_micros_f64(),
            hw_us: pipeline.spans.hw.as_micros_f64(),
            post_us: pipeline.spans.post.as_micros_f64(),
            serial_us: pipeline.serial.as_micros_f64(),
            gap_us: pipeline.gap.as_micros_f64(),
            chunk_bytes: pipeline.chunk,
            depth: pipeline.depth,
            cores: pipeline.cores,
            engine: pipeline.engine,
            limits: pipeline.limits(),
            requests,
            makespan: pipeline.makespan(requests),
            simulated_us: end_ns / 1e3,
            simulated: Speed::of(bytes, end_ns),
            cores_busy_percent: simulated.cores_busy.0 as f64 / (end_ns * f64::from(pipeline.cores)) * 100.0,
            device_busy_percent: simulated.device_busy.0 as f64 / end_ns * 100.0,
            timeline: (0..).zip(&simulated.first).map(|(request, times)| TimelineRow::of(request, times)).collect(),
        })
    }

    /// Sets the name of the published workload.
    pub fn named(mut self, workload: &MeasuredSpans) -> Self {
        self.workload = Some(workload.name);
        self.source = Some(workload.source);
        self
    }
}

impl TimelineRow {
    fn of(request: u64, times: &RequestTimes) -> Self {
        let us = |at: Instant| at.since(Instant::START).as_micros_f64();
        Self {
            request,
            pre_start_us: us(times.pre_start),
            pre_end_us: us(times.pre_end),
            hw_start_us: us(times.hw_start),
            hw_end_us: us(times.hw_end),
            post_start_us: us(times.post_start),
            post_end_us: us(times.post_end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spans;

    #[test]
    fn a_study_has_the_closed_form_and_the_model() {
        let pipeline = Pipeline::new(Spans::from_micros(635, 1414, 51), Bytes(128 << 10));
        let study = PipelineStudy::of(pipeline, 100, 4).unwrap();
        assert!(study.makespan.is_exact);
        assert_eq!(study.makespan.us, study.simulated_us);
        assert_eq!(study.simulated_us, 2100.0 + 99.0 * 1414.0);
        assert!((study.device_busy_percent - 141_400.0 / 142_086.0 * 100.0).abs() < 1e-9);
        assert_eq!((study.timeline.len(), study.timeline[1].hw_start_us), (4, 2049.0));
        assert_eq!(PipelineStudy::of(pipeline, 0, 4), Err(PipelineError::Requests(0)));
    }
}
