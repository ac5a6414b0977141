//! Runs a job on a card in simulated time and measures the results.

use emmc_port::{Access, BlockDone, BlockOp, BlockRequest, CardTarget, TargetError};
use emmc_regs::Area;
use emmc_units::{Instant, Nanos, Rng};

use super::result::{Ended, PhaseResult, RunResult, Work as WorkDone};
use super::series::Buckets;
use super::sums::Sums;
use super::{Amount, Job, Phase, Work, plan};
use crate::drive::engine::{Engine, Plan, Recorder};
use crate::drive::measured::Measured;
use crate::drive::order::Order;
use crate::drive::source::{Planned, Source};
use crate::drive::stream::{BenchError, FlushAt, Stream};
use crate::drive::watch::{Progress, Watch};

/// Requests between two calls of the progress callback.
const WATCH_EVERY: u64 = 1 << 14;
/// Equal parts of an idle phase, between which progress is reported.
const IDLE_PARTS: u64 = 64;

/// Why a run stopped early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A phase does not fit the card.
    #[error("job: phase {phase} ({kind}): {rule}")]
    Phase {
        /// The phase, counted from 1.
        phase: usize,
        /// Its name in the job.
        kind: &'static str,
        /// Why it does not fit.
        rule: String,
    },
    /// An unexpected error of the card.
    #[error("phase {phase} ({kind}): {error}")]
    Target {
        /// The phase, counted from 1.
        phase: usize,
        /// Its name in the job.
        kind: &'static str,
        /// The error.
        error: TargetError,
    },
}

/// Runs a job on a card. A worn-out card is not an error, it ends the run; so does a watcher that stops it.
///
/// Errors: a phase that does not fit the card; a card that fails.
pub fn run<T: CardTarget>(card: &mut T, job: &Job, watch: &mut dyn Watch) -> Result<RunResult, RunError> {
    for (number, phase) in job.phases.iter().enumerate() {
        check(phase, card).map_err(|rule| misfit(number, phase, rule))?;
    }
    let weights: Vec<u64> = job.phases.iter().map(|phase| weight(phase, card)).collect();
    let whole = weights.iter().fold(0, |sum: u64, weight| sum.saturating_add(*weight)) as f64;
    let (started, before) = (card.now(), Sums::default().with(card.counters()));
    let mut tally = Tally {
        before,
        buckets: Buckets::new(started, before),
        measured: unmeasured(started),
        access: Access { area: Area::User, reliable: false, discard: false },
        is_endless: false,
    };
    let (mut total, mut phases, mut ended) = (unmeasured(started), Vec::new(), Ended::Done);
    let (mut passed, unit_bytes) = (0u64, card.unit_bytes());
    for (number, phase) in job.phases.iter().enumerate() {
        let began = card.now();
        let after = passed.saturating_add(weights[number]);
        let progress = Progress {
            step: phase.kind,
            number: number as u32 + 1,
            steps: job.phases.len() as u32,
            done_share: 0.0,
            whole: Some([passed as f64 / whole, (after as f64 / whole).min(1.0)]),
            now: Some(began),
        };
        passed = after;
        let result = Active { card: &mut *card, tally: &mut tally, watch: &mut *watch, progress }
            .phase(phase, Rng::new(job.phase_seed(number)));
        match result {
            Ok(()) => {}
            Err(Interrupted::Misfit(rule)) => return Err(misfit(number, phase, rule)),
            Err(Interrupted::Bench(BenchError::Stopped)) => ended = Ended::Stopped,
            Err(Interrupted::Bench(BenchError::Target(TargetError::WornOut { .. }))) => ended = Ended::WornOut,
            Err(Interrupted::Bench(BenchError::Target(error))) => {
                return Err(RunError::Target { phase: number + 1, kind: phase.kind, error });
            }
            Err(Interrupted::Bench(error)) => return Err(misfit(number, phase, error.to_string())),
        }
        let now = card.now();
        tally.advance(now, card);
        let (sums, seed) = (tally.sums(card).since(&tally.before), job.phase_seed(number));
        let work = WorkDone::of(&sums, &tally.measured, now.since(began), unit_bytes, seed);
        phases.push(PhaseResult { kind: phase.kind, work });
        total.append(tally.end(now, card));
        if ended != Ended::Done {
            break;
        }
    }
    let (now, at_end) = (card.now(), tally.before);
    Ok(RunResult {
        seed: job.seed,
        ended,
        work: WorkDone::of(&at_end.since(&before), &total, now.since(started), unit_bytes, job.seed),
        unit_bytes,
        read_errors: total.errors,
        phases,
        series: tally.buckets.series(&at_end, u64::from(unit_bytes)),
        now,
    })
}

/// Nothing is recorded yet; requests of a phase have several kinds and sizes.
fn unmeasured(now: Instant) -> Measured {
    Measured::new(&Stream::pass(BlockOp::Write, Order::Sequential, 0, 512, 512), now)
}

fn misfit(number: usize, phase: &Phase, rule: String) -> RunError {
    RunError::Phase { phase: number + 1, kind: phase.kind, rule }
}

/// Whether a phase fits the card, as far as is known before it starts.
fn check(phase: &Phase, card: &impl CardTarget) -> Result<(), String> {
    match &phase.work {
        Work::Transfer(transfer) => plan::span_of(transfer, card).map(|_| ()),
        Work::Trim(trim) => plan::whole_span(&trim.target, u64::from(trim.block_bytes), card).map(|_| ()),
        Work::Replay(replay) => plan::recorded(replay, card).map(|_| ()),
        Work::PowerCycle { notify: false } if !card.can_recover() => {
            Err("power that goes without notice needs a card that keeps its data".into())
        }
        Work::Idle { .. } | Work::Flush | Work::PowerCycle { .. } => Ok(()),
    }
}

