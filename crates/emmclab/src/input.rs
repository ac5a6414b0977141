//! Files that are read whole, up to a limit.
//!
//! Absent on purpose: sources of a card's registers (`source`), jobs of simulations, devices.

use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use anyhow::{Context, bail};

/// Reads a file or a pipe whole.
///
/// Errors: a folder, or a device or a socket, which may be endless; more than `most` bytes; errors of the system.
pub(crate) fn read(path: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
    let name = path.display();
    let cannot = || format!("{name}: cannot read");
    let kind = std::fs::metadata(path).with_context(cannot)?.file_type();
    if kind.is_dir() {
        bail!("{name}: is a folder; expected a file");
    }
    if !kind.is_file() && !kind.is_fifo() {
        bail!("{name}: expected a file or a pipe; a device may be endless");
    }
    limited(&name.to_string(), crate::pipe::open(path).with_context(cannot)?, most)
}

/// Reads to the end, e.g. standard input.
///
/// Errors: more than `most` bytes; errors of the system.
pub(crate) fn limited(name: &str, from: impl Read, most: u64) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes).with_context(|| format!("{name}: cannot read"))?;
    if bytes.len() as u64 > most {
        bail!("{name}: expected at most {most} bytes, found more");
    }
    Ok(bytes)
}
