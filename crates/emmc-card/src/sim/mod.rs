//! A card as a target of benchmarks and jobs, and its internal state.

mod block_map;
pub mod command_target;
mod internals;
mod target;

pub use block_map::BlockMap;
pub use command_target::CommandTarget;
pub use internals::{AreaSize, Condition, HealthRegisters, Internals, Wear, WearBin};
pub use target::SimTarget;
