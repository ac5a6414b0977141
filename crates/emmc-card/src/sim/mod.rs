//! Drives a card: random numbers, workloads, power cuts, and the checks beside them.

pub mod fault;
pub mod job;
mod pattern;
mod rng;
pub mod run;
pub mod trace;

pub use rng::Rng;
