//! `flashbench --open-au`: the number of allocation units that a card can keep open before it must merge.
//!
//! N units, twelve units apart, the first after 16 MiB (or at `--from`); they are filled in rotation, each position in
//! all of them, in the shift register's order, before the next: with blocks of the unit's size, of its half, and so on
//! to 16 KiB. Positions are sequential or, as with `--random`, in the shift register's order. When N is more than the
//! card keeps open, every write merges and the rate falls with the block size. `--size` is the allocation unit
//! (`--erasesize`); `--rows N` are counts to measure, as `--open-au-nr` is.
//!
//! Without rows the count is searched: doubled until 64 KiB blocks (1/64 of the unit if that is more) run at less than
//! a third of their rate in one sequential unit, then bisected; each trial is preceded by one write of each whole unit,
//! so that there is something to merge. Then the tables show one unit, the most that the card supports, and one more.
//!
//! Improved: nothing wraps; a count that does not fit is refused with the largest that does. A pass takes at most 60 s:
//! then the rate covers the completed part.

use emmc_port::{BlockOp, TargetShape};
use emmc_units::Nanos;

use super::super::area::{aligned, start, stated};
use super::super::{Bench, Cost, Knob, Options, Suite};
use super::places::{PLACES_MAX, scattered};
use super::{BLOCK, KIB, MIB, for_at_most, halvings, label, numbers, requests, unit};
use crate::drive::stream::BenchError;
use crate::result::{Figure, Pivot};

const NAME: &str = "flashbench-open-au";
/// Space before the first unit by default: the FAT.
const BEFORE: u64 = 16 * MIB;
/// Units from the start of one to the start of the next.
const APART: u64 = 12;
/// Upper limit of the search.
const SEARCH_MAX: u64 = 64;
/// A rate that has fallen by more than this factor has collapsed.
const COLLAPSE: f64 = 3.0;
const PASS_TIME: Nanos = Nanos::from_secs(60);

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct OpenAu;

/// Where the units are.
#[derive(Clone, Debug)]
struct Plan {
    unit: u64,
    from: u64,
    /// Requested counts; empty: to be searched.
    counts: Vec<u64>,
    /// The most units that fit.
    most: u64,
}

impl Plan {
    fn new(shape: &TargetShape, options: &Options) -> Result<Self, BenchError> {
        aligned(NAME, shape, options)?;
        let (unit, counts) = (unit(NAME, options)?, numbers(NAME, options, "a number of allocation units")?);
        let from = if options.from_bytes == 0 { BEFORE.next_multiple_of(unit) } else { options.from_bytes };
        let room = shape.size_bytes.saturating_sub(from);
        let most = if room < unit { 0 } else { ((room - unit) / (APART * unit) + 1).min(PLACES_MAX) };
        let wanted = counts.iter().copied().max().unwrap_or(2);
        if wanted > most {
            let need = from + ((wanted - 1) * APART + 1) * unit;
            let what = format!(
                "{wanted} units of {} {} need {}; the target has {}: at most {most}",
                label(unit),
                start(from),
                stated(need),
                stated(shape.size_bytes)
            );
            return Err(BenchError::Misfit { suite: NAME, what });
        }
        Ok(Self { unit, from, counts, most })
    }

    fn search_max(&self) -> u64 {
        SEARCH_MAX.min(self.most)
    }

    /// The block size whose rate decides.
    fn trial_block(&self) -> u64 {
        (self.unit / 64).max(64 * KIB).min(self.unit)
    }

    /// All requests of a pass.
    fn offsets(&self, count: u64, block: u64, random: bool) -> Vec<u64> {
        open_unit_offsets((self.from, self.unit), count, block, random)
    }

    /// Bytes written at most, and passes.
    fn passes(&self) -> (u64, u64) {
        let sizes = halvings(self.unit, BLOCK).count() as u64;
        let most = self.search_max();
        match self.counts.is_empty() {
            false => {
                let units: u64 = self.counts.iter().sum();
                (2 * units * sizes * self.unit, 2 * self.counts.len() as u64 * sizes)
            }
            // Doubling, then bisecting; each trial twice; then three counts with all blocks.
            true => {
                let trials = 2 * (2 * most + u64::from(most.ilog2()) * most);
                (2 * (trials + (2 * most + 1) * sizes) * self.unit, 0)
            }
        }
    }
}

/// The places of a pass of `flashbench --open-au`: `count` allocation units filled in rotation with blocks of one size.
/// The first of them starts at `from`; `unit` is their size. Unit of all: bytes.
pub fn open_unit_offsets((from, unit): (u64, u64), count: u64, block: u64, random: bool) -> Vec<u64> {
    let blocks = unit / block;
    let places = if random { scattered(blocks) } else { (0..blocks).collect() };
    let units: Vec<u64> = scattered(count).iter().map(|number| from + number * APART * unit).collect();
    places.iter().flat_map(|place| units.iter().map(move |unit| unit + place * block)).collect()
}

