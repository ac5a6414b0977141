//! Outstanding requests: when the next one can be made, and started.
//!
//! The host keeps `host_depth` requests outstanding; the card takes at most as many as it has queue slots, one without
//! a command queue, and the rest wait in the host. Absent on purpose: the order in which a card serves its queue.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use emmc_units::Instant;

/// When a request is made by the host and when the card gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) made: Instant,
    pub(super) started: Instant,
}

/// The requests outstanding.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    host_depth: usize,
    card_depth: usize,
    /// When the requests in the card end, and the last one that left it.
    in_card: BinaryHeap<Reverse<Instant>>,
    left: Instant,
    /// When those requests that wait at the host were made.
    made: VecDeque<Instant>,
}

impl Queue {
    /// Nothing is outstanding at `now`.
    pub(super) fn new(host_depth: u32, card_slots: u8, now: Instant) -> Self {
        let host_depth = host_depth.max(1) as usize;
        let card_depth = host_depth.min(usize::from(card_slots).max(1));
        Self {
            host_depth,
            card_depth,
            in_card: BinaryHeap::with_capacity(card_depth + 1),
            left: now,
            made: VecDeque::from(vec![now; host_depth - card_depth]),
        }
    }

    /// When the next request is made and started: as soon as there is space.
    #[inline]
    pub(super) fn next(&mut self) -> Slot {
        if self.host_depth == 1 {
            return Slot { made: self.left, started: self.left };
        }
        self.wait();
        // Each completed request lets the host make another, which queues behind the waiting ones.
        self.made.push_back(self.left);
        let made = self.made.pop_front().unwrap_or(self.left);
        Slot { made, started: self.left }
    }

    /// When a request made at `made` is started.
    #[inline]
    pub(super) fn next_at(&mut self, made: Instant) -> Slot {
        if self.host_depth > 1 {
            self.wait();
        }
        self.left = self.left.max(made);
        Slot { made, started: self.left }
    }

    /// Waits until the card has a free slot.
    fn wait(&mut self) {
        if self.in_card.len() < self.card_depth {
            return;
        }
        if let Some(Reverse(end)) = self.in_card.pop() {
            self.left = self.left.max(end);
        }
    }

    /// The request that was given the last slot ends at `done`.
    #[inline]
    pub(super) fn end(&mut self, done: Instant) {
        if self.host_depth == 1 {
            self.left = self.left.max(done);
        } else {
            self.in_card.push(Reverse(done));
        }
    }

    /// Waits until everything outstanding has completed; returns when.
    pub(super) fn drain(&mut self) -> Instant {
        while let Some(Reverse(end)) = self.in_card.pop() {
            self.left = self.left.max(end);
        }
        self.left
    }

    /// When the last request that left the card did so.
    pub(super) fn now(&self) -> Instant {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves requests that each take as long as said; answers their latencies and the time at the end.
    fn serve(depth: u32, slots: u8, times: &[u64]) -> (Vec<u64>, u64) {
        let mut queue = Queue::new(depth, slots, Instant::START);
        let mut latencies = Vec::new();
        for &time in times {
            let slot = queue.next();
            let done = Instant(slot.started.0 + time);
            queue.end(done);
            latencies.push(done.since(slot.made).0);
        }
        (latencies, queue.drain().0)
    }

    #[test]
    fn requests_without_a_queue_are_serial() {
        assert_eq!(serve(1, 32, &[5, 6, 7]), (vec![5, 6, 7], 18));
    }

    #[test]
    fn concurrency_is_the_lower_of_both_limits() {
        assert_eq!(serve(2, 32, &[10, 4, 4, 4, 1]), (vec![10, 4, 4, 4, 1], 12));
        // Without a command queue the second request waits at the host.
        assert_eq!(serve(2, 0, &[10, 10, 10, 10]), (vec![10, 20, 20, 20], 40));
        assert_eq!(serve(4, 2, &[10, 10, 10, 10, 10, 10]), (vec![10, 10, 20, 20, 20, 20], 30));
    }

    #[test]
    fn timed_requests_wait_for_a_free_slot_only() {
        let mut queue = Queue::new(1, 0, Instant::START);
        for (made, time, started) in [(100, 50, 100), (120, 10, 150), (500, 1, 500)] {
            let slot = queue.next_at(Instant(made));
            assert_eq!(slot, Slot { made: Instant(made), started: Instant(started) });
            queue.end(Instant(started + time));
        }
    }
}
