//! Single requests of a recording: which devices are chosen, and the parts of a request in the order of time.

use emmc_units::Nanos;

use crate::correlate::{Correlator, MMC_MAJOR};
use crate::notes::Notes;
use crate::open::Recording;
use crate::request::Request;

/// Whose requests are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// One device: `major << 20 | minor`.
    Device(u32),
    /// All eMMC and SD cards.
    Cards,
    /// All devices.
    All,
}

impl Selection {
    /// Whether a device is chosen.
    pub fn has(self, device: u32) -> bool {
        match self {
            Self::Device(chosen) => device == chosen,
            Self::Cards => device >> 20 == MMC_MAJOR,
            Self::All => true,
        }
    }
}

/// What a first reading of a recording says of its requests.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The chosen device, else all cards if there are any, else all devices.
    pub selection: Selection,
    /// Completed requests of the selection.
    pub requests: u64,
    /// Those of other devices.
    pub other_requests: u64,
    /// When the first of the selection begins and the last one ends.
    pub times: Option<(Nanos, Nanos)>,
    /// Everything that has no partner.
    pub unpaired: u64,
    /// Names of threads, damage and losses.
    pub notes: Notes,
}

/// Reads a recording to its end.
pub fn survey(recording: Recording, chosen: Option<u32>) -> Survey {
    #[derive(Clone, Copy, Default)]
    struct Sum(u64, Option<(Nanos, Nanos)>);
    let Recording { mut events, .. } = recording;
    let (mut correlator, mut cards, mut others) = (Correlator::default(), Sum::default(), Sum::default());
    let wanted = chosen.map_or(Selection::Cards, Selection::Device);
    let mut add = |request: &Request| {
        let sum = if wanted.has(request.device) { &mut cards } else { &mut others };
        sum.0 += 1;
        let (began, ended) = (request.began(), request.ended());
        sum.1 = Some(sum.1.map_or((began, ended), |(first, last)| (first.min(began), last.max(ended))));
    };
    events.run(|event| correlator.take(event, &mut add));
    correlator.end(&mut add);
    let late = events.late;
    let has_wanted = cards.0 > 0 || chosen.is_some();
    let (selection, found, left_out) = if has_wanted { (wanted, cards, others.0) } else { (Selection::All, others, 0) };
    Survey {
        selection,
        requests: found.0,
        other_requests: left_out,
        times: found.1,
        unpaired: correlator.unpaired.total() + late,
        notes: events.notes(),
    }
}

/// Gives every completed request of the selection. A request that a system call waits for comes when the call returns,
/// so that they are only roughly in the order of time.
pub fn follow(recording: Recording, selection: Selection, mut sink: impl FnMut(&Request)) {
    let Recording { mut events, .. } = recording;
    let mut correlator = Correlator::default();
    let mut chosen = |request: &Request| {
        if selection.has(request.device) {
            sink(request);
        }
    };
    events.run(|event| correlator.take(event, &mut chosen));
    correlator.end(&mut chosen);
}

/// The name of a thread with its number.
pub fn thread(notes: &Notes, pid: u32) -> String {
    notes.names.get(pid).map_or(format!("thread {pid}"), |name| format!("{name} {pid}"))
}

/// Parts of a request with their names, each `(name, from, to)`, one after the other: the five spans as far as they are
/// recorded. Without MMC events the time at driver and card is one part.
pub fn parts(request: &Request) -> impl Iterator<Item = (&'static str, Nanos, Nanos)> {
    let first = request.queued.unwrap_or(request.issued);
    let (issue, card) = match request.hardware {
        Some(hardware) => {
            (Some(("issue", request.issued, hardware.started)), ("card", hardware.started, hardware.ended))
        }
        None => (None, ("driver and card", request.issued, request.completed)),
    };
    let all = [
        request.entered.map(|entered| ("vfs", entered, first)),
        request.queued.map(|queued| ("block", queued, request.issued)),
        issue,
        Some(card),
        (request.hardware.is_some() || request.exited.is_some()).then_some(("post", card.2, request.ended())),
    ];
    all.into_iter().flatten().map(|(name, from, to)| (name, from, from.max(to)))
}
