//! The benefit of trim on a target: measured fresh, filled, aged, and trimmed again.
//!
//! | state | how it is reached |
//! |---|---|
//! | fresh | everything was trimmed, then half a minute of idle time, in which a card may erase |
//! | filled | everything was written once, sequentially, in blocks of 512 KiB |
//! | aged | random 4 KiB blocks were overwritten, in total a fifth of the area (Linaro's share), two hours at most |
//! | trimmed | everything was trimmed again, and the same idle time |
//!
//! In each state: a window at the start is written and read sequentially (128 KiB) and read in random order (4 KiB),
//! and 4 KiB writes go to random places of the area; each write phase includes a flush. Data is written before it is
//! read: in the fresh and the trimmed state by the window's write just before, in the others by the steps that led to
//! the state. Absent on purpose: whether trimmed sectors really read as erased (a target does not show content), and
//! files: `fstrim` leaves those in place, this trims everything.

use emmc_port::{BlockOp, TargetKind, TargetShape};
use emmc_units::Nanos;

use super::area::{beyond, whole};
use super::{Bench, Cost, Knob, Options, Suite};
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, FlushAt, Limit, Stream};
use crate::result::state::StateKind;
use crate::result::{Figure, Pivot};

const NAME: &str = "trim";
const SEQUENTIAL: &str = "sequential, 128 KiB";
const RANDOM: &str = "random, 4 KiB";
/// Granularity of the window. Unit: bytes.
const UNIT: u64 = 4 << 20;
const FILL_BLOCK: u64 = 512 << 10;
const AGE_SHARE: f64 = 0.2;
const AGE_TIME: Nanos = Nanos::from_secs(7200);
/// Time limit of one measurement of 4 KiB requests.
const RANDOM_TIME: Nanos = Nanos::from_secs(120);
/// After a trim: a card erases trimmed blocks while it is idle.
const REST: Nanos = Nanos::from_secs(30);
/// A smaller change than a fifth counts as none.
const CHANGE: f64 = 0.8;

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trim;

/// The plan of a run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    from: u64,
    to: u64,
    window: u64,
    random: u64,
    age: u64,
}

/// Speeds in one state. Unit: bytes a second.
#[derive(Clone, Copy, Debug, Default)]
struct Speeds {
    sequential_write: f64,
    random_write: f64,
    sequential_read: f64,
    random_read: f64,
}

impl Plan {
    fn new(shape: &TargetShape, options: &Options) -> Result<Self, BenchError> {
        if !shape.can_trim {
            return Err(BenchError::Misfit { suite: NAME, what: format!("{} cannot be trimmed", shape.name) });
        }
        let (from, to) = whole(NAME, shape, options)?;
        let size = to - from;
        let window = (size / 64).clamp((size / 8).min(128 << 20), 256 << 20).next_multiple_of(UNIT);
        let mut plan = Self { from, to, window, random: window.min(64 << 20), age: 0 };
        let (must, wanted) = (plan.written(), (size as f64 * AGE_SHARE) as u64 / 4096 * 4096);
        let left = beyond(NAME, options, u64::MAX, must, (must + wanted / 4, "filling and measuring"))?;
        plan.age = wanted.min(left / 4096 * 4096);
        Ok(plan)
    }

    fn written(&self) -> u64 {
        self.to - self.from + self.age + 4 * (self.window + self.random)
    }
}

impl Suite for Trim {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "the benefit of trim: fresh, filled, overwritten at random, and trimmed again"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::WriteBudget]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let plan = Plan::new(shape, options)?;
        Ok(Cost {
            written_bytes: plan.written(),
            read_bytes: 4 * (plan.window + plan.random),
            from_bytes: plan.from,
            to_bytes: plan.to,
            // Everything is trimmed in one or two streams each time.
            steps: 2 + 4 * 4 + 2 * super::trims(plan.from, plan.to),
            rest: Nanos(2 * REST.0),
        })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let plan = Plan::new(bench.target.shape(), bench.options)?;
        for (table, unit) in [(SEQUENTIAL, "MB/s"), (RANDOM, "IOPS")] {
            let caption = "each row is a state of the target; writes include the flush at their end".into();
            bench.table(Pivot { table: table.into(), rows: "state".into(), unit: unit.into(), caption });
        }
        let mut found = Found::default();
        let ended = states(bench, &plan, &mut found);
        // Also if it was cancelled: the measurements so far.
        remarks(bench, &plan, found.aged_bytes);
        verdict(bench, &found, ended.is_ok());
        ended
    }
}