/// The part of a phase in the progress, at least 1; the bytes of a life are an estimate. Unit: bytes.
fn weight(phase: &Phase, card: &impl CardTarget) -> u64 {
    let bytes = match &phase.work {
        Work::Transfer(transfer) if transfer.amount == Amount::UntilWornOut => {
            card.area_bytes(transfer.target.area).saturating_mul(card.endurance().into())
        }
        Work::Transfer(transfer) => plan::span_of(transfer, card).map_or(0, |span| plan::amount(transfer, &span, card)),
        Work::Replay(replay) => replay.trace.requests.iter().map(|request| request.bytes).fold(0, u64::saturating_add),
        Work::Trim(_) | Work::Idle { .. } | Work::Flush | Work::PowerCycle { .. } => 0,
    };
    bytes.max(1)
}

/// The end of a phase before its work is done.
enum Interrupted {
    /// It does not fit the card.
    Misfit(String),
    /// The target or the watcher ended it.
    Bench(BenchError),
}

impl<E: Into<BenchError>> From<E> for Interrupted {
    fn from(error: E) -> Self {
        Self::Bench(error.into())
    }
}

/// A running phase.
struct Active<'a, T> {
    card: &'a mut T,
    tally: &'a mut Tally,
    watch: &'a mut dyn Watch,
    progress: Progress<'a>,
}

impl<T: CardTarget> Active<'_, T> {
    fn phase(&mut self, phase: &Phase, rng: Rng) -> Result<(), Interrupted> {
        self.card.set_cache(phase.cache)?;
        let access = |area, reliable| Access { area, reliable, discard: false };
        let user = access(Area::User, false);
        let depth = phase.queue_depth;
        match &phase.work {
            Work::Transfer(transfer) => {
                let pattern = plan::transfer(transfer, self.card, rng).map_err(Interrupted::Misfit)?;
                self.tally.is_endless = transfer.amount == Amount::UntilWornOut;
                self.requests(pattern, access(transfer.target.area, transfer.reliable), depth)
            }
            Work::Trim(trim) => {
                let pattern = plan::trim(trim, self.card, rng).map_err(Interrupted::Misfit)?;
                self.requests(pattern, access(trim.target.area, false), depth)
            }
            Work::Replay(replay) => {
                let recorded = plan::recorded(replay, self.card).map_err(Interrupted::Misfit)?;
                self.requests(recorded, user, depth)
            }
            Work::Idle { time, background: false } => {
                self.card.pass(*time);
                Ok(())
            }
            Work::Idle { time, background: true } => self.idle(*time),
            Work::Flush => {
                let flush = BlockRequest { op: BlockOp::Flush, offset_bytes: 0, bytes: 0, through: false, tag: 0 };
                let done = self.card.complete(flush)?;
                self.tally.done(self.card, &done, Nanos::ZERO);
                Ok(())
            }
            Work::PowerCycle { notify } => Ok(self.card.power_cycle(*notify)?),
        }
    }

    fn requests<S: Source>(&mut self, source: S, access: Access, depth: u32) -> Result<(), Interrupted> {
        self.card.set_access(access);
        self.tally.access = access;
        let plan = Plan { depth, request_bytes: None, flush: FlushAt::Never, time: None, watch_every: WATCH_EVERY };
        let (_, ended) = Engine::new(self.card, source, self.tally, plan).run(self.progress, self.watch);
        Ok(ended?)
    }

    /// Background work until there is none, or the time is over.
    fn idle(&mut self, time: Nanos) -> Result<(), Interrupted> {
        let until = self.card.now() + time;
        for part in 1..=IDLE_PARTS {
            let now = self.card.now();
            let left = until.since(now.min(until));
            self.card.idle(Nanos(left.0 / (IDLE_PARTS - part + 1)))?;
            let done_share = part as f64 / IDLE_PARTS as f64;
            if !self.watch.progress(Progress { done_share, now: Some(self.card.now()), ..self.progress }) {
                return Err(BenchError::Stopped.into());
            }
        }
        Ok(())
    }
}

/// The recorder of a run.
struct Tally {
    /// Everything before the present phase.
    before: Sums,
    buckets: Buckets,
    /// The present phase.
    measured: Measured,
    access: Access,
    /// The phase ends only with the card.
    is_endless: bool,
}

impl Tally {
    /// Ends a phase, and begins the next.
    fn end(&mut self, now: Instant, card: &impl CardTarget) -> Measured {
        (self.before, self.is_endless) = (self.sums(card), false);
        std::mem::replace(&mut self.measured, unmeasured(now))
    }

    /// Everything since the beginning of the run.
    fn sums(&self, card: &impl CardTarget) -> Sums {
        self.before.plus(&Sums::of(&self.measured)).with(card.counters())
    }

    #[inline]
    fn advance(&mut self, now: Instant, card: &impl CardTarget) {
        if self.buckets.is_over(now) {
            let sums = self.sums(card);
            self.buckets.advance(now, &sums);
        }
    }
}

impl<T: CardTarget> Recorder<T> for Tally {
    #[inline]
    fn before(&mut self, card: &mut T, planned: &Planned) {
        if planned.op == BlockOp::Trim && planned.discard != self.access.discard {
            self.access.discard = planned.discard;
            card.set_access(self.access);
        }
    }

    #[inline(always)]
    fn done(&mut self, card: &mut T, done: &BlockDone, waited: Nanos) {
        self.advance(done.done, card);
        self.measured.note(done, waited);
    }

    fn done_share(&self, card: &T) -> Option<f64> {
        self.is_endless.then(|| card.used_life())
    }
}
