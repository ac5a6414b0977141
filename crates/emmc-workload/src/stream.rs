//! A stream of requests of one size, and the loop that drives a target with it.

use emmc_port::{BlockDone, BlockOp, BlockRequest, BlockTarget, TargetError};
use emmc_units::{Nanos, Rng};

use crate::measurement::Measured;
use crate::order::{Order, Positions};
use crate::watch::{Progress, Watch};

/// Requests between two calls of the progress callback.
const WATCH_EVERY: u64 = 256;
/// Requests between two checks of the clock, if the target has enough ready that a few more do not matter.
const CLOCK_EVERY: u64 = 16;
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// The operations of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mix {
    /// All the same.
    Only(BlockOp),
    /// Reads with this probability, else writes.
    Reads {
        /// Share of reads, 0 to 1.
        share: f64,
    },
}

/// When a stream ends: at whichever limit comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Unit: bytes.
    pub bytes: u64,
    /// The target's time.
    pub time: Option<Nanos>,
}

/// When a stream flushes; its time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushAt {
    /// Never.
    Never,
    /// Once, after the last request: `fsync` at the end.
    End,
    /// After every N requests, and after the last.
    Every(u64),
}

/// Requests of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// What they do.
    pub mix: Mix,
    /// The order of blocks.
    pub order: Order,
    /// Start of the range. Unit: bytes.
    pub from_bytes: u64,
    /// End of the range. Unit: bytes.
    pub to_bytes: u64,
    /// Unit: bytes.
    pub block_bytes: u64,
    /// Requests outstanding.
    pub depth: u32,
    /// Writes use FUA.
    pub through: bool,
    /// When it ends.
    pub limit: Limit,
    /// When it flushes.
    pub flush: FlushAt,
    /// Seed of everything random.
    pub seed: u64,
}

/// Why a bench cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BenchError {
    /// The target fails.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The target is not suitable.
    #[error("{suite}: {what}")]
    Misfit {
        /// The suite.
        suite: &'static str,
        /// What is not suitable, with the value found and the value needed.
        what: String,
    },
    /// An option that the suite does not support.
    #[error("suite {suite} cannot follow {option}; suites that can: {suites}")]
    CannotFollow {
        /// The suite.
        suite: &'static str,
        /// The option.
        option: &'static str,
        /// The suites that support it, in list order.
        suites: String,
    },
    /// The write budget was not enough.
    #[error("{suite}: the write budget ended before there was an answer")]
    Budget {
        /// The suite.
        suite: &'static str,
    },
    /// Cancelled.
    #[error("stopped")]
    Stopped,
}

impl Stream {
    /// One pass over a range, one request at a time.
    pub fn pass(op: BlockOp, order: Order, from_bytes: u64, to_bytes: u64, block_bytes: u64) -> Self {
        Self {
            mix: Mix::Only(op),
            order,
            from_bytes,
            to_bytes,
            block_bytes,
            depth: 1,
            through: false,
            limit: Limit { bytes: (to_bytes - from_bytes) / block_bytes * block_bytes, time: None },
            flush: FlushAt::Never,
            seed: 1,
        }
    }

    /// The largest amount that it moves; with `offsets` one request to each of them.
    pub(crate) fn bytes_most(&self, offsets: Option<&[u64]>) -> u64 {
        offsets.map_or(self.limit.bytes, |offsets| offsets.len() as u64 * self.block_bytes)
    }

    fn check(&self, target: &dyn BlockTarget) -> Result<(), BenchError> {
        let shape = target.shape();
        let misfit = |what| Err(BenchError::Misfit { suite: "stream", what });
        if self.block_bytes == 0 || self.from_bytes.saturating_add(self.block_bytes) > self.to_bytes {
            let Self { block_bytes, from_bytes, to_bytes, .. } = self;
            return misfit(format!("requests of {block_bytes} bytes do not fit into bytes {from_bytes} to {to_bytes}"));
        }
        if self.to_bytes > shape.size_bytes {
            let (name, size) = (&shape.name, shape.size_bytes);
            return misfit(format!("the range ends at byte {}; {name} has {size}", self.to_bytes));
        }
        if self.depth == 0 || self.depth > shape.depth_max {
            let (name, most) = (&shape.name, shape.depth_max);
            return misfit(format!("queue depth {}; {name} takes 1 to {most} requests", self.depth));
        }
        Ok(())
    }
}

