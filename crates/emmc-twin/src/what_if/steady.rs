//! The steady state of a trial: reached, measured, and extended to an answer.
//!
//! A card is worked in until it has programmed its whole flash several times and write amplification stays. An update
//! is too rare to wait for: after the measurement one is started, and what it adds counts once in its weeks.

use emmc_card::profile::Mapping;
use emmc_port::CardTarget;
use emmc_units::Bytes;
use emmc_workload::duty::{DAY_S, Discard, DutyPart};
use emmc_workload::{Latency, Watch};

use super::WhatIfError;
use super::outlook::{Erases, LogBlocks, Outlook, erases, outlook};
use super::result::Answer;
use super::setup::Offset;
use super::trial::{Step, Trial};

/// Write amplification has settled if two parts differ from the two before by less than this share.
const SETTLED: f64 = 0.01;
/// Parts in which the flash is programmed once.
const PARTS: f64 = 4.0;
/// How often the whole flash is programmed at least, and at most, before the measurement.
const PASSES: f64 = 3.0;
const PASSES_MAX: f64 = 12.0;
/// A trial programs no more than this before it is measured, and no more in the measurement. Unit: mapping units.
const PROGRAMS_MAX: f64 = 400e6;
/// Overwritings of the flash by the host after which a measurement begins anyway.
const WRITTEN_MAX: f64 = 30.0;
/// Of the pass at full speed. Unit: bytes.
const SPEED_BYTES: u64 = 256 << 20;
/// What happens seldom is waited for if no more than this is written meanwhile. Unit: bytes.
const CYCLE_BYTES_MAX: f64 = 64e9;

/// The share of static wear levelling in what is programmed that is worth a note.
const MOVED_SHARE: f64 = 0.02;

/// What was counted. Unit: a second of load.
#[derive(Clone, Copy, Debug, Default)]
struct Rates {
    programmed_bytes: f64,
    written_bytes: f64,
    program_bytes: f64,
    erases: Erases,
}

/// What a measurement counted.
#[derive(Default)]
struct Counted {
    load_s: f64,
    programs: f64,
    written: f64,
    program_bytes: f64,
    erases: Erases,
    writes: Option<Latency>,
    flushes: Option<Latency>,
    stalls: [u64; 2],
}

impl Counted {
    fn add(&mut self, part: &DutyPart, erases: Erases) {
        self.load_s += part.load_s;
        self.programs += part.card.programs as f64;
        self.written += part.written_bytes as f64;
        self.program_bytes += part.program_bytes;
        self.erases = self.erases.plus(&erases);
        self.stalls[0] += part.stalls.over_100_ms;
        self.stalls[1] += part.stalls.over_250_ms;
        for (own, new) in [(&mut self.writes, &part.writes_us), (&mut self.flushes, &part.flushes_us)] {
            *own = match (own.take(), new) {
                (Some(own), Some(new)) => Some(own.merged(new)),
                (own, new) => own.or_else(|| new.clone()),
            };
        }
    }

    fn rates(&self, unit: f64) -> Rates {
        let of = |amount: f64| amount / self.load_s;
        Rates {
            programmed_bytes: of(self.programs * unit),
            written_bytes: of(self.written),
            program_bytes: of(self.program_bytes),
            erases: self.erases.times(1.0 / self.load_s),
        }
    }
}

impl Trial {
    fn unit(&self) -> f64 {
        f64::from(CardTarget::unit_bytes(&self.target))
    }

    /// Load time to wait for what happens seldom; nothing if that is too much. Unit: seconds.
    fn awaited_s(&self) -> f64 {
        let bytes = self.cycle_s / DAY_S * self.duty.bytes_per_day();
        if bytes <= CYCLE_BYTES_MAX { self.cycle_s } else { 0.0 }
    }

