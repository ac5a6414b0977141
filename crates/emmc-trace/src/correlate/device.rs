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
    /// Nothing if events were lost since.
    pub(super) last: Option<Last>,
}

/// A device's last completion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    at: Nanos,
    /// The work of the processors up to it. Unit: nanoseconds.
    work: u64,
    /// The thread that waits for it and has not run since.
    waiting: Option<u32>,
    /// When that thread ran again, and how long no processor had work until then.
    ran: Option<(Nanos, Nanos)>,
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
    /// when this one was queued. `waiting`: the thread that waits for this one.
    pub(super) fn complete(
        &mut self,
        at: Nanos,
        work: u64,
        waiting: Option<u32>,
        queued: Option<(Nanos, u64)>,
    ) -> Option<Effort> {
        let last = self.last.replace(Last { at, work, waiting, ran: None })?;
        let gap = queued.filter(|(queued, _)| *queued >= last.at).map(|(queued, until)| {
            let idle = last.ran.filter(|(ran, _)| *ran <= queued).map_or(0, |(_, idle)| idle.0);
            Nanos(until.saturating_sub(last.work) + idle)
        });
        Some(Effort { since: since(last.at, at), work: Nanos(work.saturating_sub(last.work)), gap })
    }

    /// A processor goes from one thread to another. `work`: that of the processors up to now.
    pub(super) fn switch(&mut self, at: Nanos, previous: u32, next: u32, work: impl FnOnce() -> u64) {
        let Some(last) = &mut self.last else { return };
        let Some(waiting) = last.waiting.filter(|pid| [previous, next].contains(pid)) else { return };
        last.waiting = None;
        if waiting == next {
            let busy = Nanos(work().saturating_sub(last.work));
            last.ran = Some((at, since(busy, since(last.at, at))));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The processors' work between two requests is known, and the wake-up of the thread that waits is added.
    #[test]
    fn the_gap_has_the_wake_up_of_the_thread_that_waits_and_no_pause_of_the_program() {
        let gap = |waiting, switches: &[(u64, u32, u32, u64)], queued| {
            let mut device = Device::default();
            assert_eq!(device.complete(Nanos(1000), 100, waiting, None), None);
            for &(at, previous, next, work) in switches {
                device.switch(Nanos(at), previous, next, || work);
            }
            device.complete(Nanos(9000), 500, waiting, Some(queued)).unwrap().gap
        };
        // Another processor takes the thread 40 ns after the end, 10 ns of which are work. It works 20 ns then.
        let resumed = (1040, 0, 7, 110);
        assert_eq!(gap(Some(7), &[resumed], (Nanos(1060), 130)), Some(Nanos(30 + 30)));
        // Nobody waits, or another thread has a processor.
        assert_eq!(gap(None, &[resumed], (Nanos(1060), 130)), Some(Nanos(30)));
        assert_eq!(gap(Some(8), &[resumed], (Nanos(1060), 130)), Some(Nanos(30)));
        // A pause after it is the program's own, also of a thread that had a processor all the time.
        let pause = [(1060, 7, 0, 130), (5000, 0, 7, 130)];
        assert_eq!(gap(Some(7), &[&[resumed], &pause[..]].concat(), (Nanos(5010), 140)), Some(Nanos(40 + 30)));
        assert_eq!(gap(Some(7), &pause, (Nanos(5010), 140)), Some(Nanos(40)));
        // It was queued before its thread had a processor: by another one.
        assert_eq!(gap(Some(7), &[resumed], (Nanos(1030), 105)), Some(Nanos(5)));
        // It was queued before the end.
        assert_eq!(gap(Some(7), &[resumed], (Nanos(900), 90)), None);
    }
}
