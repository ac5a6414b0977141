//! Drives a card: random numbers, workloads, power cuts, and the checks beside them.

pub mod fault;
mod inside;
pub mod job;
mod pattern;
mod rng;
pub mod run;
pub mod torture;
pub mod trace;

pub use inside::{AreaSize, Inside};
pub use job::{Job, JobError};
pub use rng::Rng;
pub use run::{BlockMap, Ended, Percentiles, PhaseResult, Progress, Run, RunError, RunResult, Series, WearBin};