    /// Runs to the steady state. Returns what was written, and whether it has settled.
    fn settle(&mut self, step: Step<'_>, watch: &mut dyn Watch) -> Result<(u64, bool), WhatIfError> {
        let (physical, awaited_s) = (self.physical_bytes() as f64, self.awaited_s());
        let (mut written, mut programmed, mut load_s, mut seen) = (0u64, 0.0, 0.0, Vec::new());
        // A part holds whole cycles of what happens seldom.
        let least = (awaited_s / DAY_S * self.duty.bytes_per_day()).max(1e6);
        let mut bytes = (physical / PARTS / 4.0).max(least);
        let most = (PASSES_MAX * physical).min(PROGRAMS_MAX * self.unit());
        loop {
            if written == 0 || seen.len() == 1 {
                // Both places of the images are in use.
                self.duty.start_update();
            }
            let share = 0.1 + 0.5 * (programmed / (PASSES + 1.0) / physical).min(1.0);
            let part = self.part(bytes as u64, true, step.at(share, (share + 0.05).min(0.6)), watch)?;
            let part_programmed = part.card.programs as f64 * self.unit();
            let amplification = part_programmed / part.written_bytes.max(1) as f64;
            written += part.written_bytes;
            programmed += part_programmed;
            load_s += part.load_s;
            bytes = (physical / PARTS / amplification.max(0.25)).max(least);
            seen.push(amplification);
            let is_settled = is_settled(&seen);
            let is_worked_in = programmed >= PASSES * physical && load_s >= awaited_s;
            // What stays in the card's cache programs nothing.
            let is_absorbed = written as f64 >= WRITTEN_MAX * physical;
            if is_worked_in && is_settled || programmed >= most || is_absorbed {
                return Ok((written, is_settled));
            }
        }
    }

