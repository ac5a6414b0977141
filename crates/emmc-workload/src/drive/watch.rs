//! Progress of a bench: a callback that may cancel it.

use emmc_units::{Instant, Nanos};

/// What a suite will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Unit: bytes; at most.
    pub written_bytes: u64,
    /// Unit: bytes; at most.
    pub read_bytes: u64,
    /// Start of the part of the target whose content is lost; empty range without writes.
    pub from_bytes: u64,
    /// End of that part.
    pub to_bytes: u64,
    /// Steps, for progress; 0: not known in advance.
    pub steps: u32,
    /// Rests between requests.
    pub rest: Nanos,
}

/// The progress of a bench.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// The current measurement, e.g. `4 KiB random write`.
    pub step: &'a str,
    /// The step in progress, counted from 1, and the number of steps, if known.
    pub number: u32,
    /// Steps in all; 0: not known beforehand.
    pub steps: u32,
    /// How much of the step is done, 0 to 1.
    pub done_share: f64,
    /// The shares of the whole bench's bytes that are moved before and after this step; none where that is not known.
    pub whole: Option<[f64; 2]>,
    /// The target's time, where it is known.
    pub now: Option<Instant>,
}

impl Progress<'_> {
    /// How much of the whole bench is done, 0 to 1: weighted by bytes, else by steps. `None`: its end is not known.
    pub fn share(&self) -> Option<f64> {
        let done = self.done_share.clamp(0.0, 1.0);
        let share = match self.whole {
            Some([before, after]) => before + (after - before) * done,
            None if self.steps > 0 => (f64::from(self.number.max(1)) - 1.0 + done) / f64::from(self.steps),
            None => return None,
        };
        Some(share.clamp(0.0, 1.0))
    }
}

/// Counts the bytes of a bench against its largest cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Whole {
    total_bytes: u64,
    passed_bytes: u64,
}

impl Whole {
    /// Of a bench that moves this many bytes at most.
    pub(crate) fn new(cost: &Cost) -> Self {
        Self { total_bytes: cost.written_bytes.saturating_add(cost.read_bytes), passed_bytes: 0 }
    }

    /// The shares before and after a step that moves this many bytes; none where the total is not known.
    pub(crate) fn span(&self, bytes: u64) -> Option<[f64; 2]> {
        let share = |bytes: u64| (bytes as f64 / self.total_bytes as f64).min(1.0);
        let after = self.passed_bytes.saturating_add(bytes);
        (self.total_bytes > 0).then(|| [share(self.passed_bytes), share(after)])
    }

    /// A step that could have moved this many bytes is over, even if it moved fewer.
    pub(crate) fn pass(&mut self, bytes: u64) {
        self.passed_bytes = self.passed_bytes.saturating_add(bytes);
    }
}

/// A watcher.
pub trait Watch {
    /// Is called now and then, at most every few hundred requests; `false` stops the bench.
    fn progress(&mut self, progress: Progress<'_>) -> bool;
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn progress(&mut self, _: Progress<'_>) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_weighted_by_bytes_and_at_most_complete() {
        let mut whole = Whole::new(&Cost { written_bytes: 300, read_bytes: 100, ..Cost::default() });
        let at = |whole: &Whole, bytes, done_share| {
            Progress { step: "", number: 1, steps: 2, done_share, whole: whole.span(bytes), now: None }.share()
        };
        assert_eq!((at(&whole, 300, 0.0), at(&whole, 300, 0.5)), (Some(0.0), Some(0.375)));
        whole.pass(300);
        assert_eq!((at(&whole, 100, 0.0), at(&whole, 100, 1.0)), (Some(0.75), Some(1.0)));
        // More than the stated cost, and a step beyond its end.
        whole.pass(100);
        assert_eq!((at(&whole, u64::MAX, 0.5), at(&whole, 100, 7.0)), (Some(1.0), Some(1.0)));
        // Without bytes the steps count; without steps the end is not known.
        assert_eq!(at(&Whole::default(), 1, 0.5), Some(0.25));
        let endless = Progress { step: "", number: 9, steps: 0, done_share: 0.5, whole: None, now: None };
        assert_eq!((endless.share(), Progress { steps: 4, ..endless }.share()), (None, Some(1.0)));
    }
}
