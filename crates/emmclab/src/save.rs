//! Writes files completely or not at all, and never over a device.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::output::Output;

/// An action that was refused for safety.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Refused {}

/// Prints to standard output if `path` is `-`, else writes the file completely. Returns whether a file was written.
///
/// Errors: those of [`write_whole`]; a path that is one of the `inputs`, which would be overwritten.
pub(crate) fn deliver(
    output: &mut Output,
    path: &Path,
    content: &str,
    replace: bool,
    inputs: &[&Path],
) -> anyhow::Result<bool> {
    if path == Path::new("-") {
        output.write(content)?;
        return Ok(false);
    }
    refuse_inputs(path, inputs)?;
    write_whole(path, content.as_bytes(), replace)?;
    Ok(true)
}

/// Finds out before long work whether [`deliver`] could write its result, as far as that can be known.
///
/// Errors: as [`deliver`].
#[cfg(any(all(feature = "html", feature = "sim"), feature = "twin", feature = "clone"))]
pub(crate) fn check(path: &Path, replace: bool, inputs: &[&Path]) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return Ok(());
    }
    refuse_inputs(path, inputs)?;
    refuse_device(path)?;
    let name = path.display();
    if path.symlink_metadata().is_ok() {
        let found = fs::metadata(path);
        anyhow::ensure!(!found.as_ref().is_ok_and(fs::Metadata::is_dir), "{name}: is a folder; expected a file");
        if found.is_ok_and(|found| !found.is_file()) {
            return Ok(());
        }
        anyhow::ensure!(replace, "{name}: exists already; --force replaces it");
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    anyhow::ensure!(folder.is_dir(), "{name}: there is no folder {}", folder.display());
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let made = temporary(&place).and_then(|file| File::create_new(&file).and_then(|_| fs::remove_file(&file)));
    made.with_context(|| format!("{name}: cannot write"))
}

/// A file that was read must not be overwritten.
///
/// Errors: the path is one of the `inputs`.
pub(crate) fn refuse_inputs(path: &Path, inputs: &[&Path]) -> anyhow::Result<()> {
    // The files of a card in a folder.
    let is_of_card = |name: &std::ffi::OsStr| name == "profile.toml" || name.to_string_lossy().starts_with("card.");
    let is_in = |folder: &Path, file: &Path| file.parent() == Some(folder) && file.file_name().is_some_and(is_of_card);
    let is_same = |input: &&Path| {
        let both = fs::canonicalize(input).ok().zip(fs::canonicalize(path).ok());
        both.is_some_and(|(input, output)| input == output || is_in(&input, &output))
    };
    let is_plain_file = fs::metadata(path).is_ok_and(|found| found.is_file());
    if is_plain_file && inputs.iter().any(is_same) {
        return Err(Refused(format!(
            "{}: is the source itself and would be overwritten: name another file",
            path.display()
        ))
        .into());
    }
    Ok(())
}

/// A block device is no place for an output.
///
/// Errors: the path leads to one.
pub(crate) fn refuse_device(path: &Path) -> Result<(), Refused> {
    let is_device = fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    let what = "is a block device and its content would be overwritten: name a file";
    if is_device { Err(Refused(format!("{}: {what}", path.display()))) } else { Ok(()) }
}

/// Writes a file so that no reader, full disk or power cut leaves a partial file.
///
/// A link is followed. A pipe or a character device is written directly, because a rename would replace /dev/null by a
/// file.
///
/// Errors: a block device, which is refused; an existing file without `replace`; errors of the system.
pub(crate) fn write_whole(path: &Path, content: &[u8], replace: bool) -> anyhow::Result<()> {
    write_parts(path, replace, |file| file.write_all(content))
}

/// The same of content that is made while it is written.
///
/// Errors: those of [`write_whole`].
pub(crate) fn write_parts(
    path: &Path,
    replace: bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> anyhow::Result<()> {
    let name = path.display();
    let failed = || format!("{name}: cannot write");
    if let Ok(found) = fs::metadata(path) {
        let kind = found.file_type();
        refuse_device(path)?;
        if kind.is_char_device() || kind.is_fifo() || kind.is_socket() {
            let stream = emmc_linux::open_stream(path);
            return stream.and_then(|mut stream| write(&mut stream)).with_context(failed);
        }
    }
    if !replace && path.symlink_metadata().is_ok() {
        anyhow::bail!("{name}: exists already; --force replaces it");
    }
    // If it does not exist, or is a dangling link, the path itself is written.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    replace_file(&place, write).with_context(failed)
}

/// A hidden name beside a file.
fn temporary(place: &Path) -> io::Result<PathBuf> {
    let Some(file_name) = place.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file name"));
    };
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(file_name);
    hidden.push(format!(".{}.tmp", std::process::id()));
    Ok(place.with_file_name(hidden))
}

fn replace_file(place: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary(place)?;
    // An existing file or link of this name is never written to.
    let mut file = File::create_new(&temporary)?;
    let written = write(&mut file).and_then(|()| file.sync_all());
    let renamed = written.and_then(|()| fs::rename(&temporary, place));
    if renamed.is_err() {
        // A partial file is of no use.
        let _ = fs::remove_file(&temporary);
    }
    renamed
}
