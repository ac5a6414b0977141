//! Progress over time: a bounded number of equal batches over a stream of any length.

use emmc_units::{Instant, Nanos};

/// Twice the smallest number of batches that is kept: MSER-5 needs more than confidence intervals do.
const BATCHES_MAX: usize = 1024;

/// Batches of equal numbers of requests, and how long each took.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    /// Requests per batch.
    batch: u64,
    in_batch: u64,
    last: Instant,
    times: Vec<Nanos>,
}

impl Marks {
    pub(crate) fn new(now: Instant) -> Self {
        Self { batch: 1, in_batch: 0, last: now, times: Vec::with_capacity(BATCHES_MAX) }
    }

    /// A request was done at `now`.
    #[inline]
    pub(crate) fn done(&mut self, now: Instant) {
        self.in_batch += 1;
        if self.in_batch == self.batch {
            self.close(now);
        }
    }

    fn close(&mut self, now: Instant) {
        self.times.push(now.since(self.last));
        (self.last, self.in_batch) = (now, 0);
        if self.times.len() == BATCHES_MAX {
            self.times = self.times.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
            self.batch *= 2;
        }
    }

    /// Seconds of every complete batch, in order, and the requests per batch.
    pub(crate) fn batches(&self) -> (Vec<f64>, u64) {
        (self.times.iter().map(|time| time.as_secs_f64()).collect(), self.batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_limited_and_keep_all_requests() {
        let mut marks = Marks::new(Instant(0));
        for request in 1..=100_000u64 {
            marks.done(Instant(request * 1_000));
        }
        let (times, batch) = marks.batches();
        assert!((512..1024).contains(&times.len()), "{}", times.len());
        assert!(times.iter().all(|time| (time - batch as f64 * 1e-6).abs() < 1e-12));
    }
}
