//! Pipes and character devices as places for a result.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens it for writing.
///
/// Errors: a pipe that nobody reads from, for which a plain open would wait without end; the system's.
pub fn open_stream(path: &Path) -> io::Result<File> {
    let tried = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path);
    let reader = tried.map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => io::Error::new(error.kind(), "nobody reads from this pipe"),
        _ => error,
    })?;
    // While the first is open, the second is at once; it waits where the reader is slow.
    let stream = OpenOptions::new().write(true).open(path);
    drop(reader);
    stream
}
