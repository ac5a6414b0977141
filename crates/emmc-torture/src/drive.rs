//! Runs a workload with cuts on a subject, and calls the oracles.

use std::collections::BTreeSet;

use emmc_units::{Instant, Nanos, Rng};

use crate::content::{self, Seen};
use crate::history::{Cut, Deed, History};
use crate::subject::Subject;
use crate::workload::{Op, Workload};
use crate::{FaultPlan, acknowledged_writes, flushed_writes, trimmed_ranges, unacknowledged_writes};
use emmc_card::ftl::{Durability, FtlError, TrimKind};

/// Units that the checks read with one request.
const READ_AT_ONCE: u32 = 64;

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Done,
    /// Power went.
    Cut,
    /// No spare is left: the card is read-only.
    WornOut,
}

/// A subject, and the known state of it.
pub(crate) struct Drive {
    pub(crate) subject: Box<dyn Subject>,
    pub(crate) workload: Workload,
    pub(crate) rng: Rng,
    histories: Vec<History>,
    now: Instant,
    stamp: u64,
    /// Something was written without reliability since power came.
    unreliable: bool,
}

impl Drive {
    pub(crate) fn new(subject: Box<dyn Subject>, mut rng: Rng) -> Self {
        let units = subject.units();
        let workload = Workload::new(units, Rng::new(rng.next_u64()));
        let histories = vec![History::new(); units as usize];
        Self { subject, workload, rng, histories, now: Instant::START, stamp: 0, unreliable: false }
    }

    /// Performs requests until a power loss or the end of life, at most `most`.
    pub(crate) fn run(&mut self, most: u32) -> Result<Ended, String> {
        for _ in 0..most {
            let op = self.workload.next();
            let ended = self.one(op)?;
            if ended != Ended::Done {
                return Ok(ended);
            }
        }
        Ok(Ended::Done)
    }

    /// Performs one request. The next one comes at its end, or earlier.
    pub(crate) fn one(&mut self, op: Op) -> Result<Ended, String> {
        let result = match op {
            Op::Write { first, count, durability } => {
                self.stamp += 1;
                let data = content::make(first, count, self.subject.unit_bytes(), self.stamp);
                let kept = self.subject.kept_as(durability);
                self.unreliable |= kept == Durability::Flash;
                self.each(first, count, |history, stamp| history.push(Deed::Write(kept), stamp));
                let beside = self.beside(first, count);
                self.again(&beside, kept);
                let result = self.subject.write(first, &data, durability, self.now);
                self.acknowledge(first, count, &beside, result)
            }
            Op::Trim { first, count, kind } => {
                self.each(first, count, |history, _| history.push(Deed::Trim(kind), 0));
                // What is trimmed in part is written again; discards leave it.
                let beside = if kind == TrimKind::Trim { self.beside(first, count) } else { Vec::new() };
                self.again(&beside, Durability::Reliable);
                let result = self.subject.trim(first, count, kind, self.now);
                self.acknowledge(first, count, &beside, result)
            }
            Op::Flush => self.subject.flush(self.now).inspect(|&done| {
                self.histories.iter_mut().for_each(|history| history.flush(done));
            }),
            Op::Read { first, count } => return self.check_now(first, count),
            Op::Idle { steps } => return self.idle(steps),
            Op::Purge => self.subject.purge(self.now),
        };
        match result {
            Ok(done) if done < self.now => Err(format!("{op:?} was done before it was asked for")),
            Ok(done) => {
                self.go_on(done);
                Ok(Ended::Done)
            }
            // What cannot be read cannot be changed in part.
            Err(FtlError::Uncorrectable { .. }) if self.has_lost() => Ok(Ended::Done),
            Err(error) => self.ended(error).map_err(|what| format!("{op:?}: {what}")),
        }
    }

    /// What an error means for the run.
    fn ended(&self, error: FtlError) -> Result<Ended, String> {
        match error {
            FtlError::PowerLost if self.subject.nand().off_since().is_none() => {
                Err("power lost, it says, and it is on".into())
            }
            FtlError::PowerLost => Ok(Ended::Cut),
            FtlError::WornOut => Ok(Ended::WornOut),
            error => Err(error.to_string()),
        }
    }

