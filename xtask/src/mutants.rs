//! Mutation run: known faults are put into a copy of the tree, one at a time, and the test named for each must fail.
//!
//! A mutant is one edit of the source. Its anchor must occur exactly once in its file, so an edit that no longer
//! applies fails loudly, here and in the unit tests of this file. First every test that is named must pass on the tree
//! as it is: a test that always fails would kill everything.

mod erase;
mod list;
mod port;

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use crate::metadata;
use list::MUTANTS;

/// A fault.
struct Mutant {
    name: &'static str,
    file: &'static str,
    anchor: &'static str,
    instead: &'static str,
    /// The tests of which one must fail: arguments of `cargo test`, and the part of a name.
    killer: (&'static str, &'static str),
}

/// Tests that take longer never end: they take seconds.
const HANGS_AFTER: Duration = Duration::from_secs(200);

/// Mutants of one round in CI.
const IN_A_ROUND: usize = 15;

/// The mutants of a round, in turns over all.
pub(crate) fn of_round(round: usize) -> Vec<&'static str> {
    (0..IN_A_ROUND).map(|index| MUTANTS[(round * IN_A_ROUND + index) % MUTANTS.len()].name).collect()
}

/// Runs every mutant, or those named, and prints a table.
///
/// Errors: a mutant that survives, an anchor that is not there.
pub(crate) fn run(only: &[&str]) -> anyhow::Result<()> {
    let root = metadata::workspace()?.root;
    for name in only {
        ensure!(MUTANTS.iter().any(|mutant| mutant.name == *name), "no mutant is named {name:?}");
    }
    for mutant in MUTANTS {
        mutated(&root, mutant)?;
    }
    let tree = root.join("target/mutants/tree");
    copy_tree(&root, &tree)?;
    let chosen: Vec<&Mutant> = MUTANTS.iter().filter(|it| only.is_empty() || only.contains(&it.name)).collect();
    let killers: BTreeSet<_> = chosen.iter().map(|mutant| mutant.killer).collect();
    for killer in killers {
        let passes = cargo_test(&root, &tree, killer)?.is_some_and(|output| output.status.success() && ran(&output));
        ensure!(passes, "without a mutant, cargo test {} {}: a test fails, or there is none", killer.0, killer.1);
    }
    println!("{:45} {:>8}  killed by", "mutant", "seconds");
    let mut survivors = Vec::new();
    for mutant in chosen {
        let begun = Instant::now();
        let killer = kill(&root, &tree, mutant)?;
        let seconds = begun.elapsed().as_secs_f64();
        println!("{:45} {seconds:8.0}  {}", mutant.name, killer.as_deref().unwrap_or("SURVIVES"));
        if killer.is_none() {
            survivors.push(mutant.name);
        }
    }
    ensure!(survivors.is_empty(), "mutants survive: {}", survivors.join(", "));
    Ok(())
}

/// The file of a mutant, with its fault.
fn mutated(root: &Path, mutant: &Mutant) -> anyhow::Result<String> {
    let source = std::fs::read_to_string(root.join(mutant.file)).with_context(|| mutant.file.to_owned())?;
    let count = source.matches(mutant.anchor).count();
    ensure!(
        count == 1,
        "mutant {:?}: its anchor occurs {count} times in {}: bring it up to date in xtask/src/mutants.rs",
        mutant.name,
        mutant.file
    );
    Ok(source.replacen(mutant.anchor, mutant.instead, 1))
}

/// The test that fails on a mutant.
fn kill(root: &Path, tree: &Path, mutant: &Mutant) -> anyhow::Result<Option<String>> {
    let file = tree.join(mutant.file);
    let whole = std::fs::read(&file).with_context(|| file.display().to_string())?;
    // From the copy: the tree itself may have changed since.
    std::fs::write(&file, mutated(tree, mutant)?)?;
    let output = cargo_test(root, tree, mutant.killer);
    std::fs::write(&file, whole)?;
    let Some(output) = output? else { return Ok(Some("a test hangs".into())) };
    if output.status.success() {
        return Ok(None);
    }
    let Some(test) = first_failure(&output) else {
        bail!("mutant {:?} does not build:\n{}", mutant.name, String::from_utf8_lossy(&output.stderr));
    };
    Ok(Some(test))
}

