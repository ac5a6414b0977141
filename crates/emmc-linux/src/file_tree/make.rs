//! Creates filesystems with the usual programs (mkfs).

use std::io;
use std::process::{Command, Stdio};

use emmc_port::FilesystemError;

use crate::block_io::TargetHandle;

/// The folders of these programs, independent of the user's PATH.
const FOLDERS: &str = "/usr/local/sbin:/usr/sbin:/sbin";
/// The block size on eMMC, also for small filesystems.
const BLOCK_BYTES: &str = "4096";

fn search_path() -> String {
    std::env::var("PATH").map_or(FOLDERS.into(), |path| format!("{path}:{FOLDERS}"))
}

/// Checks that the mkfs program exists, before anything is written.
///
/// Errors: [`FilesystemError::Missing`] if it does not.
pub(super) fn programs(fstype: &str) -> Result<(), FilesystemError> {
    let program = format!("mkfs.{fstype}");
    let path = search_path();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(&program).is_file());
    if is_there { Ok(()) } else { Err(missing(&program)) }
}

fn missing(program: &str) -> FilesystemError {
    FilesystemError::Missing { what: format!("{program} is not installed") }
}

/// Creates a filesystem at the start of a device. Nothing is trimmed, and all tables are written at once, so that the
/// kernel does not write them during a measurement.
///
/// Errors: [`FilesystemError::Missing`] if there is no such program; its own errors.
pub(super) fn make(held: &TargetHandle, fstype: &str, size_bytes: u64, sector_bytes: u32) -> Result<(), Unmade> {
    let (program, device) = (format!("mkfs.{fstype}"), held.path_for_others());
    let mut command = Command::new(&program);
    command.env("PATH", search_path()).stdin(Stdio::null());
    match fstype {
        "f2fs" => {
            let sectors = (size_bytes / u64::from(sector_bytes.max(512))).to_string();
            command.args(["-q", "-f", "-t", "0"]).arg(device).arg(sectors);
        }
        _ => {
            let more = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
            let kib = format!("{}k", size_bytes >> 10);
            command.args(["-q", "-F", "-b", BLOCK_BYTES, "-E", more]).arg(device).arg(kib);
        }
    }
    let output = match command.output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Unmade::Missing(missing(&program))),
        output => output.map_err(|error| Unmade::Failed(format!("{program}: {error}")))?,
    };
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stderr, output.stdout].map(|said| String::from_utf8_lossy(&said).into_owned());
    let last = said.iter().flat_map(|said| said.lines().rev()).map(str::trim).find(|line| !line.is_empty());
    let last = last.map_or_else(|| output.status.to_string(), str::to_owned);
    let last = last.replace(&device.display().to_string(), &held.called().display().to_string());
    Err(Unmade::Failed(format!("{program}: {last}")))
}

/// Why there is no filesystem.
pub(super) enum Unmade {
    Missing(FilesystemError),
    Failed(String),
}
