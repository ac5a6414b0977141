//! Devices: their depth, and the time in which they are in use.

use emmc_units::Nanos;

use crate::request::{Effort, since};

/// Time in which something was in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Busy {
    pub(super) running: u32,
    since: Nanos,
    /// The last end of all.
    free: Nanos,
    pub(super) total: u64,
}

impl Busy {
    pub(crate) fn begin(&mut self, at: Nanos) {
        if self.running == 0 {
            self.since = at;
        }
        self.running += 1;
    }

    pub(crate) fn end(&mut self, at: Nanos) {
        if self.running == 1 {
            self.total = self.total.saturating_add(since(self.since, at).0);
            self.free = at;
        }
        self.running = self.running.saturating_sub(1);
    }

    /// Something that is over, and began after what was over at the last end or later.
    pub(crate) fn add(&mut self, from: Nanos, to: Nanos) {
        let from = from.max(self.free);
        let to = if self.running > 0 { to.min(self.since) } else { to };
        self.total = self.total.saturating_add(since(from, to).0);
        if self.running == 0 {
            self.free = self.free.max(to);
        }
    }

    pub(crate) fn until(&self, at: Nanos) -> u64 {
        self.total.saturating_add(if self.running > 0 { since(self.since, at).0 } else { 0 })
    }
}

/// Gaps between times with requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Idle {
    /// How many.
    pub gaps: u64,
    /// All of them. Unit: nanoseconds.
    pub total_ns: u64,
    /// The longest. Unit: nanoseconds.
    pub longest_ns: u64,
}

/// A device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Device {
    /// As in [`BlockEvent`](crate::BlockEvent).
    pub device: u32,
    pub(super) busy: Busy,
    pub(super) depth: u32,
    /// Completed requests.
    pub requests: u64,
    /// Most requests that were at the driver at the same time.
    pub depth_max: u32,
    /// Time that `depth` requests were at the driver, summed over depths. Unit: nanoseconds.
    pub depth_ns: u64,
    pub(super) depth_since: Nanos,
    /// Since when it has none, if nothing was lost since.
    pub(super) free: Option<Nanos>,
    /// Times without a request at the driver, between two with one.
    pub idle: Idle,
    /// The last completion, and the work of the processors up to it. Unit: nanoseconds.
    pub(super) effort: Option<(Nanos, u64)>,
}

impl Device {
    pub(super) fn step(&mut self, at: Nanos, issued: bool) {
        let sum = since(self.depth_since, at).0.saturating_mul(u64::from(self.depth));
        self.depth_ns = self.depth_ns.saturating_add(sum);
        self.depth_since = at;
        if issued {
            if let Some(free) = self.free.take() {
                let gap = since(free, at).0;
                self.idle.gaps += 1;
                self.idle.total_ns = self.idle.total_ns.saturating_add(gap);
                self.idle.longest_ns = self.idle.longest_ns.max(gap);
            }
            self.depth += 1;
            self.busy.begin(at);
        } else {
            self.depth = self.depth.saturating_sub(1);
            self.busy.end(at);
            self.free = (self.depth == 0).then_some(at);
        }
        self.depth_max = self.depth_max.max(self.depth);
    }

    /// A request was completed: the work of the processors since the one before, from their work up to now and up to
    /// when this one was queued.
    pub(super) fn complete(&mut self, at: Nanos, work: u64, queued: Option<(Nanos, u64)>) -> Option<Effort> {
        let (last, before) = self.effort.replace((at, work))?;
        let gap = queued.filter(|(queued, _)| *queued >= last);
        Some(Effort {
            since: since(last, at),
            work: Nanos(work.saturating_sub(before)),
            gap: gap.map(|(_, until)| Nanos(until.saturating_sub(before))),
        })
    }

    /// Requests at the driver now.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Time in which at least one request was at the driver. Unit: nanoseconds.
    pub fn busy_ns(&self) -> u64 {
        self.busy.total
    }
}
