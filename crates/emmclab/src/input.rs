//! Files that are read whole, up to a limit.
//!
//! Absent on purpose: sources of a card's registers (`source`), jobs of simulations, devices.

use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use anyhow::{Context, bail};

/// The largest file of a host (`--board`, `--host`). Unit: bytes.
#[cfg(any(feature = "twin", all(feature = "bench", feature = "sim")))]
pub(crate) const HOST_BYTES_MAX: u64 = 1 << 20;

/// Reads a file or a pipe whole.
///
/// Errors: a folder, or a device or a socket, which may be endless; more than `most` bytes; errors of the system.
pub(crate) fn read(path: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
    let name = path.display();
    let cannot = || format!("{name}: cannot read");
    let found = std::fs::metadata(path).with_context(cannot)?;
    let kind = found.file_type();
    if kind.is_dir() {
        bail!("{name}: is a folder; expected a file");
    }
    if !kind.is_file() && !kind.is_fifo() {
        bail!("{name}: expected a file or a pipe; a device may be endless");
    }
    if found.len() > most {
        bail!("{name}: expected at most {most} bytes, found {}", found.len());
    }
    limited(&name.to_string(), crate::pipe::open(path).with_context(cannot)?, most)
}

/// As [`read`], a text.
///
/// Errors: as [`read`]; bytes that are not UTF-8.
#[cfg(feature = "sim")]
pub(crate) fn text(path: &Path, most: u64) -> anyhow::Result<String> {
    utf8(&path.display().to_string(), read(path, most)?)
}

/// Bytes as a text.
///
/// Errors: bytes that are not UTF-8.
#[cfg(feature = "sim")]
pub(crate) fn utf8(name: &str, bytes: Vec<u8>) -> anyhow::Result<String> {
    let at = |error: &std::string::FromUtf8Error| error.utf8_error().valid_up_to();
    String::from_utf8(bytes)
        .map_err(|error| anyhow::anyhow!("{name}: expected UTF-8, found other bytes at {}", at(&error)))
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
