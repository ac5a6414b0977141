//! `trim advise`: what trims from now on, shown, and written if asked.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use emmc_analysis::trim::{AdvisedFile, TrimAdvice, trim_advice, trim_status};
use serde::Serialize;

use super::place::Place;
use crate::CommandResult;
use crate::cli::TrimAdviseArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::save::Refused;

pub(crate) const ADVISE_SCHEMA: &str = "emmclab.trim-advise/1";

/// What `trim advise --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct TrimAdvised {
    /// The disk.
    disk: String,
    #[serde(flatten)]
    advice: TrimAdvice,
    /// Files that were written.
    written: Vec<String>,
}

pub(super) fn run(args: &TrimAdviseArgs, output: &mut Output) -> CommandResult {
    let place = Place::of(args.place.place.as_deref(), args.place.tree.sysroot.as_deref())?;
    let root = place.sysroot.clone().unwrap_or_else(|| PathBuf::from("/"));
    let status = trim_status(place.card(None, output)?.as_ref(), place.stack()?, None, place.now());
    let units = ["etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"].map(|folder| root.join(folder));
    let has_systemd = units.iter().any(|folder| folder.is_dir());
    let has_timer = units.iter().any(|folder| folder.join("fstrim.timer").is_file());
    let advice = trim_advice(&status, has_systemd, has_timer);
    // All of it is shown before anything is written.
    let mut document = TrimAdvised { disk: place.disk.clone(), advice, written: Vec::new() };
    if !args.write {
        output.print(ADVISE_SCHEMA, &document, present)?;
        return Ok(Exit::Good);
    }
    if !output.is_json() {
        output.print(ADVISE_SCHEMA, &document, present)?;
    }
    let existing =
        document.advice.files.iter().map(|file| root.join(file.path)).find(|path| path.symlink_metadata().is_ok());
    if let Some(path) = existing {
        return Err(
            Refused(format!("{}: exists already and is not overwritten: nothing was written", path.display())).into()
        );
    }
    for file in &document.advice.files {
        let path = root.join(file.path);
        write(&path, file).with_context(|| format!("{}: cannot write", path.display()))?;
        document.written.push(path.display().to_string());
    }
    if output.is_json() {
        output.print(ADVISE_SCHEMA, &document, present)?;
    } else {
        for path in &document.written {
            output.said(&format!("{path}: written"))?;
        }
    }
    Ok(Exit::Good)
}

fn present(document: &TrimAdvised) -> emmc_report::Document {
    emmc_report::present::trim_advice(&document.disk, &document.advice)
}

/// Writes a new file; one that appears meanwhile is not overwritten.
fn write(path: &Path, file: &AdvisedFile) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mode = if file.is_program { 0o755 } else { 0o644 };
    let mut new = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    new.write_all(file.text.as_bytes()).and_then(|()| new.sync_all())
}
