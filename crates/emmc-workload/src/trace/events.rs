//! Requests from events of the block layer, in every format that `emmc-trace` reads.
//!
//! A replay needs a faithful recording: damage is an error here.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use emmc_port::BlockOp;
use emmc_trace::{Action, BlockEvent, Flags, Form, Input, Notes, Op, OpenError, Selection, What, open};
use emmc_units::Nanos;

use super::{Trace, TraceRequest, range};
use crate::import::ImportError;

/// The requests of a recording, of one device: the chosen one, else the eMMC or SD card with most requests, else the
/// device with most of them. A replay has one target.
///
/// Errors: damage.
pub(super) fn read(inputs: Vec<Input>, chosen: Option<u32>) -> Result<Trace, ImportError> {
    let name = inputs.first().map_or_else(String::new, |input| input.name.clone());
    let name = name.as_str();
    let opened = open(inputs).map_err(|error| unreadable(name, &error))?;
    let (mut recording, forms) = (opened.events.unbounded(), opened.forms);
    let mut events = Vec::new();
    recording.run(|event| {
        if let What::Block(block) = event.what {
            events.extend(request(event.at, &block));
        }
    });
    let said = recording.notes();
    if let Some(damage) = said.damage.first() {
        return Err(match damage.line {
            0 => ImportError::Unknown {
                name: name.into(),
                reason: format!("byte {}: {}", damage.offset, damage.found),
                expected: damage.expected.clone(),
            },
            line => ImportError::Line {
                name: name.into(),
                line: usize::try_from(line).unwrap_or(usize::MAX),
                found: damage.found.clone(),
                expected: damage.expected.clone(),
            },
        });
    }
    let mut notes = losses(&said);
    let requests = requests(events, chosen, &mut notes);
    let form = match forms.first() {
        Some(Form::Blkparse) => "blkparse",
        Some(form) => form.name(),
        None => "recording",
    };
    Ok(Trace { form: form.into(), requests, notes })
}

fn unreadable(name: &str, error: &OpenError) -> ImportError {
    let text = error.to_string();
    let reason = text.strip_prefix(&format!("{name}: ")).unwrap_or(&text).to_string();
    ImportError::Unknown { name: name.into(), reason, expected: "a whole recording".into() }
}

fn losses(said: &Notes) -> Vec<String> {
    let mut notes = Vec::new();
    if said.lost + said.losses_uncounted > 0 {
        let more = if said.losses_uncounted > 0 { " or more" } else { "" };
        notes.push(format!("{}{more} events were lost when this was recorded: requests may be missing", said.lost));
    }
    notes
}

/// An event that moves a request.
struct Step {
    at: Nanos,
    device: u32,
    action: Action,
    request: TraceRequest,
    /// With a flush before it.
    flush: bool,
}

fn request(at: Nanos, block: &BlockEvent) -> Option<Step> {
    if !matches!(block.action, Action::Queue | Action::Issue | Action::Requeue) {
        return None;
    }
    let op = match block.op {
        Op::Read => BlockOp::Read,
        Op::Write => BlockOp::Write,
        Op::Discard | Op::Erase => BlockOp::Trim,
        Op::Flush => BlockOp::Flush,
        Op::Other => return None,
    };
    let sectors = if op == BlockOp::Flush { 0 } else { u64::from(block.sectors) };
    let (offset_bytes, bytes) = if sectors == 0 { (0, 0) } else { range(block.sector, sectors)? };
    let (through, discard) = (block.flags.has(Flags::FUA) && op == BlockOp::Write, op == BlockOp::Trim);
    let request = TraceRequest { at, op, offset_bytes, bytes, through, discard };
    let flush = block.flags.has(Flags::PREFLUSH) || op == BlockOp::Flush;
    Some(Step { at, device: block.device, action: block.action, request, flush })
}

/// The requests that were issued to the driver; if none is recorded, those that were queued.
fn requests(mut events: Vec<Step>, chosen: Option<u32>, notes: &mut Vec<String>) -> Vec<TraceRequest> {
    let wanted = if events.iter().any(|event| event.action == Action::Issue) { Action::Issue } else { Action::Queue };
    if wanted == Action::Queue && !events.is_empty() {
        notes.push("no issued request is recorded: queued requests are used".into());
    }
    if let Some(device) = chosen.or_else(|| busiest(&events, wanted)) {
        let count = |events: &[Step]| events.iter().filter(|event| event.action == wanted).count();
        let before = count(&events);
        events.retain(|event| event.device == device);
        let others = before - count(&events);
        if others > 0 {
            let named = format!("{}:{}", device >> 20, device & 0xf_ffff);
            notes.push(format!("requests of device {named}; {others} of other devices are left out"));
        }
    }
    let mut all: Vec<TraceRequest> = Vec::new();
    for event in events {
        if event.action == Action::Requeue && wanted == Action::Issue {
            take_back(&mut all, &event.request);
        } else if event.action == wanted {
            if event.flush {
                all.push(TraceRequest {
                    op: BlockOp::Flush,
                    offset_bytes: 0,
                    bytes: 0,
                    through: false,
                    discard: false,
                    at: event.at,
                });
            }
            if event.request.bytes > 0 {
                all.push(event.request);
            }
        }
    }
    all
}

/// The eMMC or SD card with most requests, else the device with most of them.
fn busiest(events: &[Step], wanted: Action) -> Option<u32> {
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    for event in events.iter().filter(|event| event.action == wanted) {
        *counts.entry(event.device).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|&(device, count)| (Selection::Cards.has(device), count, Reverse(device)));
    most.map(|(device, _)| device)
}

/// A request that the driver returned (requeue) is issued again later: all of it, or the rest.
fn take_back(all: &mut Vec<TraceRequest>, back: &TraceRequest) {
    let end = |request: &TraceRequest| request.offset_bytes.saturating_add(request.bytes);
    let same = |other: &TraceRequest| {
        other.op == back.op && other.offset_bytes <= back.offset_bytes && end(other) == end(back)
    };
    let Some(at) = all.iter().rposition(same) else { return };
    all[at].bytes = back.offset_bytes - all[at].offset_bytes;
    if all[at].bytes == 0 {
        all.remove(at);
    }
}
