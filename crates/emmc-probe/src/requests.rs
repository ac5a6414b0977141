//! Requests of a probe, one at a time, with their times; budgets and cancelling.

use emmc_port::{BlockContent, BlockDone, BlockOp, BlockRequest, BlockTarget, TargetError, TargetKind};
use emmc_units::{Instant, Nanos, Rng};
use emmc_workload::BenchError;

use crate::result::Spent;
use crate::robust::median;

/// The name in messages.
pub(crate) const NAME: &str = "probe";

/// Stops the probe by returning `false`; gets what it does and what it has spent.
pub(crate) type Watching<'a> = &'a mut dyn FnMut(&str, &Spent) -> bool;

/// Writes of each kind by which the way to write durably is chosen, and their size. Unit of the size: bytes.
const TRIED: usize = 6;
const TRIED_BYTES: u64 = 128 << 10;
/// FUA is given up if its writes take this many times longer.
const SLOWER: f64 = 2.0;

/// How a write becomes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durable {
    /// With FUA. Linux makes a reliable write of it, if the card takes those, and that may cost a card as much as a
    /// merge.
    Through,
    /// By a flush after it. The kernel may poll the card for its end, at growing intervals.
    Flushed,
}

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
    durable: Durable,
}

impl<'a> Requests<'a> {
    pub(crate) fn new(target: &'a mut dyn BlockTarget, watch: Watching<'a>, seed: u64) -> Self {
        let (began, to) = (target.now(), target.shape().size_bytes);
        Self {
            target,
            watch,
            from: 0,
            to,
            budget_bytes: 0,
            until: None,
            spent: Spent::default(),
            rng: Rng::new(seed),
            began,
            step: "",
            durable: Durable::Through,
        }
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
        match self.durable {
            Durable::Through => self.request(BlockOp::Write, offset, bytes, true),
            Durable::Flushed => Ok(self.request(BlockOp::Write, offset, bytes, false)? + self.flush()?),
        }
    }

    /// Chooses how writes become durable on a real card, by writes of both kinds in turn from a place on; returns a
    /// remark if the usual way is not the one.
    pub(crate) fn choose_durable(&mut self, from: u64) -> Result<Option<String>, BenchError> {
        if !self.is_real() {
            return Ok(None);
        }
        let tried = self.try_durable(from);
        self.durable = Durable::Through;
        let [through, flushed] = tried?;
        if through <= flushed * SLOWER {
            return Ok(None);
        }
        self.durable = Durable::Flushed;
        Ok(Some(format!(
            "Durable writes were made by a flush after each: with FUA, which the kernel turns into reliable writes where \
             the card has them, {} KiB take {:.1} ms instead of {:.1} ms.",
            TRIED_BYTES >> 10,
            through / 1e3,
            flushed / 1e3
        )))
    }

    /// The median times of writes with FUA and of those with a flush, in turn. Unit: microseconds.
    fn try_durable(&mut self, from: u64) -> Result<[f64; 2], BenchError> {
        self.step("ways to write durably");
        let mut times = [Vec::new(), Vec::new()];
        for index in 0..2 * TRIED as u64 {
            let kind = (index % 2) as usize;
            self.durable = [Durable::Through, Durable::Flushed][kind];
            times[kind].push(self.write(from + index * TRIED_BYTES, TRIED_BYTES)?);
        }
        // The first ones open a unit.
        Ok(times.map(|times| median(&times[1..])))
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
        self.rng.shuffle(values);
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

#[cfg(test)]
mod tests {
    use emmc_port::TargetShape;

    use super::*;

    /// A target that takes a microsecond for each request, but for a write with FUA.
    struct Recorder {
        shape: TargetShape,
        now: Instant,
        through: Nanos,
        requests: Vec<BlockRequest>,
    }

    impl BlockTarget for Recorder {
        fn shape(&self) -> &TargetShape {
            &self.shape
        }

        fn now(&mut self) -> Instant {
            self.now
        }

        fn submit(&mut self, request: BlockRequest) -> Result<(), TargetError> {
            self.requests.push(request);
            Ok(())
        }

        fn wait(&mut self) -> Result<BlockDone, TargetError> {
            let request = *self.requests.last().expect("a request was submitted");
            let submitted = self.now;
            self.now = submitted + if request.through { self.through } else { Nanos::from_micros(1) };
            Ok(BlockDone { request, submitted, done: self.now, error: None })
        }

        fn idle(&mut self, time: Nanos) -> Result<(), TargetError> {
            self.now = self.now + time;
            Ok(())
        }
    }

    fn recorder(kind: TargetKind, through_us: u64) -> Recorder {
        let shape = TargetShape {
            name: "card".into(),
            kind,
            size_bytes: 4 << 20,
            sector_bytes: 512,
            depth_max: 1,
            can_trim: false,
            engine: "recorded",
        };
        Recorder { shape, now: Instant::START, through: Nanos::from_micros(through_us), requests: Vec::new() }
    }

    /// A flush after each where FUA takes much longer; on virtual cards nothing is tried.
    #[test]
    fn durable_writes_are_made_in_the_faster_way() {
        let written = |kind: TargetKind, through_us: u64| {
            let mut target = recorder(kind, through_us);
            let mut watch = |_: &str, _: &Spent| true;
            let mut requests = Requests::new(&mut target, &mut watch, 1);
            requests.budget_bytes = 2 << 20;
            let remark = requests.choose_durable(1 << 20).unwrap();
            let tried = requests.spent.written_bytes;
            requests.budget_bytes = tried + 4096;
            let us = requests.write(4096, 4096).unwrap();
            assert!(requests.write(8192, 4096).is_err(), "beyond the budget");
            let last = target.requests[target.requests.len() - 1];
            (us, (last.op, last.through), remark.is_some(), tried)
        };
        let tried = 2 * TRIED as u64 * TRIED_BYTES;
        assert_eq!(written(TargetKind::Device, 100), (2.0, (BlockOp::Flush, false), true, tried));
        assert_eq!(written(TargetKind::Device, 3), (3.0, (BlockOp::Write, true), false, tried));
        assert_eq!(written(TargetKind::Simulated, 100), (100.0, (BlockOp::Write, true), false, 0));
    }

    /// A budget that ends during the trial, at a write with a flush, leaves FUA.
    #[test]
    fn an_unfinished_trial_leaves_the_usual_way() {
        let mut target = recorder(TargetKind::Device, 100);
        let mut watch = |_: &str, _: &Spent| true;
        let mut requests = Requests::new(&mut target, &mut watch, 1);
        requests.budget_bytes = TRIED_BYTES;
        assert!(requests.choose_durable(0).is_err());
        requests.budget_bytes += 4096;
        assert_eq!(requests.write(4096, 4096).unwrap(), 100.0);
    }
}
