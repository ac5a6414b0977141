//! Simulation: random numbers, workloads, power cuts, and checks.

pub mod fault;
mod internals;
pub mod job;
mod pattern;
mod ready;
pub mod run;
mod target;
pub mod torture;
pub mod trace;

pub use emmc_units::Rng;

pub use internals::{AreaSize, Internals};
pub use job::{Job, JobError};
pub use ready::{READY_JOBS, ReadyJob, ready_job};
pub use run::{BlockMap, Ended, Percentiles, PhaseResult, Progress, Run, RunError, RunResult, Series, WearBin};
pub use target::SimTarget;
