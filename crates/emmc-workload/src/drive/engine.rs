//! The loop that drives a target with requests: the one queue of benchmarks, replays and jobs.
//!
//! It keeps up to a number of requests outstanding at the target, whose own queue decides how many of them the card
//! processes in parallel. A flush waits for everything before it, and nothing passes it. The loop is compiled for each
//! source, target and recorder. Absent on purpose: threads, and the time, which the target owns.

use emmc_port::{BlockDone, BlockOp, BlockTarget};
use emmc_units::{Instant, Nanos};

use super::source::{Planned, Source};
use super::stream::{BenchError, FlushAt};
use super::watch::{Progress, Watch};

/// Requests between two checks of the clock, if the target has enough ready that a few more do not matter.
const CLOCK_EVERY: u64 = 16;
/// Requests that the target learns of in advance, where the source knows them.
const FORESEEN: usize = 64;
/// A request with this delay counts as late. Unit: nanoseconds.
pub(crate) const LATE_NS: u64 = 100_000;

/// How requests are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Requests outstanding.
    pub(crate) depth: u32,
    /// The size of a request, if all have the same: the target may then queue more of them.
    pub(crate) request_bytes: Option<u64>,
    /// When to flush.
    pub(crate) flush: FlushAt,
    /// The duration after which no more requests are made.
    pub(crate) time: Option<Nanos>,
    /// Requests between two calls of the progress callback.
    pub(crate) watch_every: u64,
}

/// Counts completions.
pub(crate) trait Recorder<T: ?Sized> {
    /// A request is about to be made.
    #[inline]
    fn before(&mut self, _target: &mut T, _planned: &Planned) {}

    /// A request is done. If it was due while the queue was full, it waited in the host before it was made.
    fn done(&mut self, target: &mut T, done: &BlockDone, waited: Nanos);

    /// How much of the work is done, if the source does not know it.
    fn done_share(&self, _target: &T) -> Option<f64> {
        None
    }
}

/// Requests that were made later than they were due.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Late {
    /// Their number.
    pub(crate) requests: u64,
    /// The longest delay.
    pub(crate) most: Nanos,
}

/// What became of a request.
enum Handed {
    /// It is outstanding, or done.
    Made,
    /// It is not due yet, and another was completed.
    Later,
    /// Everything outstanding must be completed first.
    Blocked,
}

/// A running loop.
pub(crate) struct Engine<'a, T: ?Sized, S, R> {
    target: &'a mut T,
    source: S,
    recorder: &'a mut R,
    plan: Plan,
    began: Instant,
    handed: u64,
    /// Requests since the last call of the progress callback.
    unreported: u64,
    /// Completed requests without flushes.
    completed: u64,
    outstanding: u32,
    /// Requests that the target has queued beyond those in progress.
    ahead: u32,
    is_timed_out: bool,
    /// A request that is not made yet.
    pending: Option<Planned>,
    /// It was put off once, until another was completed.
    is_retried: bool,
    /// Requests that waited in the host, by their numbers.
    waiting: Vec<(u64, Nanos)>,
    late: Late,
}