    fn each(&mut self, first: u32, count: u32, mut act: impl FnMut(&mut History, u64)) {
        let stamp = self.stamp;
        self.histories[first as usize..(first + count) as usize].iter_mut().for_each(|history| act(history, stamp));
    }

    /// Units that are mapped together with the first or the last of a range, outside of it.
    fn beside(&self, first: u32, count: u32) -> Vec<u32> {
        let (granule, end) = (self.subject.granule(), first + count);
        let before = first / granule * granule..first;
        before.chain(end..end.next_multiple_of(granule).min(self.subject.units())).collect()
    }

    fn again(&mut self, beside: &[u32], durability: Durability) {
        for &unit in beside {
            self.histories[unit as usize].push_again(durability);
        }
    }

    fn has_lost(&self) -> bool {
        self.subject.granule() > 1 && self.histories.iter().any(|history| history.lost)
    }

    fn acknowledge(
        &mut self,
        first: u32,
        count: u32,
        beside: &[u32],
        result: Result<Instant, FtlError>,
    ) -> Result<Instant, FtlError> {
        let done = result?;
        for unit in (first..first + count).chain(beside.iter().copied()) {
            self.histories[unit as usize].acknowledge(done);
        }
        Ok(done)
    }

    /// The host's clock advances, to the end of the request or less far.
    fn go_on(&mut self, done: Instant) {
        let ahead = done.since(self.now).0;
        let step = match self.rng.below(4) {
            0 => self.rng.below(ahead + 1),
            1 => 0,
            _ => ahead,
        };
        self.now = self.now + Nanos(step);
    }

    fn idle(&mut self, steps: u32) -> Result<Ended, String> {
        self.now = self.now.max(self.subject.nand().quiet_at());
        if self.subject.nand().ages() && self.rng.below(4) == 0 {
            self.now = self.now + Nanos::from_secs(86_400 * self.rng.below(60));
        }
        for _ in 0..steps {
            match self.subject.background(self.now) {
                Ok(Some(done)) => self.now = self.now.max(done),
                Ok(None) => break,
                Err(error) => return self.ended(error).map_err(|what| format!("background work: {what}")),
            }
        }
        Ok(Ended::Done)
    }

    /// A read without a power loss returns the last write.
    pub(crate) fn check_now(&mut self, first: u32, count: u32) -> Result<Ended, String> {
        let Some(all) = self.look(first, count)? else { return Ok(Ended::Cut) };
        for (unit, seen) in (first..).zip(all) {
            let history = &self.histories[unit as usize];
            if !history.reads_now(&seen) {
                return Err(format!("unit {unit} reads as {seen:?}; {}", told(history)));
            }
        }
        Ok(Ended::Done)
    }

    /// Reads units, many in one call; units that fail are read one at a time. `None`: power was lost.
    fn look(&mut self, first: u32, count: u32) -> Result<Option<Vec<Seen>>, String> {
        let unit_bytes = self.subject.unit_bytes();
        let mut all = Vec::with_capacity(count as usize);
        let (mut at, end) = (first, first + count);
        let mut most = READ_AT_ONCE;
        while at < end {
            let count = most.min(end - at);
            // Not zeros, so that missing data is detected.
            let mut bytes = vec![0xa5; count as usize * unit_bytes];
            match self.subject.read(at, &mut bytes, self.now) {
                Ok(_) => {
                    all.extend((at..).zip(bytes.chunks(unit_bytes)).map(|(unit, bytes)| content::read(unit, bytes)));
                    at += count;
                }
                Err(FtlError::Uncorrectable { .. }) if count == 1 => {
                    all.push(Seen::Uncorrectable);
                    at += 1;
                }
                Err(FtlError::Uncorrectable { .. }) => {
                    most = 1;
                    continue;
                }
                Err(FtlError::PowerLost) if self.subject.nand().off_since().is_some() => return Ok(None),
                Err(error) => return Err(format!("reading {count} units from {at}: {error}")),
            }
            most = if at % READ_AT_ONCE == 0 { READ_AT_ONCE } else { most };
        }
        Ok(Some(all))
    }

