//! Recorded requests as files of other tools: fio's iolog, and the plain CSV that `read` takes.

use std::fmt::Write;

use emmc_port::BlockOp;
use emmc_units::Nanos;

use super::columns::SECTORS_MAX;
use super::{Trace, TraceRequest};

/// A version of fio's iolog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IologVersion {
    /// Waits between requests; every fio.
    Second,
    /// A time with each request; fio 3.29 and later.
    Third,
}

/// fio's iolog for a file of this name, which fio opens unless `--replay_redirect` names another one.
///
/// FUA has no form in it: such a write becomes a write and a `datasync`. Times are in microseconds.
pub fn fio_iolog(trace: &Trace, version: IologVersion, file: &str) -> String {
    let number = if version == IologVersion::Second { 2 } else { 3 };
    let mut text = format!("fio version {number} iolog\n");
    let mut clock = Nanos::ZERO;
    let mut line = |at: Nanos, action: &str, range: Option<(u64, u64)>| {
        if version == IologVersion::Third {
            let _ = write!(text, "{} ", at.0 / 1000);
        } else if let Some(wait @ 1..) = (at.0 / 1000).checked_sub(clock.0 / 1000) {
            let _ = writeln!(text, "{file} wait {wait} 0");
        }
        clock = at;
        let _ = match range {
            Some((offset, bytes)) => writeln!(text, "{file} {action} {offset} {bytes}"),
            None => writeln!(text, "{file} {action}"),
        };
    };
    line(Nanos::ZERO, "add", None);
    line(Nanos::ZERO, "open", None);
    let mut last = Nanos::ZERO;
    for request in &trace.requests {
        let TraceRequest { at, op, offset_bytes, bytes, through, .. } = *request;
        let action = match op {
            BlockOp::Read => "read",
            BlockOp::Write => "write",
            BlockOp::Trim => "trim",
            BlockOp::Flush => "datasync",
        };
        line(at, action, Some((offset_bytes, bytes)));
        if through {
            line(at, "datasync", Some((0, 0)));
        }
        last = at;
    }
    line(last, "close", None);
    text
}

/// The CSV `time_us,op,lba,sectors`, in sectors of 512 bytes; times have three decimals.
///
/// FUA has no form in it: such a write becomes a write and a flush. A range that is not of whole sectors is widened, a
/// long discard becomes several.
pub fn csv(trace: &Trace) -> String {
    let mut text = String::from("time_us,op,lba,sectors\n");
    for request in &trace.requests {
        let TraceRequest { at, op, offset_bytes, bytes, through, discard } = *request;
        let time = format!("{}.{:03}", at.0 / 1000, at.0 % 1000);
        let op = match op {
            BlockOp::Read => "read",
            BlockOp::Write => "write",
            BlockOp::Trim if discard => "discard",
            BlockOp::Trim => "trim",
            BlockOp::Flush => "flush",
        };
        let (mut lba, end) = (offset_bytes / 512, offset_bytes.saturating_add(bytes).div_ceil(512));
        if request.op == BlockOp::Flush {
            let _ = writeln!(text, "{time},{op},0,0");
        }
        while request.op != BlockOp::Flush && lba < end {
            let sectors = (end - lba).min(SECTORS_MAX);
            let _ = writeln!(text, "{time},{op},{lba},{sectors}");
            lba += sectors;
        }
        if through {
            let _ = writeln!(text, "{time},flush,0,0");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::read;

    /// A write with FUA, a discard that is longer than a line may be, a flush, and a range of odd bytes.
    fn example() -> Trace {
        let request = |at: u64, op, offset_bytes, bytes| TraceRequest {
            at: Nanos(at),
            op,
            offset_bytes,
            bytes,
            through: at == 0,
            discard: op == BlockOp::Trim,
        };
        let requests = vec![
            request(0, BlockOp::Write, 4096, 8192),
            request(1_500, BlockOp::Trim, 0, (SECTORS_MAX + 8) * 512),
            request(2_000_000, BlockOp::Flush, 0, 0),
            request(3_000_500, BlockOp::Read, 512, 1024),
        ];
        Trace { requests, ..Trace::default() }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let again = |text: &str| {
            let requests = read("f", text.as_bytes()).unwrap().requests;
            let of = |request: &TraceRequest| (request.at.0, request.op, request.offset_bytes, request.bytes);
            requests.iter().map(of).collect::<Vec<_>>()
        };
        let flush = |at| (at, BlockOp::Flush, 0, 0);
        let (whole, rest) = (SECTORS_MAX * 512, 8 * 512);
        let (write, read) = ((0, BlockOp::Write, 4096, 8192), (3_000_500, BlockOp::Read, 512, 1024));
        let trims = [(1_500, BlockOp::Trim, 0, whole), (1_500, BlockOp::Trim, whole, rest)];
        assert_eq!(again(&csv(&example())), [write, flush(0), trims[0], trims[1], flush(2_000_000), read]);
        // Microseconds, and one trim.
        let trim = (1_000, BlockOp::Trim, 0, whole + rest);
        let rounded = (3_000_000, BlockOp::Read, 512, 1024);
        for version in [IologVersion::Second, IologVersion::Third] {
            let found = again(&fio_iolog(&example(), version, "/dev/x"));
            assert_eq!(found, [write, flush(0), trim, flush(2_000_000), rounded], "{version:?}");
        }
    }

    #[test]
    fn odd_bytes_become_the_sectors_that_hold_them() {
        let odd = TraceRequest {
            at: Nanos::ZERO,
            op: BlockOp::Read,
            offset_bytes: 700,
            bytes: 400,
            through: false,
            discard: false,
        };
        let trace = Trace { requests: vec![odd], ..Trace::default() };
        assert_eq!(csv(&trace), "time_us,op,lba,sectors\n0.000,read,1,2\n");
    }
}
