//! Events over simulated time, in a bounded number of equal buckets.
//!
//! The buckets begin narrow; when there are too many, neighbours are joined and the width doubles. Requests count in
//! the bucket in which they complete.

use emmc_units::Instant;
use serde::Serialize;

use super::sums::Sums;

/// Buckets at most.
const BUCKETS_MAX: usize = 600;

/// Width of the first buckets: a millisecond.
const WIDTH_NS_MIN: u64 = 1_000_000;

/// Work per bucket of simulated time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// Width of a bucket; the first begins with the run.
    ///
    /// Unit: seconds.
    pub bucket_s: f64,
    /// Bytes that the host wrote.
    pub written_bytes: Vec<u64>,
    /// Bytes that the host read.
    pub read_bytes: Vec<u64>,
    /// Units programmed over units that the host wrote; absent without host writes.
    pub write_amplification: Vec<Option<f64>>,
    /// Times that the host waited for a collection, a fold or a merge.
    pub stalls: Vec<u64>,
}

/// Collects a [`Series`].
#[derive(Clone, Debug)]
pub(super) struct Buckets {
    start: Instant,
    width_ns: u64,
    closed: Vec<Sums>,
    /// The sums at the beginning of the present bucket, and when it ends.
    opened: Sums,
    ends: Instant,
}

impl Buckets {
    pub(super) fn new(start: Instant, sums: Sums) -> Self {
        let ends = Instant(start.0 + WIDTH_NS_MIN);
        Self { start, width_ns: WIDTH_NS_MIN, closed: Vec::with_capacity(BUCKETS_MAX), opened: sums, ends }
    }

    /// Whether the present bucket is over at `now`.
    #[inline]
    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= self.ends
    }

    /// Closes buckets until `now` is in the current one; `sums` are the current ones.
    #[cold]
    pub(super) fn advance(&mut self, now: Instant, sums: &Sums) {
        while now >= self.ends {
            // After a long time without requests, wide buckets come first: the empty ones are cheaper then.
            while now.since(self.start).0 / self.width_ns >= BUCKETS_MAX as u64 {
                self.widen();
            }
            if now < self.ends {
                return;
            }
            self.closed.push(sums.since(&self.opened));
            self.opened = *sums;
            self.ends = Instant(self.ends.0 + self.width_ns);
        }
    }

    fn widen(&mut self) {
        let last = self.closed.len() % 2 == 1;
        let mut joined: Vec<Sums> = self.closed.chunks_exact(2).map(|pair| pair[0].plus(&pair[1])).collect();
        joined.reserve(BUCKETS_MAX - joined.len());
        if last {
            // The odd one belongs to the bucket that is open.
            self.opened = self.opened.since(&self.closed[self.closed.len() - 1]);
        }
        self.closed = joined;
        self.width_ns *= 2;
        self.ends = Instant(self.start.0 + (self.closed.len() as u64 + 1) * self.width_ns);
    }

    /// The series including the current bucket, which ends with `sums`.
    pub(super) fn series(&self, sums: &Sums, unit_bytes: u64) -> Series {
        let open = sums.since(&self.opened);
        let buckets = || self.closed.iter().chain((open != Sums::default()).then_some(&open));
        Series {
            bucket_s: self.width_ns as f64 / 1e9,
            written_bytes: buckets().map(|sums| sums.written_bytes).collect(),
            read_bytes: buckets().map(|sums| sums.read_bytes).collect(),
            write_amplification: buckets().map(|sums| sums.write_amplification(unit_bytes)).collect(),
            stalls: buckets().map(|sums| sums.card.stalls).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use emmc_port::CardCounters;

    use super::*;

    fn sums(written_bytes: u64) -> Sums {
        let card = CardCounters { programs: written_bytes / 2048, ..CardCounters::default() };
        Sums { written_bytes, card, ..Sums::default() }
    }

    #[test]
    fn merged_buckets_keep_all_counts() {
        let mut buckets = Buckets::new(Instant(7), Sums::default());
        let mut written = 0;
        // A request every 100 us for 3 s, then silence, then one more.
        for request in 0..30_000u64 {
            let now = Instant(7 + request * 100_000);
            if buckets.is_over(now) {
                buckets.advance(now, &sums(written));
            }
            written += 4096;
        }
        let end = Instant(7 + 4_000_000_000);
        buckets.advance(end, &sums(written));
        let series = buckets.series(&sums(written), 4096);
        assert_eq!(series.bucket_s, 0.008);
        assert_eq!(series.written_bytes.len(), 500);
        assert_eq!(series.written_bytes.iter().sum::<u64>(), written);
        assert!(
            series.written_bytes[..375].iter().all(|bytes| *bytes == 80 * 4096),
            "{:?}",
            &series.written_bytes[..9]
        );
        assert!(series.written_bytes[376..].iter().all(|bytes| *bytes == 0));
        assert_eq!(series.write_amplification[0], Some(2.0));
        assert_eq!(series.write_amplification[400], None);
        // A hundred years later.
        let late = Instant(3_000_000_000_000_000_000);
        buckets.advance(late, &sums(written));
        let series = buckets.series(&sums(written + 4096), 4096);
        assert!(series.written_bytes.len() <= BUCKETS_MAX);
        assert_eq!(series.written_bytes.iter().sum::<u64>(), written + 4096);
        assert_eq!(series.written_bytes[0], written);
    }
}
