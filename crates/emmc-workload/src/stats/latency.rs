//! Latencies: a histogram that can be merged, and the stalls with their positions.

use std::borrow::Cow;

use emmc_units::Nanos;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::stats::batches::Batches;
use crate::stats::interval::Interval;
use crate::stats::percentiles::PercentileIntervals;

/// Longer latencies count as an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
/// Durations from which on a request is a stall. Unit: milliseconds.
const STALLS_MS: [u64; 3] = [100, 250, 1000];
/// Stalls whose position is kept: the longest.
const PLACES_MAX: usize = 16;

/// Latencies of one kind of request, with three significant digits.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// All of them but those of the incomplete batch.
    histogram: Histogram<u64>,
    count: u64,
    sum_ns: u128,
    stalls: Stalls,
    /// The same latencies in arrival order.
    cells: Batches,
}

/// Slow requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stalls {
    /// Of more than 100 ms.
    pub over_100_ms: u64,
    /// Of more than 250 ms, an SD card's limit.
    pub over_250_ms: u64,
    /// Of more than a second.
    pub over_1_s: u64,
    /// The longest of them, longest first.
    pub longest: Vec<Stall>,
}

/// A slow request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stall {
    /// Its latency. Unit: milliseconds.
    pub ms: f64,
    /// Its position on the target. Unit: bytes.
    pub offset_bytes: u64,
    /// Bytes that the stream had moved at that time.
    pub after_bytes: u64,
}

/// Latency percentiles.
///
/// Unit: microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// Requests.
    pub count: u64,
    /// The mean.
    pub mean: f64,
    /// The shortest.
    pub min: f64,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The longest.
    pub max: f64,
    /// Confidence intervals of the percentiles.
    #[serde(default)]
    pub intervals: PercentileIntervals,
    /// The whole distribution, so that results can be merged.
    pub histogram: Vec<Bucket>,
}

/// Requests of about the same latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bucket {
    /// Their latency, with three significant digits. Unit: nanoseconds.
    pub ns: u64,
    /// Requests.
    pub count: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("the bounds are valid");
        Self { histogram, count: 0, sum_ns: 0, stalls: Stalls::default(), cells: Batches::default() }
    }
}

impl Latencies {
    /// Counts a request.
    #[inline]
    pub fn record(&mut self, latency: Nanos, offset_bytes: u64, after_bytes: u64) {
        self.count += 1;
        self.sum_ns += u128::from(latency.0);
        self.cells.record(latency.0.min(LATENCY_NS_MAX), &mut self.histogram);
        if latency.0 > STALLS_MS[0] * 1_000_000 {
            self.stalls.add(Stall { ms: latency.0 as f64 / 1e6, offset_bytes, after_bytes });
        }
    }

    /// Whether the count is zero.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Their number.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The stalls.
    pub fn stalls(&self) -> &Stalls {
        &self.stalls
    }

    /// Appends the latencies of a later recorder.
    pub fn append(&mut self, other: Self) {
        if other.is_empty() {
            return;
        }
        self.cells.add_incomplete(&mut self.histogram);
        self.add(&other);
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.stalls.join(&other.stalls);
        self.cells.append(other.cells);
    }

    /// Adds another's counts to the histogram.
    fn add(&mut self, other: &Self) {
        // Both have the same bounds: nothing is lost.
        self.histogram.add(&other.histogram).expect("the bounds are the same");
        other.cells.add_incomplete(&mut self.histogram);
    }

    /// The histogram of all requests.
    fn whole(&self) -> Cow<'_, Histogram<u64>> {
        if self.cells.is_complete() {
            return Cow::Borrowed(&self.histogram);
        }
        let mut whole = self.histogram.clone();
        self.cells.add_incomplete(&mut whole);
        Cow::Owned(whole)
    }

    /// The percentiles of requests of several kinds together.
    pub(crate) fn summary<'a>(kinds: impl IntoIterator<Item = &'a Self>) -> Latency {
        let mut all = Self::default();
        for kind in kinds {
            all.add(kind);
            all.sum_ns += kind.sum_ns;
        }
        let intervals = PercentileIntervals::none("requests of several kinds: each kind has its own");
        ranks(&all.histogram, all.sum_ns, intervals)
    }

    /// The percentiles, with confidence intervals by resampling from a seed; nothing if nothing was counted.
    pub fn latency(&self, seed: u64) -> Option<Latency> {
        if self.is_empty() {
            return None;
        }
        let whole = self.whole();
        Some(ranks(&whole, self.sum_ns, PercentileIntervals::of(&whole, &self.cells, seed)))
    }

    /// The percentiles alone; nothing if nothing was counted.
    pub(crate) fn without_intervals(&self) -> Option<Latency> {
        let none = || PercentileIntervals::none("not asked for");
        (!self.is_empty()).then(|| ranks(&self.whole(), self.sum_ns, none()))
    }
}

