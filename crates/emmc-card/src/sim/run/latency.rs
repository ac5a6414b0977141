//! Latencies by kind of request.

use emmc_units::Nanos;
use hdrhistogram::Histogram;
use serde::Serialize;

/// Longer latencies count as an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// Kinds of requests with separate latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Write = 0,
    Read = 1,
    Trim = 2,
    Flush = 3,
}

/// Latency percentiles.
///
/// Unit: microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Percentiles {
    /// Requests.
    pub count: u64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// Latencies of all requests, and of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyResult {
    /// Of all requests.
    #[serde(flatten)]
    pub all: Percentiles,
    /// Of writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Percentiles>,
    /// Of reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Percentiles>,
    /// Of trims.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trim: Option<Percentiles>,
    /// Of flushes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<Percentiles>,
}

/// Latencies by kind, with three significant digits.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    kinds: [Histogram<u64>; 4],
}

impl Latencies {
    pub(super) fn new() -> Self {
        let empty = Histogram::new_with_bounds(1, LATENCY_NS_MAX, 3).expect("the bounds are valid");
        Self { kinds: [empty.clone(), empty.clone(), empty.clone(), empty] }
    }

    #[inline]
    pub(super) fn record(&mut self, kind: Kind, latency: Nanos) {
        self.kinds[kind as usize].saturating_record(latency.0);
    }

    /// Adds the counts of another one, which is then empty.
    pub(super) fn take(&mut self, other: &mut Self) {
        for (own, other) in self.kinds.iter_mut().zip(&mut other.kinds) {
            if !other.is_empty() {
                own.add(&*other).expect("the bounds are the same");
                other.reset();
            }
        }
    }

    pub(super) fn result(&self) -> LatencyResult {
        let of = |kind: Kind| {
            let histogram = &self.kinds[kind as usize];
            (!histogram.is_empty()).then(|| percentiles(histogram))
        };
        let mut all = self.kinds[0].clone();
        for kind in &self.kinds[1..] {
            all.add(kind).expect("the bounds are the same");
        }
        LatencyResult {
            all: percentiles(&all),
            write: of(Kind::Write),
            read: of(Kind::Read),
            trim: of(Kind::Trim),
            flush: of(Kind::Flush),
        }
    }
}

fn percentiles(histogram: &Histogram<u64>) -> Percentiles {
    let micros = |nanos: u64| nanos as f64 / 1e3;
    Percentiles {
        count: histogram.len(),
        p50: micros(histogram.value_at_quantile(0.5)),
        p99: micros(histogram.value_at_quantile(0.99)),
        p999: micros(histogram.value_at_quantile(0.999)),
        max: micros(histogram.max()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_thousandth() {
        let (mut total, mut phase) = (Latencies::new(), Latencies::new());
        for micros in 1..=10_000 {
            phase.record(Kind::Write, Nanos::from_micros(micros));
        }
        phase.record(Kind::Read, Nanos::from_secs(7200));
        total.take(&mut phase);
        assert_eq!(phase.result(), LatencyResult::default());
        let result = total.result();
        let write = result.write.unwrap();
        for (found, expected) in [(write.p50, 5000.0), (write.p99, 9900.0), (write.p999, 9990.0), (write.max, 10_000.0)]
        {
            assert!((found / expected - 1.0).abs() < 1e-3, "{found} against {expected}");
        }
        assert_eq!((write.count, result.all.count, result.read.unwrap().count), (10_000, 10_001, 1));
        assert!((result.all.max / 3.6e9 - 1.0).abs() < 1e-3);
        assert_eq!(result.trim, None);
    }
}
