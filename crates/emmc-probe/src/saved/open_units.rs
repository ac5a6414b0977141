//! flashbench's `--open-au`: writes in turn to a number of units.
//!
//! While the card keeps all of them open, the time of a write shrinks with its size. With one more, each write closes a
//! unit, which the card merges: that takes the same time for every size, because the whole unit is copied. Two things
//! together give the unit: copying is about as fast as the host's own writing, and a write pays for what it leaves to
//! merge, which is nothing if it is a whole unit and half of a merge if it is half a unit.

use std::collections::BTreeMap;

use emmc_workload::Measurement;

use crate::result::{Evidence, Parameter, Value};
use crate::robust::median;
use crate::saved::{labelled, number, size};
use crate::units::COLLAPSE;

/// What the host writes in the time of a merge, in units. Copying needs no bus, but reads first.
const COPIES: std::ops::RangeInclusive<f64> = 0.4..=1.25;
/// A write of a whole unit pays less than this share of a merge.
const WHOLE: f64 = 0.25;
/// Half a unit pays this share at least of what is expected, and clearly from the second one on.
const HALF_LEAST: f64 = 0.2;
const HALF_CLEAR: f64 = 0.5;
/// Times of two sizes that differ by less are the same.
const SAME: f64 = 1.3;
/// Times of two sizes that differ by more grow with the size.
const GROWS: f64 = 1.5;
/// The size above the unit of the run that tells nothing: whole units have nothing to merge.
const PART: u64 = 4;

/// The rates of writes in turn to some units.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) units: u64,
    pub(super) random: bool,
    /// Unit: bytes, MB/s.
    pub(super) rates: BTreeMap<u64, f64>,
    /// How many times faster the fastest of several runs was than the slowest, of the size that differs most.
    pub(super) spread: f64,
}

impl Run {
    /// Unit: microseconds.
    fn time_us(&self, block: u64) -> Option<f64> {
        Some(block as f64 / self.rates.get(&block)?)
    }

    fn largest(&self) -> u64 {
        self.rates.last_key_value().map_or(0, |(block, _)| *block)
    }

    /// The smallest size that both have, if it is much smaller than a unit.
    fn common(&self, other: &Self) -> Option<u64> {
        let smallest = self.rates.keys().copied().find(|block| other.rates.contains_key(block))?;
        (smallest * PART <= self.largest().max(other.largest())).then_some(smallest)
    }

    /// Whether times are the same for the two smallest sizes from this one on.
    fn is_flat(&self, from: u64) -> Option<bool> {
        Some(self.time_us(from * 2)? / self.time_us(from)? < SAME)
    }
}

/// Every run whose number of units is known; repeated ones by their median.
pub(super) fn runs(measurements: &[&Measurement]) -> Vec<Run> {
    let mut all: BTreeMap<(bool, u64), BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
    for cell in measurements {
        let Some(order) = cell.table.strip_prefix("open-au, ") else { continue };
        let units = cell.column.split_once(" AU").and_then(|(count, _)| count.parse::<u64>().ok());
        let (Some(units), Some(block)) = (units, labelled(&cell.row)) else { continue };
        let run = all.entry((order.starts_with("random"), units)).or_default();
        run.entry(block).or_default().push(cell.mb_per_s);
    }
    let ratio =
        |all: &Vec<f64>| all.iter().copied().fold(0.0, f64::max) / all.iter().copied().fold(f64::INFINITY, f64::min);
    let run = |((random, units), rates): ((bool, u64), BTreeMap<u64, Vec<f64>>)| Run {
        units,
        random,
        spread: rates.values().map(ratio).fold(1.0, f64::max),
        rates: rates.into_iter().map(|(block, all)| (block, median(&all))).collect(),
    };
    all.into_iter().map(run).collect()
}

/// Which runs were fast and which were slow.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    fast: Vec<Run>,
    slow: Vec<Run>,
    /// Ratios by number of units.
    seen: Vec<String>,
    /// Why there is none.
    why: Option<String>,
}

