//! Write amplification of the page-mapped layer against the exact models, and what follows from them for wear.
//!
//! The whole matrix is in the ignored tests: `cargo test --release -p emmc-card --test write_amplification -- --ignored`.

#[path = "write_amplification/bare.rs"]
mod bare;
#[path = "write_amplification/drive.rs"]
mod drive;
#[path = "models/mod.rs"]
mod models;
#[path = "write_amplification/skewed.rs"]
mod skewed;
#[path = "write_amplification/table.rs"]
mod table;
#[path = "write_amplification/uniform.rs"]
mod uniform;
#[path = "write_amplification/wear.rs"]
mod wear;
