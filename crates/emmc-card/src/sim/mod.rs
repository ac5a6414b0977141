//! A card as a target of benchmarks and jobs, and its internal state.

mod block_map;
mod internals;
mod target;

pub use block_map::BlockMap;
pub use internals::{AreaSize, Condition, HealthRegisters, Internals, Wear, WearBin};
pub use target::SimTarget;
