//! Everything that must hold before a change lands, in the order in which it fails soonest.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};

use crate::{metadata, tidy};

/// How long each fuzz target runs.
const FUZZ_SECONDS: u32 = 20;

/// Whether the oldest supported Rust is there, and what it must build.
const MSRV_CHECK: (&str, &str) = ("+1.85 --version", "+1.85 check --workspace --all-features --locked");

/// Runs all of it; `quick` leaves out what takes minutes.
pub(crate) fn run(quick: bool) -> anyhow::Result<()> {
    let root = metadata::workspace()?.root;
    println!("== tidy");
    tidy::run()?;
    let cargo = |args: &str, environment: &[(&str, &str)]| step(&root, args, environment);
    cargo("fmt --all --check", &[])?;
    cargo("clippy --workspace --all-targets --all-features --locked -- -D warnings", &[])?;
    cargo("test --workspace --locked", &[])?;
    if quick {
        println!("SKIPPED (--quick): the board's features, documentation, the oldest Rust, cargo deny, fuzzing");
        return Ok(());
    }
    cargo("clippy --package emmclab --no-default-features --all-targets --locked -- -D warnings", &[])?;
    cargo("doc --workspace --no-deps --all-features --locked", &[("RUSTDOCFLAGS", "-D warnings")])?;
    if available(&root, MSRV_CHECK.0) {
        cargo(MSRV_CHECK.1, &[])?;
    } else {
        println!(
            "SKIPPED: the oldest supported Rust is not installed (rustup toolchain install 1.85 --profile minimal)"
        );
    }
    if available(&root, "deny --version") {
        // Advisories need a database that is downloaded apart from any crate.
        cargo("deny check --hide-inclusion-graph licenses bans sources", &[])?;
    } else {
        println!("SKIPPED: cargo deny is not installed (cargo install --locked cargo-deny)");
    }
    fuzz(&root)
}

/// Runs every fuzz target for a moment: enough to notice one that no longer builds or panics at once.
fn fuzz(root: &Path) -> anyhow::Result<()> {
    if !root.join("fuzz/Cargo.toml").is_file() {
        println!("SKIPPED: there is no fuzz folder");
        return Ok(());
    }
    if !available(root, "+nightly fuzz --version") {
        println!("SKIPPED: fuzzing needs a nightly toolchain and cargo-fuzz (cargo install --locked cargo-fuzz)");
        return Ok(());
    }
    let output = command(root, "+nightly fuzz list").output().context("cargo fuzz list")?;
    ensure!(output.status.success(), "cargo fuzz list: {}", String::from_utf8_lossy(&output.stderr).trim());
    let targets = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(targets.split_whitespace().next().is_some(), "cargo fuzz list names no target");
    for target in targets.split_whitespace() {
        step(root, &format!("+nightly fuzz run {target} -- -max_total_time={FUZZ_SECONDS} -verbosity=0"), &[])?;
    }
    Ok(())
}

/// Runs cargo and stops at its failure.
fn step(root: &Path, args: &str, environment: &[(&str, &str)]) -> anyhow::Result<()> {
    println!("== cargo {args}");
    let start = Instant::now();
    let status = command(root, args).envs(environment.iter().copied()).status().context("cannot run cargo")?;
    ensure!(status.success(), "cargo {args}: {status}");
    println!("   {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn available(root: &Path, args: &str) -> bool {
    let status = command(root, args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn command(root: &Path, args: &str) -> Command {
    let mut command = Command::new("cargo");
    command.args(args.split(' ')).current_dir(root);
    // `cargo xtask` fixes the toolchain for what it starts, which would overrule `+nightly`.
    if args.starts_with('+') {
        command.env_remove("RUSTUP_TOOLCHAIN");
    }
    command
}
