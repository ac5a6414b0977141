//! Write amplification of the page-mapped layer against the exact models, and the resulting wear.
//!
//! The whole matrix is in the ignored tests: `cargo test --release -p emmc-card --test it write_amplification:: --
//! --ignored`.

mod bare;
mod drive;
mod skewed;
mod table;
mod uniform;
mod wear;
