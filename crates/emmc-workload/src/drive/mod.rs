//! The load: orders of blocks, sources of requests, the loop that drives a target with them, and its recorder.

mod blocks_in_use;
pub(crate) mod engine;
pub(crate) mod measured;
pub(crate) mod order;
pub(crate) mod source;
pub(crate) mod stream;
mod streams;
pub(crate) mod watch;
mod zipf;

pub(crate) use blocks_in_use::BlocksInUse;

/// One more than the largest number that a draw can be.
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
