//! Everything that must hold before a change lands; the checks that fail fastest come first.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};

use crate::targets::{TARGETS, output};
use crate::{cross, dist, fuzz, guest, metadata, mutants, recipes, sim, size, tidy};

/// How long each fuzz target runs.
const FUZZ_SECONDS: u32 = 10;

/// Number of power cuts; `cargo xtask sim` alone does more.
const SIMULATED: [&str; 4] = ["--workloads", "12", "--cuts", "30000"];

/// Whose board binary is measured, which takes four minutes.
const BOARD: &str = "aarch64";

/// Whether the oldest supported Rust is installed, and its builds.
const MSRV_CHECK: (&str, &str) = ("+1.85 --version", "+1.85 check --workspace --all-features --locked");

/// Fuzz targets are a workspace of their own: nothing else notices when an import of theirs is gone.
const FUZZ_CHECK: &str = "check --manifest-path fuzz/Cargo.toml --bins --locked";

/// Not among the tests of the workspace: the feature links the system's OpenSSL.
const TLS_TESTS: &str = "test --package emmc-serve --package emmclab --features tls --locked --test it -- tls";

/// What the registry would get; building each from its package is left to a release (docs/packages.md).
const PACKAGES: &str = "package --workspace --exclude emmc-compare --exclude emmc-guest --exclude xtask --no-verify \
                        --allow-dirty --offline --locked --quiet";

/// The extent of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Everything.
    Whole,
    /// Without steps that take minutes.
    Quick,
    /// Without the tests, which have just run.
    AfterTests,
}

/// Runs it.
pub(crate) fn run(extent: Extent) -> anyhow::Result<()> {
    let root = metadata::workspace()?.root;
    println!("== tidy");
    tidy::run()?;
    let cargo = |args: &str, environment: &[(&str, &str)]| step(&root, args, environment);
    cargo("fmt --all --check", &[])?;
    cargo("clippy --workspace --all-targets --all-features --locked -- -D warnings", &[])?;
    cargo(FUZZ_CHECK, &[])?;
    if extent != Extent::AfterTests {
        cargo("test --workspace --locked", &[])?;
    }
    if extent == Extent::Quick {
        println!(
            "SKIPPED (--quick): the board's features, documentation, the oldest Rust, cargo deny, other processors, packages, power cuts, the guest, fuzzing"
        );
        return Ok(());
    }
    cargo("clippy --package emmclab --no-default-features --all-targets --locked -- -D warnings", &[])?;
    let day = output("date", &["-u", "+%-j"])?.trim().parse().context("date")?;
    let Turns { feature, rust, has_size, long } = Turns::of(day);
    println!("today's turns: {feature}, {rust:?}, {long:?}, the board's binary: {has_size}");
    let alone = format!("clippy --package emmclab --no-default-features --features {feature} --locked -- -D warnings");
    cargo(&alone, &[])?;
    match rust {
        Rust::Tls => cargo(TLS_TESTS, &[])?,
        Rust::Oldest if available(&root, MSRV_CHECK.0) => cargo(MSRV_CHECK.1, &[])?,
        Rust::Oldest => println!(
            "SKIPPED: the oldest supported Rust is not installed (rustup toolchain install 1.85 --profile minimal)"
        ),
    }
    cargo("doc --workspace --no-deps --all-features --locked", &[("RUSTDOCFLAGS", "-D warnings")])?;
    if available(&root, "deny --version") {
        cargo("deny check --hide-inclusion-graph licenses bans sources", &[])?;
        // They need a database that is downloaded separately.
        if available(&root, "deny fetch db") {
            cargo("deny check --hide-inclusion-graph advisories", &[])?;
        } else {
            println!("SKIPPED: advisories: their database cannot be fetched here (cargo deny fetch db)");
        }
    } else {
        println!("SKIPPED: cargo deny is not installed (cargo install --locked cargo-deny)");
    }
    if has_size {
        stage("the board's binary", || size::run(&[BOARD]))?;
    }
    match long {
        Long::Processor(today) => stage(&format!("other processors: {today} today"), || cross::run(&[today]))?,
        Long::Packages => {
            let options = ["--quick", "--install", std::env::consts::ARCH];
            stage("packages: built twice, installed", || dist::run(&options))?;
        }
        Long::Mutants(round) => stage("mutants of today", || mutants::run(&mutants::of_round(round)))?,
    }
    cargo(PACKAGES, &[])?;
    stage("recipes", || recipes::run(&["--check"]))?;
    stage("power cuts", || sim::run(&SIMULATED))?;
    // A fresh seed a day; a failure prints its own, and the year's days are at most 366.
    let seed = (1_000_000 * day).to_string();
    println!("power cuts of today: --seed {seed}");
    stage("power cuts of today", || sim::run(&["--workloads", "0", "--cuts", "20000", "--seed", &seed]))?;
    stage("the guest", || guest::ci_trials(day))?;
    // Its kernel was not there yet when the other tests ran.
    cargo("test --workspace --locked --test it -- lab::", &[])?;
    // Nothing there depends on time, so something else may run in parallel.
    let targets = fuzz::of_day(day)?;
    let building = targets.first().map_or(Ok(None), |target| fuzz::Building::start(target))?;
    stage("power cuts in the guest", guest::ci_cuts)?;
    building.map_or(Ok(()), fuzz::Building::wait)?;
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    stage("fuzzing: a third of the targets today", || fuzz::run(FUZZ_SECONDS, &targets))
}

