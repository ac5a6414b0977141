//! Runs the fuzz targets, with the real data as seeds.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};

use crate::metadata;

/// Targets that read whole files: every file of testdata is a seed for them.
const FED_WITH_FILES: [&str; 4] = ["source", "vendor_text", "mmc_utils_text", "uboot_text"];
/// A target whose threads may still be ending when an input is done: the system's record of one looks like a leak then.
const ENDS_THREADS: &str = "nbd_session";
/// After how many days a target has its next turn in CI.
const DAYS: usize = 3;
/// Those that read recordings have the real ones.
const READS_RECORDINGS: &str = "trace_";

/// Runs each target, or those named, for `seconds`; prints the missing tools if it cannot.
pub(crate) fn run(seconds: u32, only: &[&str]) -> anyhow::Result<()> {
    let root = metadata::workspace()?.root;
    let Some(cargo) = cargo_fuzz(&root) else {
        println!("SKIPPED: fuzzing needs cargo-fuzz (cargo install --locked cargo-fuzz)");
        return Ok(());
    };
    let listed = list(&cargo)?;
    let targets: Vec<&str> =
        listed.iter().map(String::as_str).filter(|name| only.is_empty() || only.contains(name)).collect();
    ensure!(!targets.is_empty(), "no fuzz target is named {}; there are {}", only.join(", "), listed.join(", "));
    for target in targets {
        println!("== fuzz {target} for {seconds} s");
        let corpus = root.join("fuzz/corpus").join(target);
        std::fs::create_dir_all(&corpus).with_context(|| corpus.display().to_string())?;
        let mut folders = vec![corpus];
        if FED_WITH_FILES.contains(&target) {
            folders.extend(seeds(&root)?);
        } else if target.starts_with(READS_RECORDINGS) {
            folders.push(root.join("testdata/traces"));
        }
        let mut command = cargo(&["run", target]);
        command.args(&folders).args(["--", &format!("-max_total_time={seconds}"), "-verbosity=0", "-print_funcs=0"]);
        command.args((target == ENDS_THREADS).then_some("-detect_leaks=0"));
        let status = command.status().context("cargo fuzz run")?;
        ensure!(status.success(), "fuzz target {target} found something: see fuzz/artifacts/{target}");
    }
    Ok(())
}

/// The targets of a day: a third of them, the next third the day after. None if [`run`] would skip.
pub(crate) fn of_day(day: usize) -> anyhow::Result<Vec<String>> {
    let Some(cargo) = cargo_fuzz(&metadata::workspace()?.root) else { return Ok(Vec::new()) };
    let due = |number: &usize| (number + day) % DAYS == 0;
    Ok(list(&cargo)?.into_iter().enumerate().filter(|(number, _)| due(number)).map(|(_, name)| name).collect())
}

fn list(cargo: &impl Fn(&[&str]) -> Command) -> anyhow::Result<Vec<String>> {
    let output = cargo(&["list"]).output().context("cargo fuzz list")?;
    ensure!(output.status.success(), "cargo fuzz list: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8(output.stdout)?.split_whitespace().map(str::to_owned).collect())
}

/// A build of a target, and of all that it shares with the others, in the background; killed when dropped.
pub(crate) struct Building(Child);

impl Building {
    /// Starts it; none if [`run`] would skip.
    pub(crate) fn start(target: &str) -> anyhow::Result<Option<Self>> {
        let Some(cargo) = cargo_fuzz(&metadata::workspace()?.root) else { return Ok(None) };
        let child = cargo(&["build", target]).stderr(Stdio::null()).spawn().context("cargo fuzz build")?;
        Ok(Some(Self(child)))
    }

    /// Waits for its end; [`run`] reports errors when it builds the rest.
    pub(crate) fn wait(mut self) -> anyhow::Result<()> {
        self.0.wait().map(drop).context("cargo fuzz build")
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The folders of real data.
fn seeds(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in root.join("testdata").read_dir().context("testdata")? {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

/// Returns a builder of `cargo fuzz` commands: with the nightly compiler, or the stable one set up to accept its flags.
fn cargo_fuzz(root: &Path) -> Option<impl Fn(&[&str]) -> Command + use<>> {
    let make = |nightly: bool, root: PathBuf| {
        move |args: &[&str]| {
            let mut command = Command::new("cargo");
            // `cargo xtask` sets the toolchain for child processes, which would override `+nightly`.
            command.current_dir(&root).env_remove("RUSTUP_TOOLCHAIN");
            if nightly {
                command.arg("+nightly");
            } else {
                command.env("RUSTC_BOOTSTRAP", "1");
            }
            command.arg("fuzz").args(args);
            command
        }
    };
    [true, false].into_iter().map(|nightly| make(nightly, root.to_owned())).find(|fuzz| {
        let status = fuzz(&["--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    })
}
