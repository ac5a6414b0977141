//! Recorded requests as a workload: the five columns of MQSim and SSDsim, and a plain CSV.
//!
//! Absent on purpose: the formats of tracers (blktrace, ftrace), which belong to the trace tools.

use emmc_units::{Instant, Nanos};

/// The operation of a recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceOp {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Trims; the range reads as erased from then on.
    Trim,
    /// Discards; the old content may come back.
    Discard,
    /// Flushes everything to flash.
    Flush,
}

/// A recorded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its time, counted from the first one.
    pub at: Instant,
    /// What it does.
    pub op: TraceOp,
    /// First sector.
    pub lba: u64,
    /// Sectors.
    pub sectors: u32,
}

/// Recorded requests in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The requests.
    pub records: Vec<Record>,
}

/// Why a text is not a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// There is no request in it.
    #[error("the trace holds no request")]
    Empty,
    /// A line is wrong.
    #[error("line {line} of the trace: {field} is {found:?}; expected {expected}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// The column.
        field: &'static str,
        /// What it holds.
        found: String,
        /// What it must be.
        expected: &'static str,
    },
}

/// The first line of the CSV form.
const CSV_HEADER: [&str; 4] = ["time_us", "op", "lba", "sectors"];

/// The columns of a line and its number.
struct Line<'a> {
    number: usize,
    columns: Vec<&'a str>,
}

impl Line<'_> {
    fn error(&self, field: &'static str, found: &str, expected: &'static str) -> TraceError {
        TraceError::Line { line: self.number, field, found: found.chars().take(40).collect(), expected }
    }

    fn whole(&self, column: usize, field: &'static str) -> Result<u64, TraceError> {
        let text = self.columns[column];
        text.parse().map_err(|_| self.error(field, text, "a whole number"))
    }

    fn sectors(&self, column: usize) -> Result<u32, TraceError> {
        let text = self.columns[column];
        let sectors = text.parse::<u32>().ok().filter(|sectors| (1..=1 << 20).contains(sectors));
        sectors.ok_or_else(|| self.error("sectors", text, "1 to 1048576"))
    }

    /// `time_ns device lba sectors type`, where type 0 writes and 1 reads.
    fn five_columns(&self) -> Result<(Nanos, TraceOp, u64, u32), TraceError> {
        if self.columns.len() != 5 {
            return Err(self.error("line", &self.columns.join(" "), "five columns: time_ns device lba sectors type"));
        }
        let op = match self.columns[4] {
            "0" => TraceOp::Write,
            "1" => TraceOp::Read,
            other => return Err(self.error("type", other, "0 (write) or 1 (read)")),
        };
        Ok((Nanos(self.whole(0, "time")?), op, self.whole(2, "lba")?, self.sectors(3)?))
    }

    /// `time_us,op,lba,sectors`.
    fn csv(&self) -> Result<(Nanos, TraceOp, u64, u32), TraceError> {
        if self.columns.len() != 4 {
            return Err(self.error("line", &self.columns.join(","), "four columns: time_us,op,lba,sectors"));
        }
        let time = self.columns[0].parse::<f64>().ok().filter(|time| (0.0..1e15).contains(time));
        let time = time.ok_or_else(|| self.error("time", self.columns[0], "microseconds, 0 or more"))?;
        let op = match self.columns[1].to_ascii_lowercase().as_str() {
            "r" | "read" => TraceOp::Read,
            "w" | "write" => TraceOp::Write,
            "t" | "trim" => TraceOp::Trim,
            "d" | "discard" => TraceOp::Discard,
            "f" | "flush" => return Ok((Nanos::from_micros_f64(time), TraceOp::Flush, 0, 0)),
            _ => return Err(self.error("op", self.columns[1], "read, write, trim, discard or flush")),
        };
        Ok((Nanos::from_micros_f64(time), op, self.whole(2, "lba")?, self.sectors(3)?))
    }
}

