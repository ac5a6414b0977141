//! Saves what the user wants in a file: all of it or nothing, and never over a device.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use anyhow::Context;

use crate::output::Output;

/// What is not done for safety, though it could be.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Refused {}

/// Prints to standard output where `path` is `-`, else writes the file whole. Says whether there is a file now.
///
/// Errors: as [`write_whole`]; and a path that is one of the `inputs`, which would be lost.
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
    let is_same =
        |input: &&Path| fs::canonicalize(input).ok().zip(fs::canonicalize(path).ok()).is_some_and(|(a, b)| a == b);
    let is_plain_file = fs::metadata(path).is_ok_and(|found| found.is_file());
    if is_plain_file && inputs.iter().any(is_same) {
        return Err(Refused(format!(
            "{}: is the source itself, which would be lost: name another file",
            path.display()
        ))
        .into());
    }
    write_whole(path, content.as_bytes(), replace)?;
    Ok(true)
}

/// Writes a file so that a reader, a full disk or a power cut never sees half of it.
///
/// A link is followed, and a pipe or a character device is written to as it is: renaming over them would put a file in
/// the place of /dev/null.
///
/// Errors: a block device, which is refused; a file that exists, without `replace`; whatever the system says.
pub(crate) fn write_whole(path: &Path, content: &[u8], replace: bool) -> anyhow::Result<()> {
    let name = path.display();
    let failed = || format!("{name}: cannot write");
    if let Ok(found) = fs::metadata(path) {
        let kind = found.file_type();
        if kind.is_block_device() {
            return Err(Refused(format!("{name}: is a block device; what is on it would be lost: name a file")).into());
        }
        if kind.is_char_device() || kind.is_fifo() || kind.is_socket() {
            let stream = OpenOptions::new().write(true).open(path);
            return stream.and_then(|mut stream| stream.write_all(content)).with_context(failed);
        }
    }
    if !replace && path.symlink_metadata().is_ok() {
        anyhow::bail!("{name}: exists already; --force replaces it");
    }
    // Where it does not exist yet, or is a link to nowhere, its own name is the place.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    replace_file(&place, content).with_context(failed)
}

fn replace_file(place: &Path, content: &[u8]) -> io::Result<()> {
    let Some(file_name) = place.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file name"));
    };
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(file_name);
    hidden.push(format!(".{}.tmp", std::process::id()));
    let temporary = place.with_file_name(hidden);
    // A name that somebody else has taken, or a link that lies in wait there, is not written to.
    let mut file = File::create_new(&temporary)?;
    let written = file.write_all(content).and_then(|()| file.sync_all());
    let renamed = written.and_then(|()| fs::rename(&temporary, place));
    if renamed.is_err() {
        // What is left of the attempt is of no use to anybody.
        let _ = fs::remove_file(&temporary);
    }
    renamed
}
