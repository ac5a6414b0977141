//! Published figures of real cards compared with their profiles: the same suites, in simulated time.
//!
//! `cargo test --release -p emmc-workload --test it published:: -- --nocapture` prints every figure beside the
//! published one.

mod blog;
mod board_vendor;
mod nine_cards;