impl<'a, T, S, R> Engine<'a, T, S, R>
where
    T: BlockTarget + ?Sized,
    S: Source,
    R: Recorder<T>,
{
    pub(crate) fn new(target: &'a mut T, source: S, recorder: &'a mut R, plan: Plan) -> Self {
        let began = target.now();
        Self {
            target,
            source,
            recorder,
            plan,
            began,
            handed: 0,
            unreported: 0,
            completed: 0,
            outstanding: 0,
            ahead: 0,
            is_timed_out: false,
            pending: None,
            is_retried: false,
            waiting: Vec::new(),
            late: Late::default(),
        }
    }

    /// Runs to the end; also after an error every outstanding request is recorded, as long as the target completes it.
    pub(crate) fn run(mut self, step: Progress<'_>, watch: &mut dyn Watch) -> (Late, Result<(), BenchError>) {
        let ended = if self.plan.depth == 1 && !S::IS_RECORDED {
            self.one_by_one(step, watch)
        } else {
            self.queued(step, watch)
        };
        let ended = ended.and_then(|()| self.flush_at_end());
        if ended.is_err() && self.ahead > 0 {
            // Requests that have not started need not be waited for.
            self.outstanding -= self.target.line_up(0, 0);
        }
        while ended.is_err() && self.outstanding > 0 {
            let Ok(done) = self.target.wait() else { break };
            self.outstanding -= 1;
            self.note(&done);
        }
        (self.late, ended)
    }

    /// One request at a time.
    fn one_by_one(&mut self, step: Progress<'_>, watch: &mut dyn Watch) -> Result<(), BenchError> {
        while let Some(planned) = self.next() {
            self.recorder.before(self.target, &planned);
            let request = planned.request(self.handed);
            self.handed += 1;
            let is_last = self.is_over(step, watch)?;
            let done = self.target.complete(request)?;
            self.completed += 1;
            self.recorder.done(self.target, &done, Nanos::ZERO);
            if let FlushAt::Every(requests) = self.plan.flush {
                if self.completed % requests.max(1) == 0 {
                    self.flush()?;
                }
            }
            if is_last {
                break;
            }
        }
        Ok(())
    }

    /// The next request. The target learns now and then where the following ones read.
    #[inline(always)]
    fn next(&mut self) -> Option<Planned> {
        if self.handed % FORESEEN as u64 == 0 {
            self.foresee();
        }
        self.source.next()
    }

    #[inline(never)]
    fn foresee(&mut self) {
        let mut offsets = [0; FORESEEN];
        let count = self.source.reads_ahead(&mut offsets);
        if count > 0 {
            self.target.foresee_reads(&offsets[..count]);
        }
    }

    fn queued(&mut self, step: Progress<'_>, watch: &mut dyn Watch) -> Result<(), BenchError> {
        // A flush in between waits until no request is outstanding.
        let size = self.plan.request_bytes.filter(|_| !matches!(self.plan.flush, FlushAt::Every(_)));
        self.ahead = size.map_or(0, |bytes| self.target.line_up(self.plan.depth, bytes));
        let mut running = true;
        while running || self.outstanding > 0 {
            while running && self.outstanding < self.plan.depth + self.ahead {
                let Some(planned) = self.pending.take().or_else(|| self.next()) else {
                    running = false;
                    break;
                };
                match self.hand_over(planned)? {
                    Handed::Made => running = !self.is_over(step, watch)?,
                    Handed::Later => {}
                    Handed::Blocked => break,
                }
            }
            if self.is_timed_out && self.ahead > 0 && self.source.has_more() {
                self.outstanding -= self.target.line_up(0, 0);
                self.ahead = 0;
                continue;
            }
            if self.outstanding == 0 {
                continue;
            }
            self.wait()?;
            if let FlushAt::Every(requests) = self.plan.flush {
                if self.completed % requests.max(1) == 0 && self.outstanding == 0 {
                    self.flush()?;
                }
            }
        }
        if self.ahead > 0 {
            self.target.line_up(0, 0);
            self.ahead = 0;
        }
        Ok(())
    }

    /// Makes a request, if it is due and nothing outstanding is in its way.
    #[inline]
    fn hand_over(&mut self, planned: Planned) -> Result<Handed, BenchError> {
        let mut waited = Nanos::ZERO;
        if let Some(due) = planned.due {
            match self.until(self.began + due)? {
                Some(late) => waited = late,
                None => {
                    (self.pending, self.is_retried) = (Some(planned), true);
                    return Ok(Handed::Later);
                }
            }
        }
        let is_flush = planned.op == BlockOp::Flush;
        if is_flush && self.outstanding > 0 {
            self.pending = Some(Planned { due: None, ..planned });
            return Ok(Handed::Blocked);
        }
        self.recorder.before(self.target, &planned);
        if waited > Nanos::ZERO {
            self.waiting.push((self.handed, waited));
        }
        self.target.submit(planned.request(self.handed))?;
        self.handed += 1;
        self.outstanding += 1;
        if is_flush {
            self.wait()?;
        }
        Ok(Handed::Made)
    }

    /// Waits until a request is due. Returns how long it has waited for a place in the queue; nothing if another
    /// request was completed first.
    fn until(&mut self, due: Instant) -> Result<Option<Nanos>, BenchError> {
        let (now, is_retried) = (self.target.now(), std::mem::take(&mut self.is_retried));
        if now < due {
            if self.outstanding == 0 {
                self.target.idle(due.since(now))?;
            } else if let Some(done) = self.target.wait_until(due)? {
                self.outstanding -= 1;
                self.note(&done);
                return Ok(None);
            }
            return Ok(Some(Nanos::ZERO));
        }
        let late = now.since(due);
        self.late.requests += u64::from(late.0 > LATE_NS);
        self.late.most = self.late.most.max(late);
        // A target that completes a request too late for the next one has not made it wait for a place.
        Ok(Some(if is_retried { Nanos::ZERO } else { late }))
    }

    fn wait(&mut self) -> Result<(), BenchError> {
        let done = self.target.wait()?;
        self.outstanding -= 1;
        self.note(&done);
        Ok(())
    }

    #[inline]
    fn note(&mut self, done: &BlockDone) {
        let waited = match self.waiting.iter().position(|(tag, _)| *tag == done.request.tag) {
            Some(place) => self.waiting.swap_remove(place).1,
            None => Nanos::ZERO,
        };
        self.completed += u64::from(done.request.op != BlockOp::Flush);
        self.recorder.done(self.target, done, waited);
    }

    /// Whether the time is over; reports the progress now and then.
    #[inline]
    fn is_over(&mut self, step: Progress<'_>, watch: &mut dyn Watch) -> Result<bool, BenchError> {
        self.unreported += 1;
        if self.unreported == self.plan.watch_every {
            self.unreported = 0;
            self.report(step, watch)?;
        }
        let Some(time) = self.plan.time else { return Ok(false) };
        let looks = self.ahead == 0 || self.handed % CLOCK_EVERY == 0;
        self.is_timed_out = looks && self.target.now().since(self.began) >= time;
        Ok(self.is_timed_out)
    }

    #[cold]
    fn report(&mut self, step: Progress<'_>, watch: &mut dyn Watch) -> Result<(), BenchError> {
        let now = self.target.now();
        let share = self.recorder.done_share(self.target).unwrap_or_else(|| self.source.done_share());
        let share = match self.plan.time {
            Some(time) => share.max(now.since(self.began).0 as f64 / time.0.max(1) as f64),
            None => share,
        };
        let progress = Progress { done_share: share.min(1.0), now: Some(now), ..step };
        if watch.progress(progress) { Ok(()) } else { Err(BenchError::Stopped) }
    }

    fn flush_at_end(&mut self) -> Result<(), BenchError> {
        match self.plan.flush {
            FlushAt::Never => Ok(()),
            FlushAt::Every(requests) if self.completed % requests.max(1) == 0 => Ok(()),
            FlushAt::End | FlushAt::Every(_) => self.flush(),
        }
    }

    fn flush(&mut self) -> Result<(), BenchError> {
        let flush =
            Planned { op: BlockOp::Flush, offset_bytes: 0, bytes: 0, through: false, discard: false, due: None };
        let done = self.target.complete(flush.request(self.handed))?;
        self.note(&done);
        Ok(())
    }
}
