//! A stream of requests of one size, and the loop that drives a target with it.

use emmc_port::{BlockDone, BlockOp, BlockRequest, BlockTarget, TargetError};
use emmc_units::{Nanos, Rng};

use crate::measurement::Measured;
use crate::order::{Order, Positions};
use crate::watch::{Progress, Watch};

/// Requests between two looks at whether to go on.
const WATCH_EVERY: u64 = 256;
/// Requests between two looks at the clock, where the target has so many at hand that one more or less does not count.
const CLOCK_EVERY: u64 = 16;
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// What the requests of a stream do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mix {
    /// All the same.
    Only(BlockOp),
    /// Reads by chance, else writes.
    Reads {
        /// Share of reads, 0 to 1.
        share: f64,
    },
}

/// When a stream ends: at whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Unit: bytes.
    pub bytes: u64,
    /// The target's time.
    pub time: Option<Nanos>,
}

/// When a stream flushes; the time of it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushAt {
    /// Never.
    Never,
    /// Once, after the last request: `fsync` at the end.
    End,
    /// After every so many requests, and after the last.
    Every(u64),
}

/// Requests of one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// What they do.
    pub mix: Mix,
    /// In which order they go over the range.
    pub order: Order,
    /// Where the range begins. Unit: bytes.
    pub from_bytes: u64,
    /// Where it ends. Unit: bytes.
    pub to_bytes: u64,
    /// Unit: bytes.
    pub block_bytes: u64,
    /// Requests outstanding.
    pub depth: u32,
    /// Each write is done when a power cut leaves it.
    pub through: bool,
    /// When it ends.
    pub limit: Limit,
    /// When it flushes.
    pub flush: FlushAt,
    /// For everything left to chance.
    pub seed: u64,
}

/// Why a bench cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BenchError {
    /// The target cannot.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The target does not fit what is to be measured.
    #[error("{suite}: {what}")]
    Misfit {
        /// The suite.
        suite: &'static str,
        /// What does not fit, with what was found and what is needed.
        what: String,
    },
    /// The suite was told what it cannot follow.
    #[error("suite {suite} cannot follow {option}; suites that can: {suites}")]
    CannotFollow {
        /// The suite.
        suite: &'static str,
        /// What it was told.
        option: &'static str,
        /// Those that can, in the order in which they are listed.
        suites: String,
    },
    /// What may be written is written, and it was not enough.
    #[error("{suite}: the write budget ended before there was an answer")]
    Budget {
        /// The suite.
        suite: &'static str,
    },
    /// Who watches has stopped it.
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

/// Drives a target with a stream; `step` is what the watcher is told of.
///
/// Errors: a stream that does not fit the target, a target that cannot go on, a watcher that stops it. A request that
/// fails alone (an uncorrectable read) is counted.
pub fn drive(
    target: &mut dyn BlockTarget,
    stream: &Stream,
    step: Progress<'_>,
    watch: &mut dyn Watch,
) -> Result<Measured, BenchError> {
    let driven = driven(target, stream, None, step, watch)?;
    driven.ended.map(|()| driven.measured)
}

/// What came of a stream, whole or up to where it ended.
pub(crate) struct Driven {
    pub(crate) measured: Measured,
    /// How long each request took in the order in which they were done, where that was asked for.
    pub(crate) times: Vec<Nanos>,
    pub(crate) ended: Result<(), BenchError>,
}

/// Drives a target with a stream; with `offsets` its requests go there, one after the other, and how long each took is
/// answered: then the stream's order and its limit of bytes have no part in it. Offsets in bytes from the beginning of
/// the target.
///
/// Errors: a stream or an offset that does not fit the target. What ends it later is in the answer.
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
    let stream =
        &Stream { limit: Limit { bytes: offsets.len() as u64 * stream.block_bytes, ..stream.limit }, ..*stream };
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

/// Where the requests go.
enum Places<'a> {
    /// As the stream's order says; blocks of its range.
    Ordered(Positions),
    /// To these offsets.
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
    /// Requests that the target has at hand beside those under way.
    ahead: u32,
    /// How long each request took, where that is wanted.
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
            // What has not begun need not be waited for.
            self.outstanding -= target.line_up(0, 0);
        }
        // What was handed over counts too, as far as the target still answers.
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
        // A flush in between waits until nothing is under way, nor waits for its turn.
        let lines_up = self.stream.depth > 1 && !matches!(self.stream.flush, FlushAt::Every(_));
        self.ahead = if lines_up { target.line_up(self.stream.depth, self.stream.block_bytes) } else { 0 };
        while running || self.outstanding > 0 {
            while running && self.outstanding < self.stream.depth + self.ahead {
                self.hand_over(target)?;
                running = self.goes_on(target, step, watch)?;
            }
            if !running && self.ahead > 0 && self.has_more() {
                // The time is over.
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

    /// Whether another request is to be made.
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