/// What takes minutes and has its turn on a day of the year.
#[derive(Debug, PartialEq, Eq)]
struct Turns {
    /// Of the board's binary, alone.
    feature: &'static str,
    rust: Rust,
    /// Of the board's binary.
    has_size: bool,
    long: Long,
}

#[derive(Debug, PartialEq, Eq)]
enum Rust {
    Tls,
    Oldest,
}

#[derive(Debug, PartialEq, Eq)]
enum Long {
    Processor(&'static str),
    Packages,
    /// The round over all mutants.
    Mutants(usize),
}

impl Turns {
    /// `.ci/run` installs cargo-deb on the days of packages.
    fn of(day: usize) -> Self {
        let (round, foreign) = (day / 3, &TARGETS[1..]);
        let long = match day % 3 {
            0 => Long::Processor(foreign[round % foreign.len()].name),
            1 => Long::Packages,
            _ => Long::Mutants(round),
        };
        let rust = if day % 2 == 0 { Rust::Tls } else { Rust::Oldest };
        Self { feature: ["bench", "sim", "trace"][day % 3], rust, has_size: day % 3 == 0, long }
    }
}

/// Announces a stage, runs it and prints how long it took.
fn stage(name: &str, run: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    println!("== {name}");
    let start = Instant::now();
    run()?;
    println!("   {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Runs cargo and stops at its failure.
fn step(root: &Path, args: &str, environment: &[(&str, &str)]) -> anyhow::Result<()> {
    stage(&format!("cargo {args}"), || {
        let status = command(root, args).envs(environment.iter().copied()).status().context("cannot run cargo")?;
        ensure!(status.success(), "cargo {args}: {status}");
        Ok(())
    })
}

fn available(root: &Path, args: &str) -> bool {
    let status = command(root, args).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn command(root: &Path, args: &str) -> Command {
    let mut command = Command::new("cargo");
    command.args(args.split(' ')).current_dir(root);
    // `cargo xtask` sets the toolchain for child processes, which would override `+nightly`.
    if args.starts_with('+') {
        command.env_remove("RUSTUP_TOOLCHAIN");
    }
    command
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Within two weeks everything had its turn; the mutants' rounds have a test of their own.
    #[test]
    fn each_has_its_turn() {
        let turns: Vec<Turns> = (300..314).map(Turns::of).collect();
        let features: BTreeSet<&str> = turns.iter().map(|turn| turn.feature).collect();
        assert_eq!(features.len(), 3);
        assert!(turns.iter().any(|turn| turn.rust == Rust::Tls) && turns.iter().any(|turn| turn.rust == Rust::Oldest));
        assert_eq!(turns.iter().filter(|turn| turn.has_size).count(), 5);
        let processors: BTreeSet<&str> = turns
            .iter()
            .filter_map(|turn| if let Long::Processor(name) = turn.long { Some(name) } else { None })
            .collect();
        assert_eq!(processors.len(), TARGETS.len() - 1);
        assert!(turns.iter().any(|turn| turn.long == Long::Packages));
        let mutants: Vec<usize> = turns
            .iter()
            .filter_map(|turn| if let Long::Mutants(round) = turn.long { Some(round) } else { None })
            .collect();
        assert!(mutants.windows(2).all(|pair| pair[1] == pair[0] + 1) && mutants.len() > 3, "{mutants:?}");
    }
}
