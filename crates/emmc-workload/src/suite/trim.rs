//! What trim is worth on a target: measured when it is fresh, filled, aged, and trimmed again.
//!
//! | state | how it comes about |
//! |---|---|
//! | fresh | everything was trimmed, then half a minute of rest, in which a card may erase |
//! | filled | everything was written once, in order, in blocks of 512 KiB |
//! | aged | 4 KiB blocks by chance were written over, as much as a fifth of the area (Linaro's share), two hours at most |
//! | trimmed | everything was trimmed again, and the same rest |
//!
//! In each state: a window at the beginning written and read in order (128 KiB) and read in an order by chance (4
//! KiB), and 4 KiB writes anywhere in the area, each write phase with a flush that counts. What is read was written
//! before: in the fresh and the trimmed state by the window's write just before, in the others by what made the
//! state. Absent on purpose: whether trimmed sectors really read as erased (content is not seen through a target),
//! and files: `fstrim` leaves those in place, this trims everything.

use emmc_port::{BlockOp, TargetKind, TargetShape};
use emmc_units::Nanos;

use super::{Bench, Cost, Options, Suite, area, no_rows};
use crate::order::Order;
use crate::result::{Figure, Pivot};
use crate::stream::{BenchError, FlushAt, Limit, Stream};

const NAME: &str = "trim";
const SEQUENTIAL: &str = "sequential, 128 KiB";
const RANDOM: &str = "by chance, 4 KiB";
/// What the area is a multiple of. Unit: bytes.
const UNIT: u64 = 4 << 20;
/// The smallest area: below it the window is most of it.
const AREA_MIN: u64 = 16 << 20;
const FILL_BLOCK: u64 = 512 << 10;
const AGE_SHARE: f64 = 0.2;
const AGE_TIME: Nanos = Nanos::from_secs(7200);
/// The longest that one measurement of 4 KiB requests takes.
const RANDOM_TIME: Nanos = Nanos::from_secs(120);
/// After a trim: what was given up is still to be erased, which a card does when it is left alone.
const REST: Nanos = Nanos::from_secs(30);
/// What counts as no change: less than a fifth.
const CHANGE: f64 = 0.8;

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trim;

/// Where and how much.
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
        let misfit = |what: String| Err(BenchError::Misfit { suite: NAME, what });
        no_rows(NAME, options)?;
        if !shape.can_trim {
            return misfit(format!("{} cannot be trimmed", shape.name));
        }
        if options.read_only {
            return misfit("nothing can be told without writing".into());
        }
        let (from, to) = area(NAME, shape, options, UNIT)?;
        let size = to - from;
        if size < AREA_MIN {
            return misfit(format!("an area of {size} bytes: expected at least {AREA_MIN}"));
        }
        let window = (size / 64).clamp((size / 8).min(128 << 20), 256 << 20).next_multiple_of(UNIT);
        let mut plan = Self { from, to, window, random: window.min(64 << 20), age: 0 };
        let wanted = (size as f64 * AGE_SHARE) as u64 / 4096 * 4096;
        let least = plan.written() + wanted / 4;
        let budget = options.write_budget_bytes.unwrap_or(u64::MAX);
        if budget < least {
            return misfit(format!("a write budget of {budget} bytes: filling and measuring need at least {least}"));
        }
        plan.age = wanted.min((budget - plan.written()) / 4096 * 4096);
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
        "what trim is worth: fresh, filled, written over by chance, and trimmed again"
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
        })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let plan = Plan::new(bench.target.shape(), bench.options)?;
        for (table, unit) in [(SEQUENTIAL, "MB/s"), (RANDOM, "IOPS")] {
            let caption = "each row is a state of the target; writes include the flush at their end".into();
            bench.table(Pivot { table: table.into(), rows: "state".into(), unit: unit.into(), caption });
        }
        bench.trim("trim everything", plan.from, plan.to)?;
        bench.target.idle(REST)?;
        let fresh = measure(bench, &plan, "fresh", false)?;
        let fill = Stream::pass(BlockOp::Write, Order::Sequential, plan.from, plan.to, FILL_BLOCK);
        bench.prepare("fill", &Stream { flush: FlushAt::End, ..fill })?;
        measure(bench, &plan, "filled", true)?;
        let limit = Limit { bytes: plan.age, time: Some(AGE_TIME) };
        let age = Stream { limit, order: Order::Random, seed: bench.options.seed, ..four_kib(BlockOp::Write, &plan) };
        let aged_bytes = bench.prepare("age", &age)?.written_bytes;
        let aged = measure(bench, &plan, "aged", true)?;
        bench.trim("trim everything again", plan.from, plan.to)?;
        bench.target.idle(REST)?;
        let trimmed = measure(bench, &plan, "trimmed", false)?;
        remarks(bench, &plan, aged_bytes);
        verdict(bench, fresh, aged, trimmed);
        Ok(())
    }
}

