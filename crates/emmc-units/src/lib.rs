//! Sizes that cannot be mixed up: bytes, 512-byte sectors, and sizes as a person writes them.
//!
//! Absent on purpose: time. It arrives with the virtual card, which is the first thing that moves it.

mod bytes;
mod size;

pub use bytes::{Bytes, SECTOR_BYTES, Sectors};
pub use size::{Size, SizeError};
