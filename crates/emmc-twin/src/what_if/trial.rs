//! A trial: a card under a duty.

use emmc_card::device::Health;
use emmc_port::{BlockOp, BlockRequest, BlockTarget, CardCounters, CardTarget, TargetError};
use emmc_sim::SimTarget;
use emmc_units::{Bytes, SECTOR_BYTES, Size};
use emmc_workload::duty::{Discard, Duty, DutyLoad, DutyPart, Partition, Requests};
use emmc_workload::{BenchError, Progress, Watch};

use super::board::{Prepared, prepare, user_bytes};
use super::outlook::erases;
use super::question::{Common, Question, cycle_s, facts, requests};
use super::setup::{Offset, Setup};
use super::{MakeCard, WhatIfError};

/// Size of a request that fills. Unit: bytes.
const FILL_BYTES: u64 = 512 << 10;
/// The largest trim of a host. Unit: bytes.
const TRIM_BYTES: u64 = 1 << 30;

/// Where a trial is in the whole.
#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) name: &'a str,
    pub(super) number: u32,
    pub(super) count: u32,
}

impl Step<'_> {
    pub(super) fn at(&self, from: f64, to: f64) -> Progress<'_> {
        let share = |of: f64| (f64::from(self.number) - 1.0 + of) / f64::from(self.count);
        let whole = Some([share(from), share(to)]);
        Progress { step: self.name, number: self.number, steps: self.count, done_share: 0.0, whole, now: None }
    }
}

/// A card under a duty.
pub(super) struct Trial {
    pub(super) target: SimTarget,
    pub(super) duty: Duty,
    pub(super) facts: Common,
    pub(super) setup: Setup,
    pub(super) partition: Partition,
    pub(super) enhanced_bytes: u64,
    /// From making the card.
    pub(super) note: Option<String>,
    is_recorded: bool,
    /// Load time after which what happens seldom has happened, but for updates. Unit: seconds.
    pub(super) cycle_s: f64,
    /// The wear before it.
    pub(super) start: Health,
    /// The erases of each block before it.
    pub(super) start_erases: Vec<u32>,
    /// Data that the load never changes. Unit: bytes.
    pub(super) static_bytes: u64,
}

impl Trial {
    /// Errors: what the card cannot do; data that does not fit.
    pub(super) fn new(
        make: MakeCard<'_>,
        question: &Question,
        setup: &Setup,
        today: Option<&Common>,
    ) -> Result<Self, String> {
        let Prepared { card, now, enhanced_bytes, note } = prepare(make, setup)?;
        let user = user_bytes(&card);
        let is_part = enhanced_bytes > 0 && enhanced_bytes < user;
        if is_part && setup.unpartitioned != Size::Percent(0) {
            let part = Bytes(enhanced_bytes).rounded();
            return Err(format!(
                "the partition is the {part} with one bit a cell; expected unpartitioned= without pslc=, or pslc=all"
            ));
        }
        if setup.filesystem.is_some() && setup.flush_s.is_none() {
            return Err("a filesystem always commits; expected commit= and seconds, or fs=none".into());
        }
        let kept = match setup.unpartitioned {
            Size::Exact(Bytes(bytes)) => bytes,
            Size::Percent(percent) => (user / 100) * u64::from(percent),
            Size::Max => user,
        };
        let profile = card.device().profile();
        let off = match setup.off_bytes {
            Offset::Page => u64::from(profile.nand.page_bytes),
            Offset::Bytes(bytes) => bytes,
        };
        let end = if is_part { enhanced_bytes } else { user.saturating_sub(kept) };
        let partition = Partition { from_bytes: off, to_bytes: end / 4096 * 4096 };
        if partition.bytes() < 4 << 20 {
            return Err(format!("it leaves a partition of {}; expected 4 MiB or more", Bytes(partition.bytes())));
        }
        let load = DutyLoad {
            requests: requests(question, setup, partition, today)?,
            flush_s: setup.flush_s,
            depth: setup.depth,
            seed: question.seed,
        };
        let (start, start_erases) = (card.device().health(), erases(card.device()));
        if setup.queueing == Some(true) && card.device().profile().controller.queue_depth == 0 {
            return Err("the card has no command queue".into());
        }
        let (device, _) = card.into_parts();
        let mut target = SimTarget::new(device, "the card", now, setup.queueing.unwrap_or(true));
        target.set_cache(setup.cache).map_err(|error| error.to_string())?;
        let duty = Duty::new(&load, partition, target.takes_flushes())?;
        let facts = facts(&load, duty.bytes_per_day());
        Ok(Self {
            is_recorded: matches!(load.requests, Requests::Recorded { .. }),
            cycle_s: cycle_s(&load),
            target,
            duty,
            facts,
            setup: setup.clone(),
            partition,
            enhanced_bytes,
            note,
            start,
            start_erases,
            static_bytes: 0,
        })
    }

