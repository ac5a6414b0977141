//! The end of life from the wear of a steady state: erases continue at their rate, spread over the blocks that rotate.

use emmc_card::device::{Device, EraseCounts, Health};
use emmc_card::nand::BlockHealth;

/// Nobody asks further. Unit: days.
const DAYS_MAX: f64 = 365_250.0;
/// The share of its spare blocks from which PRE_EOL_INFO warns, factory bad blocks among them.
const WARNING_SHARE: f64 = 0.8;

/// The end of a life. Unit: days from now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Outlook {
    /// Of the rated erases of the kind that wears most. Unit: share of them.
    pub(super) wear_per_day: f64,
    /// Whether that kind is the one with one bit a cell.
    pub(super) is_single_bit: bool,
    pub(super) to_rated: Option<f64>,
    /// Until the rated erases of the log of small writes are used. The card goes on without it.
    pub(super) to_log_end: Option<f64>,
    /// What the register of one bit a cell shows then. Unit: share of the rated erases.
    pub(super) shown_at_log_end: f64,
    pub(super) to_warning: Option<f64>,
    pub(super) to_read_only: Option<f64>,
}

impl Outlook {
    /// The register that shows the wear.
    pub(super) fn register(&self) -> &'static str {
        if self.is_single_bit { "DEVICE_LIFE_TIME_EST_TYP_A" } else { "DEVICE_LIFE_TIME_EST_TYP_B" }
    }
}

/// Erases of each kind of block, or their rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Erases {
    single_bit: f64,
    multi_bit: f64,
}

impl Erases {
    /// Of all blocks, bad ones too: near the end of a life they go bad in a measurement, and their erases count.
    pub(super) fn of(device: &Device) -> Self {
        let total = |is_single_bit: bool| -> f64 {
            let blocks = device.nand().blocks().iter().filter(|block| (block.mode.bits() == 1) == is_single_bit);
            blocks.map(|block| f64::from(block.erase_count)).sum()
        };
        Self { single_bit: total(true), multi_bit: total(false) }
    }

    pub(super) fn each(&self, other: &Self, of: impl Fn(f64, f64) -> f64) -> Self {
        let single_bit = of(self.single_bit, other.single_bit);
        Self { single_bit, multi_bit: of(self.multi_bit, other.multi_bit) }
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        self.each(other, |one, other| one + other)
    }

    pub(super) fn since(&self, before: &Self) -> Self {
        // A block that changes its mode takes its erases along.
        self.each(before, |one, before| (one - before).max(0.0))
    }

    pub(super) fn times(&self, factor: f64) -> Self {
        self.each(self, |one, _| one * factor)
    }
}

/// Erases of each block, by its number.
pub(super) fn erases(device: &Device) -> Vec<u32> {
    device.nand().blocks().iter().map(|block| block.erase_count).collect()
}

/// The blocks of the log of small writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LogBlocks {
    count: f64,
    /// Mean erases of one before the trial.
    used_erases: f64,
}

impl LogBlocks {
    /// Those with one bit a cell that a measurement erased; other blocks of that kind, of boot areas and RPMB, it left
    /// alone, and those of records it erased seldom. Nothing if there is no log.
    pub(super) fn of(device: &Device, start: &[u32], before: &[u32]) -> Option<Self> {
        let has_log = device.profile().ftl.slc_cache.is_some() && device.partitioning().enhanced_groups == 0;
        let blocks = device.nand().blocks().iter().zip(start).zip(before).filter(|_| has_log);
        let one_bit = blocks.filter(|((block, _), _)| block.mode.bits() == 1);
        let (mut sum, mut squares, mut used) = (0.0, 0.0, 0.0);
        for ((block, start), before) in one_bit {
            let erased = f64::from(block.erase_count.saturating_sub(*before));
            (sum, squares, used) = (sum + erased, squares + erased * erased, used + erased * f64::from(*start));
        }
        (sum > 0.0).then(|| Self { count: sum * sum / squares, used_erases: used / sum })
    }
}

/// Days until a share of the rating, at a rate; nothing if that is beyond any question.
fn days(left: f64, per_day: f64) -> Option<f64> {
    let days = left.max(0.0) / per_day;
    (days < DAYS_MAX).then_some(days)
}

