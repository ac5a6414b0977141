//! Requests of a probe, one at a time, with their times; budgets and cancelling.

use emmc_port::{BlockContent, BlockDone, BlockOp, BlockRequest, BlockTarget, TargetError, TargetKind};
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
    /// No request begins later; none: no limit.
    pub(crate) until: Option<Instant>,
    pub(crate) spent: Spent,
    pub(crate) rng: Rng,
    began: Instant,
    step: &'static str,
}

impl<'a> Requests<'a> {
    pub(crate) fn new(target: &'a mut dyn BlockTarget, watch: Watching<'a>, seed: u64) -> Self {
        let (began, to) = (target.now(), target.shape().size_bytes);
        let spent = Spent::default();
        Self { target, watch, from: 0, to, budget_bytes: 0, until: None, spent, rng: Rng::new(seed), began, step: "" }
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

    /// The target's time.
    pub(crate) fn now(&mut self) -> Instant {
        self.target.now()
    }

    /// What the target states. Unit: bytes.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.target.shape().size_bytes
    }

    /// Whether the target's clock is the host machine's: then times have the host's part too.
    pub(crate) fn is_real(&self) -> bool {
        self.target.shape().kind != TargetKind::Simulated
    }

    /// What may still be written. Unit: bytes.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.budget_bytes.saturating_sub(self.spent.written_bytes)
    }

    /// Whether what is written can be read back.
    pub(crate) fn has_content(&mut self) -> bool {
        self.target.content().is_some()
    }

    /// Whether a request may begin.
    fn permit(&mut self, op: BlockOp, offset_bytes: u64, bytes: u64) -> Result<(), BenchError> {
        if self.until.is_some_and(|until| self.target.now() >= until) {
            return Err(BenchError::Time { suite: NAME });
        }
        if op == BlockOp::Write && self.spent.written_bytes + bytes > self.budget_bytes {
            return Err(BenchError::Budget { suite: NAME });
        }
        if op != BlockOp::Flush && (offset_bytes < self.from || offset_bytes + bytes > self.to) {
            let what = format!("bytes {offset_bytes} to {}: outside of the area", offset_bytes + bytes);
            return Err(BenchError::Misfit { suite: NAME, what });
        }
        Ok(())
    }

    fn request(&mut self, op: BlockOp, offset_bytes: u64, bytes: u64, through: bool) -> Result<f64, BenchError> {
        self.permit(op, offset_bytes, bytes)?;
        let done = self.target.complete(BlockRequest { op, offset_bytes, bytes, through, tag: 0 })?;
        if let Some(reason) = done.error {
            return Err(self.failed(reason).into());
        }
        self.count(&done)?;
        Ok(done.done.since(done.submitted).as_micros_f64())
    }

    fn failed(&self, reason: String) -> TargetError {
        TargetError::Failed { name: self.target.shape().name.clone(), reason }
    }

    /// Counts a request, and asks whether to go on.
    fn count(&mut self, done: &BlockDone) -> Result<(), BenchError> {
        let BlockRequest { op, bytes, .. } = done.request;
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
        Ok(())
    }

    fn contents(&mut self) -> Result<&mut dyn BlockContent, BenchError> {
        match self.target.content() {
            Some(content) => Ok(content),
            None => Err(BenchError::Misfit { suite: NAME, what: "the target stores no data".into() }),
        }
    }

    /// Reads what is at a place; returns why it cannot be read, if so.
    pub(crate) fn see(&mut self, offset: u64, into: &mut [u8]) -> Result<Option<String>, BenchError> {
        self.permit(BlockOp::Read, offset, into.len() as u64)?;
        let done = self.contents()?.read_into(offset, into)?;
        self.count(&done)?;
        Ok(done.error)
    }

    /// Writes data; returns why it cannot be written, if so.
    pub(crate) fn put(&mut self, offset: u64, data: &[u8]) -> Result<Option<String>, BenchError> {
        self.permit(BlockOp::Write, offset, data.len() as u64)?;
        let done = self.contents()?.write_from(offset, data, false)?;
        self.count(&done)?;
        Ok(done.error)
    }

    /// Restores saved data: also after a stop and beyond every budget.
    pub(crate) fn restore(&mut self, offset: u64, data: &[u8]) -> Result<(), BenchError> {
        let done = self.contents()?.write_from(offset, data, true)?;
        self.spent.written_bytes += data.len() as u64;
        done.error.map_or(Ok(()), |reason| Err(self.failed(reason).into()))
    }

    /// Reads restored data.
    pub(crate) fn restored(&mut self, offset: u64, into: &mut [u8]) -> Result<(), BenchError> {
        let done = self.contents()?.read_into(offset, into)?;
        self.spent.read_bytes += into.len() as u64;
        self.spent.time_s = done.done.since(self.began).as_secs_f64();
        done.error.map_or(Ok(()), |reason| Err(self.failed(reason).into()))
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
        if self.until.is_some_and(|until| self.target.now() + time > until) {
            return Err(BenchError::Time { suite: NAME });
        }
        Ok(self.target.idle(time)?)
    }

    /// Puts values into a random order.
    pub(crate) fn shuffle(&mut self, values: &mut [u64]) {
        for index in (1..values.len()).rev() {
            values.swap(index, self.rng.below(index as u64 + 1) as usize);
        }
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
