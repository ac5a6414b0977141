//! Tasks of a command queue whose start is recorded after their end.
//!
//! `mmc_request_start` follows the doorbell. If the processor has to wait in between, for an interrupt or, in a virtual
//! machine, for the host, `mmc_request_done` comes first, and `block_rq_complete` may. The start alone says which
//! request it is, so that a request that is complete waits for it.

use emmc_units::Nanos;

use crate::event::{MmcEvent, Op};
use crate::request::{Hardware, Request, since};

/// Ends without a start, and requests that wait for one.
const MAX: usize = 64;
/// How much earlier an end may be recorded than its start.
const EARLY_NS: u64 = 1_000_000_000;

/// The end of a task that no start came before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Early {
    pub(super) at: Nanos,
    /// The interrupt whose handler ended it.
    pub(super) interrupt: Option<Nanos>,
    /// The same task began before in the recording: it began again, and that start is not recorded yet. Else it may
    /// have begun before the recording.
    pub(super) is_again: bool,
    pub(super) done: MmcEvent,
}

impl Early {
    /// The task's begin and end: the handler's middle is the end. The start is as long after the issue as that of
    /// the last task with a start in time, or else in the middle between.
    pub(super) fn bounds(&self, issued: Nanos, lead: Option<Nanos>) -> (Nanos, Nanos) {
        let interrupt = self.interrupt.filter(|at| *at > issued);
        let ended = interrupt.map_or(self.at, |at| Nanos(at.0.midpoint(self.at.0)));
        let started = lead.map(|lead| Nanos(issued.0.saturating_add(lead.0))).filter(|started| *started < ended);
        (started.unwrap_or(Nanos(issued.0.midpoint(ended.0))), ended)
    }
}

/// Ends of a controller that came before their start.
#[derive(Debug, Default)]
pub(super) struct Ends(Vec<Early>);

impl Ends {
    /// Keeps one; how many are given up for it.
    pub(super) fn keep(&mut self, early: Early) -> u64 {
        let before = self.0.len();
        self.0.retain(|other| since(other.at, early.at).0 <= EARLY_NS);
        if self.0.len() >= MAX {
            self.0.remove(0);
        }
        self.0.push(early);
        (before + 1 - self.0.len()) as u64
    }

    /// Removes those whose start comes no more; how many.
    pub(super) fn expire(&mut self, now: Nanos) -> usize {
        let before = self.0.len();
        self.0.retain(|early| since(early.at, now).0 <= EARLY_NS);
        before - self.0.len()
    }

    /// The ends that this start may be of, the oldest first.
    pub(super) fn of(&self, start: &MmcEvent) -> impl Iterator<Item = Early> {
        let task = (start.request, start.opcode);
        self.0.iter().filter(move |early| (early.done.request, early.done.opcode) == task).copied()
    }

    /// Removes one, whose start came; whether it was there.
    pub(super) fn remove(&mut self, end: &Early) -> bool {
        let place = self.0.iter().position(|early| (early.at, early.done.request) == (end.at, end.done.request));
        place.map(|place| self.0.remove(place)).is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// A complete request without a start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) device: u32,
    pub(super) op: Op,
    pub(super) pid: u32,
    sector: u64,
    pub(super) issued: Nanos,
    completed: Nanos,
    /// When its start has come.
    hardware: Option<Hardware>,
}

/// Complete requests without a start.
#[derive(Debug, Default)]
pub(super) struct Late {
    waiting: Vec<Waiting>,
    /// Those that nothing else is missing of.
    held: Vec<Request>,
}

impl Late {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A request is complete, and its start may come.
    pub(super) fn expect(&mut self, request: &Request) {
        if self.waiting.len() >= MAX {
            self.waiting.remove(0);
        }
        self.waiting.push(Waiting {
            device: request.device,
            op: request.op,
            pid: request.pid,
            sector: request.sector,
            issued: request.issued,
            completed: request.completed,
            hardware: None,
        });
    }

    /// The oldest request without a start that a task with one of these first sectors may be, or a flush; it was at
    /// the driver when the task ended.
    pub(super) fn find(&self, sectors: Option<[Option<u64>; 2]>, done: Nanos) -> Option<Waiting> {
        let fits = |waiting: &&Waiting| {
            let is_named = match sectors {
                Some(sectors) => waiting.op != Op::Flush && sectors.contains(&Some(waiting.sector)),
                None => waiting.op == Op::Flush,
            };
            is_named && waiting.hardware.is_none() && waiting.issued <= done && done <= waiting.completed
        };
        self.waiting.iter().find(fits).copied()
    }

    /// The start of a request came.
    pub(super) fn start(&mut self, found: &Waiting, hardware: &Hardware) {
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.hardware.is_none() && waiting.is(found)) {
            waiting.hardware = Some(Hardware { ended: hardware.ended.min(waiting.completed), ..*hardware });
        }
    }

    /// Keeps those of `ready` that wait, and gives those that wait no longer.
    #[cold]
    pub(super) fn sieve(&mut self, ready: &mut Vec<Request>, now: Nanos) {
        self.held.append(ready);
        self.waiting.retain(|waiting| waiting.hardware.is_some() || since(waiting.completed, now).0 <= EARLY_NS);
        let Self { waiting, held } = self;
        held.retain_mut(|request| {
            let place = waiting.iter().position(|waiting| waiting.is_of(request));
            if place.is_some_and(|place| waiting[place].hardware.is_none()) {
                return true;
            }
            request.hardware = place.and_then(|place| waiting.remove(place).hardware).or(request.hardware);
            ready.push(*request);
            false
        });
    }

    /// Gives all.
    pub(super) fn end(&mut self, ready: &mut Vec<Request>) {
        self.waiting.retain(|waiting| waiting.hardware.is_some());
        self.sieve(ready, Nanos::ZERO);
        self.waiting.clear();
    }
}

impl Waiting {
    fn is(&self, other: &Self) -> bool {
        (self.device, self.sector, self.issued, self.completed)
            == (other.device, other.sector, other.issued, other.completed)
    }

    fn is_of(&self, request: &Request) -> bool {
        (self.device, self.sector, self.issued, self.completed)
            == (request.device, request.sector, request.issued, request.completed)
    }
}