fn ranks(histogram: &Histogram<u64>, sum_ns: u128, intervals: PercentileIntervals) -> Latency {
    let micros = |nanos: u64| nanos as f64 / 1e3;
    let at = |quantile| micros(histogram.value_at_quantile(quantile));
    Latency {
        count: histogram.len(),
        mean: sum_ns as f64 / histogram.len() as f64 / 1e3,
        min: micros(histogram.min()),
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        max: micros(histogram.max()),
        intervals,
        histogram: histogram
            .iter_recorded()
            .map(|value| Bucket { ns: value.value_iterated_to(), count: value.count_since_last_iteration() })
            .collect(),
    }
}

impl Stalls {
    fn add(&mut self, stall: Stall) {
        let limits = STALLS_MS.map(|limit| stall.ms > limit as f64);
        let counts = [&mut self.over_100_ms, &mut self.over_250_ms, &mut self.over_1_s];
        for (count, over) in counts.into_iter().zip(limits) {
            *count += u64::from(over);
        }
        let place = self.longest.partition_point(|other| other.ms >= stall.ms);
        self.longest.insert(place, stall);
        self.longest.truncate(PLACES_MAX);
    }

    /// Adds the stalls of another.
    pub(crate) fn join(&mut self, other: &Self) {
        self.over_100_ms += other.over_100_ms;
        self.over_250_ms += other.over_250_ms;
        self.over_1_s += other.over_1_s;
        self.longest.extend(&other.longest);
        self.longest.sort_by(|left, right| right.ms.total_cmp(&left.ms));
        self.longest.truncate(PLACES_MAX);
    }
}

impl Latency {
    /// Every percentile: its name, its value, and its 95 % confidence interval. Unit: microseconds.
    pub fn percentiles(&self) -> [(&'static str, f64, Option<Interval>); 5] {
        let sure = &self.intervals;
        [
            ("p50", self.p50, sure.p50),
            ("p90", self.p90, sure.p90),
            ("p95", self.p95, sure.p95),
            ("p99", self.p99, sure.p99),
            ("p99.9", self.p999, sure.p999),
        ]
    }

    /// Merges the two.
    pub fn merged(&self, other: &Self) -> Self {
        let mut latencies = Latencies::default();
        for latency in [self, other] {
            for bucket in &latency.histogram {
                latencies.histogram.saturating_record_n(bucket.ns, bucket.count);
            }
            latencies.sum_ns += (latency.mean * 1e3 * latency.count as f64) as u128;
        }
        if latencies.histogram.is_empty() {
            return self.clone();
        }
        ranks(
            &latencies.histogram,
            latencies.sum_ns,
            PercentileIntervals::none("merged results: their order is not known"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_thousandth_and_histograms_merge() {
        let [mut low, mut high] = [Latencies::default(), Latencies::default()];
        for micros in 1..=5_000 {
            low.record(Nanos::from_micros(micros), 0, 0);
            high.record(Nanos::from_micros(5_000 + micros), 0, 0);
        }
        let merged = low.latency(1).unwrap().merged(&high.latency(1).unwrap());
        assert_eq!(merged.count, 10_000);
        for (found, expected) in
            [(merged.p50, 5e3), (merged.p99, 9.9e3), (merged.max, 1e4), (merged.mean, 5000.5), (merged.min, 1.0)]
        {
            assert!((found / expected - 1.0).abs() < 2e-3, "{found} against {expected}");
        }
    }

    #[test]
    fn stalls_are_sorted_by_length_with_their_places() {
        let mut latencies = Latencies::default();
        for ms in [50, 120, 300, 2_000, 260] {
            latencies.record(Nanos::from_millis(ms), ms * 512, ms);
        }
        let stalls = latencies.stalls();
        assert_eq!((stalls.over_100_ms, stalls.over_250_ms, stalls.over_1_s), (4, 3, 1));
        let places: Vec<u64> = stalls.longest.iter().map(|stall| stall.offset_bytes / 512).collect();
        assert_eq!(places, [2_000, 300, 260, 120]);
    }
}
