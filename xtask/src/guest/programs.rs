//! Our own programs for the guest, linked statically: the guest's libraries differ from this machine's.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};

use crate::metadata;

/// The path prefix of such programs in a script.
const PLACE: &str = "/guest/";

/// A program: its name in the guest, and cargo's arguments.
struct Program {
    name: &'static str,
    cargo: &'static [&'static str],
}

/// Each of them.
const PROGRAMS: [Program; 2] = [
    Program { name: "disk-writer", cargo: &["--package", "emmc-guest", "--bin", "disk-writer"] },
    // Fast to build rather than fast to run: the emulated processor is far slower.
    Program {
        name: "emmclab",
        cargo: &[
            "--package",
            "emmclab",
            "--bin",
            "emmclab",
            "--no-default-features",
            "--features",
            "bench,clone,html,trace",
            "--config",
            "profile.release.lto=false",
            "--config",
            "profile.release.codegen-units=16",
            "--config",
            "profile.release.opt-level=1",
        ],
    },
];

/// Builds the programs that `script` uses.
pub(crate) fn needed(script: &str) -> anyhow::Result<Vec<(&'static str, PathBuf)>> {
    let called = PROGRAMS.iter().filter(|program| script.contains(&format!("{PLACE}{}", program.name)));
    called.map(|program| Ok((program.name, build(program)?))).collect()
}

fn build(program: &Program) -> anyhow::Result<PathBuf> {
    let workspace = metadata::workspace()?;
    let target = workspace.target.join("guest-programs");
    let mut cargo = Command::new("cargo");
    // A separate target folder: other flags would rebuild everything each time.
    cargo.args(["rustc", "--quiet", "--release", "--locked"]).args(program.cargo).arg("--target-dir");
    cargo.arg(&target).args(["--", "-C", "target-feature=+crt-static"]).current_dir(workspace.root);
    let status = cargo.status().context("cannot run cargo")?;
    ensure!(status.success(), "cargo rustc: {status}");
    Ok(target.join("release").join(program.name))
}