/// Speeds in each state, as far as measured.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    fresh: Speeds,
    aged: Speeds,
    trimmed: Speeds,
    /// Overwritten bytes; absent if not reached.
    aged_bytes: Option<u64>,
}

/// Puts the area into each state, one after the other, and measures it.
fn states(bench: &mut Bench<'_>, plan: &Plan, found: &mut Found) -> Result<(), BenchError> {
    let (from, to) = (plan.from, plan.to);
    bench.trim("trim everything", from, to)?;
    bench.target.idle(REST)?;
    bench.brought_into(StateKind::Trimmed, from, to);
    measure(bench, plan, "fresh", false, &mut found.fresh)?;
    let fill = Stream::pass(BlockOp::Write, Order::Sequential, from, to, FILL_BLOCK);
    bench.prepare("fill", &Stream { flush: FlushAt::End, ..fill })?;
    bench.brought_into(StateKind::Filled, from, to);
    measure(bench, plan, "filled", true, &mut Speeds::default())?;
    let limit = Limit { bytes: plan.age, time: Some(AGE_TIME) };
    let age = Stream { limit, order: Order::Random, seed: bench.options.seed, ..four_kib(BlockOp::Write, plan) };
    found.aged_bytes = Some(bench.prepare("age", &age)?.written_bytes);
    bench.brought_into(StateKind::Aged, from, to);
    measure(bench, plan, "aged", true, &mut found.aged)?;
    bench.trim("trim everything again", from, to)?;
    bench.target.idle(REST)?;
    bench.brought_into(StateKind::Trimmed, from, to);
    measure(bench, plan, "trimmed", false, &mut found.trimmed)
}

fn four_kib(op: BlockOp, plan: &Plan) -> Stream {
    let flush = if op == BlockOp::Write { FlushAt::End } else { FlushAt::Never };
    let limit = Limit { bytes: plan.random, time: Some(RANDOM_TIME) };
    Stream { flush, limit, ..Stream::pass(op, Order::Random, plan.from, plan.to, 4096) }
}

/// Measures a state; data to read exists already, or is written first.
fn measure(
    bench: &mut Bench<'_>,
    plan: &Plan,
    state: &str,
    reads_first: bool,
    speeds: &mut Speeds,
) -> Result<(), BenchError> {
    let seed = bench.options.seed.wrapping_add(1);
    let window_to = plan.from + plan.window;
    let sequential = |op| Stream::pass(op, Order::Sequential, plan.from, window_to, 128 << 10);
    let write = Stream { flush: FlushAt::End, ..sequential(BlockOp::Write) };
    let reads = Stream { to_bytes: window_to, order: Order::Shuffled, seed, ..four_kib(BlockOp::Read, plan) };
    let writes = Stream { seed, ..four_kib(BlockOp::Write, plan) };
    if !reads_first {
        speeds.sequential_write = bench.measure(SEQUENTIAL, state, "write", &write)?.bytes_per_s();
    }
    speeds.sequential_read = bench.measure(SEQUENTIAL, state, "read", &sequential(BlockOp::Read))?.bytes_per_s();
    speeds.random_read = bench.measure(RANDOM, state, "read", &reads)?.bytes_per_s();
    if reads_first {
        speeds.sequential_write = bench.measure(SEQUENTIAL, state, "write", &write)?.bytes_per_s();
    }
    speeds.random_write = bench.measure(RANDOM, state, "write", &writes)?.bytes_per_s();
    Ok(())
}

fn remarks(bench: &mut Bench<'_>, plan: &Plan, aged_bytes: Option<u64>) {
    let kind = match bench.target.shape().kind {
        TargetKind::Simulated => "the virtual card gets DISCARD (CMD38 with argument 3)",
        TargetKind::Device => {
            "BLKDISCARD: the kernel sends the first of DISCARD, TRIM and ERASE that the card supports"
        }
        TargetKind::File => "holes are punched into the file: the effect on the device depends on the filesystem",
    };
    bench.remark(format!("How it is trimmed: {kind}."));
    let why =
        "were filled: the rest may be free, and a card with free space handles overwriting better than a full one";
    bench.remark_rest((plan.from, plan.to), why);
    if let Some(aged_bytes) = aged_bytes.filter(|bytes| *bytes < plan.age) {
        bench.remark(format!(
            "Ageing ended after {} s with {} of {} MiB overwritten.",
            AGE_TIME.0 / 1_000_000_000,
            aged_bytes >> 20,
            plan.age >> 20
        ));
    }
}

