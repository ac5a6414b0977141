//! `tiotest`: several threads, each with its own file, in four phases.
//!
//! Four threads (`--queue-depth`), 10 MiB each (`--size` is the total), blocks of 4 KiB (`--rows` in KiB): sequential
//! write, random write, sequential read, random read; random is uniform over the file, with repetitions. The flush at
//! the end of a write phase counts in its time, not in its latencies. `tiotest -S` repeats this with synchronous writes
//! (`O_SYNC`, the mode of a well-known white paper). It reports MB/s, mean and longest latency, and the shares above 2
//! and above 10 s.
//!
//! Differences: requests of the threads are submitted in rotation, so no thread gets ahead of the others; 1000 random
//! requests for each thread instead of 100000, which would write 1.6 GB; a phase takes at most 120 s.

use emmc_port::{BlockOp, TargetShape};
use emmc_units::{Nanos, Rng};

use super::area::{block_bytes, sized};
use super::{Bench, Cost, Knob, Options, Suite};
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, FlushAt, Limit, Stream};
use crate::result::Pivot;
use crate::result::grid::Grid;

const NAME: &str = "tiotest";
const THREADS: u32 = 4;
const FILE: u64 = 10 << 20;
const RANDOM: u64 = 1000;
const PHASE_TIME: Nanos = Nanos::from_secs(120);
/// In their order: name, operation, random.
const PHASES: [(&str, BlockOp, bool); 4] = [
    ("write", BlockOp::Write, false),
    ("random write", BlockOp::Write, true),
    ("read", BlockOp::Read, false),
    ("random read", BlockOp::Read, true),
];

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiotest;

#[derive(Clone, Copy, Debug)]
struct Plan {
    from: u64,
    threads: u64,
    /// Per thread. Unit: bytes.
    file: u64,
    block: u64,
    seed: u64,
}

impl Plan {
    fn new(shape: &TargetShape, options: &Options) -> Result<Self, BenchError> {
        let misfit = |what: String| Err(BenchError::Misfit { suite: NAME, what });
        let block = match &options.rows[..] {
            [] => Some(4096),
            [row] => block_bytes(row, 1024),
            _ => None,
        };
        let Some(block) = block else {
            return misfit(format!(
                "rows {:?}: expected one block size in KiB, a power of two up to 1024",
                options.rows
            ));
        };
        let threads = options.queue_depth.unwrap_or(THREADS.min(shape.depth_max));
        if threads == 0 || threads > shape.depth_max {
            return misfit(format!("{threads} threads; {} takes 1 to {}", shape.name, shape.depth_max));
        }
        let threads = u64::from(threads);
        let (from, to) = sized(NAME, shape, options, threads * FILE, threads * block)?;
        Ok(Self { from, threads, file: (to - from) / threads, block, seed: options.seed })
    }

    /// Offsets of a phase, rotating over the threads.
    fn offsets(&self, by_chance: bool, rng: &mut Rng) -> Vec<u64> {
        let blocks = self.file / self.block;
        let turns = if by_chance { RANDOM } else { blocks };
        let mut offsets = Vec::with_capacity((turns * self.threads) as usize);
        for turn in 0..turns {
            for thread in 0..self.threads {
                let block = if by_chance { rng.below(blocks) } else { turn };
                offsets.push(self.from + thread * self.file + block * self.block);
            }
        }
        offsets
    }

    /// Bytes of the sequential and the random phases.
    fn bytes(&self) -> u64 {
        self.threads * (self.file + RANDOM * self.block)
    }
}

impl Suite for Tiotest {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "four threads with a file each, sequential and random, with latencies, as tiotest and tiotest -S"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::Rows, Knob::QueueDepth]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let plan = Plan::new(shape, options)?;
        Ok(Cost {
            written_bytes: 2 * plan.bytes(),
            read_bytes: 2 * plan.bytes(),
            from_bytes: plan.from,
            to_bytes: plan.from + plan.threads * plan.file,
            steps: 8,
            ..Cost::default()
        })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let plan = Plan::new(bench.target.shape(), bench.options)?;
        bench.table(Pivot {
            table: NAME.into(),
            rows: "mode".into(),
            unit: "MB/s".into(),
            caption: format!(
                "{} threads, blocks of {} KiB; the flush after writes counts",
                plan.threads,
                plan.block >> 10
            ),
        });
        let columns = [("mean", "ms"), ("longest", "ms"), ("over 2 s", "%"), ("over 10 s", "%")];
        let mut latencies = Grid::new("tiotest, latencies", "phase", &columns, "of single requests, without flushes");
        let mut rng = Rng::new(plan.seed);
        for sync in [false, true] {
            let mode = if sync { "-S" } else { "plain" };
            for (phase, op, by_chance) in PHASES {
                let offsets = plan.offsets(by_chance, &mut rng);
                let to = plan.from + plan.threads * plan.file;
                let all = Stream::pass(op, Order::Sequential, plan.from, to, plan.block);
                let limit = Limit { time: Some(PHASE_TIME), ..all.limit };
                let flush = if op == BlockOp::Write { FlushAt::End } else { FlushAt::Never };
                let through = sync && op == BlockOp::Write;
                let stream = Stream { limit, flush, through, depth: plan.threads as u32, ..all };
                let (_, times) = bench.measure_at([NAME, mode, phase], &stream, &offsets)?;
                latencies.line(format!("{mode}: {phase}"), &told(&times));
            }
        }
        bench.grid(latencies);
        Ok(())
    }
}

/// Mean, longest, and the shares above 2 and 10 s.
fn told(times: &[Nanos]) -> [f64; 4] {
    let count = times.len().max(1) as f64;
    let share = |secs: u64| times.iter().filter(|time| **time > Nanos::from_secs(secs)).count() as f64 / count * 100.0;
    let mean = times.iter().map(|time| time.as_secs_f64() * 1e3).sum::<f64>() / count;
    let longest = times.iter().map(|time| time.as_secs_f64() * 1e3).fold(0.0, f64::max);
    [mean, longest, share(2), share(10)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_reported_as_by_tiotest() {
        let times = [1_000, 1_000, 3_000, 11_000].map(Nanos::from_millis);
        assert_eq!(told(&times), [4_000.0, 11_000.0, 50.0, 25.0]);
    }

    #[test]
    fn each_thread_stays_in_its_file() {
        let plan = Plan { from: 1 << 20, threads: 4, file: FILE, block: 4096, seed: 1 };
        for by_chance in [false, true] {
            let offsets = plan.offsets(by_chance, &mut Rng::new(1));
            assert_eq!(offsets.len() as u64, 4 * if by_chance { RANDOM } else { FILE / 4096 });
            assert!(offsets.iter().zip((0..4).cycle()).all(|(offset, thread)| (offset - plan.from) / FILE == thread));
        }
    }
}
