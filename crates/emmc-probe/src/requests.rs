//! Requests of a probe, one at a time, with their times; budgets and cancelling.

use emmc_port::{BlockOp, BlockRequest, BlockTarget, TargetError};
use emmc_units::{Instant, Nanos, Rng};
use emmc_workload::BenchError;

use crate::result::Spent;

/// The name in messages.
pub(crate) const NAME: &str = "probe";

/// Stops the probe by returning `false`; gets what it does and what it has spent.
pub(crate) type Watching<'a> = &'a mut dyn FnMut(&str, &Spent) -> bool;

/// A target under probe.
pub(crate) struct Requests<'a> {
    target: &'a mut dyn BlockTarget,
    watch: Watching<'a>,
    /// The part that may be used. Unit: bytes.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Most that may be written. Unit: bytes.
    pub(crate) budget_bytes: u64,
    pub(crate) spent: Spent,
    pub(crate) rng: Rng,
    began: Instant,
    step: &'static str,
}

impl<'a> Requests<'a> {
    pub(crate) fn new(target: &'a mut dyn BlockTarget, watch: Watching<'a>, seed: u64) -> Self {
        let (began, to) = (target.now(), target.shape().size_bytes);
        let spent = Spent::default();
        Self { target, watch, from: 0, to, budget_bytes: 0, spent, rng: Rng::new(seed), began, step: "" }
    }

    /// Names what is done next.
    pub(crate) fn step(&mut self, step: &'static str) {
        self.step = step;
    }

    pub(crate) fn sector(&self) -> u64 {
        u64::from(self.target.shape().sector_bytes)
    }

    pub(crate) fn can_trim(&self) -> bool {
        self.target.shape().can_trim
    }

    fn request(&mut self, op: BlockOp, offset_bytes: u64, bytes: u64, through: bool) -> Result<f64, BenchError> {
        if op == BlockOp::Write && self.spent.written_bytes + bytes > self.budget_bytes {
            return Err(BenchError::Budget { suite: NAME });
        }
        if op != BlockOp::Flush && (offset_bytes < self.from || offset_bytes + bytes > self.to) {
            let what = format!("bytes {offset_bytes} to {}: outside of the area", offset_bytes + bytes);
            return Err(BenchError::Misfit { suite: NAME, what });
        }
        let done = self.target.complete(BlockRequest { op, offset_bytes, bytes, through, tag: 0 })?;
        if let Some(reason) = done.error {
            let name = self.target.shape().name.clone();
            return Err(TargetError::Failed { name, reason }.into());
        }
        match op {
            BlockOp::Read => self.spent.read_bytes += bytes,
            BlockOp::Write => self.spent.written_bytes += bytes,
            BlockOp::Trim => self.spent.trimmed_bytes += bytes,
            BlockOp::Flush => {}
        }
        self.spent.time_s = done.done.since(self.began).as_secs_f64();
        if !(self.watch)(self.step, &self.spent) {
            return Err(BenchError::Stopped);
        }
        Ok(done.done.since(done.submitted).as_micros_f64())
    }

    /// The time of a read. Unit: microseconds.
    pub(crate) fn read(&mut self, offset: u64, bytes: u64) -> Result<f64, BenchError> {
        self.request(BlockOp::Read, offset, bytes, false)
    }

    /// The time of a durable write. Unit: microseconds.
    pub(crate) fn write(&mut self, offset: u64, bytes: u64) -> Result<f64, BenchError> {
        self.request(BlockOp::Write, offset, bytes, true)
    }

    /// The time of a write that may stay in a volatile cache. Unit: microseconds.
    pub(crate) fn write_cached(&mut self, offset: u64, bytes: u64) -> Result<f64, BenchError> {
        self.request(BlockOp::Write, offset, bytes, false)
    }

    /// The time of a trim. Unit: microseconds.
    pub(crate) fn trim(&mut self, offset: u64, bytes: u64) -> Result<f64, BenchError> {
        self.request(BlockOp::Trim, offset, bytes, false)
    }

    /// The time of a flush. Unit: microseconds.
    pub(crate) fn flush(&mut self) -> Result<f64, BenchError> {
        self.request(BlockOp::Flush, 0, 0, false)
    }

    /// Lets the card rest.
    pub(crate) fn idle(&mut self, time: Nanos) -> Result<(), BenchError> {
        Ok(self.target.idle(time)?)
    }

    /// Writes a range sequentially, in large requests.
    pub(crate) fn fill(&mut self, from: u64, to: u64) -> Result<(), BenchError> {
        const PIECE: u64 = 512 << 10;
        let mut at = from;
        while at < to {
            let bytes = PIECE.min(to - at);
            self.write_cached(at, bytes)?;
            at += bytes;
        }
        Ok(())
    }
}