/// The quotient; none without a measurement.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0 && part > 0.0).then(|| part / whole)
}

fn verdict(bench: &mut Bench<'_>, found: &Found, is_whole: bool) {
    let Found { fresh, aged, trimmed, .. } = *found;
    let figures = [
        ("4 KiB writes, aged", ratio(fresh.random_write, aged.random_write), "x slower", "than fresh"),
        ("4 KiB writes, trimmed", percent(trimmed.random_write, fresh.random_write), "%", "of fresh"),
        ("sequential writes, aged", ratio(fresh.sequential_write, aged.sequential_write), "x slower", "than fresh"),
        ("sequential writes, trimmed", percent(trimmed.sequential_write, fresh.sequential_write), "%", "of fresh"),
        ("4 KiB reads, aged", percent(aged.random_read, fresh.random_read), "%", "of fresh"),
        ("sequential reads, aged", percent(aged.sequential_read, fresh.sequential_read), "%", "of fresh"),
    ];
    for (name, value, unit, note) in figures {
        bench.figure(Figure::new(name, value, unit, note));
    }
    let words = match is_whole {
        true => words(fresh, aged, trimmed),
        false => "Verdict: cannot tell: the run ended before every state was measured.".into(),
    };
    bench.remark(words);
}

fn percent(part: f64, whole: f64) -> Option<f64> {
    ratio(part, whole).map(|ratio| ratio * 100.0)
}

/// The verdict in one sentence.
fn words(fresh: Speeds, aged: Speeds, trimmed: Speeds) -> String {
    let kept = [(aged.random_write, fresh.random_write), (aged.sequential_write, fresh.sequential_write)];
    let [Some(random), Some(sequential)] = kept.map(|(now, before)| ratio(now, before)) else {
        return "Verdict: cannot tell: a state had no speed.".into();
    };
    let reads = [(aged.random_read, fresh.random_read), (aged.sequential_read, fresh.sequential_read)];
    let reads = reads.map(|(now, before)| ratio(now, before).unwrap_or(0.0));
    let reads = match reads.iter().all(|ratio| (0.9..=1.1).contains(ratio)) {
        true => "reads unchanged".into(),
        false => format!("reads at {:.0} % (4 KiB) and {:.0} % (sequential)", reads[0] * 100.0, reads[1] * 100.0),
    };
    if random >= CHANGE && sequential >= CHANGE {
        let least = random.min(sequential) * 100.0;
        return format!(
            "Verdict: no need for trim: full and aged, writes keep {least:.0} % of fresh or more; {reads}."
        );
    }
    let (what, slower, back) = match random <= sequential {
        true => ("4 KiB writes", 1.0 / random, trimmed.random_write / fresh.random_write),
        false => ("sequential writes", 1.0 / sequential, trimmed.sequential_write / fresh.sequential_write),
    };
    let after = match back >= CHANGE {
        true => format!("back to {:.0} % of fresh after one trim", back * 100.0),
        false => format!("only at {:.0} % of fresh after one trim", back * 100.0),
    };
    format!("Verdict: {what} {slower:.1}x slower once full and aged, {after}; {reads}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speeds(write: f64, read: f64) -> Speeds {
        Speeds { sequential_write: write, random_write: write, sequential_read: read, random_read: read }
    }

    #[test]
    fn the_verdict_matches_the_measurement() {
        let fresh = speeds(19.0, 5.0);
        for (aged, trimmed, says) in [
            (
                speeds(1.0, 5.0),
                speeds(18.5, 5.0),
                "19.0x slower once full and aged, back to 97 % of fresh after one trim; reads unchanged",
            ),
            (speeds(18.0, 5.0), fresh, "no need for trim"),
            (speeds(1.0, 2.5), speeds(2.0, 5.0), "only at 11 % of fresh after one trim; reads at 50 %"),
        ] {
            let verdict = words(fresh, aged, trimmed);
            assert!(verdict.contains(says), "{verdict}");
        }
    }
}
