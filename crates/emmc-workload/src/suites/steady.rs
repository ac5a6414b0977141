//! The steady state of random writes by SNIA's Performance Test Specification, within a write budget.
//!
//! Purge (trim everything), precondition (twice the area sequentially, 128 KiB), then rounds of random 4 KiB writes in
//! the area. A window of five rounds is steady if **both** hold: the rounds' speeds are within 20 % of their mean, and
//! the least-squares line through them rises or falls by at most 10 % of the mean from the first to the last. At most
//! 25 rounds. Then, at steady state, reads and a mix of 65 % reads.
//!
//! Differences from SNIA's: a round is a sixteenth of the area, not a minute, so that it is the same share of a small
//! card and of a large one; and no write exceeds the budget (`--write-budget`; by default four times the area, which is
//! four erases of each block without write amplification). A steady state that the budget does not reach is not
//! claimed. Absent on purpose: the other sizes and mixes of SNIA's matrix, and sanitize as a purge.

use emmc_port::{BlockOp, TargetShape};

use super::area::{beyond, whole};
use super::{Bench, Cost, Knob, Options, Suite};
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, FlushAt, Limit, Mix, Stream};
use crate::result::grid::{Grid, GridLine};
use crate::result::state::StateKind;
use crate::result::{Figure, Pivot};
use crate::stats::interval::Interval;
use crate::stats::latency::Latencies;

const NAME: &str = "steady";
const PRECONDITION_BLOCK: u64 = 128 << 10;
const ROUNDS_MAX: usize = 25;
const WINDOW: usize = 5;
/// Rounds per area.
const ROUNDS_OF_AREA: u64 = 16;
/// Default budget in areas.
const BUDGET_AREAS: u64 = 4;
const RANGE_MAX: f64 = 0.2;
const SLOPE_MAX: f64 = 0.1;
/// Share of reads in the mix at steady state.
const READ_SHARE: f64 = 0.65;

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steady;

/// Variation of the last rounds, as shares of their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Evenness {
    /// From the slowest to the fastest.
    range: f64,
    /// Rise or fall of the line through them.
    slope: f64,
}

impl Evenness {
    /// Of the last five; nothing if there are fewer, or without progress.
    fn of(speeds: &[f64]) -> Option<Self> {
        let window = &speeds[speeds.len().checked_sub(WINDOW)?..];
        let count = WINDOW as f64;
        let mean = window.iter().sum::<f64>() / count;
        let (low, high) =
            window.iter().fold((f64::MAX, 0.0f64), |(low, high), &speed| (low.min(speed), high.max(speed)));
        let middle = (count - 1.0) / 2.0;
        let steep: f64 = (0..).zip(window).map(|(x, speed)| (f64::from(x) - middle) * speed).sum();
        let spread: f64 = (0..WINDOW).map(|x| (x as f64 - middle).powi(2)).sum();
        let slope = (steep / spread * (count - 1.0)).abs();
        (mean > 0.0).then(|| Self { range: (high - low) / mean, slope: slope / mean })
    }

    fn is_steady(&self) -> bool {
        self.range <= RANGE_MAX && self.slope <= SLOPE_MAX
    }
}

/// The plan of a run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    from: u64,
    to: u64,
    round: u64,
    /// Rounds that the budget allows, after preconditioning.
    rounds: usize,
    depth: u32,
}

impl Plan {
    fn new(shape: &TargetShape, options: &Options) -> Result<Self, BenchError> {
        let (from, to) = whole(NAME, shape, options)?;
        let size = to - from;
        let plan = Self { from, to, round: size / ROUNDS_OF_AREA, rounds: 0, depth: options.queue_depth.unwrap_or(1) };
        let before = 2 * size + plan.mixed();
        let least = (before + WINDOW as u64 * plan.round, "preconditioning and five rounds");
        let left = beyond(NAME, options, BUDGET_AREAS * size, before, least)?;
        Ok(Self { rounds: (left / plan.round).min(ROUNDS_MAX as u64) as usize, ..plan })
    }

    /// Bytes moved by each of the measurements at steady state.
    fn mixed(&self) -> u64 {
        self.round / 4 / 4096 * 4096
    }

