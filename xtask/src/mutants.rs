//! Mutation run: known faults are put into a copy of the tree, one at a time, and the torture or a test must fail.
//!
//! A mutant is one edit of the source. Its anchor must occur exactly once in its file, so an edit that no longer
//! applies fails loudly, here and in the unit tests of this file. Stages, until one fails: the power-cut torture, the
//! unit tests of the card, its integration tests.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use crate::metadata;

/// A fault.
struct Mutant {
    name: &'static str,
    file: &'static str,
    anchor: &'static str,
    instead: &'static str,
}

const MUTANTS: [Mutant; 10] = [
    Mutant {
        name: "skipped map flush",
        file: "crates/emmc-card/src/ftl/mapping_cache.rs",
        anchor: "        let Frame { page, dirty, .. } = self.frames[self.hand];\n        if dirty {",
        instead: "        let Frame { page, dirty, .. } = self.frames[self.hand];\n        if dirty && page == NOWHERE {",
    },
    Mutant {
        name: "acknowledged too early",
        file: "crates/emmc-card/src/ftl/page/write.rs",
        anchor: "Durability::Reliable => done = done.max(self.settle_host(nand, ready)?),",
        instead: "Durability::Reliable => drop(self.settle_host(nand, ready)?),",
    },
    Mutant {
        name: "stale copy in collection",
        file: "crates/emmc-card/src/ftl/page/collect.rs",
        anchor: "                    count += (bits >> slot & 1) as usize;",
        instead: "                    count += usize::from(bits >> slot & 1 == 1 || unit != NO_UNIT);",
    },
    Mutant {
        name: "lost trim",
        file: "crates/emmc-card/src/ftl/page/trim.rs",
        anchor: "TrimKind::Trim => self.log_trim(nand, first, count, now),",
        instead: "TrimKind::Trim => Ok(now),",
    },
    Mutant {
        name: "ignored reliable write",
        file: "crates/emmc-card/src/device/mod.rs",
        anchor: "if flags.reliable || self.registers",
        instead: "if self.registers",
    },
    Mutant {
        name: "wrong WR_REL",
        file: "crates/emmc-card/src/device/mod.rs",
        anchor: "self.registers.ext_csd[reg::WR_REL_SET] >> bit & 1 == 1",
        instead: "self.registers.ext_csd[reg::WR_REL_SET] >> bit & 1 == 0",
    },
    Mutant {
        name: "wear counter lost",
        file: "crates/emmc-card/src/nand/ops.rs",
        anchor: "        state.erase_count += 1;",
        instead: "        state.erase_count += u32::from(state.erase_count < 5);",
    },
    Mutant {
        name: "older copy in recovery",
        file: "crates/emmc-card/src/ftl/page/recover.rs",
        anchor: "        for found in &survey.pages {\n            let first",
        instead: "        for found in survey.pages.iter().rev() {\n            let first",
    },
    Mutant {
        name: "ready before data",
        file: "crates/emmc-card/src/card/queue.rs",
        anchor: "slot.is_some_and(|task| task.ready.is_some_and(|at| at <= now));",
        instead: "slot.is_some_and(|task| task.ready.is_some_and(|at| at > Instant::START) && now > Instant::START);",
    },
    Mutant {
        name: "write buffer kept over a cut",
        file: "crates/emmc-card/src/device/path.rs",
        anchor: "    pub(crate) fn forget(&mut self) {\n        self.cache.clear();",
        instead: "    pub(crate) fn forget(&mut self) {",
    },
];

/// Tests of a stage that take longer never end: they take a minute or two.
const HANGS_AFTER: Duration = Duration::from_secs(400);

/// What must fail, in turn: what it is called, and the arguments of `cargo test`.
const STAGES: [(&str, &[&str]); 3] = [
    ("torture", &["-p", "emmc-torture", "--lib", "--", "--include-ignored"]),
    ("tests", &["-p", "emmc-card", "--lib"]),
    ("tests", &["-p", "emmc-card", "--test", "it"]),
];

