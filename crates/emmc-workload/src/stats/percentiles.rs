//! Confidence intervals of latency percentiles.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::stats::batches::Batches;
use crate::stats::bootstrap::{CELLS_MIN, mean_range};
use crate::stats::interval::Interval;

/// Fewest requests beyond a percentile for an interval.
const BEYOND_MIN: f64 = 10.0;

/// 95 % confidence intervals of the percentiles, by a block bootstrap.
///
/// Unit: microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PercentileIntervals {
    /// Of the median.
    pub p50: Option<Interval>,
    /// Of the 90th percentile.
    pub p90: Option<Interval>,
    /// Of the 95th percentile.
    pub p95: Option<Interval>,
    /// Of the 99th percentile.
    pub p99: Option<Interval>,
    /// Of the 99.9th percentile.
    pub p999: Option<Interval>,
    /// Why one of them is missing.
    pub why_not: Option<String>,
}

impl PercentileIntervals {
    /// None of them, and why.
    pub(crate) fn none(why_not: impl Into<String>) -> Self {
        Self { why_not: Some(why_not.into()), ..Self::default() }
    }

    /// Of latencies in a histogram, with their order in batches.
    pub(crate) fn of(histogram: &Histogram<u64>, cells: &Batches, seed: u64) -> Self {
        let (count, requests) = (cells.size().0, histogram.len());
        if count < CELLS_MIN {
            return Self::none(format!("{requests} requests; at least {CELLS_MIN} are needed"));
        }
        let mut why_not: Vec<String> = Vec::new();
        let [p50, p90, p95, p99, p999] = [(0.5, "p50"), (0.9, "p90"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9")]
            .map(|(rank, name)| match one(histogram, cells, rank, seed) {
                Ok(interval) => Some(interval),
                Err(why) => {
                    why_not.push(format!("{name}: {why}"));
                    None
                }
            });
        let why_not = (!why_not.is_empty()).then(|| why_not.join("; "));
        Self { p50, p90, p95, p99, p999, why_not }
    }
}

fn one(histogram: &Histogram<u64>, cells: &Batches, rank: f64, seed: u64) -> Result<Interval, String> {
    let requests = histogram.len();
    let needed = BEYOND_MIN / (1.0 - rank);
    if (requests as f64) < needed - 0.5 {
        return Err(format!("{requests} requests, {needed:.0} are needed"));
    }
    let value = histogram.value_at_quantile(rank);
    let (down, up) = mean_range(&cells.shares_up_to(value), seed).ok_or("too few requests")?;
    if rank + up > 1.0 - 0.5 / requests as f64 {
        return Err("the slow requests come in clusters: too few clusters were seen".into());
    }
    let at = |rank: f64| histogram.value_at_quantile(rank.clamp(0.0, 1.0));
    let [low, high] = [at(rank + down).min(value), at(rank + up).max(value)].map(|nanos| nanos as f64 / 1e3);
    Ok(Interval { low, high })
}

#[cfg(test)]
mod tests {
    use emmc_units::{Nanos, Rng};
    use statrs::distribution::{ContinuousCDF, Normal};

    use crate::Latencies;

    /// Autocorrelated latencies: their logarithms keep a share of the previous one.
    fn chain(requests: usize, keeps: f64, rng: &mut Rng) -> Latencies {
        let mut latencies = Latencies::default();
        let mut last = 0.0f64;
        for number in 0..requests + 50 {
            last = keeps * last + (0..12).map(|_| rng.unit_f64()).sum::<f64>() - 6.0;
            if number >= 50 {
                latencies.record(Nanos((1e5 * (0.2 * last).exp()) as u64), 0, 0);
            }
        }
        latencies
    }

    #[test]
    fn coverage_of_the_true_percentile_is_nominal() {
        for (keeps, least) in [(0.0, 0.91), (0.8, 0.89), (0.97, 0.83)] {
            let mut rng = Rng::new(17);
            let spread = 0.2 / (1.0f64 - keeps * keeps).sqrt();
            let normal = Normal::new(0.0, 1.0).unwrap();
            let mut inside = [0; 3];
            for seed in 0..200 {
                let told = chain(10_000, keeps, &mut rng).latency(seed).unwrap();
                let found = [told.intervals.p50, told.intervals.p90, told.intervals.p99];
                for ((rank, found), inside) in [0.5, 0.9, 0.99].into_iter().zip(found).zip(&mut inside) {
                    let truth = 100.0 * (spread * normal.inverse_cdf(rank)).exp();
                    let found = found.unwrap();
                    *inside += usize::from(found.low <= truth && truth <= found.high);
                }
            }
            for count in inside {
                assert!((least..=0.995).contains(&(count as f64 / 200.0)), "keeps {keeps}: {inside:?} of 200");
            }
        }
    }

    #[test]
    fn a_missing_interval_has_a_reason() {
        let told = |requests| chain(requests, 0.5, &mut Rng::new(3)).latency(1).unwrap().intervals;
        let few = told(39);
        assert_eq!((few.p50, few.why_not.as_deref()), (None, Some("39 requests; at least 40 are needed")));
        let some = told(1000);
        assert!(some.p50.is_some() && some.p99.is_some() && some.p999.is_none(), "{some:?}");
        assert_eq!(some.why_not.as_deref(), Some("p99.9: 1000 requests, 10000 are needed"));
        let all = told(20_000);
        assert!(all.p999.is_some() && all.why_not.is_none(), "{all:?}");
        assert_eq!(told(20_000), all);
    }

    #[test]
    fn constant_latencies_have_an_exact_percentile() {
        let mut latencies = Latencies::default();
        (0..100).for_each(|_| latencies.record(Nanos(1000), 0, 0));
        let told = latencies.latency(1).unwrap();
        assert_eq!(told.intervals.p50.map(|found| (found.low, found.high)), Some((1.0, 1.0)));
    }
}