/// Whether a test ran.
fn ran(output: &Output) -> bool {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().any(|line| line.starts_with("running ") && !line.starts_with("running 0 "))
}

/// Some tests; `None`: they did not end in time.
fn cargo_test(root: &Path, tree: &Path, (args, filter): (&str, &str)) -> anyhow::Result<Option<Output>> {
    let command = |builds: bool| {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .args(["test", "--quiet"])
            .args(builds.then_some("--no-run"))
            .args(args.split_whitespace())
            .arg(filter)
            .current_dir(tree);
        command.env("CARGO_TARGET_DIR", root.join("target/mutants/build")).env("RUST_BACKTRACE", "0");
        // A fault is built in a third of the time.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "1");
        command
    };
    // Built first, so that the time limit is the tests' own.
    let built = command(true).output().context("cargo test --no-run")?;
    if !built.status.success() {
        return Ok(Some(built));
    }
    let out = root.join("target/mutants/output");
    let file = std::fs::File::create(&out).with_context(|| out.display().to_string())?;
    // A group of its own: cargo's child is the one that hangs.
    let mut command = command(false);
    command.stdout(file).stderr(std::process::Stdio::null()).process_group(0);
    let mut child = command.spawn().context("cargo test")?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(Output { status, stdout: std::fs::read(&out)?, stderr: Vec::new() }));
        }
        if begun.elapsed() > HANGS_AFTER {
            let group = format!("-{}", child.id());
            Command::new("kill").args(["--", &group]).status().context("kill")?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The first test that failed; `None`: none ran.
fn first_failure(output: &Output) -> Option<String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let failed = text.lines().find_map(|line| Some(line.strip_prefix("---- ")?.split(' ').next()?.to_owned()));
    failed.or_else(|| text.contains("running ").then(|| "the process ended".into()))
}

/// Copies what git tracks; unchanged files keep their times, so that little is built again.
fn copy_tree(root: &Path, tree: &Path) -> anyhow::Result<()> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output().context("git ls-files")?;
    ensure!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr).trim());
    let names = String::from_utf8(listed.stdout)?;
    let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
    for name in names.split_terminator('\0') {
        let (from, to) = (root.join(name), tree.join(name));
        let Ok(content) = std::fs::read(&from) else { continue };
        if std::fs::read(&to).is_ok_and(|old| old == content) {
            continue;
        }
        if let Some(folder) = to.parent().filter(|folder| folders.insert(folder.to_path_buf())) {
            std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        }
        std::fs::write(&to, content).with_context(|| to.display().to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_applies_to_the_present_source() {
        let root = metadata::workspace().unwrap().root;
        for mutant in MUTANTS {
            let source = std::fs::read_to_string(root.join(mutant.file)).unwrap();
            let changed = mutated(&root, mutant).unwrap_or_else(|error| panic!("{error}"));
            assert_ne!(source, changed, "{}", mutant.name);
        }
    }

    #[test]
    fn every_mutant_has_its_round() {
        assert!(MUTANTS.len() >= 40, "{}", MUTANTS.len());
        let names: BTreeSet<&str> = MUTANTS.iter().map(|mutant| mutant.name).collect();
        assert_eq!(names.len(), MUTANTS.len());
        let rounds = MUTANTS.len().div_ceil(IN_A_ROUND);
        let found: BTreeSet<&str> = (100..100 + rounds).flat_map(of_round).collect();
        assert_eq!(found, names);
    }

    #[test]
    fn an_anchor_that_is_gone_is_an_error() {
        let root = metadata::workspace().unwrap().root;
        let gone = Mutant { anchor: "no such line", ..MUTANTS[0] };
        assert!(mutated(&root, &gone).unwrap_err().to_string().contains("occurs 0 times"));
    }
}