impl Suite for OpenAu {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "how many allocation units can be written to at once, as flashbench -O, linear and random"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::Rows]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let plan = Plan::new(shape, options)?;
        let (written_bytes, steps) = plan.passes();
        let last = plan.counts.iter().copied().max().unwrap_or(plan.search_max());
        let to_bytes = plan.from + ((last - 1) * APART + 1) * plan.unit;
        Ok(Cost {
            written_bytes,
            read_bytes: 0,
            from_bytes: plan.from,
            to_bytes,
            steps: steps as u32,
            ..Cost::default()
        })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let plan = Plan::new(bench.target.shape(), bench.options)?;
        for random in [false, true] {
            let table = if random { "open-au, random" } else { "open-au, linear" };
            bench.table(Pivot {
                table: table.into(),
                rows: "block".into(),
                unit: "MB/s".into(),
                caption: format!("N units of {} filled in rotation with blocks of one size", label(plan.unit)),
            });
            let mut counts = plan.counts.clone();
            if counts.is_empty() {
                let found = search(bench, &plan, random)?;
                counts = vec![1, found, found + 1];
                counts.retain(|count| (1..=plan.most).contains(count));
                counts.dedup();
            }
            for count in counts {
                for block in halvings(plan.unit, BLOCK) {
                    let (row, column) = (label(block), units(count));
                    pass(bench, &plan, count, block, random, Some([table, &row, &column]))?;
                }
            }
        }
        Ok(())
    }
}

fn units(count: u64) -> String {
    if count == 1 { "1 AU".into() } else { format!("{count} AUs") }
}

/// Fills `count` units in rotation; returns MB a second.
fn pass(
    bench: &mut Bench<'_>,
    plan: &Plan,
    count: u64,
    block: u64,
    random: bool,
    told: Option<[&str; 3]>,
) -> Result<f64, BenchError> {
    let writes = requests(BlockOp::Write, bench.target.shape(), block, bench.options.seed);
    let how = if random { "random" } else { "linear" };
    let step = format!("{}, {how}, {}", units(count), label(block));
    let offsets = plan.offsets(count, block, random);
    let writes = for_at_most(writes, PASS_TIME);
    let (measured, _) = match told {
        Some(place) => bench.measure_at(place, &writes, &offsets)?,
        None => bench.visit(&step, &writes, &offsets)?,
    };
    Ok(measured.bytes_per_s() / 1e6)
}

/// The rate of a trial, after whole units.
fn trial(bench: &mut Bench<'_>, plan: &Plan, count: u64, random: bool) -> Result<f64, BenchError> {
    pass(bench, plan, count, plan.unit, false, None)?;
    pass(bench, plan, count, plan.trial_block(), random, None)
}

/// Searches the most units that the card supports, and reports it.
fn search(bench: &mut Bench<'_>, plan: &Plan, random: bool) -> Result<u64, BenchError> {
    let base = trial(bench, plan, 1, false)?;
    let (mut good, mut bad) = (0, None);
    let mut next = 1;
    while bad.is_none() && next <= plan.search_max() {
        match trial(bench, plan, next, random)? * COLLAPSE < base {
            true => bad = Some(next),
            false => good = next,
        }
        next *= 2;
    }
    while let Some(fails) = bad.filter(|fails| fails - good > 1) {
        let middle = (good + fails) / 2;
        match trial(bench, plan, middle, random)? * COLLAPSE < base {
            true => bad = Some(middle),
            false => good = middle,
        }
    }
    let how = if random { "random" } else { "linear" };
    let block = label(plan.trial_block());
    let note = match (bad, good) {
        (Some(_), 0) => {
            format!("{block} blocks collapse in a single unit already: no unit is open for them in that order")
        }
        (Some(fails), _) => {
            format!("{block} blocks keep a third of their one-unit rate up to this count; with {fails} they do not")
        }
        (None, _) => {
            format!("{block} blocks kept their rate with every count that was tried: there may be more, or no limit")
        }
    };
    bench.figure(Figure::new(format!("open AUs, {how}"), bad.map(|_| good as f64), "", note));
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_alternate_over_the_units() {
        let plan = Plan { unit: 4 * MIB, from: 16 * MIB, counts: vec![3], most: 3 };
        let offsets = plan.offsets(3, MIB, false);
        assert_eq!(offsets.len(), 12);
        let units: Vec<u64> = offsets[..3].iter().map(|offset| (offset - plan.from) / (48 * MIB)).collect();
        assert_eq!(units, scattered(3));
        assert!(offsets[..3].iter().all(|offset| (offset - plan.from) % (48 * MIB) == 0));
        assert!(offsets[3..6].iter().all(|offset| (offset - plan.from) % (48 * MIB) == MIB));
    }
}
