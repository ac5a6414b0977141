//! Programs of our own that run in the guest, built here and linked statically: the guest's libraries are not this
//! machine's.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::metadata;

/// Where a script names such a program.
const PLACE: &str = "/guest/";

/// A program: its name in the guest, and what cargo is told to build it.
struct Program {
    name: &'static str,
    cargo: &'static [&'static str],
}

/// Each of them.
const PROGRAMS: [Program; 2] = [
    Program { name: "disk-writer", cargo: &["--package", "emmc-guest", "--bin", "disk-writer"] },
    // Quickly built rather than fast: the emulated processor is the slower by far.
    Program {
        name: "emmclab",
        cargo: &[
            "--package",
            "emmclab",
            "--bin",
            "emmclab",
            "--no-default-features",
            "--features",
            "bench,html",
            "--config",
            "profile.release.lto=false",
            "--config",
            "profile.release.codegen-units=16",
            "--config",
            "profile.release.opt-level=1",
        ],
    },
];

/// Builds those that `script` calls.
pub(crate) fn needed(script: &str) -> anyhow::Result<Vec<(&'static str, PathBuf)>> {
    let called = PROGRAMS.iter().filter(|program| script.contains(&format!("{PLACE}{}", program.name)));
    called.map(|program| Ok((program.name, build(program)?))).collect()
}

fn build(program: &Program) -> anyhow::Result<PathBuf> {
    let workspace = metadata::workspace()?;
    let target = workspace.target.join("guest-programs");
    let mut cargo = Command::new("cargo");
    // A folder of its own: the flags would have everything else built anew each time.
    cargo.args(["rustc", "--quiet", "--release", "--locked"]).args(program.cargo).arg("--target-dir");
    cargo.arg(&target).args(["--", "-C", "target-feature=+crt-static"]).current_dir(workspace.root);
    let status = cargo.status().context("cannot run cargo")?;
    ensure!(status.success(), "cargo rustc: {status}");
    Ok(target.join("release").join(program.name))
}