/// Runs every mutant, or those named, and prints a table.
///
/// Errors: a mutant that survives, an anchor that is not there.
pub(crate) fn run(only: &[&str]) -> anyhow::Result<()> {
    let root = metadata::workspace()?.root;
    for name in only {
        ensure!(MUTANTS.iter().any(|mutant| mutant.name == *name), "no mutant is named {name:?}");
    }
    for mutant in &MUTANTS {
        mutated(&root, mutant)?;
    }
    let tree = root.join("target/mutants/tree");
    copy_tree(&root, &tree)?;
    println!("{:30} {:10} {:>8}  first failure", "mutant", "killed by", "seconds");
    let mut survivors = Vec::new();
    for mutant in MUTANTS.iter().filter(|mutant| only.is_empty() || only.contains(&mutant.name)) {
        let begun = Instant::now();
        let killer = kill(&root, &tree, mutant)?;
        let seconds = begun.elapsed().as_secs_f64();
        match killer {
            Some((stage, test)) => println!("{:30} {stage:10} {seconds:8.0}  {test}", mutant.name),
            None => {
                println!("{:30} {:10} {seconds:8.0}", mutant.name, "SURVIVES");
                survivors.push(mutant.name);
            }
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

/// The stage and the test that fail on a mutant.
fn kill(root: &Path, tree: &Path, mutant: &Mutant) -> anyhow::Result<Option<(&'static str, String)>> {
    let file = tree.join(mutant.file);
    std::fs::write(&file, mutated(root, mutant)?)?;
    let killer = killer(root, tree, mutant);
    std::fs::copy(root.join(mutant.file), &file)?;
    killer
}

fn killer(root: &Path, tree: &Path, mutant: &Mutant) -> anyhow::Result<Option<(&'static str, String)>> {
    for (stage, args) in STAGES {
        let Some(output) = cargo_test(root, tree, args)? else { return Ok(Some((stage, "a test hangs".into()))) };
        if output.status.success() {
            continue;
        }
        let Some(test) = first_failure(&output) else {
            bail!("mutant {:?} does not build:\n{}", mutant.name, String::from_utf8_lossy(&output.stderr));
        };
        return Ok(Some((stage, test)));
    }
    Ok(None)
}

/// The tests of a stage; `None`: they did not end in time.
fn cargo_test(root: &Path, tree: &Path, args: &[&str]) -> anyhow::Result<Option<Output>> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "--quiet"]);
    command.current_dir(tree).env("CARGO_TARGET_DIR", root.join("target/mutants/build")).env("RUST_BACKTRACE", "0");
    // Built first, so that the time limit is the tests' own.
    let tests = args.iter().position(|arg| *arg == "--").unwrap_or(args.len());
    let mut build = Command::new(command.get_program());
    build.args(command.get_args()).args(&args[..tests]).arg("--no-run").current_dir(tree);
    build.env("CARGO_TARGET_DIR", root.join("target/mutants/build"));
    let built = build.output().context("cargo test --no-run")?;
    if !built.status.success() {
        return Ok(Some(built));
    }
    let out = root.join("target/mutants/output");
    let file = std::fs::File::create(&out).with_context(|| out.display().to_string())?;
    // A group of its own: cargo's child is the one that hangs.
    command.args(args).stdout(file).stderr(std::process::Stdio::null()).process_group(0);
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
        for mutant in &MUTANTS {
            let source = std::fs::read_to_string(root.join(mutant.file)).unwrap();
            let changed = mutated(&root, mutant).unwrap_or_else(|error| panic!("{error}"));
            assert_ne!(source, changed, "{}", mutant.name);
        }
    }

    #[test]
    fn an_anchor_that_is_gone_is_an_error() {
        let root = metadata::workspace().unwrap().root;
        let gone = Mutant { anchor: "no such line", ..MUTANTS[0] };
        assert!(mutated(&root, &gone).unwrap_err().to_string().contains("occurs 0 times"));
    }
}