    fn four_kib(&self, mix: Mix, bytes: u64, seed: u64) -> Stream {
        let whole = Stream::pass(BlockOp::Write, Order::Random, self.from, self.to, 4096);
        let limit = Limit { bytes, time: None };
        Stream { mix, limit, depth: self.depth, flush: FlushAt::Never, seed, ..whole }
    }
}

impl Suite for Steady {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "the steady state of random writes by SNIA's two rules, within a write budget"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::QueueDepth, Knob::WriteBudget]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let plan = Plan::new(shape, options)?;
        Ok(Cost {
            written_bytes: 2 * (plan.to - plan.from) + plan.rounds as u64 * plan.round + plan.mixed(),
            read_bytes: 2 * plan.mixed(),
            from_bytes: plan.from,
            to_bytes: plan.to,
            steps: 0,
            ..Cost::default()
        })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let plan = Plan::new(bench.target.shape(), bench.options)?;
        let mut rounds = Rounds::default();
        let ended = precondition(bench, &plan).and_then(|()| rounds.run(bench, &plan));
        let is_short = !rounds.is_steady() && plan.rounds < ROUNDS_MAX;
        // Also if it was cancelled: the rounds so far.
        rounds.tell(bench, &plan, ended.is_err());
        ended?;
        at_steady_state(bench, &plan)?;
        match is_short {
            true => Err(BenchError::Budget { suite: NAME }),
            false => Ok(()),
        }
    }
}

fn precondition(bench: &mut Bench<'_>, plan: &Plan) -> Result<(), BenchError> {
    if bench.target.shape().can_trim {
        bench.trim("purge: trim everything", plan.from, plan.to)?;
        bench.brought_into(StateKind::Trimmed, plan.from, plan.to);
    } else {
        bench.remark("Not purged: the target cannot be trimmed.");
    }
    let fill = Stream::pass(BlockOp::Write, Order::Sequential, plan.from, plan.to, PRECONDITION_BLOCK);
    let limit = Limit { bytes: 2 * fill.limit.bytes, time: None };
    bench.prepare("precondition: twice sequentially", &Stream { limit, flush: FlushAt::End, ..fill })?;
    bench.brought_into(StateKind::Filled, plan.from, plan.to);
    Ok(())
}

fn at_steady_state(bench: &mut Bench<'_>, plan: &Plan) -> Result<(), BenchError> {
    let seed = bench.options.seed.wrapping_add(1 + ROUNDS_MAX as u64);
    for (column, mix) in [("4 KiB read", Mix::Only(BlockOp::Read)), ("65 % reads", Mix::Reads { share: READ_SHARE })] {
        bench.measure("at the end", "after the rounds", column, &plan.four_kib(mix, plan.mixed(), seed))?;
    }
    bench.table(Pivot {
        table: "at the end".into(),
        rows: String::new(),
        unit: "IOPS".into(),
        caption: "random 4 KiB requests, in the state after the rounds".into(),
    });
    Ok(())
}

/// Results of the rounds.
#[derive(Debug, Default)]
struct Rounds {
    iops: Vec<f64>,
    /// Batch speeds and latencies of each round, for the window.
    batches: Vec<Vec<f64>>,
    latencies: Vec<Latencies>,
}

impl Rounds {
    /// Measures until both rules hold or the budget is used up.
    fn run(&mut self, bench: &mut Bench<'_>, plan: &Plan) -> Result<(), BenchError> {
        for number in 1..=plan.rounds {
            let seed = bench.options.seed.wrapping_add(number as u64);
            let writes = plan.four_kib(Mix::Only(BlockOp::Write), plan.round, seed);
            let measured = bench.measure("rounds", &number.to_string(), "4 KiB write", &writes)?;
            bench.brought_into(StateKind::Aged, plan.from, plan.to);
            self.iops.push(measured.bytes_per_s() / 4096.0);
            self.batches.push(measured.batch_speeds().into_iter().map(|speed| speed / 4096.0).collect());
            self.latencies.push(measured.latencies(BlockOp::Write).clone());
            if self.is_steady() {
                break;
            }
        }
        Ok(())
    }

    fn is_steady(&self) -> bool {
        Evenness::of(&self.iops).is_some_and(|evenness| evenness.is_steady())
    }

