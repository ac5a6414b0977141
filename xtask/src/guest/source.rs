//! Building programs of others from their source: what they need, and their configuration.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

/// Errors: some of the programs, each with its Debian package, are missing; all are named.
pub(crate) fn needs(what: &str, programs: &[(&str, &str)]) -> anyhow::Result<()> {
    let is_there = |program: &str| {
        let mut command = Command::new(program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok()
    };
    let missing: Vec<&str> = programs.iter().filter(|(program, _)| !is_there(program)).map(|(_, name)| *name).collect();
    let missing = missing.join(" ");
    ensure!(missing.is_empty(), "building {what} needs packages that are missing here: apt-get install {missing}");
    Ok(())
}

/// Runs a command to its end; its messages are shown only if it fails.
pub(crate) fn finish(command: &mut Command, what: &str) -> anyhow::Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| what.to_owned())?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    bail!("{what}: {}:\n{}", output.status, lines[lines.len().saturating_sub(20)..].join("\n"))
}

/// Errors: the configuration that was made of the wanted one lacks options of it.
pub(crate) fn check_options(source: &Path, wanted: &str) -> anyhow::Result<()> {
    let done = fs::read_to_string(source.join(".config")).context("the configuration")?;
    let is_option = |line: &&str| line.starts_with("CONFIG_") || line.starts_with("# CONFIG_");
    let is_missing = |line: &&str| !done.lines().any(|found| found == *line);
    let missing: Vec<&str> = wanted.lines().filter(is_option).filter(is_missing).collect();
    ensure!(missing.is_empty(), "the source does not have these options: {}", missing.join(", "));
    Ok(())
}
