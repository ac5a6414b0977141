//! The internal state of a card: what no host sees.

mod block_map;
mod internals;

pub use block_map::BlockMap;
pub use internals::{AreaSize, Condition, HealthRegisters, Internals, Wear, WearBin};
