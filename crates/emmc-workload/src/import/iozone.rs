//! iozone: its report table and the part for Excel (`-R`).
//!
//! Source: reference outputs of 3.489 and 3.492. Values are right-aligned with their headings and columns that were not
//! measured are blank, so positions matter. All figures are KiB a second, `kBytes/sec` in iozone's words.

use super::rate::Rate;
use super::{ImportError, Text, outcome, summed};
use crate::result::measurement::Measurement;
use crate::result::{Outcome, Pivot};

const TABLE: &str = "iozone";
const COMMAND_LINE: &str = "Command line used:";
/// The remark on a run through the page cache.
pub const THROUGH_CACHE: &str =
    "iozone ran without -I, through the page cache: its figures may be those of memory, not of the card";
/// In the table's order, with the name in the Excel part; operation, order.
const COLUMNS: [(&str, &str, &str, &str); 13] = [
    ("write", "writer", "write", "sequential"),
    ("rewrite", "re-writer", "write", "sequential"),
    ("read", "reader", "read", "sequential"),
    ("reread", "re-reader", "read", "sequential"),
    ("random read", "random read", "read", "shuffled"),
    ("random write", "random write", "write", "shuffled"),
    ("backward read", "backward read", "read", "backward"),
    ("record rewrite", "record rewrite", "write", "one record"),
    ("stride read", "stride read", "read", "strided"),
    ("fwrite", "fwrite", "write", "sequential, buffered"),
    ("frewrite", "re-fwrite", "write", "sequential, buffered"),
    ("fread", "fread", "read", "sequential, buffered"),
    ("freread", "re-fread", "read", "sequential, buffered"),
];

/// A measurement of a cell: record and file in KiB, this crate's column name, KiB a second.
pub(crate) fn measurements(file_kib: u64, record_kib: u64, column: &str, kib_per_s: f64) -> Option<Measurement> {
    let (column, _, op, order) = COLUMNS.iter().find(|(name, ..)| *name == column)?;
    let rate = Rate {
        table: TABLE,
        row: record_kib.to_string(),
        column,
        op,
        order,
        block_bytes: record_kib.checked_mul(1024)?,
        depth: 1,
        bytes: Some(file_kib.checked_mul(1024)?),
        bytes_per_s: kib_per_s * 1024.0,
    };
    rate.measurement()
}

/// Every table in the text; the Excel part only if there is no table.
pub(super) fn scan(text: &Text<'_>) -> Result<Vec<(usize, Outcome)>, ImportError> {
    let mut found = Vec::new();
    for (number, line) in text.lines.iter().enumerate() {
        if is_heading(&ends(line)) {
            unit(text)?;
            found.push((number, table(text, number)?));
        }
    }
    if found.is_empty() {
        found.extend(excel(text)?);
    }
    Ok(found)
}

fn empty() -> Outcome {
    let mut outcome = outcome(TABLE, "iozone's columns by record size");
    outcome.tables.push(Pivot {
        table: TABLE.into(),
        rows: "record KiB".into(),
        unit: "KiB/s".into(),
        caption: "KiB a second, as iozone printed them".into(),
    });
    outcome
}

/// Errors: rates in another unit (`-N`, `-O`).
fn unit(text: &Text<'_>) -> Result<(), ImportError> {
    for (number, line) in text.lines.iter().enumerate() {
        let Some((_, unit)) = line.split_once("Output is in ") else { continue };
        if !unit.trim_start().to_ascii_lowercase().starts_with("kbytes/sec") {
            return Err(text.wrong(number, line.trim(), "kBytes/sec, as iozone prints without -N and -O"));
        }
    }
    Ok(())
}

fn told(text: &Text<'_>) -> Vec<String> {
    let starts = [COMMAND_LINE, "Output is in"];
    let lines = text.lines.iter().map(|line| line.trim());
    let mut told: Vec<String> =
        lines.filter(|line| starts.iter().any(|s| line.starts_with(s))).map(Into::into).collect();
    told.dedup();
    told.truncate(4);
    if told.iter().any(|line| is_cached(line)) {
        told.push(THROUGH_CACHE.into());
    }
    told
}

/// Whether a line is the command line of a run through the page cache.
fn is_cached(line: &str) -> bool {
    let is_direct = |word: &str| word.starts_with('-') && word.contains('I');
    line.split_once(COMMAND_LINE).is_some_and(|(_, command)| !command.split_whitespace().any(is_direct))
}

/// Where each word of a line ends, in characters.
fn ends(line: &str) -> Vec<(&str, usize)> {
    let mut at = 0;
    let words = line.split(' ').map(|word| {
        let end = at + word.chars().count();
        at = end + 1;
        (word.trim(), end)
    });
    words.filter(|(word, _)| !word.is_empty()).collect()
}

/// Whether it begins with a number: the file size of a row.
fn is_row(cells: &[(&str, usize)]) -> bool {
    let is_number = |(word, _): &(&str, usize)| word.bytes().all(|byte| byte.is_ascii_digit());
    cells.first().is_some_and(is_number)
}

fn is_heading(cells: &[(&str, usize)]) -> bool {
    matches!(cells, [("kB" | "KB", _), ("reclen", _), ..])
}