impl Trace {
    /// Reads a trace in one of two forms, which the first line determines; blank lines and lines that begin with `#`
    /// are ignored.
    ///
    /// Requests are sorted by time; simultaneous ones stay in the order of their lines.
    /// Errors: the first wrong line.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let lines = text.lines().map(str::trim).zip(1..);
        let mut lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#')).peekable();
        let is_csv = lines.peek().is_some_and(|(line, _)| line.contains(','));
        let is_header = |line: &str| line.split(',').map(str::trim).eq(CSV_HEADER);
        let mut records = Vec::new();
        for (text, number) in lines.filter(|(line, _)| !is_header(line)) {
            let columns =
                if is_csv { text.split(',').map(str::trim).collect() } else { text.split_ascii_whitespace().collect() };
            let line = Line { number, columns };
            let (at, op, lba, sectors) = if is_csv { line.csv()? } else { line.five_columns()? };
            if lba.checked_add(u64::from(sectors)).is_none() {
                return Err(line.error("lba", &lba.to_string(), "a sector below 2^64"));
            }
            records.push(Record { at: Instant::START + at, op, lba, sectors });
        }
        records.sort_by_key(|record| record.at);
        let first = records.first().ok_or(TraceError::Empty)?.at;
        for record in &mut records {
            record.at = Instant::START + record.at.since(first);
        }
        Ok(Self { records })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(ns: u64, op: TraceOp, lba: u64, sectors: u32) -> Record {
        Record { at: Instant(ns), op, lba, sectors }
    }

    #[test]
    fn both_formats_are_read_and_sorted() {
        let five = "# ns dev lba sectors type\n\n5000 0 16 8 1\n2000 0 8 8 0\n2000 0 0 8 0\n";
        let expected =
            [record(0, TraceOp::Write, 8, 8), record(0, TraceOp::Write, 0, 8), record(3000, TraceOp::Read, 16, 8)];
        assert_eq!(Trace::parse(five).unwrap().records, expected);
        let csv = "time_us,op,lba,sectors\n0, W, 8, 8\n1.5,trim,8,8\n2,flush,0,0\r\n3,read,8,1\n3,d,8,1";
        let expected = [
            record(0, TraceOp::Write, 8, 8),
            record(1500, TraceOp::Trim, 8, 8),
            record(2000, TraceOp::Flush, 0, 0),
            record(3000, TraceOp::Read, 8, 1),
            record(3000, TraceOp::Discard, 8, 1),
        ];
        assert_eq!(Trace::parse(csv).unwrap().records, expected);
    }

    #[test]
    fn the_wrong_line_is_named() {
        for (text, error) in [
            ("", "the trace holds no request"),
            ("time_us,op,lba,sectors", "the trace holds no request"),
            ("0 0 0 8 0\n1 0 0 8 2", "line 2 of the trace: type is \"2\"; expected 0 (write) or 1 (read)"),
            (
                "0 0 0 8",
                "line 1 of the trace: line is \"0 0 0 8\"; expected five columns: time_ns device lba sectors type",
            ),
            ("0 0 x 8 0", "line 1 of the trace: lba is \"x\"; expected a whole number"),
            ("0 0 0 0 0", "line 1 of the trace: sectors is \"0\"; expected 1 to 1048576"),
            ("-1,w,0,8", "line 1 of the trace: time is \"-1\"; expected microseconds, 0 or more"),
            ("nan,w,0,8", "line 1 of the trace: time is \"nan\"; expected microseconds, 0 or more"),
            ("0,write", "line 1 of the trace: line is \"0,write\"; expected four columns: time_us,op,lba,sectors"),
            ("0,x,0,8", "line 1 of the trace: op is \"x\"; expected read, write, trim, discard or flush"),
            (
                "0 0 18446744073709551615 8 0",
                "line 1 of the trace: lba is \"18446744073709551615\"; expected a sector below 2^64",
            ),
        ] {
            assert_eq!(Trace::parse(text).unwrap_err().to_string(), error, "{text:?}");
        }
    }
}
