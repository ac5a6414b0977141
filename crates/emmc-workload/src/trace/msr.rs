//! The CSV of Microsoft Research's traces: `time,host,disk,Read|Write,offset,size,response`, times in 100 ns.

use emmc_port::BlockOp;
use emmc_units::Nanos;

use super::{Trace, TraceRequest, wrong};
use crate::import::ImportError;

/// Whether a line has its seven columns.
pub(super) fn is_line(line: &str) -> bool {
    let columns: Vec<&str> = line.split(',').map(str::trim).collect();
    columns.len() == 7 && (columns[3].eq_ignore_ascii_case("read") || columns[3].eq_ignore_ascii_case("write"))
}

pub(super) fn read(name: &str, text: &str) -> Result<Trace, ImportError> {
    let mut trace = Trace { form: "MSR CSV".into(), ..Trace::default() };
    let (mut disk, mut first) = (None, None);
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if !is_line(line) {
            return Err(wrong(name, number, line, "time,host,disk,Read or Write,offset,size,response"));
        }
        let columns: Vec<&str> = line.split(',').map(str::trim).collect();
        let whole = |column: usize| {
            columns[column].parse::<u64>().map_err(|_| wrong(name, number, columns[column], "a whole number"))
        };
        let here = (columns[1], columns[2]);
        if *disk.get_or_insert(here) != here {
            return Err(wrong(name, number, line, "requests of one disk only"));
        }
        // Times count from 1601: only the time since the first line fits into nanoseconds.
        let ticks = whole(0)?;
        let since = ticks.saturating_sub(*first.get_or_insert(ticks));
        let at = since.checked_mul(100).ok_or_else(|| wrong(name, number, columns[0], "a time within 584 years"))?;
        let op = if columns[3].eq_ignore_ascii_case("read") { BlockOp::Read } else { BlockOp::Write };
        let (offset_bytes, bytes) = (whole(4)?, whole(5)?);
        if offset_bytes.checked_add(bytes).is_none() {
            return Err(wrong(name, number, line, "a range that ends before 2^64"));
        }
        if bytes > 0 {
            trace.requests.push(TraceRequest {
                at: Nanos(at),
                op,
                offset_bytes,
                bytes,
                through: false,
                discard: false,
            });
        }
    }
    Ok(trace)
}
