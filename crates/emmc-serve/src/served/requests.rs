//! What the controller's requests took, for `sim ctl stats`.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::Served;
use crate::layer::{Summary, histogram};
use crate::pci::AccessCounts;
use crate::sdhci::RequestAccount;

/// Requests of one kind that software gave to the controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ControllerCounts {
    /// Ended, with errors too.
    pub requests: u64,
    /// Ended with an error.
    pub errors: u64,
    /// Unit: bytes.
    pub bytes: u64,
    /// The time of all of them together, from the command or the doorbell to the end, in the card's time; those at once
    /// count each. Unit: microseconds.
    pub total_us: f64,
    /// The same of one.
    pub latency_us: Summary,
}

/// All kinds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ControllerRequests {
    /// CMD17, 18 and 46.
    pub read: ControllerCounts,
    /// CMD24, 25 and 47.
    pub write: ControllerCounts,
    /// Other commands with data or busy time: erase, switches with their flushes, registers.
    pub other: ControllerCounts,
}

#[derive(Debug)]
struct OfKind {
    counts: ControllerCounts,
    total_ns: u64,
    latency_ns: Histogram<u64>,
}

/// What a client did that drives the clock, up to the last request or line of its mailbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DrivenClient {
    /// What its clock shows, since its start. Unit: nanoseconds.
    pub clock_ns: u64,
    /// Its accesses of the controller's registers.
    #[serde(flatten)]
    pub accesses: AccessCounts,
}

/// The counts so far.
#[derive(Debug)]
pub(super) struct Counted {
    kinds: [OfKind; 3],
    accesses: AccessCounts,
}

impl Default for Counted {
    fn default() -> Self {
        let kind = |_| OfKind { counts: ControllerCounts::default(), total_ns: 0, latency_ns: histogram() };
        Self { kinds: [0, 1, 2].map(kind), accesses: AccessCounts::default() }
    }
}

impl Counted {
    fn add(&mut self, account: &RequestAccount) {
        let kind = match account.command {
            17 | 18 | 46 => 0,
            24 | 25 | 47 => 1,
            _ => 2,
        };
        let of_kind = &mut self.kinds[kind];
        let took = account.done.since(account.issued).0;
        of_kind.counts.requests += 1;
        of_kind.counts.errors += u64::from(account.errors != 0);
        of_kind.counts.bytes += if kind < 2 { 512 * u64::from(account.blocks) } else { 0 };
        of_kind.total_ns += took;
        of_kind.latency_ns.saturating_record(took);
    }

    fn so_far(&self) -> ControllerRequests {
        let [read, write, other] = self.kinds.each_ref().map(|of_kind| ControllerCounts {
            total_us: of_kind.total_ns as f64 / 1000.0,
            latency_us: Summary::of(&of_kind.latency_ns),
            ..of_kind.counts.clone()
        });
        ControllerRequests { read, write, other }
    }
}

impl Served {
    /// Requests of the controller have ended.
    pub(crate) fn count_requests<'a>(&self, accounts: impl Iterator<Item = &'a RequestAccount>) {
        let mut counted = self.counted();
        accounts.for_each(|account| counted.add(account));
    }

    /// The accesses of the controller's registers so far.
    pub(crate) fn note_accesses(&self, accesses: AccessCounts) {
        self.counted().accesses = accesses;
    }

    /// What the client did so far; absent if it does not drive the clock.
    pub fn driven_client(&self) -> Option<DrivenClient> {
        let clock = self.clock_now();
        let accesses = self.counted().accesses;
        clock.is_driven().then(|| DrivenClient { clock_ns: clock.now().since(self.started).0, accesses })
    }

    /// What software gave to the controller so far, as the card saw it.
    pub fn controller_requests(&self) -> ControllerRequests {
        self.counted().so_far()
    }
}
