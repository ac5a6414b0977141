//! Programs of our own that run in the guest, built here and linked statically: the guest's libraries are not this machine's.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::metadata;

/// Where a script names such a program.
const PLACE: &str = "/guest/";

/// Each of them: its name in the guest, which is that of its file in `src/bin`.
const PROGRAMS: [&str; 1] = ["disk-writer"];

/// Builds those that `script` calls.
pub(crate) fn needed(script: &str) -> anyhow::Result<Vec<(&'static str, PathBuf)>> {
    let called = PROGRAMS.into_iter().filter(|name| script.contains(&format!("{PLACE}{name}")));
    called.map(|name| Ok((name, build(name)?))).collect()
}

fn build(name: &str) -> anyhow::Result<PathBuf> {
    let workspace = metadata::workspace()?;
    let target = workspace.target.join("guest-programs");
    let mut cargo = Command::new("cargo");
    // A folder of its own: the flags would have everything else built anew each time.
    cargo.args(["rustc", "--quiet", "--release", "--locked", "--package", "emmc-guest", "--bin", name, "--target-dir"]);
    cargo.arg(&target).args(["--", "-C", "target-feature=+crt-static"]).current_dir(workspace.root);
    let status = cargo.status().context("cannot run cargo")?;
    ensure!(status.success(), "cargo rustc: {status}");
    Ok(target.join("release").join(name))
}
