//! The whole tool on other processors: built, run under qemu-user, and compared with this machine's own output.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, bail, ensure};

use crate::metadata;
use crate::targets::{self, QUICK, TARGETS, Target};

/// What is compared of each saved source.
const COMMANDS: [&[&str]; 8] = [
    &["show"],
    &["show", "--all", "--json"],
    &["health"],
    &["health", "--json"],
    &["check"],
    &["plan", "hwpart", "--enh-user", "max"],
    &["plan", "hwpart", "--enh-user", "max", "--wrrel", "on", "--json"],
    &["study"],
];

/// The folders below `testdata` with registers and other tools' texts of cards.
const SOURCES: [&str; 9] = [
    "cmd56_raw",
    "emmcparm",
    "ext_csd_raw",
    "hwpartition",
    "ids",
    "mmc_extcsd_text",
    "sdmon",
    "seeds_console",
    "uboot_mmc_info",
];

/// A virtual card exercises the simulator, whose figures must not depend on the width of `usize` or the byte order.
const VIRTUAL: [&[&str]; 2] =
    [&["show", "sim:generic-8g", "--json"], &["plan", "hwpart", "sim:generic-8g", "--enh-user", "max"]];

/// Builds and compares each named target, or all foreign ones; unavailable ones are skipped with a message.
pub(crate) fn run(names: &[&str]) -> anyhow::Result<()> {
    let workspace = metadata::workspace()?;
    let targets = targets::named(names, &TARGETS[1..])?;
    let mut own: Option<Vec<Outcome>> = None;
    let cases = cases(&workspace.root)?;
    for target in targets {
        if let Some(reason) = target.missing_to_build().or_else(|| target.missing_to_run()) {
            println!("SKIPPED: {} under qemu-user: {reason}", target.name);
            continue;
        }
        if own.is_none() {
            let status = Command::new("cargo")
                .args(["build", "--locked", "--quiet", "--package", "emmclab"])
                .current_dir(&workspace.root)
                .status();
            ensure!(status.context("cannot run cargo build")?.success(), "the build for this machine failed");
            let binary = workspace.target.join("debug/emmclab");
            own = Some(outcomes(&cases, &workspace.root, &|| Command::new(&binary))?);
        }
        let start = Instant::now();
        let status = target
            .cargo_build("")
            .args(QUICK)
            .current_dir(&workspace.root)
            .status()
            .context("cannot run cargo build")?;
        ensure!(status.success(), "the build for {} failed", target.triple);
        let built = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let binary = workspace.target.join(target.triple).join("debug/emmclab");
        let found = outcomes(&cases, &workspace.root, &|| target.run(&binary))?;
        compare(&target, &cases, own.as_deref().unwrap_or_default(), &found)?;
        let ran = start.elapsed().as_secs_f64();
        println!(
            "{}: {} outputs are equal byte for byte (built in {built:.0} s, run in {ran:.0} s)",
            target.name,
            found.len()
        );
    }
    Ok(())
}

type Case = Vec<OsString>;

/// What a run gave: exit code, standard output, standard error.
type Outcome = (Option<i32>, Vec<u8>, Vec<u8>);

fn cases(root: &Path) -> anyhow::Result<Vec<Case>> {
    let mut files = Vec::new();
    for folder in SOURCES {
        collect(&root.join("testdata").join(folder), &mut files)?;
    }
    files.sort();
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Case>();
    let mut cases: Vec<Case> = VIRTUAL.iter().map(|args| words(args)).collect();
    for file in &files {
        // Relative, so that messages are the same in every clone.
        let file = file.strip_prefix(root)?.as_os_str();
        cases.extend(COMMANDS.iter().map(|args| words(args).into_iter().chain([file.to_owned()]).collect::<Case>()));
    }
    Ok(cases)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in folder.read_dir().with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Runs all cases, one per processor in parallel.
fn outcomes(cases: &[Case], root: &Path, command: &(dyn Fn() -> Command + Sync)) -> anyhow::Result<Vec<Outcome>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(vec![None; cases.len()]);
    let work = || -> anyhow::Result<()> {
        while let Some((index, case)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, cases.get(i)?)))
        {
            let outcome = one(command().args(case).current_dir(root))?;
            if let Ok(mut done) = done.lock() {
                done[index] = Some(outcome);
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a thread panicked")))
    })?;
    let done = done.into_inner().unwrap_or_default();
    done.into_iter().collect::<Option<Vec<_>>>().context("a case was not run")
}

