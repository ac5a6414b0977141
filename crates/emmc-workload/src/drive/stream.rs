//! A stream of requests of one size, as the suites of benchmarks make them.

use emmc_port::{BlockDone, BlockOp, BlockTarget, TargetError};
use emmc_units::{Nanos, Rng};

use super::engine::{Engine, Plan, Recorder};
use super::measured::Measured;
use super::order::{Order, Positions};
use super::source::{Pattern, Places, Span, threshold};
use super::watch::{Progress, Watch};

/// Requests between two calls of the progress callback.
const WATCH_EVERY: u64 = 256;

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
    /// The time budget was not enough.
    #[error("{suite}: the time budget ended before there was an answer")]
    Time {
        /// The suite.
        suite: &'static str,
    },
    /// Cancelled.
    #[error("stopped")]
    Stopped,
}

impl Stream {
    /// Writes from one flush to the next, 1 if each is durable before the next one starts; nothing if they are flushed
    /// at the end or never, or if nothing is written.
    pub(crate) fn flushed_every(&self) -> Option<u64> {
        let writes = !matches!(self.mix, Mix::Only(BlockOp::Read | BlockOp::Trim | BlockOp::Flush));
        let every = match self.flush {
            _ if self.through => Some(1),
            FlushAt::Every(requests) => Some(requests),
            FlushAt::Never | FlushAt::End => None,
        };
        every.filter(|_| writes)
    }

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

    /// Its requests at these places: at least one, and no part of one.
    fn pattern<'a>(&self, places: Places<'a>) -> Pattern<'a> {
        let (op, reads) = match self.mix {
            Mix::Only(op) => (op, 0),
            Mix::Reads { share } => (BlockOp::Write, threshold(share)),
        };
        let (from_bytes, block_bytes) = (self.from_bytes, self.block_bytes);
        let left = self.limit.bytes.max(block_bytes) / block_bytes * block_bytes;
        Pattern {
            places,
            span: Span { from_bytes, bytes: self.to_bytes - from_bytes, block_bytes },
            op,
            reads,
            through: self.through,
            discard: true,
            rng: Rng::new(self.seed),
            mix: Some(Rng::new(!self.seed)),
            left,
            all: left,
        }
    }

    fn plan(&self) -> Plan {
        Plan {
            depth: self.depth,
            request_bytes: Some(self.block_bytes),
            flush: self.flush,
            time: self.limit.time,
            watch_every: WATCH_EVERY,
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

impl<T: BlockTarget + ?Sized> Recorder<T> for Measured {
    #[inline]
    fn done(&mut self, _: &mut T, done: &BlockDone, waited: Nanos) {
        self.note(done, waited);
    }
}

/// Records the latency of each request too.
struct Each {
    measured: Measured,
    times: Vec<Nanos>,
}

impl<T: BlockTarget + ?Sized> Recorder<T> for Each {
    fn done(&mut self, _: &mut T, done: &BlockDone, waited: Nanos) {
        self.measured.note(done, waited);
        if done.request.op != BlockOp::Flush {
            self.times.push(done.latency());
        }
    }
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
        let mut measured = Measured::new(stream, target.now());
        let ended = Engine::new(target, stream.pattern(places), &mut measured, stream.plan()).run(step, watch).1;
        (measured.ended, measured.ended_early) = (target.now(), ended.is_err());
        return Ok(Driven { measured, times: Vec::new(), ended });
    };
    let stream = &Stream { limit: Limit { bytes: stream.bytes_most(Some(offsets)), ..stream.limit }, ..*stream };
    stream.check(target)?;
    let (first, last) = (stream.from_bytes, stream.to_bytes - stream.block_bytes);
    if let Some(offset) = offsets.iter().find(|offset| !(first..=last).contains(*offset)) {
        let what = format!("byte {offset}: expected bytes {first} to {last}");
        return Err(BenchError::Misfit { suite: "stream", what });
    }
    let mut each = Each { measured: Measured::new(stream, target.now()), times: Vec::with_capacity(offsets.len()) };
    if offsets.is_empty() {
        return Ok(Driven { measured: each.measured, times: each.times, ended: Ok(()) });
    }
    let pattern = stream.pattern(Places::Listed(offsets.iter()));
    let ended = Engine::new(target, pattern, &mut each, stream.plan()).run(step, watch).1;
    let Each { mut measured, times } = each;
    (measured.ended, measured.ended_early) = (target.now(), ended.is_err());
    Ok(Driven { measured, times, ended })
}