    /// Writes what the card holds when the duty begins. What a host would have trimmed (making the filesystem, leaving
    /// space without a partition) is trimmed.
    pub(super) fn fill(&mut self, step: Step<'_>, watch: &mut dyn Watch) -> Result<(), WhatIfError> {
        let Partition { from_bytes, to_bytes } = self.partition;
        let user = self.target.shape().size_bytes;
        let is_trimmed = self.setup.discard != Discard::Never && !self.is_recorded;
        let is_part = self.enhanced_bytes > 0 && self.enhanced_bytes < user;
        let data_end = (from_bytes + self.facts.data_bytes).min(to_bytes);
        let filled_to = match (is_trimmed, self.setup.filesystem) {
            (false, _) => to_bytes,
            (true, None) => data_end,
            (true, Some(_)) => from_bytes,
        };
        if is_trimmed {
            self.requests(BlockOp::Trim, from_bytes, to_bytes, step, watch)?;
        }
        self.requests(BlockOp::Write, from_bytes, filled_to, step, watch)?;
        self.static_bytes =
            filled_to.saturating_sub(data_end) + if is_part { user.saturating_sub(to_bytes) } else { 0 };
        let rest = if is_part { BlockOp::Write } else { BlockOp::Trim };
        self.requests(rest, to_bytes, user, step, watch)
    }

    fn requests(
        &mut self,
        op: BlockOp,
        from: u64,
        to: u64,
        step: Step<'_>,
        watch: &mut dyn Watch,
    ) -> Result<(), WhatIfError> {
        let most = if op == BlockOp::Trim { TRIM_BYTES } else { FILL_BYTES };
        let (mut at, mut number) = (from, 0u32);
        while at < to {
            let bytes = most.min(to - at) / SECTOR_BYTES * SECTOR_BYTES;
            let request = BlockRequest { op, offset_bytes: at, bytes, through: false, tag: 0 };
            let refused =
                |error| WhatIfError::Refused { change: step.name.into(), what: format!("filling it: {error}") };
            self.target.complete(request).map_err(refused)?;
            at += bytes;
            number += 1;
            if number % 64 == 0 && !watch.progress(step.at(0.0, 0.1)) {
                return Err(WhatIfError::Stopped);
            }
        }
        Ok(())
    }

    /// The card's wear now.
    pub(super) fn health(&self) -> Health {
        self.target.device().health()
    }

    /// Units programmed since.
    pub(super) fn programmed_since(&self, before: &CardCounters) -> f64 {
        (self.target.counters().programs - before.programs) as f64
    }

    /// Physical bytes of the good blocks.
    pub(super) fn physical_bytes(&self) -> u64 {
        let nand = self.target.device().nand();
        let units: u64 = (0..nand.geometry().blocks).map(|block| u64::from(nand.units_of(block))).sum();
        units * u64::from(nand.geometry().unit_bytes)
    }

    /// The bytes over which the load repeats itself.
    pub(super) fn range_bytes(&self) -> u64 {
        self.facts.data_bytes.max(1 << 20)
    }

    pub(super) fn part(
        &mut self,
        bytes: u64,
        is_paced: bool,
        step: Progress<'_>,
        watch: &mut dyn Watch,
    ) -> Result<DutyPart, WhatIfError> {
        let part = self.duty.run(&mut self.target, bytes, is_paced, step, watch);
        match part.ended {
            None => Ok(part),
            Some(BenchError::Stopped) => Err(WhatIfError::Stopped),
            Some(BenchError::Target(TargetError::WornOut { .. })) => {
                let what = "the card wears out before its state is steady; sim life runs it to its end".into();
                Err(WhatIfError::Refused { change: step.step.into(), what })
            }
            Some(error) => Err(WhatIfError::Refused { change: step.step.into(), what: error.to_string() }),
        }
    }
}
