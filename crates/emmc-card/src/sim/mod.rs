//! Drives a card: random numbers, workloads, power cuts, and the checks beside them.

mod rng;

pub use rng::Rng;
