//! The last line of `dd`, of coreutils and of busybox.
//!
//! dd's MB are 10^6 bytes; its exact bytes and seconds are used. The block size follows from the count of full records.
//! Which of its two files is the device is visible only in its command line: if the text has that above, `if=/dev/zero`
//! means a write.

use super::rate::Rate;
use super::{ImportError, Text, outcome, summed};
use crate::result::measurement::Measurement;
use crate::result::{Outcome, Pivot};

const TABLE: &str = "dd";
/// How the remark begins that a run of dd measured the page cache as well.
pub const UNSYNCED: &str = "dd ran without fdatasync";

/// Every run in the text that has a time.
pub(super) fn scan(text: &Text<'_>) -> Result<Vec<(usize, Outcome)>, ImportError> {
    let mut found = outcome(TABLE, "one file copied to another");
    let mut first = None;
    for (number, line) in text.lines.iter().enumerate() {
        let Some((bytes, rest)) = line.trim().split_once(" bytes ") else { continue };
        let Some((_, time)) = rest.split_once(" copied, ") else { continue };
        let expected = "dd's line: N bytes (...) copied, S s, R MB/s";
        let seconds = time.split(|c: char| c == ',' || c.is_whitespace()).next().unwrap_or_default();
        let (Ok(bytes), Ok(seconds)) = (bytes.parse::<u64>(), seconds.parse::<f64>()) else {
            return Err(text.wrong(number, line, expected));
        };
        if !(seconds > 0.0 && seconds.is_finite()) {
            return Err(text.wrong(number, line, "a time of more than nothing"));
        }
        first.get_or_insert(number);
        let (op, order) = direction(&text.lines[..number], &mut found);
        let block_bytes = block(&text.lines[..number], bytes);
        if block_bytes.is_none() {
            found.remarks.push(format!("line {}: no count of records above: taken as one request", number + 1));
        }
        let block_bytes = block_bytes.unwrap_or(bytes);
        let (row, bytes_per_s) = ((found.measurements.len() + 1).to_string(), bytes as f64 / seconds);
        let rate =
            Rate { table: TABLE, row, column: op, op, order, block_bytes, depth: 1, bytes: Some(bytes), bytes_per_s };
        let flushed_every = (op == "write" && is_synced(&text.lines[..number])).then_some(1);
        found.measurements.extend(rate.measurement().map(|measured| Measurement { flushed_every, ..measured }));
    }
    found.tables.push(Pivot {
        table: TABLE.into(),
        rows: "run".into(),
        unit: "MB/s".into(),
        caption: "10^6 bytes a second".into(),
    });
    Ok(first.map(|first| (first, summed(found))).into_iter().collect())
}

/// Bytes of a full record: the quotient of the bytes and `65536+0 records in` above.
fn block(above: &[&str], bytes: u64) -> Option<u64> {
    let records = above.iter().rev().take(3).find_map(|line| {
        let (full, partial) = line.trim().strip_suffix(" records out")?.split_once('+')?;
        (partial == "0").then_some(full)?.parse::<u64>().ok()
    })?;
    bytes.checked_div(records).filter(|block| *block > 0 && block.checked_mul(records) == Some(bytes))
}

/// The command line above, if present.
fn command<'t>(above: &[&'t str]) -> Option<&'t str> {
    above.iter().rev().take(4).find(|line| line.contains("dd ") && line.contains("f=")).copied()
}

/// Whether each write was durable before the next one.
fn is_synced(above: &[&str]) -> bool {
    let flags =
        command(above).into_iter().flat_map(str::split_whitespace).filter_map(|word| word.strip_prefix("oflag="));
    flags.flat_map(|flags| flags.split(',')).any(|flag| matches!(flag, "dsync" | "sync"))
}

/// From the command line above, if present.
fn direction(above: &[&str], found: &mut Outcome) -> (&'static str, &'static str) {
    let Some(command) = command(above) else {
        found
            .remarks
            .push("dd's command line is not in the text: which file was read and which written is not known".into());
        return ("copy", "sequential");
    };
    let direct = if command.contains("direct") { "sequential" } else { "sequential, buffered" };
    let op = match (
        command.contains("if=/dev/zero") || command.contains("if=/dev/urandom"),
        command.contains("of=/dev/null"),
    ) {
        (true, false) => "write",
        (false, true) => "read",
        _ => "copy",
    };
    if op == "write"
        && !["conv=fdatasync", "conv=fsync", "oflag=direct", "oflag=dsync", "oflag=sync"]
            .iter()
            .any(|sync| command.contains(sync))
    {
        found.remarks.push(format!("{UNSYNCED}: part of the writes may still have been in memory"));
    }
    (op, direct)
}
