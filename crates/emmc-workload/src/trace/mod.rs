//! Recorded requests in every form that is read: the recordings of `emmc-trace` (ftrace, trace.dat, blktrace,
//! blkparse), fio's logs, MSR's CSV, a plain CSV, and the five columns of simulators (MQSim, SSDsim). Jobs and the
//! suite `replay` read all of them.
//!
//! Absent on purpose: events of the kernel other than those of the block layer.

mod columns;
mod events;
mod iolog;
mod msr;
mod recorded;
#[cfg(test)]
mod tests;
mod written;

use std::sync::Arc;

use emmc_port::BlockOp;
use emmc_trace::{Form, Input};
use emmc_units::Nanos;

use crate::import::ImportError;
pub(crate) use recorded::Recorded;
pub use written::{IologVersion, csv, fio_iolog};

/// A recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// Its time, counted from the first request.
    pub at: Nanos,
    /// The operation.
    pub op: BlockOp,
    /// Unit: bytes.
    pub offset_bytes: u64,
    /// Unit: bytes; 0 for a flush.
    pub bytes: u64,
    /// A write with FUA.
    pub through: bool,
    /// The old content of a trimmed range may come back.
    pub discard: bool,
}

/// Recorded requests, sorted by time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Who recorded it, e.g. `blktrace`.
    pub form: String,
    /// The requests.
    pub requests: Vec<TraceRequest>,
    /// Notes on it.
    pub notes: Vec<String>,
}

/// Recorded requests, and how they are replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The requests.
    pub trace: Arc<Trace>,
    /// At their recorded times, else as fast as possible.
    pub timed: bool,
    /// Requests beyond the target's end wrap around to its start.
    pub wrap: bool,
}

/// The forms that are read, for help and messages.
pub const FORMS: &str = "fio's iolog of version 2 or 3, text of blkparse or ftrace, blktrace's binary of version 1, \
                         trace.dat of trace-cmd, MSR's CSV, a CSV of time_us,op,lba,sectors, or five columns of time_ns \
                         device lba sectors type";

/// Reads a trace, recognised by its content; the name is for messages.
///
/// Errors: nothing recognised; the first wrong line or record; no request in it.
pub fn read(name: &str, bytes: &[u8]) -> Result<Trace, ImportError> {
    read_device(name, bytes, None)
}

/// Reads the files of one recording: as [`read`] if it is one file, else a recording of `emmc-trace`, such as the files
/// of all processors, of one device (`major << 20 | minor`).
///
/// Errors: as those of [`read`]; several files that are no recording.
pub fn read_files(mut files: Vec<(String, Vec<u8>)>, device: Option<u32>) -> Result<Trace, ImportError> {
    if files.len() == 1 {
        let (name, bytes) = files.remove(0);
        return read_device(&name, &bytes, device);
    }
    let name = files.first().map_or_else(String::new, |(name, _)| name.clone());
    let input = |(name, bytes): (String, Vec<u8>)| Input { name, storage: Arc::new(bytes) };
    from_zero(&name, events::read(files.into_iter().map(input).collect(), device)?)
}

fn read_device(name: &str, bytes: &[u8], device: Option<u32>) -> Result<Trace, ImportError> {
    let unknown =
        |reason: &str| ImportError::Unknown { name: name.into(), reason: reason.into(), expected: FORMS.into() };
    // Pages without the kernel's format files hold nothing that can be read.
    let form = Form::of(bytes).filter(|form| !matches!(form, Form::Pages | Form::Formats));
    let trace = if form.is_some() {
        events::read(vec![Input { name: name.into(), storage: Arc::new(bytes.to_vec()) }], device)?
    } else {
        let text = std::str::from_utf8(bytes).map_err(|_| unknown("it is neither text nor a recording of Linux"))?;
        let is_content = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let first = text.lines().map(str::trim).find(is_content).ok_or_else(|| unknown("it is empty"))?;
        if first.starts_with("fio version ") {
            iolog::read(name, text)?
        } else if msr::is_line(first) {
            msr::read(name, text)?
        } else if columns::is_csv(first) {
            columns::read_csv(name, text)?
        } else if columns::is_five(first) {
            columns::read_five(name, text)?
        } else {
            return Err(unknown("no trace is recognised in it"));
        }
    };
    from_zero(name, trace)
}

/// Sorted by time, counted from the first request.
fn from_zero(name: &str, mut trace: Trace) -> Result<Trace, ImportError> {
    trace.requests.sort_by_key(|request| request.at);
    let Some(first) = trace.requests.first().map(|request| request.at) else {
        let reason = "no request is in it".into();
        return Err(ImportError::Unknown { name: name.into(), reason, expected: FORMS.into() });
    };
    for request in &mut trace.requests {
        request.at = Nanos(request.at.0 - first.0);
    }
    Ok(trace)
}

fn wrong(name: &str, line: usize, found: &str, expected: &str) -> ImportError {
    let found = found.chars().take(60).collect();
    ImportError::Line { name: name.into(), line: line + 1, found, expected: expected.into() }
}

/// A range in sectors of 512 bytes as bytes; nothing if it ends past 2^64.
fn range(sector: u64, sectors: u64) -> Option<(u64, u64)> {
    let (offset, bytes) = (sector.checked_mul(512)?, sectors.checked_mul(512)?);
    offset.checked_add(bytes).map(|_| (offset, bytes))
}