    /// Runs the load for this long at least, in time and in bytes.
    fn count(
        &mut self,
        (least_bytes, least_s): (f64, f64),
        step: Step<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Counted, WhatIfError> {
        let mut counted = Counted::default();
        while counted.written < least_bytes || counted.load_s < least_s {
            let share = 0.6 + 0.3 * (counted.written / least_bytes).min(1.0);
            let before = Erases::of(self.target.device());
            let bytes = (least_bytes / 2.0).max(1e6) as u64;
            let part = self.part(bytes, true, step.at(share, (share + 0.15).min(0.9)), watch)?;
            counted.add(&part, Erases::of(self.target.device()).since(&before));
            if counted.programs >= PROGRAMS_MAX {
                break;
            }
        }
        Ok(counted)
    }

    /// Fills, settles, measures.
    pub(super) fn run(mut self, step: Step<'_>, watch: &mut dyn Watch) -> Result<Answer, WhatIfError> {
        self.fill(step, watch)?;
        self.duty.hold_updates();
        let (warm_up_bytes, is_steady) = self.settle(step, watch)?;
        let unit = self.unit();
        let block_bytes = f64::from(self.target.device().nand().geometry().units_per_block()) * unit;
        // Enough blocks are erased that one more or less does not matter.
        let least = (self.range_bytes() as f64).max(block_bytes * 64.0);
        let before = erases(self.target.device());
        let moves_before = self.target.device().stats().wear_moves;
        let base = self.count((least, self.awaited_s()), step, watch)?;
        let moved = (self.target.device().stats().wear_moves - moves_before) as f64 * block_bytes / unit;
        let mut rates = base.rates(unit);
        if let Some(update) = self.setup.update {
            self.duty.start_update();
            let with = self.count((least + update.bytes as f64, self.awaited_s()), step, watch)?;
            rates = rates.with_update(&with.rates(unit), with.load_s, update.weeks * 7.0 * DAY_S);
        }
        let log = LogBlocks::of(self.target.device(), &self.start_erases, &before);
        let life = outlook(self.target.device(), &self.start, &rates.erases.times(DAY_S), log);
        let speed = self.part(SPEED_BYTES.min(self.range_bytes()), false, step.at(0.9, 1.0), watch)?;
        let write_bytes_per_s = speed.written_bytes as f64 / speed.card_s;
        let flush_s = base.flushes.as_ref().map_or(0.0, |flush| flush.mean * flush.count as f64 / 1e6 / base.load_s);
        let years = |days: Option<f64>| days.map(|days| days / 365.25);
        let ends = [life.to_rated, life.to_read_only, life.to_log_end];
        let device = self.target.device();
        Ok(Answer {
            change: step.name.into(),
            profile: device.profile().name.clone(),
            user_bytes: emmc_port::BlockTarget::shape(&self.target).size_bytes,
            usable_bytes: self.partition.bytes(),
            enhanced_bytes: self.enhanced_bytes,
            host_bytes_per_day: rates.written_bytes * DAY_S,
            write_amplification: rates.programmed_bytes / rates.written_bytes,
            total_amplification: rates.programmed_bytes / rates.program_bytes,
            wear_percent_per_day: life.wear_per_day * 100.0,
            wear_register: life.register().into(),
            years_to_pre_eol_warning: years(life.to_warning),
            years_to_rated_erases: years(life.to_rated),
            years_to_read_only: years(life.to_read_only),
            years_to_log_end: years(life.to_log_end),
            years_to_end_of_life: years(ends.into_iter().flatten().min_by(f64::total_cmp)),
            life_times_today: None,
            write_mb_per_s: write_bytes_per_s / 1e6,
            busy_share: rates.written_bytes / write_bytes_per_s + flush_s,
            writes: base.writes.as_ref().map_or(0, |latency| latency.count),
            write_us: base.writes.as_ref().map(Into::into),
            flush_us: base.flushes.as_ref().map(Into::into),
            stalls_over_100_ms: base.stalls[0],
            stalls_over_250_ms: base.stalls[1],
            is_steady,
            warm_up_bytes,
            measured_bytes: base.written as u64,
            notes: self.notes(moved / base.programs.max(1.0), &life),
        })
    }

    /// What to know, where this share of what was programmed may be moves of static wear levelling.
    fn notes(&self, moved_share: f64, life: &Outlook) -> Vec<String> {
        let mut notes: Vec<String> = self.note.iter().cloned().collect();
        let others = [life.to_rated.filter(|_| !life.is_single_bit), life.to_read_only];
        if let Some(days) = life.to_log_end.filter(|days| others.into_iter().flatten().all(|other| *days < other)) {
            notes.push(format!(
                "the log of small writes, with one bit a cell, wears out first: after {:.2} years, when \
DEVICE_LIFE_TIME_EST_TYP_A shows {:.0} %. The card goes on without it, slower and with more wear: sim life shows how \
long",
                days / 365.25,
                life.shown_at_log_end * 100.0
            ));
        }
        if moved_share > MOVED_SHARE {
            notes.push(format!(
                "static wear levelling made up to {:.0} % of the programs; it comes in phases: sim life shows a whole life",
                moved_share.min(1.0) * 100.0
            ));
        }
        // Each static block moves once in a gap of erases.
        let gap = f64::from(self.target.device().profile().ftl.wear.static_gap);
        let static_share = self.static_bytes as f64 / self.partition.bytes() as f64;
        if gap == 0.0 && static_share > MOVED_SHARE {
            notes.push(
                "this card has no static wear levelling: blocks with data that never changes keep their few erases, and \
the others wear out the sooner"
                    .into(),
            );
        } else if static_share > MOVED_SHARE * gap && moved_share <= MOVED_SHARE {
            notes.push(format!(
                "some data never changes; when blocks differ by {gap} erases, static wear levelling begins to move it, up \
to {:.0} % of what is programmed: sim life counts it",
                static_share / gap * 100.0
            ));
        }
        let unit_bytes = u64::from(self.target.device().nand().geometry().unit_bytes);
        let is_paged = self.target.device().profile().ftl.mapping == Mapping::Page;
        if self.setup.off_bytes != Offset::Bytes(0) && self.partition.from_bytes % unit_bytes == 0 && is_paged {
            let unit = Bytes(unit_bytes);
            notes.push(format!("this card maps each {unit} on its own: an offset of whole {unit} costs it nothing"));
        }
        if self.setup.log_in_memory.is_some() && self.facts.facts.random_share == Some(1.0) {
            notes.push("the load has no sequential part, and so no log: nothing changes".into());
        }
        if self.cycle_s > self.awaited_s() {
            notes.push("a weekly trim or a day's log is not in the measurement: too much is written meanwhile".into());
        }
        let user = emmc_port::BlockTarget::shape(&self.target).size_bytes;
        if self.enhanced_bytes > 0 && self.enhanced_bytes < user {
            notes.push("the load is in the part with one bit a cell; the rest holds data that does not change".into());
        }
        let frees = self.target.device().profile().ftl.trim_frees;
        if self.setup.discard != Discard::Never && !frees {
            notes.push("this card accepts trims and ignores them".into());
        }
        notes
    }
}

/// Whether the last two parts have the amplification of the two before.
fn is_settled(seen: &[f64]) -> bool {
    match seen {
        [.., first, second, third, last] => ((third + last) / (first + second) - 1.0).abs() <= SETTLED,
        _ => false,
    }
}

impl Rates {
    /// With what an update has added to `with_one`, a measurement with one in `load_s` seconds, once in `every_s`.
    fn with_update(&self, with_one: &Self, load_s: f64, every_s: f64) -> Self {
        let of = |base: f64, with: f64| base + ((with - base) * load_s).max(0.0) / every_s;
        Self {
            programmed_bytes: of(self.programmed_bytes, with_one.programmed_bytes),
            written_bytes: of(self.written_bytes, with_one.written_bytes),
            program_bytes: of(self.program_bytes, with_one.program_bytes),
            erases: self.erases.each(&with_one.erases, of),
        }
    }
}
