//! How large the binary for a board is.

use std::process::Command;

use anyhow::{Context, ensure};

use crate::metadata;

/// Builds it and prints its size.
pub(crate) fn run() -> anyhow::Result<()> {
    let workspace = metadata::workspace()?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--locked", "--profile", "board", "--package", "emmclab", "--no-default-features"]);
    let status = cargo.current_dir(&workspace.root).status().context("cannot run cargo build")?;
    ensure!(status.success(), "the board build failed");
    let binary = workspace.target.join("board/emmclab");
    let bytes = binary.metadata().with_context(|| binary.display().to_string())?.len();
    println!(
        "{bytes} bytes ({:.2} MB, {:.2} MiB)  {}",
        bytes as f64 / 1e6,
        bytes as f64 / f64::from(1 << 20),
        binary.display()
    );
    Ok(())
}
