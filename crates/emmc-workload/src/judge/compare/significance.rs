//! Whether two figures differ significantly.
//!
//! Disjoint confidence intervals of the mean are a conservative test: it misses small differences and seldom reports a
//! false one. Results without an interval but with all latencies are compared by ranks (Mann and Whitney, with ties);
//! because consecutive requests are correlated, the threshold is much stricter than the usual 5 %. Absent on purpose: a
//! verdict from two plain numbers.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};

use super::entries::Entry;
use crate::stats::interval::Interval;
use crate::stats::latency::{Bucket, Latency};

/// Highest p-value at which ranks show a difference.
const CHANCE_MAX: f64 = 0.001;
/// Fewest requests in each result for the normal approximation.
const REQUESTS_MIN: u64 = 20;

/// Whether two figures differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Certainty {
    /// Significantly.
    Differs,
    /// Not significantly.
    NoDifferenceShown,
    /// The results lack the values for a test.
    CannotTell,
}

/// Result of a rank test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// The test statistic. Unit: standard deviations; positive if the second tends to be larger.
    pub z: f64,
    /// The two-sided p-value.
    pub chance: f64,
    /// The share of pairs in which the second is the larger; ties count half.
    pub second_larger: f64,
}

/// Compares values by their ranks, given as counts per value; nothing if one has fewer than 20, or all are equal.
pub fn rank_test(first: &[Bucket], second: &[Bucket]) -> Option<RankTest> {
    let mut all: Vec<(u64, [u64; 2])> = first.iter().map(|bucket| (bucket.ns, [bucket.count, 0])).collect();
    all.extend(second.iter().map(|bucket| (bucket.ns, [0, bucket.count])));
    all.sort_by_key(|(value, _)| *value);
    let [mut wins, mut ties] = [0.0, 0.0];
    let mut seen = [0.0, 0.0];
    for group in all.chunk_by(|left, right| left.0 == right.0) {
        let here = |index: usize| group.iter().map(|(_, counts)| counts[index] as f64).sum::<f64>();
        let (ours, theirs) = (here(0), here(1));
        wins += theirs * (seen[0] + ours / 2.0);
        let tied = ours + theirs;
        ties += tied * (tied * tied - 1.0);
        seen = [seen[0] + ours, seen[1] + theirs];
    }
    let [n, m] = seen;
    if n < REQUESTS_MIN as f64 || m < REQUESTS_MIN as f64 {
        return None;
    }
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    if variance.is_nan() || variance <= 0.0 {
        return None;
    }
    let z = (wins - n * m / 2.0) / variance.sqrt();
    let chance = 2.0 * Normal::new(0.0, 1.0).ok()?.cdf(-z.abs());
    Some(RankTest { z, chance, second_larger: wins / (n * m) })
}

/// Whether the values of two 95 % confidence intervals differ, and in words.
pub(crate) fn of_intervals(a: &Interval, b: &Interval) -> (Certainty, &'static str) {
    match a.is_apart_from(b) {
        true => (Certainty::Differs, "apart"),
        false => (Certainty::NoDifferenceShown, "not apart"),
    }
}

/// A latency percentile of the same requests in two results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedPercentile {
    /// `p50`, `p90`, `p95`, `p99` or `p99.9`.
    pub rank: String,
    /// In the first result. Unit: microseconds.
    pub first_us: f64,
    /// Its 95 % confidence interval. Unit: microseconds.
    pub first_interval: Interval,
    /// In this result. Unit: microseconds.
    pub us: f64,
    /// Its 95 % confidence interval. Unit: microseconds.
    pub interval: Interval,
    /// Whether they differ: their intervals are disjoint.
    pub certainty: Certainty,
}

/// Every percentile for which both have a confidence interval.
pub(super) fn percentiles(first: &Latency, second: &Latency) -> Vec<ComparedPercentile> {
    first
        .percentiles()
        .into_iter()
        .zip(second.percentiles())
        .filter_map(|((rank, first_us, ours), (_, us, theirs))| {
            let (first_interval, interval) = ours.zip(theirs)?;
            let certainty = of_intervals(&first_interval, &interval).0;
            Some(ComparedPercentile { rank: rank.into(), first_us, first_interval, us, interval, certainty })
        })
        .collect()
}

/// Compares two matching figures; returns the verdict and its evidence.
pub(super) fn certainty(first: &Entry<'_>, second: &Entry<'_>) -> (Certainty, String) {
    let behind = first.settled.zip(second.settled).map(|both| (both, " after the warm-up"));
    if let Some(((a, b), of)) = behind.or(first.interval.zip(second.interval).map(|both| (both, ""))) {
        let (told, how) = of_intervals(&a, &b);
        return (told, format!("95 % intervals{of} are {how}"));
    }
    if let (Some(a), Some(b)) = (first.latency, second.latency) {
        if let Some(ranks) = rank_test(&a.histogram, &b.histogram) {
            let share = ranks.second_larger * 100.0;
            let told = if ranks.chance < CHANCE_MAX { Certainty::Differs } else { Certainty::NoDifferenceShown };
            return (told, format!("latencies by rank: longer in {share:.1} % of pairs, p = {:.1e}", ranks.chance));
        }
    }
    (Certainty::CannotTell, "one of the two has neither a confidence interval nor latencies".into())
}
