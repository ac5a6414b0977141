//! Quantities that cannot be mixed up: bytes, 512-byte sectors, sizes as a person writes them, simulated time and what
//! is to happen in it; and chance that a seed repeats.

mod agenda;
mod bytes;
mod random;
mod size;
mod time;

pub use agenda::Agenda;
pub use bytes::{Bytes, SECTOR_BYTES, Sectors};
pub use random::{Rng, Scramble};
pub use size::{Size, SizeError};
pub use time::{Instant, Nanos};
