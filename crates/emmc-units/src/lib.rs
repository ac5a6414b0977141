//! Quantities that cannot be mixed up: bytes, 512-byte sectors, sizes as a person writes them, simulated time.

mod bytes;
mod size;
mod time;

pub use bytes::{Bytes, SECTOR_BYTES, Sectors};
pub use size::{Size, SizeError};
pub use time::{Instant, Nanos};