    fn tell(self, bench: &mut Bench<'_>, plan: &Plan, was_stopped: bool) {
        let (count, is_steady) = (self.iops.len(), self.is_steady());
        if count > 0 {
            bench.grid(self.grid());
        }
        let note = match is_steady {
            true => "both rules hold over the last five".to_string(),
            false if was_stopped => format!("the run ended after {count} complete rounds"),
            false if count == ROUNDS_MAX => format!("the rules did not hold over any five of {ROUNDS_MAX} rounds"),
            false => format!("the write budget was used up after {count} rounds, before the rules held"),
        };
        if count > 0 {
            self.figures(bench, is_steady);
        }
        bench.figure(Figure::new("rounds to steady state", is_steady.then_some(count as f64), "", note.clone()));
        if !is_steady {
            bench.remark(format!("Not steady: {note}."));
        }
        let why = "are written: the rest may be free, and a card with free space writes faster than a full one";
        bench.remark_rest((plan.from, plan.to), why);
        let times = bench.outcome().written_bytes as f64 / (plan.to - plan.from) as f64;
        bench.remark(format!("The area was written {times:.2} times to get here."));
    }

    /// Speed and percentiles over the last five rounds, each with its confidence interval.
    fn figures(self, bench: &mut Bench<'_>, is_steady: bool) {
        let (first, count) = (self.iops.len().saturating_sub(WINDOW), self.iops.len());
        let of = match is_steady {
            true => format!("steady: rounds {} to {count}", first + 1),
            false => format!("not steady: rounds {} to {count}, the last ones", first + 1),
        };
        let iops = self.iops[first..].iter().sum::<f64>() / (count - first) as f64;
        let interval = Interval::of_rates(&self.batches[first..].concat());
        bench.figure(Figure { interval, ..Figure::new("4 KiB writes", iops, "IOPS", of.clone()) });
        let joined = self.latencies.into_iter().skip(first).reduce(|mut all, more| {
            all.append(more);
            all
        });
        let Some(all) = joined.and_then(|joined| joined.latency(bench.options.seed)) else { return };
        let why_not = all.intervals.why_not.clone().unwrap_or_default();
        for (name, value, interval) in all.percentiles() {
            let note = if interval.is_some() { of.clone() } else { format!("{of}; no interval: {why_not}") };
            bench.figure(Figure { interval, ..Figure::new(format!("4 KiB writes, {name}"), value, "us", note) });
        }
        bench.figure(Figure::new("4 KiB writes, longest", all.max, "us", of));
    }

    fn grid(&self) -> Grid {
        let columns = [("writes", "IOPS"), ("range", "%"), ("slope", "%")];
        let caption = "range: slowest to fastest of the last five rounds, at most 20 % of their mean; slope: the line through \
                       them, at most 10 %";
        let mut grid = Grid::new("rounds", "round", &columns, caption);
        for (index, iops) in self.iops.iter().enumerate() {
            let evenness = Evenness::of(&self.iops[..=index]);
            let values = [
                Some(*iops),
                evenness.map(|evenness| evenness.range * 100.0),
                evenness.map(|evenness| evenness.slope * 100.0),
            ];
            grid.lines.push(GridLine { row: (index + 1).to_string(), values: values.to_vec() });
        }
        grid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_steady(speeds: &[f64]) -> bool {
        Evenness::of(speeds).is_some_and(|evenness| evenness.is_steady())
    }

    #[test]
    fn the_steady_state_needs_both_rules() {
        assert!(!is_steady(&[100.0; 4]), "four rounds are no window");
        assert!(is_steady(&[900.0, 100.0, 100.0, 100.0, 100.0, 100.0]), "only the last five count");
        // Even steps of 3 %: within the range of 20 %, but the line falls by 12 %.
        assert!(!is_steady(&[106.0, 103.0, 100.0, 97.0, 94.0]));
        assert!(is_steady(&[104.0, 102.0, 100.0, 98.0, 96.0]));
        // No slope, but a range of 25 %.
        assert!(!is_steady(&[100.0, 100.0, 125.0, 100.0, 100.0]));
        assert!(!is_steady(&[0.0; 5]));
    }

    #[test]
    fn figures_match_the_standard() {
        // y = 106 - 3 x: the line falls by 12 of 100 over the window.
        let evenness = Evenness::of(&[106.0, 103.0, 100.0, 97.0, 94.0]).unwrap();
        assert!((evenness.range - 0.12).abs() < 1e-9 && (evenness.slope - 0.12).abs() < 1e-9, "{evenness:?}");
    }
}
