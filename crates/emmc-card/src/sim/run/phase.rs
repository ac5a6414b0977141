//! Start and end of a phase.

use emmc_units::{Instant, SECTOR_BYTES};

use super::latency::Latencies;
use super::plan::{PatternSource, Source, Span};
use super::queue::Queue;
use super::result::PhaseResult;
use super::sums::Sums;
use super::{Run, RunError};
use crate::device::StorageError;
use crate::ftl::FtlStats;
use crate::sim::Rng;
use crate::sim::job::{Amount, Work};

/// A running phase.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) index: usize,
    pub(super) task: Task,
    pub(super) started: Instant,
    pub(super) before: Sums,
    pub(super) stats: FtlStats,
    pub(super) latencies: Latencies,
}

/// The remaining work of a phase.
#[derive(Debug)]
pub(super) enum Task {
    /// Requests.
    Requests(Source, Queue),
    /// Idle time until an instant; background work has reached `worked_to`.
    Idle { until: Instant, worked_to: Option<Instant> },
    /// A flush.
    Flush,
    /// A power cycle.
    PowerCycle { notify: bool },
}

impl Run {
    /// Whether a phase fits the card, as far as is known before it starts.
    pub(super) fn check(&self, index: usize) -> Result<(), RunError> {
        let phase = &self.job.phases[index];
        let checked = match &phase.work {
            Work::Transfer(transfer) => Span::of(transfer, &self.device).map(|_| ()),
            Work::Trim(trim) => Span::whole(&trim.target, trim.block_bytes, &self.device).map(|_| ()),
            Work::Replay(replay) => Source::trace(replay, &self.device).map(|_| ()),
            Work::PowerCycle { notify: false } if !self.device.nand().keeps_orders() => {
                Err("power that goes without notice needs a card that keeps its data".into())
            }
            _ => Ok(()),
        };
        checked.map_err(|rule| RunError::Phase { phase: index + 1, kind: phase.kind, rule })
    }

    /// Begins a phase.
    ///
    /// Errors: it does not fit the card.
    pub(super) fn begin(&mut self, index: usize) -> Result<Active, RunError> {
        let phase = &self.job.phases[index];
        let mut rng = Rng::new(self.job.phase_seed(index));
        let misfit = |rule| RunError::Phase { phase: index + 1, kind: phase.kind, rule };
        let slots = self.device.profile().controller.queue_depth;
        let queue = || Queue::new(phase.queue_depth, slots, self.now);
        let task = match &phase.work {
            Work::Transfer(transfer) => {
                let source = PatternSource::new(transfer, &self.device, rng).map_err(misfit)?;
                Task::Requests(Source::Pattern(Box::new(source)), queue())
            }
            Work::Trim(trim) => Task::Requests(Source::trim(trim, &self.device, &mut rng).map_err(misfit)?, queue()),
            Work::Replay(replay) => Task::Requests(Source::trace(replay, &self.device).map_err(misfit)?, queue()),
            Work::Idle { time, background } => {
                Task::Idle { until: self.now + *time, worked_to: background.then_some(self.now) }
            }
            Work::Flush => Task::Flush,
            Work::PowerCycle { notify } => Task::PowerCycle { notify: *notify },
        };
        let cache = phase.cache;
        let made = Active {
            index,
            task,
            started: self.now,
            before: self.sums.with(&self.device),
            stats: self.device.stats(),
            latencies: Latencies::new(),
        };
        self.switch_cache(cache, index)?;
        Ok(made)
    }

    fn switch_cache(&mut self, on: bool, index: usize) -> Result<(), RunError> {
        match self.device.set_cache(on, self.now) {
            Ok(_) => Ok(()),
            // The phase itself will meet this.
            Err(StorageError::Ftl(crate::ftl::FtlError::WornOut)) => Ok(()),
            Err(error) => Err(self.storage_error(index, error)),
        }
    }

    pub(super) fn storage_error(&self, index: usize, error: StorageError) -> RunError {
        RunError::Storage { phase: index + 1, kind: self.job.phases[index].kind, error }
    }

    /// Ends a phase and records its results.
    pub(super) fn close(&mut self, mut active: Active) {
        if let Task::Requests(_, queue) = &mut active.task {
            self.now = self.now.max(queue.drain());
        }
        self.sums = self.sums.with(&self.device);
        if self.buckets.is_over(self.now) {
            self.buckets.advance(self.now, &self.sums);
        }
        let result = PhaseResult::of(&active, self);
        self.phases.push(result);
        self.latencies.take(&mut active.latencies);
    }

    /// How much a phase moves, at least 1; how many sectors a life is, is an estimate. Unit: sectors of 512 bytes.
    pub(super) fn weight(&self, index: usize) -> u64 {
        let sectors = match &self.job.phases[index].work {
            Work::Transfer(transfer) => {
                let area = self.device.sectors(transfer.target.area);
                match transfer.amount {
                    Amount::Bytes(bytes) => bytes / SECTOR_BYTES,
                    Amount::Capacities(times) => (area as f64 * times) as u64,
                    Amount::RangeOnce => Span::of(transfer, &self.device).map_or(0, |span| span.sectors),
                    Amount::UntilWornOut => area.saturating_mul(self.device.profile().nand.native.endurance.into()),
                }
            }
            Work::Replay(replay) => replay.trace.records.iter().map(|record| u64::from(record.sectors)).sum(),
            Work::Trim(_) | Work::Idle { .. } | Work::Flush | Work::PowerCycle { .. } => 0,
        };
        sectors.max(1)
    }

    /// Completed share of a phase, 0 to 1.
    pub(super) fn done_share(&self, active: &Active) -> f64 {
        match &active.task {
            Task::Requests(Source::Pattern(source), _) if source.is_endless() => self.used_life(),
            Task::Requests(source, _) => source.done_share(),
            Task::Idle { until, worked_to } => {
                let all = until.since(active.started).as_secs_f64();
                let done = worked_to.unwrap_or(self.now).since(active.started).as_secs_f64();
                if all > 0.0 { (done / all).min(1.0) } else { 1.0 }
            }
            Task::Flush | Task::PowerCycle { .. } => 0.0,
        }
    }

    /// The used share of the rated erases, of the most worn kind of block.
    fn used_life(&self) -> f64 {
        let health = self.device.health();
        let used = health.used_multi_bit.unwrap_or(0.0).max(health.used_single_bit.unwrap_or(0.0));
        used.min(1.0)
    }
}