/// The outlook of a card with these erases a day. `start` is its wear before the trial, from which life is counted.
pub(super) fn outlook(device: &Device, start: &Health, per_day: &Erases, log: Option<LogBlocks>) -> Outlook {
    let health = device.health();
    let nand = &device.profile().nand;
    let single_rating = nand.slc.as_ref().unwrap_or(&nand.native).endurance;
    let kinds = [
        (false, health.multi_bit, start.multi_bit, nand.native.endurance, per_day.multi_bit),
        (true, health.single_bit, start.single_bit, single_rating, per_day.single_bit),
    ];
    let (mut found, mut warning, mut read_only) = (Outlook::default(), None, None);
    for (is_single_bit, counts, started, rating, erases) in kinds {
        if counts.blocks == 0 {
            continue;
        }
        let wear = erases / f64::from(counts.blocks) / f64::from(rating);
        let used = used_at_start(&counts, &started, start, rating);
        let to_rated = days(1.0 - used, wear);
        let log = log.filter(|_| is_single_bit);
        if let Some(log) = log {
            found.to_log_end = days(f64::from(rating) - log.used_erases, erases / log.count);
            found.shown_at_log_end = used + found.to_log_end.unwrap_or(0.0) * wear;
        }
        // The kind whose rated erases are used first, else the one that wears more.
        let is_sooner = match (to_rated, found.to_rated) {
            (Some(days), Some(known)) => days < known,
            (None, None) => wear > found.wear_per_day,
            (days, _) => days.is_some(),
        };
        if is_sooner {
            found = Outlook { wear_per_day: wear, is_single_bit, to_rated, ..found };
        }
        // A bad block of the log has no spare: the log is smaller then, and at last there is none.
        if log.is_some() {
            continue;
        }
        let blocks = Blocks { is_single_bit, counts, erases, used_erases: used * f64::from(rating) };
        let [to_warning, to_read_only] = spares(device, &health, &blocks);
        warning = earlier(warning, to_warning);
        read_only = earlier(read_only, to_read_only);
    }
    Outlook { to_warning: warning, to_read_only: read_only, ..found }
}

fn earlier(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The used share of the rating before the trial. Blocks that the trial's setup has switched to one bit a cell keep
/// their erases.
fn used_at_start(now: &EraseCounts, started: &EraseCounts, start: &Health, rating: u32) -> f64 {
    let is_same = started.blocks.abs_diff(now.blocks) <= now.blocks / 20;
    let counts = if is_same { started } else { &start.all };
    counts.mean() / f64::from(rating)
}

/// Blocks of a kind.
struct Blocks {
    is_single_bit: bool,
    counts: EraseCounts,
    /// A day.
    erases: f64,
    /// Mean erases of a block before the trial.
    used_erases: f64,
}

/// Days until the spare blocks are used up to the warning, and wholly: the weakest blocks fail first.
fn spares(device: &Device, health: &Health, blocks: &Blocks) -> [Option<f64>; 2] {
    if health.spares == 0 {
        return [None; 2];
    }
    let nand = device.nand();
    let kind = |block: &emmc_card::nand::Block| {
        block.health == BlockHealth::Good && (block.mode.bits() == 1) == blocks.is_single_bit
    };
    let numbers = (0u32..).zip(nand.blocks()).filter(|(_, block)| kind(block)).map(|(number, _)| number);
    let mut endurances: Vec<f64> = numbers.map(|number| f64::from(nand.endurance_of(number))).collect();
    endurances.sort_unstable_by(f64::total_cmp);
    // Spares lie idle until they replace a block, so the others turn faster than the mean.
    let rotating = f64::from(blocks.counts.blocks.saturating_sub(health.spares_left).max(1));
    let per_day = blocks.erases / rotating;
    let reserve = f64::from(health.spares + health.factory_bad);
    let used = f64::from(health.spares - health.spares_left + health.factory_bad);
    let failures = ((reserve * WARNING_SHARE).ceil() - used).max(0.0) as usize;
    let at = |failures: usize| {
        if failures == 0 {
            return Some(0.0);
        }
        // The weakest of the rotating blocks: all blocks, less the share that lies idle.
        let place = failures as f64 * f64::from(blocks.counts.blocks) / rotating;
        let endurance = endurances.get((place.ceil() as usize).saturating_sub(1))?;
        days(endurance - blocks.used_erases, per_day)
    };
    [at(failures), at(health.spares_left as usize + 1)]
}