/// Drives a target with a stream; `step` is the name for the progress callback.
///
/// Errors: a stream that does not fit the target, a target that fails, a cancelled run. A request that fails
/// individually (an uncorrectable read) is counted.
pub fn drive(
    target: &mut dyn BlockTarget,
    stream: &Stream,
    step: Progress<'_>,
    watch: &mut dyn Watch,
) -> Result<Measured, BenchError> {
    let driven = driven(target, stream, None, step, watch)?;
    driven.ended.map(|()| driven.measured)
}

/// The result of a stream, complete or up to its early end.
pub(crate) struct Driven {
    pub(crate) measured: Measured,
    /// Latency of each request in order of completion, if requested.
    pub(crate) times: Vec<Nanos>,
    pub(crate) ended: Result<(), BenchError>,
}

/// Drives a target with a stream; with `offsets` its requests go there in sequence, and the latency of each is
/// returned: the stream's order and its limit of bytes are then ignored. Offsets in bytes from the start of the target.
///
/// Errors: a stream or an offset that does not fit the target. A later failure is part of the result.
pub(crate) fn driven(
    target: &mut dyn BlockTarget,
    stream: &Stream,
    offsets: Option<&[u64]>,
    step: Progress<'_>,
    watch: &mut dyn Watch,
) -> Result<Driven, BenchError> {
    let Some(offsets) = offsets else {
        stream.check(target)?;
        let blocks = (stream.to_bytes - stream.from_bytes) / stream.block_bytes;
        let places = Places::Ordered(Positions::new(stream.order, blocks, stream.seed));
        return Ok(Driver::new(target, stream, places).finish(target, step, watch));
    };
    let stream = &Stream { limit: Limit { bytes: stream.bytes_most(Some(offsets)), ..stream.limit }, ..*stream };
    stream.check(target)?;
    let (first, last) = (stream.from_bytes, stream.to_bytes - stream.block_bytes);
    if let Some(offset) = offsets.iter().find(|offset| !(first..=last).contains(*offset)) {
        let what = format!("byte {offset}: expected bytes {first} to {last}");
        return Err(BenchError::Misfit { suite: "stream", what });
    }
    if offsets.is_empty() {
        return Ok(Driven { measured: Measured::new(stream, target.now()), times: Vec::new(), ended: Ok(()) });
    }
    let mut driver = Driver::new(target, stream, Places::Listed(offsets.iter()));
    driver.times = Some(Vec::with_capacity(offsets.len()));
    Ok(driver.finish(target, step, watch))
}

/// The source of offsets.
enum Places<'a> {
    /// From the stream's order; blocks of its range.
    Ordered(Positions),
    /// From a list.
    Listed(std::slice::Iter<'a, u64>),
}

struct Driver<'a> {
    stream: &'a Stream,
    places: Places<'a>,
    rng: Rng,
    measured: Measured,
    handed_bytes: u64,
    handed: u64,
    outstanding: u32,
    /// Requests that the target has queued beyond those in progress.
    ahead: u32,
    /// Latency of each request, if requested.
    times: Option<Vec<Nanos>>,
}

impl<'a> Driver<'a> {
    fn new(target: &mut dyn BlockTarget, stream: &'a Stream, places: Places<'a>) -> Self {
        Self {
            places,
            rng: Rng::new(!stream.seed),
            measured: Measured::new(stream, target.now()),
            stream,
            handed_bytes: 0,
            handed: 0,
            outstanding: 0,
            ahead: 0,
            times: None,
        }
    }

    fn finish(mut self, target: &mut dyn BlockTarget, step: Progress<'_>, watch: &mut dyn Watch) -> Driven {
        let ended = self.run(target, step, watch);
        if ended.is_err() && self.ahead > 0 {
            // Requests that have not started need not be waited for.
            self.outstanding -= target.line_up(0, 0);
        }
        // Submitted requests count too, as long as the target still completes them.
        while ended.is_err() && self.outstanding > 0 {
            let Ok(done) = target.wait() else { break };
            self.note(&done);
        }
        self.measured.ended = target.now();
        self.measured.ended_early = ended.is_err();
        Driven { measured: self.measured, times: self.times.unwrap_or_default(), ended }
    }

