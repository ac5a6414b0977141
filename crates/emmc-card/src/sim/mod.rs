//! Drives a card: random numbers, workloads, power cuts, and the checks beside them.

pub mod fault;
mod rng;

pub use rng::Rng;
