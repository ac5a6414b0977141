//! A card as a target of benchmarks and jobs, its internal state, and the power-cut torture.

mod block_map;
mod internals;
mod target;
pub mod torture;

pub use block_map::BlockMap;
pub use internals::{AreaSize, Condition, HealthRegisters, Internals, Wear, WearBin};
pub use target::SimTarget;
