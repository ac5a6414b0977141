//! Quantities that cannot be mixed up: bytes, 512-byte sectors, sizes in command line syntax, simulated time and its
//! events; reproducible random numbers; names as the kernel lists mounts.

mod agenda;
mod bytes;
mod mount_name;
mod random;
mod size;
mod time;
mod unprintable;

pub use agenda::Agenda;
pub use bytes::{Bytes, SECTOR_BYTES, Sectors};
pub use mount_name::mount_name;
pub use random::{Rng, Scramble};
pub use size::{Size, SizeError};
pub use time::{Instant, Nanos};
pub use unprintable::{is_unprintable, printable_json};
