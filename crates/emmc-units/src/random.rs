//! Chance that is the same on every machine: a named generator, and orders that are computed from a seed.
//!
//! Absent on purpose: any seed of the machine's own; who draws says from what.

mod rng;
mod scramble;

pub use rng::Rng;
pub use scramble::Scramble;
