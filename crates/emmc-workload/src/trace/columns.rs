//! Plain columns: the CSV `time_us,op,lba,sectors`, and `time_ns device lba sectors type` of MQSim and SSDsim, where
//! type 0 writes and 1 reads. Sectors have 512 bytes; blank lines and lines that begin with `#` are ignored.

use emmc_port::BlockOp;
use emmc_units::Nanos;

use super::{Trace, TraceRequest, range, wrong};
use crate::import::ImportError;

/// The first line of the CSV form.
const CSV_HEADER: [&str; 4] = ["time_us", "op", "lba", "sectors"];
/// Most sectors of a request.
pub(super) const SECTORS_MAX: u64 = 1 << 20;

/// Whether a line looks like the CSV: four columns, and the first is a time or the heading.
pub(super) fn is_csv(line: &str) -> bool {
    let first = line.split(',').next().unwrap_or_default().trim();
    line.contains(',') && (first == CSV_HEADER[0] || first.parse::<f64>().is_ok())
}

/// Whether a line looks like the five columns: words, and the first is a whole number.
pub(super) fn is_five(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    words.next().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) && words.next().is_some()
}

/// A line with its number, counted from 0.
struct Line<'a> {
    name: &'a str,
    number: usize,
    columns: Vec<&'a str>,
}

impl Line<'_> {
    fn wrong(&self, found: &str, expected: &str) -> ImportError {
        wrong(self.name, self.number, found, expected)
    }

    fn whole(&self, column: usize, field: &str) -> Result<u64, ImportError> {
        let text = self.columns[column];
        text.parse().map_err(|_| self.wrong(text, &format!("a whole number ({field})")))
    }

    /// The range of two neighbouring columns. Unit: bytes.
    fn range(&self, lba: usize) -> Result<(u64, u64), ImportError> {
        let (first, text) = (self.whole(lba, "lba")?, self.columns[lba + 1]);
        let sectors = text.parse().ok().filter(|sectors| (1..=SECTORS_MAX).contains(sectors));
        let sectors = sectors.ok_or_else(|| self.wrong(text, &format!("1 to {SECTORS_MAX} sectors")))?;
        range(first, sectors).ok_or_else(|| self.wrong(self.columns[lba], "a range that ends before 2^64 bytes"))
    }
}

fn read<'a>(
    (name, form): (&'a str, &str),
    text: &'a str,
    split: impl Fn(&'a str) -> Vec<&'a str>,
    request: impl Fn(&Line<'a>) -> Result<TraceRequest, ImportError>,
) -> Result<Trace, ImportError> {
    let mut trace = Trace { form: form.into(), ..Trace::default() };
    for (number, line) in text.lines().map(str::trim).enumerate() {
        let columns = split(line);
        if !line.is_empty() && !line.starts_with('#') && columns != CSV_HEADER {
            trace.requests.push(request(&Line { name, number, columns })?);
        }
    }
    Ok(trace)
}

pub(super) fn read_five(name: &str, text: &str) -> Result<Trace, ImportError> {
    read(
        (name, "five columns"),
        text,
        |line| line.split_ascii_whitespace().collect(),
        |line| {
            if line.columns.len() != 5 {
                return Err(line.wrong(&line.columns.join(" "), "five columns: time_ns device lba sectors type"));
            }
            let op = match line.columns[4] {
                "0" => BlockOp::Write,
                "1" => BlockOp::Read,
                other => return Err(line.wrong(other, "type 0 (write) or 1 (read)")),
            };
            let (at, (offset_bytes, bytes)) = (Nanos(line.whole(0, "time")?), line.range(2)?);
            Ok(TraceRequest { at, op, offset_bytes, bytes, through: false, discard: false })
        },
    )
}

pub(super) fn read_csv(name: &str, text: &str) -> Result<Trace, ImportError> {
    read(
        (name, "CSV"),
        text,
        |line| line.split(',').map(str::trim).collect(),
        |line| {
            if line.columns.len() != 4 {
                return Err(line.wrong(&line.columns.join(","), "four columns: time_us,op,lba,sectors"));
            }
            let time = line.columns[0].parse::<f64>().ok().filter(|time| (0.0..1e15).contains(time));
            let time = time.ok_or_else(|| line.wrong(line.columns[0], "microseconds, 0 or more"))?;
            let (op, discard) = match line.columns[1].to_ascii_lowercase().as_str() {
                "r" | "read" => (BlockOp::Read, false),
                "w" | "write" => (BlockOp::Write, false),
                "t" | "trim" => (BlockOp::Trim, false),
                "d" | "discard" => (BlockOp::Trim, true),
                "f" | "flush" => (BlockOp::Flush, false),
                _ => return Err(line.wrong(line.columns[1], "read, write, trim, discard or flush")),
            };
            let (offset_bytes, bytes) = if op == BlockOp::Flush { (0, 0) } else { line.range(2)? };
            Ok(TraceRequest { at: Nanos::from_micros_f64(time), op, offset_bytes, bytes, through: false, discard })
        },
    )
}