/// A size in KiB.
///
/// Errors: 0, or more bytes than 64 bits hold.
fn sized(text: &Text<'_>, number: usize, word: &str, kib: u64) -> Result<u64, ImportError> {
    match kib.checked_mul(1024) {
        Some(1..) => Ok(kib),
        _ => Err(text.wrong(number, word, "a size in KiB above 0, below 2^54")),
    }
}

fn table(text: &Text<'_>, heading: usize) -> Result<Outcome, ImportError> {
    let mut found = empty();
    found.remarks = told(text);
    let headings = ends(text.lines[heading]);
    let end_of_text = text.lines.iter().rposition(|line| !line.trim().is_empty());
    let mut is_aligned = true;
    for (number, line) in text.lines.iter().enumerate().skip(heading + 1) {
        let cells = ends(line);
        if cells.is_empty() {
            continue;
        }
        if !is_row(&cells) {
            let below = text.lines[number + 1..].iter().map(|line| ends(line)).take_while(|cells| !is_heading(cells));
            if below.into_iter().any(|cells| is_row(&cells) && cells.len() > 3) {
                return Err(text.wrong(number, line, "a row of the table, as there are more of them below"));
            }
            break;
        }
        let whole =
            |word: &str| word.parse::<u64>().map_err(|_| text.wrong(number, word, "a whole number of iozone's table"));
        let [(file, _), (record, _), cells @ ..] = &cells[..] else {
            return Err(text.wrong(number, line, "file size, record size and rates, in KiB"));
        };
        let size = |word: &str| sized(text, number, word, whole(word)?);
        let (file, record) = (size(file)?, size(record)?);
        let mut last = 1;
        for (index, (word, end)) in cells.iter().enumerate() {
            let rate = whole(word)?;
            if rate == 0 {
                return Err(text.wrong(number, word, "a rate above 0; iozone leaves out what it did not measure"));
            }
            let near = |(place, (_, column)): (usize, &(&str, usize))| (column.abs_diff(*end), place);
            let place = headings.iter().enumerate().skip(2).map(near).min().map_or(0, |(_, place)| place);
            // In a table whose spaces were lost, as in a web page, a full row is still unambiguous.
            let place = if cells.len() + 2 == headings.len() { last + 1 } else { place };
            let Some((column, ..)) = COLUMNS.get(place.wrapping_sub(2)).filter(|_| place > last) else {
                return Err(text.wrong(number, line, "each rate below its own heading"));
            };
            last = place;
            let is_last = Some(number) == end_of_text && index + 1 == cells.len();
            if is_last && is_aligned && *end < headings[place].1 {
                let left = format!("line {}: {column} {word}: the text ends inside the number: not used", number + 1);
                found.remarks.push(left);
                break;
            }
            is_aligned &= *end == headings[place].1;
            found.measurements.extend(measurements(file, record, column, rate as f64));
        }
    }
    if found.measurements.is_empty() {
        return Err(text.wrong(
            heading,
            text.lines[heading],
            "rows of file size, record size and rates below this heading",
        ));
    }
    Ok(summed(found))
}

/// `"Writer report"`, a line of record sizes, lines of a file size and rates.
fn excel(text: &Text<'_>) -> Result<Option<(usize, Outcome)>, ImportError> {
    let mut found = empty();
    let mut first = None;
    let mut lines = text.lines.iter().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let Some(report) = line.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix(" report\"")) else {
            continue;
        };
        let Some((column, ..)) = COLUMNS.iter().find(|(_, excel, ..)| report.eq_ignore_ascii_case(excel)) else {
            continue;
        };
        first.get_or_insert(number);
        let quoted = |number: usize, word: &str| {
            let inner = word.strip_prefix('"').and_then(|word| word.strip_suffix('"'));
            let size = inner.and_then(|inner| inner.parse::<u64>().ok());
            let size = size.ok_or_else(|| text.wrong(number, word, "a size in KiB in quotation marks"))?;
            sized(text, number, word, size)
        };
        let Some((at, sizes)) = lines.next() else {
            return Err(text.wrong(number, line, "a line of record sizes below it"));
        };
        let records = sizes.split_whitespace().map(|word| quoted(at, word)).collect::<Result<Vec<_>, _>>()?;
        while let Some((at, row)) = lines.next_if(|(_, row)| row.trim_start().starts_with('"')) {
            let mut words = row.split_whitespace();
            let file = quoted(at, words.next().unwrap_or_default())?;
            for (index, word) in words.enumerate() {
                let rate = word.parse::<u64>().map_err(|_| text.wrong(at, word, "KiB a second"))?;
                let Some(record) = records.get(index) else {
                    return Err(text.wrong(at, row, format!("{} rates, one for each record size", records.len())));
                };
                // It prints 0 for a record size that it left out.
                found.measurements.extend(measurements(file, *record, column, rate as f64));
            }
        }
    }
    let Some(first) = first else { return Ok(None) };
    if found.measurements.is_empty() {
        return Err(text.wrong(first, text.lines[first], "rates below iozone's report headings"));
    }
    found.remarks = told(text);
    Ok(Some((first, summed(found))))
}