/// The runs of one order.
pub(super) fn limit(runs: &[Run], random: bool) -> Limit {
    let order = if random { "--random" } else { "no --random" };
    let mut found = Limit { fast: Vec::new(), slow: Vec::new(), seen: Vec::new(), why: None };
    let mut is_mixed = false;
    let mut left_out = Vec::new();
    for run in runs.iter().filter(|run| run.random == random) {
        let against = found.fast.iter().filter_map(|fast: &Run| {
            let block = run.common(fast)?;
            Some((block, run.time_us(block)? / fast.time_us(block)?))
        });
        let worst = against.max_by(|a, b| a.1.total_cmp(&b.1));
        match worst {
            // The first is the measure of the others.
            None if found.fast.is_empty() && run.rates.len() > 2 => found.fast.push(run.clone()),
            None => left_out.push(run.units.to_string()),
            Some((block, ratio)) => {
                found.seen.push(format!("{}, {}: {ratio:.1}", number(run.units, "unit"), size(block as f64)));
                if ratio > COLLAPSE {
                    found.slow.push(run.clone());
                } else {
                    is_mixed |= !found.slow.is_empty();
                    found.fast.push(run.clone());
                }
            }
        }
    }
    let left_out = (!left_out.is_empty()).then(|| left_out.join(", "));
    let apart = runs.iter().find(|run| run.random == random && run.spread > COLLAPSE);
    found.why = match (&found.fast[..], &found.slow[..]) {
        _ if apart.is_some() => {
            apart.map(|run| format!("two runs of {} differ by {:.1} times", number(run.units, "unit"), run.spread))
        }
        _ if is_mixed => Some("a larger number of units was faster than a smaller one".into()),
        ([], _) if left_out.is_some() => {
            Some(format!("the runs with {order} have too few sizes; smaller ones show it"))
        }
        ([], _) => Some(format!("flashbench -O with different numbers of units and {order} shows it")),
        ([one], []) => Some(match left_out {
            Some(others) => format!(
                "with {order}, the runs of {} and {others} units share too few small sizes; smaller ones show it",
                one.units
            ),
            None => {
                let were = if one.units == 1 { "was" } else { "were" };
                format!("only {} {were} tried with {order}; more and fewer show it", number(one.units, "unit"))
            }
        }),
        _ => None,
    };
    found
}

impl Limit {
    /// The last run that was fast, and the first that was slow.
    fn pair(&self) -> Option<(&Run, &Run)> {
        self.why.is_none().then_some(())?;
        Some((self.fast.last()?, self.slow.first()?))
    }

    /// The smallest size at which a write takes as long as one of twice the size, where it did not with fewer units.
    fn merges(&self) -> Option<(&Run, &Run, u64)> {
        let (fast, slow) = self.pair()?;
        let is_merge = |block: &u64| {
            let grows = Some(fast.time_us(block * 2)? / fast.time_us(*block)? > GROWS);
            Some(block * PART <= slow.largest() && slow.is_flat(*block)? && grows?)
        };
        let block = slow.rates.keys().copied().find(|block| is_merge(block) == Some(true))?;
        Some((fast, slow, block))
    }

    pub(super) fn parameter(&self, order: &str) -> Parameter {
        let seen = format!("times of a write against fewer units: {}", self.seen.join(", "));
        if let Some(why) = &self.why {
            let evidence = if self.seen.is_empty() { vec![] } else { vec![Evidence::new("runs in turn", seen, None)] };
            return Parameter::unknown(why.clone(), "", evidence);
        }
        let most = self.fast.last().map_or(0, |run| run.units);
        let value = Value::Whole(most);
        let mut evidence = vec![Evidence::new("runs in turn", seen, Some(value.clone()))];
        if let Some((_, slow, block)) = self.merges() {
            let times = slow.rates.keys().take(3).filter_map(|block| slow.time_us(*block));
            let times: Vec<String> = times.map(|time| format!("{:.0}", time / 1e3)).collect();
            let seen = format!(
                "{}, {order}: a write takes {} ms at sizes that double from {} on: a merge each",
                number(slow.units, "unit"),
                times.join(", "),
                size(block as f64)
            );
            let is_next = slow.units == most + 1;
            evidence.push(Evidence::new("time of a merge", seen, is_next.then(|| value.clone())));
        }
        let parameter = Parameter::of(value, "", evidence);
        match self.slow.first() {
            Some(slow) if slow.units == most + 1 => parameter,
            _ => parameter.at_least(),
        }
    }

