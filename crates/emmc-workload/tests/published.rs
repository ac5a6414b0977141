//! What was published of real cards, against their profiles: the same suites, in simulated time.
//!
//! `cargo test --release -p emmc-workload --test published -- --nocapture` prints every figure beside the published one.

#[path = "published/blog.rs"]
mod blog;
#[path = "published/board_vendor.rs"]
mod board_vendor;
mod cards;
#[path = "published/nine_cards.rs"]
mod nine_cards;
