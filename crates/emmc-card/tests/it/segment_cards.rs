//! Cards with segment mapping against what was published of them: flashbench runs of 2011 and iozone rows of 2018.
//!
//! The same programs are run against the virtual parts, through the whole data path, each write waiting for the one
//! before. `cargo test -p emmc-card --test it segment_cards:: -- --nocapture` prints every cell with its error.

mod bulk_copies;
mod flashbench;
mod host;
mod iozone;
mod write_limit;
