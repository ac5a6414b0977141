//! Random numbers that are the same on every machine: a named generator, and permutations computed from a seed.
//!
//! Absent on purpose: seeds from the machine; the caller provides the seed.

mod rng;
mod scramble;

pub use rng::Rng;
pub use scramble::Scramble;
