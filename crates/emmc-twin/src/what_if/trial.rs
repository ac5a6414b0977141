//! A trial: a card under a duty, to the steady state and through a measurement.

use emmc_card::device::Health;
use emmc_card::sim::SimTarget;
use emmc_port::{BlockOp, BlockRequest, BlockTarget, CardCounters, CardTarget, TargetError};
use emmc_units::{Bytes, SECTOR_BYTES, Size};
use emmc_workload::duty::{DAY_S, Discard, Duty, DutyLoad, DutyPart, Partition, Requests};
use emmc_workload::{BenchError, Latency, Progress, Watch};

use super::board::{Prepared, prepare, user_bytes};
use super::outlook::{Erases, outlook};
use super::question::{Common, Question, cycle_s, facts, requests};
use super::result::Answer;
use super::setup::{Offset, Setup};
use super::{MakeCard, WhatIfError};

/// Size of a request that fills. Unit: bytes.
const FILL_BYTES: u64 = 512 << 10;
/// Parts of the data between two looks at write amplification.
const PARTS: u64 = 4;
/// Write amplification has settled if parts in a row differ by less than this share.
const SETTLED: f64 = 0.01;
/// Parts in a row.
const SETTLED_PARTS: usize = 3;
/// A trial programs no more than this before it is measured, and no more in the measurement. Unit: mapping units.
const PROGRAMS_MAX: u64 = 120_000_000;
/// Of the pass at full speed. Unit: bytes.
const SPEED_BYTES: u64 = 256 << 20;

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
    setup: Setup,
    partition: Partition,
    enhanced_bytes: u64,
    /// From making the card.
    note: Option<String>,
    is_recorded: bool,
    /// Load time after which what happens seldom has happened. Unit: seconds.
    cycle_s: f64,
    start: Health,
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
        let start = card.device().health();
        let (device, _) = card.into_parts();
        let mut target = SimTarget::new(device, "the card", now, setup.queueing);
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
        })
    }

    /// Writes what the card holds when the duty begins.
    pub(super) fn fill(&mut self, step: Step<'_>, watch: &mut dyn Watch) -> Result<(), WhatIfError> {
        let Partition { from_bytes, to_bytes } = self.partition;
        let is_trimmed = self.setup.discard != Discard::Never && !self.is_recorded;
        let data_end = (from_bytes + self.facts.data_bytes).min(to_bytes);
        let filled_to = match (is_trimmed, self.setup.filesystem) {
            (false, _) => to_bytes,
            (true, None) => data_end,
            // mkfs has trimmed everything.
            (true, Some(_)) => from_bytes,
        };
        let user = self.target.shape().size_bytes;
        let is_part = self.enhanced_bytes > 0 && self.enhanced_bytes < user;
        let ranges = [(from_bytes, filled_to), (to_bytes, if is_part { user } else { to_bytes })];
        for (from, to) in ranges {
            let mut at = from;
            while at < to {
                let bytes = FILL_BYTES.min(to - at) / SECTOR_BYTES * SECTOR_BYTES;
                let request = BlockRequest { op: BlockOp::Write, offset_bytes: at, bytes, through: false, tag: 0 };
                self.target.complete(request).map_err(|error| WhatIfError::Refused {
                    change: step.name.into(),
                    what: format!("filling it: {error}"),
                })?;
                at += bytes;
                if at % (64 * FILL_BYTES) < FILL_BYTES && !watch.progress(step.at(0.0, 0.1)) {
                    return Err(WhatIfError::Stopped);
                }
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
    fn physical_bytes(&self) -> u64 {
        let nand = self.target.device().nand();
        let units: u64 = (0..nand.geometry().blocks).map(|block| u64::from(nand.units_of(block))).sum();
        units * u64::from(nand.geometry().unit_bytes)
    }

    /// The bytes over which the load repeats itself.
    fn range_bytes(&self) -> u64 {
        self.facts.data_bytes.max(1 << 20)
    }

    fn part(
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

    /// Runs to the steady state. Returns what was written, and whether it has settled.
    fn settle(&mut self, step: Step<'_>, watch: &mut dyn Watch) -> Result<(u64, bool), WhatIfError> {
        let unit = u64::from(CardTarget::unit_bytes(&self.target));
        let holds = self.target.fill().map_or(0.0, |fill| fill.holds_share);
        let mapped = (holds * self.target.shape().size_bytes as f64) as u64;
        // Every free block is used at least once, and then all data is overwritten.
        let least = self.physical_bytes().saturating_sub(mapped) + self.range_bytes();
        let part_bytes = (least / PARTS).clamp(1 << 20, self.range_bytes().max(64 << 20));
        let (mut written, mut programs, mut load_s, mut seen) = (0, 0, 0.0, Vec::new());
        for number in 1.. {
            let done = (written as f64 / least as f64).min(0.95);
            let share = |of: f64| 0.1 + 0.5 * of;
            let part = self.part(part_bytes, true, step.at(share(done), share((done + 0.1).min(1.0))), watch)?;
            written += part.written_bytes;
            programs += part.card.programs;
            load_s += part.load_s;
            seen.push(part.card.programs as f64 * unit as f64 / part.written_bytes.max(1) as f64);
            let last = &seen[seen.len().saturating_sub(SETTLED_PARTS)..];
            let (low, high) = last.iter().fold((f64::MAX, 0.0f64), |(low, high), wa| (low.min(*wa), high.max(*wa)));
            let is_settled = last.len() == SETTLED_PARTS && high - low <= SETTLED * low;
            let is_worked_in = written >= least && load_s >= self.cycle_s;
            if is_worked_in && (is_settled || number > 40) || programs >= PROGRAMS_MAX {
                return Ok((written, is_settled));
            }
        }
        Ok((written, false))
    }

    /// Fills, settles, measures.
    pub(super) fn run(mut self, step: Step<'_>, watch: &mut dyn Watch) -> Result<Answer, WhatIfError> {
        self.fill(step, watch)?;
        let (warm_up_bytes, is_steady) = self.settle(step, watch)?;
        let before = Erases::of(self.target.device());
        let unit = f64::from(CardTarget::unit_bytes(&self.target));
        let block = self.target.device().nand().geometry().units_per_block();
        // Enough blocks are erased that one more or less does not matter.
        let least = self.range_bytes().max(u64::from(block) * unit as u64 * 64);
        let mut all: Option<DutyPart> = None;
        let mut latency: [Option<Latency>; 2] = [None, None];
        loop {
            let written = all.as_ref().map_or(0, |all| all.written_bytes);
            let share = 0.6 + 0.35 * (written as f64 / least as f64).min(1.0);
            let part = self.part((least / 2).max(1 << 20), true, step.at(share, (share + 0.1).min(0.95)), watch)?;
            for (own, new) in latency.iter_mut().zip([&part.writes_us, &part.flushes_us]) {
                *own = match (own.take(), new) {
                    (Some(own), Some(new)) => Some(own.merged(new)),
                    (own, new) => own.or_else(|| new.clone()),
                };
            }
            all = Some(match all {
                None => part,
                Some(all) => joined(all, &part),
            });
            let Some(all) = &all else { continue };
            let is_enough = all.written_bytes >= least && all.load_s >= self.cycle_s;
            if is_enough || all.card.programs >= PROGRAMS_MAX {
                break;
            }
        }
        let Some(all) = all else { return Err(WhatIfError::Stopped) };
        let load_days = all.load_s / DAY_S;
        let life = outlook(self.target.device(), &self.start, before, load_days);
        let speed = self.part(SPEED_BYTES.min(self.range_bytes()), false, step.at(0.95, 1.0), watch)?;
        let years = |days: Option<f64>| days.map(|days| days / 365.25);
        let ends = [life.to_rated, life.to_read_only];
        let device = self.target.device();
        let programmed = all.card.programs as f64 * unit;
        Ok(Answer {
            change: step.name.into(),
            profile: device.profile().name.clone(),
            user_bytes: self.target.shape().size_bytes,
            usable_bytes: self.partition.bytes(),
            enhanced_bytes: self.enhanced_bytes,
            host_bytes_per_day: all.written_bytes as f64 / load_days,
            write_amplification: programmed / all.written_bytes as f64,
            total_amplification: programmed / all.program_bytes,
            wear_percent_per_day: life.wear_per_day * 100.0,
            wear_register: if life.is_single_bit { "DEVICE_LIFE_TIME_EST_TYP_A" } else { "DEVICE_LIFE_TIME_EST_TYP_B" },
            years_to_pre_eol_warning: years(life.to_warning),
            years_to_rated_erases: years(life.to_rated),
            years_to_read_only: years(life.to_read_only),
            years_to_end_of_life: years(ends.into_iter().flatten().min_by(f64::total_cmp)),
            life_times_today: None,
            write_mb_per_s: speed.written_bytes as f64 / 1e6 / speed.card_s,
            busy_share: busy_share(&latency) / all.load_s,
            writes: latency[0].as_ref().map_or(0, |latency| latency.count),
            write_us: latency[0].as_ref().map(Into::into),
            flush_us: latency[1].as_ref().map(Into::into),
            stalls_over_100_ms: all.stalls.over_100_ms,
            stalls_over_250_ms: all.stalls.over_250_ms,
            is_steady,
            warm_up_bytes,
            measured_bytes: all.written_bytes,
            notes: self.notes(&all),
        })
    }

    fn notes(&self, all: &DutyPart) -> Vec<String> {
        let mut notes: Vec<String> = self.note.iter().cloned().collect();
        if all.load_s < self.cycle_s {
            notes.push("what happens seldom (an update, a weekly trim, a day's log) is not in the measurement".into());
        }
        if self.enhanced_bytes > 0 && self.enhanced_bytes < self.target.shape().size_bytes {
            notes.push("the load is in the part with one bit a cell; the rest holds data that does not change".into());
        }
        let trims = self.target.device().profile().ftl.trim_frees;
        if self.setup.discard != Discard::Never && !trims {
            notes.push("this card accepts trims and ignores them".into());
        }
        notes
    }
}

/// The time that the card has worked on writes and flushes. Unit: seconds.
fn busy_share(latency: &[Option<Latency>; 2]) -> f64 {
    latency.iter().flatten().map(|latency| latency.mean * latency.count as f64 / 1e6).sum()
}

fn joined(all: DutyPart, part: &DutyPart) -> DutyPart {
    let mut card = all.card;
    card.programs += part.card.programs;
    card.erases += part.card.erases;
    let mut stalls = all.stalls.clone();
    stalls.over_100_ms += part.stalls.over_100_ms;
    stalls.over_250_ms += part.stalls.over_250_ms;
    DutyPart {
        written_bytes: all.written_bytes + part.written_bytes,
        program_bytes: all.program_bytes + part.program_bytes,
        load_s: all.load_s + part.load_s,
        card_s: all.card_s + part.card_s,
        card,
        stalls,
        ..all
    }
}
