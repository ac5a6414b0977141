//! fio's I/O logs of versions 2 and 3, as written by `--write_iolog` and blktrace-to-fio tools.
//!
//! Source: fio's HOWTO; the time of version 3 is in microseconds, as fio 3.33 writes it. Version 2 has no times but its
//! waits.

use emmc_port::BlockOp;
use emmc_units::Nanos;

use super::{Trace, TraceRequest, wrong};
use crate::import::ImportError;

pub(super) fn read(name: &str, text: &str) -> Result<Trace, ImportError> {
    let mut lines = text.lines().enumerate();
    let heading = lines.next().map_or("", |(_, line)| line.trim());
    let timed = match heading {
        "fio version 2 iolog" => false,
        "fio version 3 iolog" => true,
        _ => return Err(wrong(name, 0, heading, "fio version 2 iolog, or 3")),
    };
    let mut trace =
        Trace { form: if timed { "fio iolog v3".into() } else { "fio iolog v2".into() }, ..Trace::default() };
    let (mut clock_us, mut file) = (0u64, None);
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let whole = |word: &str| word.parse::<u64>().map_err(|_| wrong(name, number, word, "a whole number"));
        if timed {
            clock_us = whole(words[0])?;
            words.remove(0);
        }
        let [target, action, figures @ ..] = &words[..] else {
            return Err(wrong(name, number, line, "a file and an action"));
        };
        let op = match *action {
            "add" | "open" | "close" => continue,
            "wait" => {
                let time = figures.first().ok_or_else(|| wrong(name, number, line, "microseconds to wait"))?;
                clock_us = clock_us.saturating_add(whole(time)?);
                continue;
            }
            "read" => BlockOp::Read,
            "write" => BlockOp::Write,
            "trim" => BlockOp::Trim,
            "sync" | "datasync" => BlockOp::Flush,
            other => {
                return Err(wrong(name, number, other, "read, write, trim, sync, datasync, wait, add, open or close"));
            }
        };
        if *file.get_or_insert(*target) != *target {
            return Err(wrong(name, number, target, "requests of one file only: its offsets are the target's"));
        }
        let (offset_bytes, bytes) = match (op, figures) {
            (BlockOp::Flush, _) => (0, 0),
            (_, [offset, bytes, ..]) => (whole(offset)?, whole(bytes)?),
            _ => return Err(wrong(name, number, line, "an offset and a length in bytes")),
        };
        if offset_bytes.checked_add(bytes).is_none() {
            return Err(wrong(name, number, line, "a range that ends before 2^64"));
        }
        let at = clock_us.checked_mul(1000).ok_or_else(|| wrong(name, number, line, "a time below 2^64 ns"))?;
        if bytes > 0 || op == BlockOp::Flush {
            trace.requests.push(TraceRequest {
                at: Nanos(at),
                op,
                offset_bytes,
                bytes,
                through: false,
                discard: op == BlockOp::Trim,
            });
        }
    }
    Ok(trace)
}
