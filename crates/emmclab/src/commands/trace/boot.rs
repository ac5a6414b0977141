//! `trace record --at-boot` and `--from-boot`: the recording of a boot.

use std::fs::{self, File};
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use emmc_linux::tracefs::{BootRecording, boot_parameters};
use serde::Serialize;

use super::RecordedFile;
use crate::CommandResult;
use crate::cli::TraceRecordArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::save::{self, Refused};

pub(crate) const SCHEMA: &str = "emmclab.trace-boot/1";

const UNIT: &str = "emmclab-boot.service";
const UNITS: &str = "etc/systemd/system";
const WANTED: &str = "etc/systemd/system/multi-user.target.wants";
/// Where the unit saves the recording.
const SAVED: &str = "/var/lib/emmclab/boot.dat";
const WORD: &str = "install";

/// What `trace record --at-boot` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AtBoot {
    /// For the kernel's command line.
    kernel_parameters: String,
    /// The systemd unit.
    unit_file: String,
    /// Its content.
    unit: String,
    /// Where it saves the recording.
    saved: &'static str,
    /// Whether the unit is installed now.
    installed: bool,
}

pub(super) fn at_boot(args: &TraceRecordArgs, output: &mut Output) -> CommandResult {
    let root = args.root.clone().unwrap_or_else(|| "/".into());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = args.kernel.clone().unwrap_or(release);
    let mut found = AtBoot {
        kernel_parameters: boot_parameters(release.trim(), args.buffer.0),
        unit_file: root.join(UNITS).join(UNIT).display().to_string(),
        unit: unit()?,
        saved: SAVED,
        installed: false,
    };
    if args.remove {
        return remove(&root, output);
    }
    if !output.is_json() {
        show(&found, output)?;
    }
    if args.install {
        consent(args, &found)?;
        install(&root, &found)?;
        found.installed = true;
    }
    if output.is_json() {
        output.print(SCHEMA, &found, |_| unreachable!("JSON was asked for"))?;
    } else if found.installed {
        output.said(&format!("{}: installed and enabled", found.unit_file))?;
        output.said("the kernel's parameters are yours to add: the boot loader's configuration is not touched")?;
    }
    Ok(Exit::Good)
}

/// Runs when everything else has been started, so that it does not delay the boot.
fn unit() -> anyhow::Result<String> {
    let program = std::env::current_exe().context("this program's own path")?;
    let program = program.to_str().filter(|path| !path.contains(['"', '\\', '%', '$', '\n']));
    let program = program.context("this program's own path has characters that a unit cannot have")?;
    Ok(format!(
        "[Unit]\n\
         Description=Save the recording of this boot's storage requests\n\
         ConditionPathIsDirectory=/sys/kernel/tracing\n\
         RequiresMountsFor=/var/lib\n\
         \n\
         [Service]\n\
         Type=idle\n\
         StateDirectory=emmclab\n\
         ExecStart=\"{program}\" trace record --from-boot --force -o {SAVED}\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n"
    ))
}

fn show(found: &AtBoot, output: &mut Output) -> anyhow::Result<()> {
    output.said("1. add to the kernel's command line, as one line:")?;
    output.said(&format!("   {}", found.kernel_parameters))?;
    output.said(&format!("2. {}:", found.unit_file))?;
    for line in found.unit.lines() {
        output.said(&format!("   {line}"))?;
    }
    output.said(&format!("3. after the next boot {SAVED} is its recording:"))?;
    output.said(&format!("   emmclab trace analyse {SAVED}"))?;
    output.said(&format!("   emmclab bench sim:generic-8g --suite boot --trace {SAVED} --timed --wrap"))
}

/// The unit is written after the user saw it and typed a word.
fn consent(args: &TraceRecordArgs, found: &AtBoot) -> Result<(), Refused> {
    if args.yes {
        return Ok(());
    }
    let file = &found.unit_file;
    if !std::io::stdin().is_terminal() {
        return Err(Refused(format!("{file}: no terminal to confirm it at: use --yes")));
    }
    // If standard error is closed, nobody reads the question.
    let _ = write!(std::io::stderr(), "Type {WORD} to write {file}: ");
    let mut line = String::new();
    // No input counts as no word.
    let _ = std::io::stdin().lock().read_line(&mut line);
    if line.trim() == WORD { Ok(()) } else { Err(Refused(format!("{file}: not confirmed, nothing is written"))) }
}

fn install(root: &Path, found: &AtBoot) -> anyhow::Result<()> {
    for folder in [UNITS, WANTED] {
        let folder = root.join(folder);
        fs::create_dir_all(&folder).with_context(|| format!("{}: cannot create", folder.display()))?;
    }
    save::write_whole(&root.join(UNITS).join(UNIT), found.unit.as_bytes(), true)?;
    let link = root.join(WANTED).join(UNIT);
    let target: PathBuf = Path::new("..").join(UNIT);
    if fs::read_link(&link).is_ok_and(|old| old == target) {
        return Ok(());
    }
    std::os::unix::fs::symlink(&target, &link).with_context(|| format!("{}: cannot create", link.display()))
}

fn remove(root: &Path, output: &mut Output) -> CommandResult {
    let mut removed = 0;
    for file in [root.join(WANTED).join(UNIT), root.join(UNITS).join(UNIT)] {
        if file.symlink_metadata().is_ok() {
            fs::remove_file(&file).with_context(|| format!("{}: cannot remove", file.display()))?;
            output.said(&format!("{}: removed", file.display()))?;
            removed += 1;
        }
    }
    if removed == 0 {
        output.said(&format!("{}: nothing to remove", root.join(UNITS).join(UNIT).display()))?;
    }
    output.said("the kernel's parameters are yours to remove")?;
    Ok(Exit::Good)
}

/// Saves the recording that the kernel's parameters made, and ends it.
pub(super) fn from_boot(args: &TraceRecordArgs, output: &mut Output) -> CommandResult {
    let name = args.output.display().to_string();
    let recording = BootRecording::find()?;
    let up = fs::read_to_string("/proc/uptime").ok();
    let up = up.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(0.0);
    let mut file = File::create(&args.output).with_context(|| format!("{name}: cannot write"))?;
    let saved = match recording.save(&mut file) {
        Ok(saved) => saved,
        Err(error) => {
            // A part of a recording is no recording; the kernel still has it.
            drop(fs::remove_file(&args.output));
            return Err(error.into());
        }
    };
    file.sync_all().with_context(|| format!("{name}: cannot write"))?;
    let found = RecordedFile {
        file: name,
        file_bytes: saved.bytes,
        duration_s: up,
        events: saved.events,
        lost_events: saved.lost,
        event_ns: None,
        cost_percent: None,
        missing: recording.missing().to_vec(),
        command_exit: None,
        ended_by_signal: None,
    };
    recording.end()?;
    super::print_recorded(&found, output)
}
