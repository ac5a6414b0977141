//! Replay of recorded requests: as fast as the target takes them, or at their recorded times.
//!
//! A timed request is never early. It may be late: a target can wait only when nothing is outstanding, so while
//! requests are outstanding, a request that is not due yet waits for one of them to complete. The report says how many
//! were late and by how much. Absent on purpose: dependencies between requests of different processes.

use emmc_port::{BlockOp, BlockRequest, TargetShape};
use emmc_units::{Instant, Nanos};

use super::area::{start, stated};
use super::{Bench, Cost, Knob, Options, Replay, Suite};
use crate::measurement::Measured;
use crate::order::Order;
use crate::replay::TraceRequest;
use crate::result::{Figure, Pivot};
use crate::stream::{BenchError, Stream};
use crate::watch::Progress;

const NAME: &str = "replay";
const WATCH_EVERY: usize = 64;
/// A request with this delay counts as late. Unit: nanoseconds.
const LATE_NS: u64 = 100_000;

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
    let mut all = Vec::with_capacity(replay.trace.requests.len());
    for (number, request) in replay.trace.requests.iter().enumerate() {
        let TraceRequest { op, offset_bytes, bytes, .. } = *request;
        if (options.read_only && op != BlockOp::Read) || (op == BlockOp::Trim && !shape.can_trim) {
            continue;
        }
        if offset_bytes % sector != 0 || bytes % sector != 0 {
            let what = format!("request {}: {bytes} bytes at byte {offset_bytes}; sectors are of {sector}", number + 1);
            return misfit(what);
        }
        let end = offset_bytes.checked_add(bytes);
        let place = if end.is_some_and(|end| end <= room) {
            offset_bytes
        } else if replay.wrap && bytes <= room {
            (offset_bytes % room).min(room - bytes)
        } else {
            return misfit(format!(
                "request {}: {bytes} bytes at byte {offset_bytes}; the area has {room} bytes; --wrap continues at its start",
                number + 1
            ));
        };
        all.push(TraceRequest { offset_bytes: from + place, ..*request });
    }
    if all.is_empty() { misfit("no request of the trace is left to replay".into()) } else { Ok(all) }
}

impl Suite for ReplaySuite {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "replay of recorded requests: fio's iolog, blktrace, blkparse or MSR's CSV (--trace FILE)"
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
        let state = bench.state();
        let mut run = Run::new(bench.now(), &requests, depth);
        let ended = run.all(bench, &requests, timed);
        run.measured.iter_mut().for_each(|measured| {
            measured.state = state.clone();
            measured.ended_early = ended.is_err();
        });
        run.tell(bench, timed);
        trace.notes.iter().for_each(|note| bench.remark(note.clone()));
        if left_out > 0 {
            bench.remark(format!(
                "{left_out} requests were skipped: writes of a read-only run, trims on a target without trim"
            ));
        }
        bench.figure(Figure::new("recorded", trace_time(&requests).as_secs_f64(), "s", trace.form.clone()));
        ended
    }
}

fn trace_time(requests: &[TraceRequest]) -> Nanos {
    requests.last().map_or(Nanos::ZERO, |last| last.at)
}

/// A running replay.
struct Run {
    began: Instant,
    depth: u32,
    outstanding: u32,
    /// Reads, writes with flushes, trims.
    measured: [Measured; 3],
    late: u64,
    late_most: Nanos,
}

impl Run {
    fn new(began: Instant, requests: &[TraceRequest], depth: u32) -> Self {
        let measured = [BlockOp::Read, BlockOp::Write, BlockOp::Trim].map(|op| {
            let of = || requests.iter().filter(|request| request.op == op);
            let (count, sum) = (of().count() as u64, of().map(|request| request.bytes).fold(0, u64::saturating_add));
            let block = (sum / count.max(1)).max(1);
            let stream = Stream::pass(op, Order::Random, 0, block, block);
            Measured::new(&Stream { depth, ..stream }, began)
        });
        Self { began, depth, outstanding: 0, measured, late: 0, late_most: Nanos::ZERO }
    }

    fn all(&mut self, bench: &mut Bench<'_>, requests: &[TraceRequest], timed: bool) -> Result<(), BenchError> {
        for (number, request) in requests.iter().enumerate() {
            if number % WATCH_EVERY == 0 {
                let done_share = number as f64 / requests.len() as f64;
                if !bench.watch.progress(Progress { step: NAME, number: 1, steps: 1, done_share, whole: None }) {
                    return Err(BenchError::Stopped);
                }
            }
            while self.outstanding >= self.depth {
                self.wait(bench)?;
            }
            if timed {
                self.until(bench, self.began + request.at)?;
            }
            // Earlier requests must be durable first: nothing may pass a flush.
            while request.op == BlockOp::Flush && self.outstanding > 0 {
                self.wait(bench)?;
            }
            let TraceRequest { op, offset_bytes, bytes, through, .. } = *request;
            bench.target.submit(BlockRequest { op, offset_bytes, bytes, through, tag: number as u64 })?;
            self.outstanding += 1;
            while op == BlockOp::Flush && self.outstanding > 0 {
                self.wait(bench)?;
            }
        }
        while self.outstanding > 0 {
            self.wait(bench)?;
        }
        Ok(())
    }

    /// Waits until a request is due.
    fn until(&mut self, bench: &mut Bench<'_>, due: Instant) -> Result<(), BenchError> {
        while bench.now() < due && self.outstanding > 0 {
            self.wait(bench)?;
        }
        let now = bench.now();
        if now < due {
            return Ok(bench.target.idle(due.since(now))?);
        }
        let late = now.since(due);
        self.late += u64::from(late.0 > LATE_NS);
        self.late_most = self.late_most.max(late);
        Ok(())
    }

    fn wait(&mut self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let done = bench.target.wait()?;
        self.outstanding -= 1;
        let place = match done.request.op {
            BlockOp::Read => 0,
            BlockOp::Write | BlockOp::Flush => 1,
            BlockOp::Trim => 2,
        };
        self.measured[place].note(&done);
        Ok(())
    }

    fn tell(&mut self, bench: &mut Bench<'_>, timed: bool) {
        bench.table(Pivot {
            table: NAME.into(),
            rows: "requests".into(),
            unit: "MB/s".into(),
            caption: "10^6 bytes a second over the whole time; block sizes are means".into(),
        });
        let ended = bench.now();
        for (measured, name) in self.measured.iter_mut().zip(["read", "write", "trim"]) {
            measured.ended = ended;
            if measured.requests == 0 && measured.flush == Nanos::ZERO {
                continue;
            }
            bench.count(measured);
            let mut told = measured.to_measurement(NAME, name, if timed { "timed" } else { "as fast as it goes" });
            // Requests of several sizes do not form batches of equal work.
            (told.mb_per_s_interval, told.warm_up) = (None, None);
            told.order = "recorded".into();
            bench.outcome.measurements.push(told);
        }
        bench.figure(Figure::new(
            "replayed",
            ended.since(self.began).as_secs_f64(),
            "s",
            format!("queue depth {}", self.depth),
        ));
        if timed {
            let most =
                format!("by more than {} us; the most by {:.3} ms", LATE_NS / 1000, self.late_most.0 as f64 / 1e6);
            bench.figure(Figure::new("late requests", self.late as f64, "", most));
        }
    }
}
