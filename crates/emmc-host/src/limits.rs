use serde::Serialize;

use crate::{CqEngine, Pipeline, Speed};

/// What limits the request rate in the long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Bottleneck {
    /// All cores are busy.
    Cores,
    /// The serial part of pre.
    SerialPre,
    /// The card, with the gap between two transfers, if any.
    Device,
    /// Too few outstanding requests.
    Depth,
}

/// Long-run limits of a pipeline: the closed forms.
///
/// Symbols: a = pre, h = hardware, p = post, s = the serial part of pre, g = gap between two transfers (0 with a queue
/// engine in hardware), B = chunk, C = cores, Q = depth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limits {
    /// R = a + h + p: one request from end to end. Unit: microseconds.
    pub request_us: f64,
    /// B / R: one request at a time, the paper's *theoretical* speed.
    pub one_at_a_time: Speed,
    /// B / (a + p): one request at a time on a device that takes no time, the paper's *maximum*.
    pub one_at_a_time_fast_device: Speed,
    /// (a + p) / R. Unit: percent.
    pub overhead_percent: f64,
    /// P, see [`Pipeline::period_ns`]. Unit: microseconds.
    pub period_us: f64,
    /// B / P.
    pub pipelined: Speed,
    /// B / S: with unlimited depth on a device that takes no time.
    pub pipelined_fast_device: Speed,
    /// What P is.
    pub bottleneck: Bottleneck,
    /// P with the queue engine in hardware. Unit: microseconds.
    pub period_cq_on_us: f64,
    /// P with a core starting each transfer. Unit: microseconds.
    pub period_cq_off_us: f64,
    /// See [`Pipeline::cq_gain`]. Unit: percent.
    pub cq_gain_percent: f64,
    /// The same if a request were completed, all of post, before the next transfer starts. Unit: percent.
    pub cq_gain_all_of_post_percent: f64,
}

impl Pipeline {
    /// S = max((a + p) / C, s): the period that the cores alone allow.
    ///
    /// Derivation: C cores provide C nanoseconds of work per nanosecond and a request needs a + p of them; and requests
    /// pass the serial part one at a time. On one core that is a + p; the paper's case, all of pre serial on two or
    /// more cores with p <= a, is a. Unit: nanoseconds.
    fn software_period_ns(&self) -> f64 {
        let shared = self.spans.software().0 as f64 / f64::from(self.cores);
        shared.max(self.serial.0 as f64)
    }

    /// P = max(S, h + g, R / Q): the long-run period of requests.
    ///
    /// Derivation: each term is a bound. The cores: S. The card serves one at a time, and a core needs g between two:
    /// h + g. With Q outstanding, each for at least R, at most Q requests complete in R (Little's law). The largest
    /// term decides, and the model reaches it wherever [`crate::Makespan::is_exact`]. Unit: nanoseconds.
    pub fn period_ns(&self) -> f64 {
        self.unlimited_period_ns().max(self.spans.total().0 as f64 / f64::from(self.depth))
    }

    /// P with unlimited depth. Unit: nanoseconds.
    pub(crate) fn unlimited_period_ns(&self) -> f64 {
        self.software_period_ns().max((self.spans.hw + self.gap_in_effect()).0 as f64)
    }

    /// The gain of a queue engine in hardware: P without it over P with it, minus one.
    ///
    /// Derivation: without an engine nothing overlaps a transfer's start, so P_off = max(S, h + g, R / Q); with one,
    /// P_on = max(S, h, R / Q). A workload that keeps the cores busy longer than h + g (random writes on the Zynq)
    /// cannot gain.
    pub fn cq_gain(&self) -> f64 {
        self.with(CqEngine::None).period_ns() / self.with(CqEngine::Hardware).period_ns() - 1.0
    }

    fn with(&self, engine: CqEngine) -> Self {
        Self { engine, ..*self }
    }

    /// All closed forms of the long run.
    pub fn limits(&self) -> Limits {
        let (spans, period) = (self.spans, self.period_ns());
        let speed = |ns: f64| Speed::of(self.chunk, ns);
        Limits {
            request_us: spans.total().as_micros_f64(),
            one_at_a_time: speed(spans.total().0 as f64),
            one_at_a_time_fast_device: speed(spans.software().0 as f64),
            overhead_percent: spans.overhead_share() * 100.0,
            period_us: period / 1e3,
            pipelined: speed(period),
            pipelined_fast_device: speed(self.software_period_ns()),
            bottleneck: self.bottleneck(),
            period_cq_on_us: self.with(CqEngine::Hardware).period_ns() / 1e3,
            period_cq_off_us: self.with(CqEngine::None).period_ns() / 1e3,
            cq_gain_percent: self.cq_gain() * 100.0,
            cq_gain_all_of_post_percent: Self { gap: spans.post, ..*self }.cq_gain() * 100.0,
        }
    }

    fn bottleneck(&self) -> Bottleneck {
        let period = self.period_ns();
        let software = self.software_period_ns();
        if period > self.unlimited_period_ns() {
            Bottleneck::Depth
        } else if period > software {
            Bottleneck::Device
        } else if software > self.serial.0 as f64 {
            Bottleneck::Cores
        } else {
            Bottleneck::SerialPre
        }
    }
}

#[cfg(test)]
mod tests {
    use emmc_units::{Bytes, Nanos};

    use super::*;
    use crate::Spans;

    #[test]
    fn each_bottleneck_is_named() {
        let pipeline = Pipeline::new(Spans::from_micros(100, 400, 60), Bytes(4096));
        assert_eq!(pipeline.limits().bottleneck, Bottleneck::Device);
        assert_eq!(Pipeline { depth: 1, ..pipeline }.limits().bottleneck, Bottleneck::Depth);
        let quick = Pipeline { spans: Spans::from_micros(100, 40, 60), ..pipeline };
        assert_eq!(quick.limits().bottleneck, Bottleneck::SerialPre);
        assert_eq!(Pipeline { cores: 1, ..quick }.limits().bottleneck, Bottleneck::Cores);
        let parallel = Pipeline { serial: Nanos::from_micros(10), ..quick };
        assert_eq!((parallel.period_ns(), parallel.limits().bottleneck), (80_000.0, Bottleneck::Cores));
    }

    #[test]
    fn a_queue_removes_the_gap_only() {
        let device =
            Pipeline { gap: Nanos::from_micros(40), ..Pipeline::new(Spans::from_micros(100, 400, 60), Bytes(4096)) };
        assert!((device.cq_gain() - 0.1).abs() < 1e-12);
        assert!((device.limits().cq_gain_all_of_post_percent - 15.0).abs() < 1e-9);
        let cpu = Pipeline { spans: Spans::from_micros(500, 400, 60), serial: Nanos::from_micros(500), ..device };
        assert_eq!(cpu.cq_gain(), 0.0);
        assert_eq!(Pipeline { depth: 1, ..device }.cq_gain(), 0.0);
    }
}
