//! `hdparm -t` and `-T`.
//!
//! Source: hdparm's manual page; its MB are MiB, it reads 2 MiB at a time from the start of the device.

use super::rate::Rate;
use super::{ImportError, Text, outcome, summed};
use crate::result::{Figure, Outcome, Pivot};

const TABLE: &str = "hdparm";
const BLOCK_BYTES: u64 = 2 << 20;
const EXPECTED: &str = "hdparm's line: Timing ... reads: N MB in S seconds = R MB/sec";

/// Every timing in the text.
pub(super) fn scan(text: &Text<'_>) -> Result<Vec<(usize, Outcome)>, ImportError> {
    let mut all: Vec<(usize, Outcome)> = Vec::new();
    for (number, line) in text.lines.iter().enumerate() {
        let Some(rest) = line.trim().strip_prefix("Timing ") else { continue };
        let (kind, figures) = rest.split_once(':').ok_or_else(|| text.wrong(number, line, EXPECTED))?;
        let words: Vec<&str> = figures.split_whitespace().collect();
        let [amount, unit @ ("MB" | "kB" | "GB"), "in", seconds, "seconds", "=", ..] = words[..] else {
            return Err(text.wrong(number, line, EXPECTED));
        };
        let shift = match unit {
            "kB" => 10,
            "MB" => 20,
            _ => 30,
        };
        let (Ok(amount), Ok(seconds)) = (amount.parse::<u32>(), seconds.parse::<f64>()) else {
            return Err(text.wrong(number, line, EXPECTED));
        };
        if !(seconds > 0.0 && seconds.is_finite()) {
            return Err(text.wrong(number, line, "a time of more than nothing"));
        }
        if all.is_empty() {
            all.push((number, empty()));
        }
        let Some((_, found)) = all.last_mut() else { continue };
        let bytes = u64::from(amount) << shift;
        let rate = bytes as f64 / seconds;
        if kind.contains("cached reads") {
            let note = "hdparm -T: the page cache, not the device";
            found.figures.push(Figure::new("cached reads", rate / 1e6, "MB/s", note));
            continue;
        }
        let order = if kind.contains("O_DIRECT") { "sequential" } else { "sequential, buffered" };
        let (table, row) = (TABLE, (found.measurements.len() + 1).to_string());
        let block_bytes = BLOCK_BYTES;
        let rate = Rate {
            table,
            row,
            column: "read",
            op: "read",
            order,
            block_bytes,
            depth: 1,
            bytes: Some(bytes),
            bytes_per_s: rate,
        };
        found.measurements.extend(rate.measurement());
    }
    Ok(all.into_iter().map(|(number, found)| (number, summed(found))).collect())
}

fn empty() -> Outcome {
    let mut outcome = outcome(TABLE, "sequential reads from the start of the device");
    outcome.tables.push(Pivot {
        table: TABLE.into(),
        rows: "run".into(),
        unit: "MB/s".into(),
        caption: "10^6 bytes a second; hdparm's own MB are 2^20".into(),
    });
    outcome.remarks.push("hdparm prints 2^20 bytes as MB: converted to 10^6".into());
    outcome
}

/// The device that hdparm names above its timings.
pub(super) fn device(text: &Text<'_>) -> Option<String> {
    let is_timing = |line: &&str| line.trim().starts_with("Timing ");
    let first = text.lines.iter().position(is_timing)?;
    let line = text.lines[..first].iter().rev().find(|line| !line.trim().is_empty())?;
    line.trim().strip_suffix(':').filter(|device| device.starts_with('/')).map(Into::into)
}