fn four_kib(op: BlockOp, plan: &Plan) -> Stream {
    let flush = if op == BlockOp::Write { FlushAt::End } else { FlushAt::Never };
    let limit = Limit { bytes: plan.random, time: Some(RANDOM_TIME) };
    Stream { flush, limit, ..Stream::pass(op, Order::Random, plan.from, plan.to, 4096) }
}

/// Measures a state; what is read is there already, or is written first.
fn measure(bench: &mut Bench<'_>, plan: &Plan, state: &str, reads_first: bool) -> Result<Speeds, BenchError> {
    let seed = bench.options.seed.wrapping_add(1);
    let window_to = plan.from + plan.window;
    let sequential = |op| Stream::pass(op, Order::Sequential, plan.from, window_to, 128 << 10);
    let write = Stream { flush: FlushAt::End, ..sequential(BlockOp::Write) };
    let reads = Stream { to_bytes: window_to, order: Order::Shuffled, seed, ..four_kib(BlockOp::Read, plan) };
    let writes = Stream { seed, ..four_kib(BlockOp::Write, plan) };
    let mut speeds = Speeds::default();
    if !reads_first {
        speeds.sequential_write = bench.measure(SEQUENTIAL, state, "write", &write)?.bytes_per_s();
    }
    speeds.sequential_read = bench.measure(SEQUENTIAL, state, "read", &sequential(BlockOp::Read))?.bytes_per_s();
    speeds.random_read = bench.measure(RANDOM, state, "read", &reads)?.bytes_per_s();
    if reads_first {
        speeds.sequential_write = bench.measure(SEQUENTIAL, state, "write", &write)?.bytes_per_s();
    }
    speeds.random_write = bench.measure(RANDOM, state, "write", &writes)?.bytes_per_s();
    Ok(speeds)
}

fn remarks(bench: &mut Bench<'_>, plan: &Plan, aged_bytes: u64) {
    let shape = bench.target.shape().clone();
    let kind = match shape.kind {
        TargetKind::Simulated => "the virtual card is sent DISCARD (CMD38 with argument 3)",
        TargetKind::Device => {
            "BLKDISCARD: the kernel sends DISCARD, TRIM or ERASE, the first of these that the card can"
        }
        TargetKind::File => "holes are punched into the file: what that does below is the file system's choice",
    };
    let rest = shape.size_bytes - (plan.to - plan.from);
    bench.remark(format!("How it is trimmed: {kind}."));
    if rest >= shape.size_bytes / 100 {
        bench.remark(format!(
            "Only {} of {} MiB were filled: the rest may be free to the card, which then bears overwriting better than a \
             full one.",
            (plan.to - plan.from) >> 20,
            (plan.to - plan.from + rest) >> 20,
        ));
    }
    if aged_bytes < plan.age {
        bench.remark(format!(
            "Ageing ended after {} s with {} of {} MiB written over.",
            AGE_TIME.0 / 1_000_000_000,
            aged_bytes >> 20,
            plan.age >> 20
        ));
    }
}

/// One over the other; nothing where nothing was measured.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0 && part > 0.0).then(|| part / whole)
}

fn verdict(bench: &mut Bench<'_>, fresh: Speeds, aged: Speeds, trimmed: Speeds) {
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
    bench.remark(words(fresh, aged, trimmed));
}

fn percent(part: f64, whole: f64) -> Option<f64> {
    ratio(part, whole).map(|ratio| ratio * 100.0)
}

/// The verdict in a sentence.
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
    fn the_verdict_says_what_was_found() {
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
