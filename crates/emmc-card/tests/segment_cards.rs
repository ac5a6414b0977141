//! Cards with segment mapping against what was published of them: flashbench runs of 2011 and iozone rows of 2018.
//!
//! The same programs are run against the virtual parts, through the whole data path, each write waiting for the one
//! before. `cargo test -p emmc-card --test segment_cards -- --nocapture` prints every cell with its error.

#[path = "segment_cards/at_once.rs"]
mod at_once;
#[path = "segment_cards/flashbench.rs"]
mod flashbench;
#[path = "segment_cards/host.rs"]
mod host;
#[path = "segment_cards/iozone.rs"]
mod iozone;