    /// Cuts power at an instant, rather than at a step.
    pub(crate) fn pull_the_plug(&mut self) {
        let later = self.rng.below(2_000_000);
        self.now = self.now + Nanos(later);
        self.subject.power_off(self.now);
    }

    /// Restores power, possibly with further cuts during recovery, until it has recovered; then calls the oracles for
    /// every unit.
    pub(crate) fn come_back(&mut self) -> Result<(), String> {
        let at = self.subject.nand().off_since().ok_or("power was lost, and it is on")?;
        let hit: BTreeSet<u32> = self.subject.damaged_pairs().into_iter().collect();
        self.now = self.now.max(at);
        loop {
            self.now = self.now + Nanos(self.rng.below(1_000_000));
            let step = self.subject.nand().steps() + 1 + self.rng.below(12);
            let cut = FaultPlan { step, seed: self.rng.next_u64() };
            let again = self.rng.below(3) == 0;
            match self.subject.power_on(again.then_some(cut), self.now) {
                Ok(done) => {
                    self.now = self.now.max(done);
                    break;
                }
                Err(FtlError::PowerLost) => {
                    let off = self.subject.nand().off_since().ok_or("recovery says power was lost, and it is on")?;
                    self.now = self.now.max(off);
                }
                Err(error) => return Err(format!("recovery: {error}")),
            }
        }
        self.subject.nand_mut().disarm();
        self.subject.audit().map_err(|what| format!("after recovery: {what}"))?;
        self.subject.nand_mut().decay();
        self.subject.audit().map_err(|what| format!("some time after recovery: {what}"))?;
        self.judge(at, &hit)
    }

    fn judge(&mut self, at: Instant, hit: &BTreeSet<u32>) -> Result<(), String> {
        let all = self.look(0, self.histories.len() as u32)?.ok_or("power was lost while reading")?;
        for ((unit, seen), history) in (0..).zip(all).zip(&mut self.histories) {
            let cut = Cut { at, pair_hit: hit.contains(&unit), unreliable: self.unreliable };
            for (name, oracle) in ORACLES {
                oracle(history, &seen, cut).map_err(|why| {
                    let hit = if cut.pair_hit { " (a pair was hit)" } else { "" };
                    format!(
                        "{name}: after a cut at {} ns unit {unit} reads as {seen:?}{hit}, but {why}; {}",
                        at.0,
                        told(history)
                    )
                })?;
            }
            history.settle(&seen, at);
        }
        self.unreliable = false;
        Ok(())
    }

    /// Invariants between two requests.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let violations = self.subject.nand().counters().violations;
        if violations > 0 {
            return Err(format!("the contract of the flash was broken {violations} times"));
        }
        self.subject.audit()
    }

    /// Every unit reads as last written.
    pub(crate) fn check_all(&mut self) -> Result<Ended, String> {
        self.check_now(0, self.histories.len() as u32)
    }
}

type Oracle = fn(&History, &Seen, Cut) -> Result<(), String>;

const ORACLES: [(&str, Oracle); 4] = [
    ("unacknowledged", unacknowledged_writes::check),
    ("acknowledged", acknowledged_writes::check),
    ("flushed", flushed_writes::check),
    ("trimmed", trimmed_ranges::check),
];

/// The last events of a unit, for messages.
fn told(history: &History) -> String {
    let skipped = history.events.len().saturating_sub(6);
    let deeds = history.events[skipped..].iter().map(|event| {
        let done = if event.done.0 == u64::MAX { "not acknowledged".into() } else { format!("done {}", event.done.0) };
        let flushed =
            if event.flushed.0 == u64::MAX { String::new() } else { format!(", flushed {}", event.flushed.0) };
        match event.deed {
            Deed::Trim(TrimKind::Trim) => format!("trim ({done})"),
            Deed::Trim(TrimKind::Discard) => format!("discard ({done})"),
            deed => format!("{deed:?} {} ({done}{flushed})", event.stamp),
        }
    });
    format!("its deeds: {}", deeds.collect::<Vec<_>>().join(", "))
}
