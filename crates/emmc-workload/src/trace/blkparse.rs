//! blkparse's text in its default form, `8,0 3 1 0.000000000 697 D W 223490 + 8 [name]`, up to its summary.

use emmc_port::BlockOp;
use emmc_units::Nanos;

use super::{Event, Kind, Trace, TraceRequest, range, requests, wrong};
use crate::import::ImportError;

/// Whether a line looks like blkparse's: it begins with device numbers.
pub(super) fn is_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let device = words.next().and_then(|word| word.split_once(','));
    let whole = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    device.is_some_and(|(major, minor)| whole(major) && whole(minor)) && words.next().is_some_and(whole)
}

pub(super) fn read(name: &str, text: &str) -> Result<Trace, ImportError> {
    let mut events = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if !is_line(line) {
            if line.trim().is_empty() {
                continue;
            }
            // The summary begins.
            if line.starts_with("CPU") || line.starts_with("Total") {
                break;
            }
            return Err(wrong(name, number, line, "a line of blkparse: device processor number time pid action RWBS"));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let kind = match words.get(5) {
            Some(&"Q") => Kind::Queued,
            Some(&"D") => Kind::Issued,
            Some(&"R") => Kind::Requeued,
            Some(_) => continue,
            None => return Err(wrong(name, number, line, "an action")),
        };
        let at = time(words[3]).ok_or_else(|| wrong(name, number, words[3], "seconds.nanoseconds"))?;
        let rwbs = words.get(6).copied().unwrap_or_default();
        let Some(op) = op(rwbs) else {
            return Err(wrong(name, number, rwbs, "R, W, D or F in RWBS"));
        };
        let figures = words.get(7..10).filter(|words| words[1] == "+");
        let place = figures.map(|words| words[0].parse().ok().zip(words[2].parse().ok()));
        let place = match place {
            None => Some((0, 0)),
            Some(place) => place.and_then(|(sector, sectors)| range(sector, sectors)),
        };
        let (offset_bytes, bytes) = place.ok_or_else(|| wrong(name, number, line, "sector + sectors"))?;
        let through = rwbs.trim_start_matches('F').contains('F') && op == BlockOp::Write;
        let request = TraceRequest { at, op, offset_bytes, bytes, through, discard: op == BlockOp::Trim };
        events.push(Event { at, kind, request, flush: rwbs.starts_with('F') });
    }
    let mut notes = Vec::new();
    let requests = requests(events, &mut notes);
    Ok(Trace { form: "blkparse".into(), requests, notes })
}

/// Nothing if it is not a request of the block layer.
fn op(rwbs: &str) -> Option<BlockOp> {
    let letter = rwbs.trim_start_matches('F').chars().next();
    match letter {
        Some('R') => Some(BlockOp::Read),
        Some('W') => Some(BlockOp::Write),
        Some('D') => Some(BlockOp::Trim),
        Some('N') | None if rwbs.starts_with('F') => Some(BlockOp::Flush),
        _ => None,
    }
}

fn time(text: &str) -> Option<Nanos> {
    let (seconds, nanos) = text.split_once('.')?;
    let nanos = (nanos.len() == 9).then_some(nanos)?.parse::<u64>().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos).map(Nanos)
}
