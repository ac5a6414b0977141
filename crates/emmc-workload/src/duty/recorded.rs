//! A recording that is repeated.

use emmc_port::BlockOp;
use emmc_units::Nanos;

use super::rate::nanos;
use super::source::{Periods, Queue};
use super::{DAY_S, Partition};
use crate::drive::stream::BenchError;
use crate::trace::{Trace, TraceRequest};

/// A repeated recording.
#[derive(Debug)]
pub(super) struct Repeated {
    requests: Vec<TraceRequest>,
    written_bytes: u64,
    /// From the start of one repetition to that of the next. Unit: seconds.
    every_s: f64,
    repetitions: u64,
}

impl Repeated {
    /// Errors: a request that does not fit; nothing is written.
    pub(super) fn new(
        trace: &Trace,
        bytes_per_day: Option<f64>,
        wrap: bool,
        partition: Partition,
    ) -> Result<Self, String> {
        let hint = "--wrap continues at its start";
        let requests = trace.fitted((partition.from_bytes, partition.bytes()), 512, wrap, hint, |_| true)?;
        let writes = requests.iter().filter(|request| request.op == BlockOp::Write);
        let written_bytes: u64 = writes.map(|request| request.bytes).sum();
        if written_bytes == 0 {
            return Err("the recording has no writes".into());
        }
        let recorded_s = requests.last().map_or(0.0, |last| last.at.as_secs_f64());
        let every_s = match bytes_per_day {
            Some(bytes) => written_bytes as f64 / bytes * DAY_S,
            // The last request takes as long as the others do on average.
            None => (recorded_s * (1.0 + 1.0 / requests.len() as f64)).max(1e-3),
        };
        // A rate above the recorded one makes the gaps shorter.
        let squeeze = if recorded_s > every_s { every_s / recorded_s } else { 1.0 };
        let squeezed = |at: Nanos| Nanos((at.0 as f64 * squeeze) as u64);
        let requests = requests.into_iter().map(|request| TraceRequest { at: squeezed(request.at), ..request });
        Ok(Self { requests: requests.collect(), written_bytes, every_s, repetitions: 0 })
    }

    /// What is written each day. Unit: bytes.
    pub(super) fn bytes_per_day(&self) -> f64 {
        self.written_bytes as f64 / self.every_s * DAY_S
    }
}

impl Periods for Repeated {
    fn next_period(&mut self, queue: &mut Queue) -> Result<(), BenchError> {
        let from = nanos(self.every_s * self.repetitions as f64);
        for request in &self.requests {
            let at = from + request.at;
            queue.push(at, request.op, request.offset_bytes, request.bytes, request.through);
        }
        self.repetitions += 1;
        Ok(())
    }

    fn time(&self) -> Nanos {
        nanos(self.every_s * self.repetitions as f64)
    }

    fn program_bytes(&self) -> f64 {
        self.written_bytes as f64 * self.repetitions as f64
    }

    fn written_per_day(&self) -> Option<f64> {
        Some(self.bytes_per_day())
    }
}
