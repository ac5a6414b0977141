//! Statistics of requests: number, bytes, latency.

use std::sync::{Arc, Mutex, PoisonError};

use emmc_card::device::Area;
use emmc_units::Instant;
use hdrhistogram::Histogram;
use serde::Serialize;

use super::{Kind, Layer, extent};
use crate::block::{Block, BlockError, Request};
use crate::served::Served;

/// Longer times count as this. Unit: nanoseconds.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Statistics of one kind of request.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Completed, errors included.
    pub requests: u64,
    /// Unit: bytes.
    pub bytes: u64,
    /// Failed.
    pub errors: u64,
    /// From request to completion, in the card's time. Unit: microseconds.
    pub latency_us: Summary,
}

/// A distribution in a few numbers; absent if there was no reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The median.
    pub p50: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
}

impl Summary {
    /// Of nanoseconds, in microseconds.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let micros = |nanos: u64| (!histogram.is_empty()).then_some(nanos as f64 / 1000.0);
        let at = |quantile: f64| micros(histogram.value_at_quantile(quantile));
        Self { p50: at(0.5), p99: at(0.99), max: micros(histogram.max()) }
    }
}

/// Three significant digits from a nanosecond to an hour.
pub(crate) fn histogram() -> Histogram<u64> {
    // The bounds are constants that are known to be valid.
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("bounds of a histogram")
}

#[derive(Debug)]
struct OfKind {
    requests: u64,
    bytes: u64,
    errors: u64,
    latency_ns: Histogram<u64>,
}

/// Counts requests.
pub struct Stats {
    inner: Arc<dyn Block>,
    served: Arc<Served>,
    kinds: [Mutex<OfKind>; Kind::ALL.len()],
}

impl Stats {
    /// Counts requests to `inner`, by the card's time in `served`.
    pub fn new(inner: Arc<dyn Block>, served: Arc<Served>) -> Self {
        let kind = |_| Mutex::new(OfKind { requests: 0, bytes: 0, errors: 0, latency_ns: histogram() });
        Self { inner, served, kinds: Kind::ALL.map(kind) }
    }

    /// The counts of a kind so far.
    pub fn of(&self, kind: Kind) -> Counts {
        let of_kind = self.kinds[kind as usize].lock().unwrap_or_else(PoisonError::into_inner);
        Counts {
            requests: of_kind.requests,
            bytes: of_kind.bytes,
            errors: of_kind.errors,
            latency_us: Summary::of(&of_kind.latency_ns),
        }
    }
}

impl Layer for Stats {
    fn inner(&self) -> &dyn Block {
        &*self.inner
    }

    fn submit(&self, area: Area, request: Request<'_>) -> Result<Instant, BlockError> {
        let (kind, range) = extent(&request);
        let asked = self.served.now();
        let result = self.inner.submit(area, request);
        let mut of_kind = self.kinds[kind as usize].lock().unwrap_or_else(PoisonError::into_inner);
        of_kind.requests += 1;
        match &result {
            Ok(done) => {
                of_kind.bytes += range.end - range.start;
                of_kind.latency_ns.saturating_record(done.since(asked).0);
            }
            Err(_) => of_kind.errors += 1,
        }
        result
    }
}