    #[inline]
    fn note(&mut self, done: &BlockDone) {
        self.outstanding -= 1;
        self.measured.note(done);
        if let Some(times) = &mut self.times {
            times.push(done.latency());
        }
    }

    fn run(
        &mut self,
        target: &mut dyn BlockTarget,
        step: Progress<'_>,
        watch: &mut dyn Watch,
    ) -> Result<(), BenchError> {
        let mut running = true;
        // A flush in between waits until no request is outstanding.
        let lines_up = self.stream.depth > 1 && !matches!(self.stream.flush, FlushAt::Every(_));
        self.ahead = if lines_up { target.line_up(self.stream.depth, self.stream.block_bytes) } else { 0 };
        while running || self.outstanding > 0 {
            while running && self.outstanding < self.stream.depth + self.ahead {
                self.hand_over(target)?;
                running = self.goes_on(target, step, watch)?;
            }
            if !running && self.ahead > 0 && self.has_more() {
                // The time limit is reached.
                self.outstanding -= target.line_up(0, 0);
                self.ahead = 0;
                continue;
            }
            let done = target.wait()?;
            self.note(&done);
            if let FlushAt::Every(requests) = self.stream.flush {
                if self.measured.requests % requests.max(1) == 0 && self.outstanding == 0 {
                    self.flush(target)?;
                }
            }
        }
        if self.ahead > 0 {
            target.line_up(0, 0);
        }
        match self.stream.flush {
            FlushAt::Never => Ok(()),
            FlushAt::End => self.flush(target),
            FlushAt::Every(requests) if self.measured.requests % requests.max(1) == 0 => Ok(()),
            FlushAt::Every(_) => self.flush(target),
        }
    }

    #[inline]
    fn hand_over(&mut self, target: &mut dyn BlockTarget) -> Result<(), BenchError> {
        let stream = self.stream;
        let op = match stream.mix {
            Mix::Only(op) => op,
            Mix::Reads { share } if self.rng.next_u64() < (share * TWO_TO_64) as u64 => BlockOp::Read,
            Mix::Reads { .. } => BlockOp::Write,
        };
        let offset_bytes = match &mut self.places {
            Places::Ordered(positions) => stream.from_bytes + positions.take() * stream.block_bytes,
            Places::Listed(offsets) => offsets.next().copied().unwrap_or(stream.from_bytes),
        };
        let (bytes, through) = (stream.block_bytes, stream.through && op == BlockOp::Write);
        target.submit(BlockRequest { op, offset_bytes, bytes, through, tag: self.handed })?;
        self.outstanding += 1;
        self.handed += 1;
        self.handed_bytes += bytes;
        Ok(())
    }

    /// Whether to make another request.
    #[inline]
    fn goes_on(
        &mut self,
        target: &mut dyn BlockTarget,
        step: Progress<'_>,
        watch: &mut dyn Watch,
    ) -> Result<bool, BenchError> {
        let limit = &self.stream.limit;
        if self.handed % WATCH_EVERY == 0 {
            let share = self.handed_bytes as f64 / limit.bytes.max(1) as f64;
            let share = match limit.time {
                Some(time) => share.max(target.now().since(self.measured.began).0 as f64 / time.0.max(1) as f64),
                None => share,
            };
            if !watch.progress(Progress { done_share: share.min(1.0), ..step }) {
                return Err(BenchError::Stopped);
            }
        }
        let looks = self.ahead == 0 || self.handed % CLOCK_EVERY == 0;
        let over = looks && limit.time.is_some_and(|time| target.now().since(self.measured.began) >= time);
        Ok(!over && self.has_more())
    }

    /// Whether the limit of bytes allows another request.
    fn has_more(&self) -> bool {
        self.handed_bytes.saturating_add(self.stream.block_bytes) <= self.stream.limit.bytes
    }

    fn flush(&mut self, target: &mut dyn BlockTarget) -> Result<(), BenchError> {
        target.submit(BlockRequest {
            op: BlockOp::Flush,
            offset_bytes: 0,
            bytes: 0,
            through: false,
            tag: self.handed,
        })?;
        let done: BlockDone = target.wait()?;
        self.measured.note(&done);
        Ok(())
    }
}
