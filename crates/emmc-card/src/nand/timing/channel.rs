//! A channel between controller and dies: one transfer at a time, the page that is ready first goes first.
//!
//! Reads and programs are issued in the order of their requests, but a die's second page may be ready long after
//! another die's first. The time that a channel waits for such a page is kept, a few spans for each channel, and a page
//! that is ready in one and fits is transferred then. Absent on purpose: dies (`super`).

use emmc_units::{Instant, Nanos};

/// Spans without transfers that a channel remembers.
const SPANS: usize = 4;

/// Reservations of a channel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Channel {
    /// The end of the last transfer.
    free_at: Instant,
    /// Spans before it without transfers: start and end; an empty one is unused.
    idle: [(Instant, Instant); SPANS],
}

impl Channel {
    /// A channel without transfers from an instant on.
    pub(super) fn free_from(free_at: Instant) -> Self {
        Self { free_at, ..Self::default() }
    }

    /// The end of the last transfer.
    pub(super) fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Reserves it for a page that is `ready`, of the only die; returns the end of the transfer.
    #[inline]
    pub(super) fn reserve(&mut self, ready: Instant, transfer: Nanos) -> Instant {
        self.free_at = self.free_at.max(ready) + transfer;
        self.free_at
    }

    /// The same where several dies share it: at the first time that it has for the page.
    #[inline(never)]
    pub(super) fn reserve_shared(&mut self, now: Instant, ready: Instant, transfer: Nanos) -> Instant {
        let fits = |(from, until): &(Instant, Instant)| ready.max(*from) + transfer <= *until;
        let first = self.idle.iter().enumerate().filter(|(_, span)| fits(span)).min_by_key(|(_, span)| span.0);
        if let Some((at, &(from, until))) = first {
            let start = ready.max(from);
            let end = start + transfer;
            self.idle[at] = (from, start);
            self.remember(now, (end, until));
            return end;
        }
        let start = self.free_at.max(ready);
        self.remember(now, (self.free_at.max(now), start));
        self.free_at = start + transfer;
        self.free_at
    }

    /// Keeps a span without transfers, in place of the shortest one where there are too many.
    fn remember(&mut self, now: Instant, span: (Instant, Instant)) {
        let length = |span: &(Instant, Instant)| if span.1 <= now { Nanos::default() } else { span.1.since(span.0) };
        if let Some(shortest) = self.idle.iter_mut().min_by_key(|span| length(span)) {
            if length(shortest) < length(&span) {
                *shortest = span;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::START + Nanos::from_micros(micros)
    }

    #[test]
    fn a_page_goes_before_one_that_was_asked_for_earlier_and_is_ready_later() {
        let (mut channel, transfer) = (Channel::default(), Nanos::from_micros(40));
        // Two planes of one die, then two of another, each sensed one after the other.
        assert_eq!(channel.reserve_shared(at(0), at(50), transfer), at(90));
        assert_eq!(channel.reserve_shared(at(0), at(140), transfer), at(180));
        assert_eq!(channel.reserve_shared(at(0), at(50), transfer), at(130), "while the first die senses again");
        assert_eq!(channel.reserve_shared(at(0), at(180), transfer), at(220));
        assert_eq!(channel.free_at(), at(220));
    }

    #[test]
    fn no_two_transfers_overlap() {
        let mut rng = emmc_units::Rng::new(1);
        let (mut channel, mut spans) = (Channel::default(), Vec::new());
        for step in 0..2000 {
            let now = at(step * 30);
            let (ready, transfer) = (now + Nanos::from_micros(rng.below(300)), Nanos::from_micros(1 + rng.below(40)));
            let end = channel.reserve_shared(now, ready, transfer);
            let start = end.since(Instant::START) - transfer;
            assert!(Instant::START + start >= ready);
            spans.push((start, end.since(Instant::START)));
        }
        spans.sort();
        assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    }
}
