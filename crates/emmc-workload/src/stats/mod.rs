//! Statistics of a run: latencies with percentiles and stalls, confidence intervals, progress over time, warm-ups,
//! falls of a rate.

mod batches;
mod bootstrap;
pub(crate) mod fall;
pub(crate) mod interval;
pub(crate) mod latency;
pub(crate) mod marks;
pub(crate) mod percentiles;
pub(crate) mod series;
pub(crate) mod warm_up;
