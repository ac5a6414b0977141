//! Ranges erased in chunks: after each, how far it came is known.

use emmc_port::{Approved, ApprovedErase, CommandPort, Consent, PortError};

use super::{EraseKind, Geometry};

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// This range is erased next. Unit: bytes.
    Sends([u64; 2]),
    /// It is erased.
    Sent([u64; 2]),
}

/// How the work ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All of it is done.
    Complete,
    /// The watch asked to stop, between two commands.
    Stopped,
    /// The target does not have this kind: nothing has changed.
    Unsupported(String),
    /// The target refused a command.
    Refused(String),
    /// No answer: whether the last command had an effect is not known.
    Lost(String),
}

/// How far it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// How it ended.
    pub ended: Ended,
    /// Everything of the ranges below this byte is erased, and nothing behind `unsure`. Unit: bytes.
    pub to_bytes: u64,
    /// How much was erased in this run. Unit: bytes.
    pub erased_bytes: u64,
    /// What may be erased in whole, in part or not at all. Unit: bytes.
    pub unsure: Option<[u64; 2]>,
}

impl From<PortError> for Ended {
    fn from(error: PortError) -> Self {
        match error {
            PortError::Refused { .. } => Self::Refused(error.to_string()),
            PortError::Lost { .. } => Self::Lost(error.to_string()),
        }
    }
}

/// Erases ascending ranges from byte `from` on, in chunks that end at multiples of `chunk_bytes`. `watch` is called
/// around each chunk; before one, `false` stops.
pub fn in_chunks<E: Into<Ended>>(
    ranges: &[[u64; 2]],
    from: u64,
    chunk_bytes: u64,
    erase: &mut dyn FnMut([u64; 2]) -> Result<(), E>,
    watch: &mut dyn FnMut(Event) -> bool,
) -> Reach {
    let begin = ranges.first().map_or(0, |range| range[0]);
    let mut reach = Reach { ended: Ended::Complete, to_bytes: from.max(begin), erased_bytes: 0, unsure: None };
    for [start, end] in ranges {
        let mut at = from.max(*start);
        while at < *end {
            let chunk = [at, ((at / chunk_bytes + 1) * chunk_bytes).min(*end)];
            if !watch(Event::Sends(chunk)) {
                reach.ended = Ended::Stopped;
                return reach;
            }
            if let Err(error) = erase(chunk) {
                reach.ended = error.into();
                // A refused command changes nothing, but a chunk may take two.
                reach.unsure = (!matches!(reach.ended, Ended::Unsupported(_))).then_some(chunk);
                return reach;
            }
            at = chunk[1];
            reach.to_bytes = at;
            reach.erased_bytes += chunk[1] - chunk[0];
            watch(Event::Sent(chunk));
        }
    }
    reach
}

/// Erases one chunk of a card by its own commands.
///
/// Errors: refused, no answer, not agreed to.
pub fn on_card(
    port: &mut dyn CommandPort,
    kind: EraseKind,
    geometry: &Geometry,
    chunk: [u64; 2],
    consent: Consent,
) -> Result<(), PortError> {
    let refused = |status: String| PortError::Refused { opcode: 38, status };
    let addresses = geometry.addresses(chunk).ok_or_else(|| refused("no address reaches this range".into()))?;
    // The kernel waits for 10 s without a limit.
    let limit = geometry.time_ms_max(kind, chunk[1] - chunk[0]).map_or(0, |ms| ms.max(10_000));
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    for argument in kind.arguments() {
        let approved = ApprovedErase::new(*argument, addresses, limit, consent);
        port.erase(approved.map_err(|error| refused(error.to_string()))?)?;
    }
    Ok(())
}

/// The parts of ascending ranges that are write-protected: the card would skip them. Unit: bytes.
///
/// Errors: refused, no answer.
pub fn protected(
    port: &mut dyn CommandPort,
    geometry: &Geometry,
    ranges: &[[u64; 2]],
) -> Result<Vec<[u64; 2]>, PortError> {
    /// CMD31 reports this many groups.
    const GROUPS: u64 = 32;
    let Some(group) = geometry.wp_group_bytes else { return Ok(Vec::new()) };
    let mut found: Vec<[u64; 2]> = Vec::new();
    for [from, to] in ranges {
        let mut at = from / group * group;
        while at < *to {
            let Some([address, _]) = geometry.addresses([at, at + geometry.sector_bytes]) else { break };
            let kinds = port.protection(address)?;
            for index in (0..GROUPS).filter(|index| kinds >> (2 * index) & 3 != 0) {
                let begin = (at + index * group).max(*from);
                let end = (at + (index + 1) * group).min(*to);
                match found.last_mut() {
                    _ if begin >= end => {}
                    Some(last) if last[1] == begin => last[1] = end,
                    _ => found.push([begin, end]),
                }
            }
            at += GROUPS * group;
        }
    }
    Ok(found)
}

/// Has a card remove everything unmapped.
pub fn sanitize(port: &mut dyn CommandPort, consent: Consent) -> Ended {
    let sent = match Approved::sanitize(consent) {
        Ok(approved) => port.send(approved),
        Err(error) => return Ended::Refused(error.to_string()),
    };
    sent.map_or_else(Ended::from, |()| Ended::Complete)
}
