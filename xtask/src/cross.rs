//! The whole tool on other processors: built, run under qemu-user, and compared with this machine's own output.

mod comparison;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, bail, ensure};

use self::comparison::{Case, Outcome, compare};
use crate::metadata;
use crate::targets::{self, QUICK, TARGETS};

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
        let counts = compare(target.name, &cases, own.as_deref().unwrap_or_default(), &found)?;
        let ran = start.elapsed().as_secs_f64();
        for line in comparison::table(&counts) {
            println!("  {line}");
        }
        println!(
            "{}: {} outputs are equal byte for byte (built in {built:.0} s, run in {ran:.0} s)",
            target.name,
            found.len()
        );
    }
    Ok(())
}

fn cases(root: &Path) -> anyhow::Result<Vec<Case>> {
    let mut files = Vec::new();
    for folder in SOURCES {
        collect(&root.join("testdata").join(folder), &mut files)?;
    }
    files.sort();
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let of_virtual = |args: &[&str]| Case { command: format!("{} sim:", args[0]), args: words(args) };
    let mut cases: Vec<Case> = VIRTUAL.iter().map(|args| of_virtual(args)).collect();
    for file in &files {
        // Relative, so that messages are the same in every clone.
        let file = file.strip_prefix(root)?.as_os_str();
        cases.extend(COMMANDS.iter().map(|args| Case {
            command: args.join(" "),
            args: words(args).into_iter().chain([file.to_owned()]).collect(),
        }));
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
            let outcome = one(command().args(&case.args).current_dir(root))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
    }

    #[test]
    fn every_folder_of_samples_gives_cases() {
        let cases = cases(&root()).unwrap();
        assert!(cases.iter().all(|case| case.args.last().is_some_and(|word| !Path::new(word).is_absolute())));
        for folder in SOURCES {
            let start = Path::new("testdata").join(folder);
            for command in COMMANDS {
                let of_it = |case: &&Case| {
                    case.command == command.join(" ")
                        && case.args.last().is_some_and(|word| Path::new(word).starts_with(&start))
                };
                assert!(cases.iter().filter(of_it).count() > 0, "{command:?} of {folder}");
            }
        }
    }

    /// Two programs that differ in one output of hundreds: the run as a whole fails, not only the function that judges.
    #[test]
    fn a_planted_difference_is_found_among_all_cases() {
        let root = root();
        let cases = cases(&root).unwrap();
        let script = |text: &'static str| {
            move || {
                let mut command = Command::new("sh");
                command.args(["-c", text, "sh"]);
                command
            }
        };
        let own = outcomes(&cases, &root, &script("echo \"$@\"")).unwrap();
        assert_eq!(own.len(), cases.len());
        let same = outcomes(&cases, &root, &script("printf '%s\\n' \"$*\"")).unwrap();
        assert_eq!(compare("x", &cases, &own, &same).unwrap().values().sum::<usize>(), cases.len());
        let planted = "case \"$*\" in 'check testdata/sdmon'*) set -- \"$@\" X; esac; echo \"$@\"";
        let other = outcomes(&cases, &root, &script(planted)).unwrap();
        let of_it = |case: &&Case| case.command == "check" && Path::new(&case.args[1]).starts_with("testdata/sdmon");
        let number = cases.iter().filter(of_it).count();
        let error = compare("x", &cases, &own, &other).unwrap_err().to_string();
        assert_eq!(error, format!("x: {number} of {} outputs are not this machine's", cases.len()));
    }
}
