//! The log of samples: lines are appended where they are news, so that the log does not wear the card.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, ensure};
use emmc_analysis::sample::{Sample, last_of};

use crate::save::refuse_device;

/// Of a long log only the end is read: the last lines of some dozen cards. Unit: bytes.
const TAIL_BYTES: u64 = 64 << 10;

/// Appends the samples that are news, in one write.
///
/// Errors: a device or no regular file; those of the system.
pub(super) fn append(path: &Path, samples: &[&Sample], at_least_days: u32) -> anyhow::Result<()> {
    refuse_device(path)?;
    let name = path.display();
    let failed = || format!("{name}: cannot append");
    let known = tail(path).with_context(failed)?;
    let is_news = |sample: &&&Sample| {
        last_of(&known, sample).is_none_or(|recorded| sample.is_news_after(&recorded, at_least_days))
    };
    let mut lines: String = samples.iter().filter(is_news).map(|sample| sample.line()).collect();
    if lines.is_empty() {
        return Ok(());
    }
    // A power cut may have left the last line without its end.
    if !known.is_empty() && !known.ends_with('\n') {
        lines.insert(0, '\n');
    }
    let mut file = OpenOptions::new().append(true).create(true).open(path).with_context(failed)?;
    let is_file = file.metadata().is_ok_and(|found| found.is_file());
    ensure!(is_file, "{name}: is not a regular file");
    file.write_all(lines.as_bytes()).with_context(failed)
}

/// The end of a log; empty if there is none. Reading it does not write its time of access.
fn tail(path: &Path) -> std::io::Result<String> {
    let open = |flags: i32| OpenOptions::new().read(true).custom_flags(flags).open(path);
    let no_atime = rustix::fs::OFlags::NOATIME | rustix::fs::OFlags::NONBLOCK;
    let flags = |flags: rustix::fs::OFlags| flags.bits() as i32;
    // Only a file's owner may read it so.
    let opened = open(flags(no_atime)).or_else(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => open(flags(rustix::fs::OFlags::NONBLOCK)),
        _ => Err(error),
    });
    let mut file: File = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let start = found.len().saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
