//! blkparse's text in its default form, `8,0 3 1 0.000000000 697 D W 223490 + 8 [name]`, up to its summary.

use std::io::Read;

use crate::event::{Action, BlockEvent, Event, Op, What, first_part, is_place, letters};
use crate::notes::Batch;
use crate::source::EventSource;
use crate::text::{decimal, device, seconds, shown, words};
use crate::window::Lines;

/// Lines in a batch.
const BATCH: usize = 1024;

/// Whether a line looks like blkparse's: it begins with device numbers and a processor.
pub(crate) fn is_line(line: &[u8]) -> bool {
    let mut words = words(line);
    let first = words.next().and_then(device);
    first.is_some() && words.next().and_then(decimal).is_some()
}

/// Text of blkparse.
pub struct Blkparse<R> {
    lines: Lines<R>,
}

impl<R: Read> Blkparse<R> {
    /// From the first line.
    pub fn new(from: R) -> Self {
        Self { lines: Lines::new(from) }
    }
}

impl<R: Read> EventSource for Blkparse<R> {
    fn fill(&mut self, batch: &mut Batch) -> bool {
        for _ in 0..BATCH {
            let Some(line) = self.lines.next(&mut batch.notes) else { return false };
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if line.starts_with(b"CPU") || line.starts_with(b"Total") {
                return false;
            }
            let read = event(line);
            let wrong = match read {
                Ok(Some((event, name))) => {
                    if let Some(name) = name {
                        batch.notes.names.set(event.pid, name);
                    }
                    batch.events.push(event);
                    continue;
                }
                Ok(None) => {
                    batch.notes.unused += 1;
                    continue;
                }
                Err((found, expected)) => (shown(found), expected),
            };
            batch.notes.damage(self.lines.offset, self.lines.number, wrong.0, wrong.1);
        }
        true
    }
}

/// An event, with the name of its thread if that is certain.
type Line<'a> = Result<Option<(Event, Option<&'a [u8]>)>, (&'a [u8], &'static str)>;

fn event(line: &[u8]) -> Line<'_> {
    if !is_line(line) {
        return Err((line, "a line of blkparse: device processor number time pid action RWBS"));
    }
    let mut all = words(line);
    let mut next = || all.next().unwrap_or_default();
    let [on, cpu, _, time, pid, action] = [(); 6].map(|()| next());
    let rwbs = next();
    let action = match action {
        b"Q" => Action::Queue,
        b"G" => Action::GetRequest,
        b"S" => Action::Sleep,
        b"I" => Action::Insert,
        b"D" => Action::Issue,
        b"R" => Action::Requeue,
        b"C" => Action::Complete,
        b"M" => Action::BackMerge,
        b"F" => Action::FrontMerge,
        b"X" => Action::Split,
        b"A" => Action::Remap,
        b"P" => Action::Plug,
        b"U" | b"UT" => Action::Unplug,
        b"" => return Err((line, "an action")),
        _ => return Ok(None),
    };
    let at = seconds(time).filter(|_| time.len() - memchr::memchr(b'.', time).unwrap_or(0) == 10);
    let at = at.ok_or((time, "seconds.nanoseconds"))?;
    let (op, flags) = letters(rwbs);
    let is_request = !matches!(action, Action::Plug | Action::Unplug);
    if is_request && op == Op::Other && matches!(action, Action::Queue | Action::Issue | Action::Requeue) {
        return match rwbs {
            // A command that a program sent to the driver.
            [b'N', ..] => Ok(None),
            _ => Err((rwbs, "R, W, D or F in RWBS")),
        };
    }
    let [first, sign, second] = [(); 3].map(|()| next());
    let (sector, sectors, other) = match sign {
        _ if !is_request => (0, 0, 0),
        b"+" => {
            let place = decimal(first).zip(decimal(second).and_then(|count| u32::try_from(count).ok()));
            let place = place.filter(|(sector, count)| is_place(*sector, *count));
            let (sector, sectors) = place.ok_or((line, "sector + sectors"))?;
            (sector, sectors, 0)
        }
        b"/" => {
            let (sector, rest) = decimal(first).zip(decimal(second)).ok_or((line, "sector / sector"))?;
            (sector, 0, first_part(sector, rest))
        }
        // A flush: no place.
        _ => (0, 0, 0),
    };
    let last = line.rsplit(|byte| *byte == b'[').next().and_then(|rest| rest.strip_suffix(b"]"));
    let other = match (action, last.and_then(decimal)) {
        (Action::Complete, Some(error)) => u32::try_from(error).unwrap_or(u32::MAX),
        _ => other,
    };
    let name = last.filter(|_| action == Action::Queue);
    let device = device(on).unwrap_or_default();
    let pid = decimal(pid).and_then(|pid| u32::try_from(pid).ok()).unwrap_or_default();
    let cpu = decimal(cpu).and_then(|cpu| u32::try_from(cpu).ok()).unwrap_or_default();
    let what = What::Block(BlockEvent { action, op, flags, device, sector, sectors, other });
    Ok(Some((Event { at, pid, cpu, what }, name)))
}
