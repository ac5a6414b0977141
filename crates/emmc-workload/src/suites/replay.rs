//! Replay of recorded requests: as fast as the target takes them, or at their recorded times.
//!
//! A timed request is never early. It may be late: its queue is full, or the target (a device) cannot stop waiting for
//! a completion when the request is due. The time that it waits for a place in the queue is part of its latency. The
//! report says how many were late and by how much. Absent on purpose: dependencies between requests of different
//! processes.

use emmc_port::{BlockDone, BlockOp, TargetShape};
use emmc_units::{Instant, Nanos};

use super::area::{start, stated};
use super::{Bench, Cost, Knob, Options, Suite};
use crate::drive::engine::{Engine, LATE_NS, Plan, Recorder};
use crate::drive::measured::Measured;
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, FlushAt, Stream};
use crate::drive::watch::Progress;
use crate::result::{Figure, Pivot};
use crate::trace::{Recorded, Replay, TraceRequest};

const NAME: &str = "replay";
const WATCH_EVERY: u64 = 64;

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplaySuite;

fn misfit<T>(what: String) -> Result<T, BenchError> {
    Err(BenchError::Misfit { suite: NAME, what })
}

fn asked(options: &Options) -> Result<&Replay, BenchError> {
    match &options.replay {
        Some(replay) => Ok(replay),
        None => misfit("no trace: --trace FILE names one".into()),
    }
}

/// The requests, adapted to this target.
///
/// Errors: one that does not fit, unless wrapping is allowed.
fn fitted(shape: &TargetShape, options: &Options) -> Result<Vec<TraceRequest>, BenchError> {
    let replay = asked(options)?;
    let (from, sector) = (options.from_bytes, u64::from(shape.sector_bytes).max(1));
    let room = shape.size_bytes.saturating_sub(from).min(options.size_bytes.unwrap_or(u64::MAX)) / sector * sector;
    if from % sector != 0 || room == 0 {
        return misfit(format!("the area of {} {}; sectors are of {}", stated(room), start(from), stated(sector)));
    }
    let keep = |request: &TraceRequest| {
        !((options.read_only && request.op != BlockOp::Read) || (request.op == BlockOp::Trim && !shape.can_trim))
    };
    let hint = "--wrap continues at its start";
    let all = replay.trace.fitted((from, room), sector, replay.wrap, hint, keep).or_else(misfit)?;
    if all.is_empty() { misfit("no request of the trace is left to replay".into()) } else { Ok(all) }
}

impl Suite for ReplaySuite {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "replay of recorded requests: fio's iolog, blktrace, blkparse, ftrace, trace.dat, CSV (--trace FILE)"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::ReadOnly, Knob::QueueDepth, Knob::Trace]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let requests = fitted(shape, options)?;
        let of = |op| requests.iter().filter(move |request| request.op == op);
        let sum = |op| of(op).map(|request| request.bytes).fold(0u64, u64::saturating_add);
        let lost = || of(BlockOp::Write).chain(of(BlockOp::Trim));
        Ok(Cost {
            written_bytes: sum(BlockOp::Write),
            read_bytes: sum(BlockOp::Read),
            from_bytes: lost().map(|request| request.offset_bytes).min().unwrap_or(options.from_bytes),
            to_bytes: lost().map(|request| request.offset_bytes + request.bytes).max().unwrap_or(options.from_bytes),
            steps: 1,
            ..Cost::default()
        })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let requests = fitted(bench.target.shape(), bench.options)?;
        let Replay { trace, timed, .. } = asked(bench.options)?.clone();
        let shape = bench.target.shape();
        let depth = bench.options.queue_depth.unwrap_or(if timed { shape.depth_max } else { 1 });
        if depth == 0 || depth > shape.depth_max {
            return misfit(format!("queue depth {depth}; {} takes 1 to {} requests", shape.name, shape.depth_max));
        }
        let left_out = trace.requests.len() - requests.len();
        let (state, began, recorded) = (bench.state(), bench.now(), trace_time(&requests));
        let mut kinds = Kinds::new(began, &requests, depth);
        let plan = Plan { depth, request_bytes: None, flush: FlushAt::Never, time: None, watch_every: WATCH_EVERY };
        let progress = Progress { step: NAME, number: 1, steps: 1, done_share: 0.0, whole: None, now: None };
        let source = Recorded::new(requests, timed);
        let (late, ended) = Engine::new(bench.target, source, &mut kinds, plan).run(progress, bench.watch);
        for measured in &mut kinds.0 {
            (measured.state, measured.ended_early) = (state.clone(), ended.is_err());
        }
        kinds.report(bench, timed);
        let replayed = bench.now().since(began).as_secs_f64();
        bench.figure(Figure::new("replayed", replayed, "s", format!("queue depth {depth}")));
        if timed {
            let most = format!("by more than {} us; the most by {:.3} ms", LATE_NS / 1000, late.most.0 as f64 / 1e6);
            bench.figure(Figure::new("late requests", late.requests as f64, "", most));
        }
        trace.notes.iter().for_each(|note| bench.remark(note.clone()));
        if left_out > 0 {
            bench.remark(format!(
                "{left_out} requests were skipped: writes of a read-only run, trims on a target without trim"
            ));
        }
        bench.figure(Figure::new("recorded", recorded.as_secs_f64(), "s", trace.form.clone()));
        ended
    }
}

fn trace_time(requests: &[TraceRequest]) -> Nanos {
    requests.last().map_or(Nanos::ZERO, |last| last.at)
}

/// The recorders of reads, of writes with flushes, and of trims.
struct Kinds([Measured; 3]);

impl Kinds {
    fn new(began: Instant, requests: &[TraceRequest], depth: u32) -> Self {
        Self([BlockOp::Read, BlockOp::Write, BlockOp::Trim].map(|op| {
            let of = || requests.iter().filter(|request| request.op == op);
            let (count, sum) = (of().count() as u64, of().map(|request| request.bytes).fold(0, u64::saturating_add));
            let block = (sum / count.max(1)).max(1);
            let stream = Stream::pass(op, Order::Random, 0, block, block);
            Measured::new(&Stream { depth, ..stream }, began)
        }))
    }

    fn report(&mut self, bench: &mut Bench<'_>, timed: bool) {
        bench.table(Pivot {
            table: NAME.into(),
            rows: "requests".into(),
            unit: "MB/s".into(),
            caption: "10^6 bytes a second over the whole time; block sizes are means".into(),
        });
        let ended = bench.now();
        for (measured, name) in self.0.iter_mut().zip(["read", "write", "trim"]) {
            measured.ended = ended;
            if measured.requests == 0 && measured.flush == Nanos::ZERO {
                continue;
            }
            bench.count(measured);
            let mut found = measured.to_measurement(NAME, name, if timed { "timed" } else { "as fast as it goes" });
            // Requests of several sizes do not form batches of equal work.
            (found.mb_per_s_interval, found.warm_up) = (None, None);
            found.order = "recorded".into();
            bench.outcome.measurements.push(found);
        }
    }
}

impl<T: ?Sized> Recorder<T> for Kinds {
    fn done(&mut self, _: &mut T, done: &BlockDone, waited: Nanos) {
        let kind = match done.request.op {
            BlockOp::Read => 0,
            BlockOp::Write | BlockOp::Flush => 1,
            BlockOp::Trim => 2,
        };
        self.0[kind].note(done, waited);
    }
}
