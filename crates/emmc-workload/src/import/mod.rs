//! Results saved by other tools, and our own, in the one form used for comparison.
//!
//! A file is recognised by its content; a transcript may hold the outputs of several tools. Units become MB (10^6
//! bytes) a second and microseconds. What a tool did not print is absent; what follows from its output (a time from
//! bytes and their rate) is computed. Absent on purpose: reading files, guesses about the device, and outputs for
//! people if the tool also has a machine-readable one (fio's text).

mod bonnie;
mod consistency;
mod dd;
mod emmclab;
mod fio;
mod flashbench;
mod hdparm;
mod iozone;
mod rate;
#[cfg(test)]
mod tests;

pub use dd::UNSYNCED;
use emmc_port::TargetKind;
pub use emmclab::bench_result;
pub use iozone::THROUGH_CACHE;
pub(crate) use iozone::measurements as iozone_measurements;
#[cfg(test)]
pub(crate) use rate::published_rate;
use serde::{Deserialize, Serialize};

use crate::result::context::Context;
use crate::result::{Doubt, Outcome};

/// The recognised forms, for error messages.
const FORMS: &str =
    "JSON of fio or of emmclab bench, or text of iozone, flashbench, bonnie++ (or its CSV), hdparm -t or dd";
/// Larger than any tool's output. Unit: bytes.
pub const RESULT_BYTES_MAX: usize = 64 << 20;

/// A saved result: the tool, the target and the conditions, as far as the file has them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SavedResult {
    /// The file, or `ref:NAME`.
    pub name: String,
    /// The target's name at that time.
    pub target: Option<String>,
    /// The kind of target.
    pub target_kind: Option<TargetKind>,
    /// How requests were submitted.
    pub engine: Option<String>,
    /// The outcomes; one for each tool.
    pub outcomes: Vec<Outcome>,
    /// The conditions of the measurement.
    #[serde(default)]
    pub context: Context,
    /// Reasons to doubt it.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
}

/// Why a file is not a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// A line is wrong.
    #[error("{name}, line {line}: found {found:?}; expected {expected}")]
    Line {
        /// The file.
        name: String,
        /// The line, counted from 1.
        line: usize,
        /// What it holds.
        found: String,
        /// What it must be.
        expected: String,
    },
    /// Nothing in it is a result.
    #[error("{name}: {reason}; expected {expected}")]
    Unknown {
        /// The file.
        name: String,
        /// What is wrong.
        reason: String,
        /// What would be right.
        expected: String,
    },
}

/// A file's lines.
struct Text<'a> {
    name: &'a str,
    lines: Vec<&'a str>,
}

impl Text<'_> {
    /// An error at a line, counted from 0.
    fn wrong(&self, line: usize, found: &str, expected: impl Into<String>) -> ImportError {
        let found = found.chars().take(60).collect();
        ImportError::Line { name: self.name.into(), line: line + 1, found, expected: expected.into() }
    }
}

/// Reads a saved result; the name is for messages.
///
/// Errors: nothing recognised; the first wrong line.
pub fn read(name: &str, bytes: &[u8]) -> Result<SavedResult, ImportError> {
    let unknown = |reason: String| ImportError::Unknown { name: name.into(), reason, expected: FORMS.into() };
    if bytes.len() > RESULT_BYTES_MAX {
        return Err(unknown(format!("{} bytes: larger than any tool's output", bytes.len())));
    }
    // flashbench truncates units in the middle of a character.
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_start_matches('\u{feff}');
    if let Some(value) = emmclab::value(text) {
        return sound(emmclab::read(name, value)?);
    }
    if text.contains("\"fio version\"") {
        return sound(fio::read(name, text)?);
    }
    let lines = Text { name, lines: text.lines().collect() };
    let mut found: Vec<(usize, Outcome)> = Vec::new();
    for scan in [iozone::scan, flashbench::scan, bonnie::scan, hdparm::scan, dd::scan] {
        found.extend(scan(&lines)?);
    }
    found.sort_by_key(|(line, _)| *line);
    if found.is_empty() {
        let reason = if text.trim().is_empty() { "it is empty" } else { "no tool's result is in it" };
        return Err(unknown(reason.into()));
    }
    let mut result = SavedResult { name: name.into(), ..SavedResult::default() };
    result.target = hdparm::device(&lines);
    result.outcomes = found.into_iter().map(|(_, outcome)| outcome).collect();
    sound(result)
}

/// Checks that the result does not contradict itself.
///
/// Errors: the first contradiction.
fn sound(result: SavedResult) -> Result<SavedResult, ImportError> {
    match consistency::outcomes(&result.outcomes) {
        Ok(()) => Ok(result),
        Err(inconsistency) => Err(inconsistency.of(&result.name)),
    }
}

/// An outcome of a tool whose file has only figures.
fn outcome(suite: &str, about: &str) -> Outcome {
    Outcome { suite: suite.into(), about: about.into(), ..Outcome::default() }
}

/// Sums up the bytes of its measurements.
fn summed(mut outcome: Outcome) -> Outcome {
    for measurement in &outcome.measurements {
        outcome.time_s += measurement.time_s.unwrap_or(0.0);
        let bytes = measurement.bytes.unwrap_or(0);
        match measurement.op.as_str() {
            "read" => outcome.read_bytes = outcome.read_bytes.saturating_add(bytes),
            "write" => outcome.written_bytes = outcome.written_bytes.saturating_add(bytes),
            "trim" => outcome.trimmed_bytes = outcome.trimmed_bytes.saturating_add(bytes),
            _ => {}
        }
    }
    outcome
}