    /// The only size of the run that fits the time of a merge and the sizes at which a write has something to merge.
    pub(super) fn unit(&self) -> Option<Evidence> {
        let (fast, slow, block) = self.merges()?;
        let merge = slow.time_us(block)?;
        let best = self.fast.iter().flat_map(|run| run.rates.values()).copied().fold(0.0, f64::max);
        // What a write pays beyond its usual time, as a share of a merge.
        let paid = |size: u64| Some((slow.time_us(size)? - fast.time_us(size)?) / merge);
        let sizes = slow.rates.keys().rev().copied().filter(|size| *size >= block * 2);
        let mut candidates = Vec::new();
        for unit in sizes {
            let (Some(whole), Some(half)) = (paid(unit), paid(unit / 2)) else { continue };
            let copies = merge * best / unit as f64;
            // Half of a unit has half of it to merge.
            let half = 2.0 * half;
            let fits = COPIES.contains(&copies) && whole < WHOLE && half > HALF_LEAST;
            if fits {
                candidates.push((unit, half > HALF_CLEAR));
            }
        }
        let pays = |size: &u64| Some(format!("{}: {:.0} %", self::size(*size as f64), 100.0 * paid(*size)?));
        let seen = format!(
            "a merge takes as long as writing {}; writes pay of a merge: {}",
            size(merge * best),
            slow.rates.keys().rev().take(4).filter_map(pays).collect::<Vec<_>>().join(", ")
        );
        let found = match candidates[..] {
            [(unit, true)] => Some(Value::Whole(unit)),
            _ => None,
        };
        let fitting: Vec<String> = candidates.iter().map(|(unit, _)| size(*unit as f64)).collect();
        let seen = match (&found, fitting.is_empty()) {
            (Some(_), _) => seen,
            (None, true) => format!("{seen}; no size fits both"),
            (None, false) => format!("{seen}; not clear: {}", fitting.join(" or ")),
        };
        Some(Evidence::new("streams in turn", seen, found))
    }
}

/// Whether one unit takes its writes in any order.
pub(super) fn mapping(runs: &[Run]) -> Parameter {
    let one = |random: bool| runs.iter().find(|run| run.random == random && run.units == 1);
    let (Some(linear), Some(random)) = (one(false), one(true)) else {
        let why = "flashbench -O with --open-au-nr=1, with and without --random, shows it";
        return Parameter::unknown(why, "", vec![]);
    };
    let known = linear.common(random).and_then(|block| Some((block, random.is_flat(block)?, linear.is_flat(block)?)));
    match known {
        Some((block, is_flat, false)) => {
            // More than one unit in random order is another run.
            let class = if is_flat { "sequential" } else { "semi-sequential or random" };
            let times = random.rates.keys().take(3).filter_map(|block| random.time_us(*block));
            let times: Vec<String> = times.map(|time| format!("{:.1}", time / 1e3)).collect();
            let seen = format!(
                "random writes to one unit take {} ms at sizes that double from {} on",
                times.join(", "),
                size(block as f64)
            );
            let value = Value::Kind(class.into());
            Parameter::of(value.clone(), "", vec![Evidence::new("one unit in random order", seen, Some(value))])
        }
        Some((_, _, true)) => {
            Parameter::unknown("the times of linear writes do not shrink with their size", "", vec![])
        }
        None => {
            let why = "the runs with and without --random share too few small sizes; smaller ones show it";
            Parameter::unknown(why, "", vec![])
        }
    }
}