fn one(command: &mut Command) -> anyhow::Result<Outcome> {
    for name in ["LC_CTYPE", "LANG", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "RUST_BACKTRACE", "PAGER"] {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    let Output { status, stdout, stderr } =
        command.output().with_context(|| format!("cannot run {}", command.get_program().to_string_lossy()))?;
    Ok((status.code(), stdout, stderr))
}

fn compare(target: &Target, cases: &[Case], own: &[Outcome], found: &[Outcome]) -> anyhow::Result<()> {
    let mut different = 0;
    for ((case, own), found) in cases.iter().zip(own).zip(found) {
        if own != found {
            different += 1;
            let line = case.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
            eprintln!("{}: emmclab {line}: {}", target.name, difference(own, found));
        }
    }
    // Programs that all fail alike would be equal too. Refused plans and cards of unknown health end with other codes.
    let good = own.iter().filter(|(code, stdout, _)| *code == Some(0) && !stdout.is_empty()).count();
    ensure!(good * 3 > own.len(), "only {good} of {} runs on this machine gave an answer", own.len());
    ensure!(different == 0, "{}: {different} of {} outputs are not this machine's", target.name, cases.len());
    Ok(())
}

/// The first line in which two outcomes differ.
fn difference(own: &Outcome, found: &Outcome) -> String {
    if own.0 != found.0 {
        let errors = String::from_utf8_lossy(&found.2);
        return format!("exit code {:?}, here {:?}: {}", found.0, own.0, errors.trim());
    }
    for (own, found) in [(&own.1, &found.1), (&own.2, &found.2)] {
        let (own, found) = (String::from_utf8_lossy(own), String::from_utf8_lossy(found));
        let missing = "<end>";
        let pairs = own.lines().chain([missing]).zip(found.lines().chain([missing]));
        if let Some((own, found)) = pairs.into_iter().find(|(own, found)| own != found) {
            return format!("{found:?}, here {own:?}");
        }
    }
    "line ends".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named_and_are_failures() {
        let outcome = |code: i32, text: &str| -> Outcome { (Some(code), text.into(), Vec::new()) };
        let cases = [vec!["show".into()], vec!["check".into()]];
        let own = [outcome(0, "a\nb\n"), outcome(0, "c\n")];
        compare(&TARGETS[1], &cases, &own, &own).unwrap();
        let other = [outcome(0, "a\nB\n"), outcome(0, "c\n")];
        let error = compare(&TARGETS[1], &cases, &own, &other).unwrap_err().to_string();
        assert_eq!(error, "aarch64: 1 of 2 outputs are not this machine's");
        assert_eq!(difference(&own[0], &other[0]), "\"B\", here \"b\"");
        assert!(difference(&own[0], &outcome(3, "")).starts_with("exit code Some(3), here Some(0)"));
        // Nothing is proved by programs that fail alike.
        let failed = [outcome(2, ""), outcome(2, "")];
        assert!(compare(&TARGETS[1], &cases, &failed, &failed).is_err());
    }

    #[test]
    fn every_folder_of_samples_gives_cases() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
        let cases = cases(&root).unwrap();
        assert!(cases.len() > 300, "{}", cases.len());
        assert!(cases.iter().all(|case| case.last().is_some_and(|word| !Path::new(word).is_absolute())));
    }
}
