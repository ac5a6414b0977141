//! How much is written fast before the rate falls: 512 KiB sequential, and 4 KiB random.
//!
//! Both begin on a trimmed area, after half a minute of idle time, in which a card may empty its log or its cache of
//! single-bit cells. Then the area is written once, at most five minutes, until the rate has been low for half of the
//! volume before its fall (24 MiB at least): twice the area in all, at most. Times are those of the requests; nothing
//! is flushed between them. The split into a fast and a slow part is the one with the least squares. It is reported
//! if the slow part takes at least 1.1 times as long, and the difference is five times its standard error. Large
//! writes may go past a log that small ones fill, so the two volumes need not be the same. Absent on purpose: how
//! soon the card is fast again (`emmclab probe` tries rests).

use emmc_port::{BlockOp, TargetShape};
use emmc_units::{Nanos, Rng};

use super::area::{block_bytes, sized};
use super::{Bench, Cost, Knob, Options, Suite, trims};
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, Limit, Stream};
use crate::result::state::StateKind;
use crate::result::{Figure, Pivot};
use crate::stats::fall::Fall;

const NAME: &str = "burst";
/// Unit: bytes.
const AREA_BYTES: u64 = 1 << 30;
/// What is judged together. Unit: bytes.
const BIN: u64 = 4 << 20;
/// The first part that is written before a fall is looked for. Unit: bytes.
const FIRST_PART: u64 = 32 << 20;
/// What is written after the fall at least, so that it is known how slow that is. Unit: bytes.
const LEAST_SLOW: u64 = 6 * BIN;
/// Writes after the fall take at least this many times as long as those before it.
const FALL: f64 = 1.1;
/// Longest column.
const TIME_MAX: Nanos = Nanos::from_secs(300);
/// After a trim: a card erases trimmed blocks while it is idle.
const REST: Nanos = Nanos::from_secs(30);

/// The columns: name, block in bytes, whether its places come in random order.
const COLUMNS: [(&str, u64, bool); 2] = [("512 KiB sequential", 512 << 10, false), ("4 KiB random", 4 << 10, true)];
/// The figure of the suite `burst` that has what small random writes write before their rate falls. Unit: MiB.
pub const BURST_VOLUME: &str = "4 KiB random, fast for";

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst;

/// The columns that are measured; an option chooses them by their block.
fn columns(options: &Options) -> Result<Vec<(&'static str, u64, bool)>, BenchError> {
    let known = |row: &String| block_bytes(row, 512).filter(|block| COLUMNS.iter().any(|known| known.1 == *block));
    if let Some(row) = options.rows.iter().find(|row| known(row).is_none()) {
        return Err(BenchError::Misfit {
            suite: NAME,
            what: format!("row {row:?}: expected the size of a write in KiB: 512, 4"),
        });
    }
    let wanted: Vec<u64> = options.rows.iter().filter_map(known).collect();
    Ok(COLUMNS.into_iter().filter(|row| wanted.is_empty() || wanted.contains(&row.1)).collect())
}

impl Suite for Burst {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "how much is written fast before the rate falls: 512 KiB sequential, and 4 KiB random"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::Rows]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let (from_bytes, to_bytes) = range(shape, options)?;
        let columns = columns(options)?.len() as u64;
        let trims = if shape.can_trim { trims(from_bytes, to_bytes) } else { 0 };
        let written_bytes = columns * (to_bytes - from_bytes);
        let parts = parts(to_bytes - from_bytes).len() as u32;
        Ok(Cost {
            written_bytes,
            read_bytes: 0,
            from_bytes,
            to_bytes,
            steps: columns as u32 * (parts + trims),
            rest: Nanos(REST.0 * columns),
        })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let range = range(bench.target.shape(), bench.options)?;
        bench.table(Pivot {
            table: NAME.into(),
            rows: "to MiB".into(),
            unit: "MB/s".into(),
            caption: "the rate of each part, by the volume at its end; after a trim and a rest".into(),
        });
        if !bench.target.shape().can_trim {
            bench.remark("Nothing was trimmed: the target cannot be. What was written before may fill the log.");
        }
        for (column, block, is_random) in columns(bench.options)? {
            let mut bins = Vec::new();
            let ended = burst(bench, range, (column, block, is_random), &mut bins);
            // Also if it was cancelled: what was written until then, if anything was.
            if !bins.is_empty() {
                figures(bench, column, &bins);
            }
            ended?;
        }
        Ok(())
    }
}

/// The ends of the parts of an area, each as large as all before it together. Unit: bytes.
fn parts(area: u64) -> Vec<u64> {
    let doubled = std::iter::successors(Some(FIRST_PART), |end| Some(end * 2));
    doubled.take_while(|end| *end < area).chain([area]).collect()
}

/// Writes the area once, or until the slow part is long enough; adds the time of each bin. Unit: microseconds.
fn burst(
    bench: &mut Bench<'_>,
    (from, to): (u64, u64),
    (column, block, is_random): (&str, u64, bool),
    bins: &mut Vec<f64>,
) -> Result<(), BenchError> {
    if bench.target.shape().can_trim {
        bench.trim("trim everything", from, to)?;
        bench.brought_into(StateKind::Trimmed, from, to);
    }
    bench.sync()?;
    bench.target.idle(REST)?;
    let mut offsets: Vec<u64> = (from..to).step_by(block as usize).collect();
    let order = if is_random { Order::Shuffled } else { Order::Sequential };
    if is_random {
        Rng::new(bench.options.seed).shuffle(&mut offsets);
    }
    let pass = Stream::pass(BlockOp::Write, order, from, to, block);
    let (began, mut written) = (bench.now(), 0);
    for end in parts(to - from) {
        let left = Nanos(TIME_MAX.0.saturating_sub(bench.now().since(began).0));
        let stream = Stream { limit: Limit { time: Some(left), ..pass.limit }, ..pass };
        let part = &offsets[written..(end / block) as usize];
        let (_, times) = bench.measure_at([NAME, &(end >> 20).to_string(), column], &stream, part)?;
        let of_bin = |times: &[Nanos]| times.iter().map(|time| time.as_micros_f64()).sum::<f64>();
        bins.extend(times.chunks_exact((BIN / block) as usize).map(of_bin));
        written += times.len();
        let fall = Fall::of((bins, BIN), FALL);
        if times.len() < part.len() || fall.is_some_and(|fall| fall.has_lasted(bins.len() as u64 * BIN, LEAST_SLOW)) {
            break;
        }
    }
    Ok(())
}

fn figures(bench: &mut Bench<'_>, column: &str, bins: &[f64]) {
    let written = (bins.len() as u64 * BIN) >> 20;
    let fall = Fall::of((bins, BIN), FALL);
    let note = match fall {
        Some(_) => format!("before the rate falls; {written} MiB were written"),
        None => format!("the rate does not fall clearly within {written} MiB"),
    };
    let volume = fall.map(|fall| fall.after as f64 / f64::from(1 << 20));
    bench.figure(Figure::new(format!("{column}, fast for"), volume, "MiB", note));
    for (name, rate) in [("before", fall.map(|fall| fall.fast)), ("after", fall.map(|fall| fall.slow))] {
        if let Some(rate) = rate {
            bench.figure(Figure::new(format!("{column}, {name} the fall"), rate, "MB/s", String::new()));
        }
    }
}

/// A quarter of the target, or less if it is large.
fn range(shape: &TargetShape, options: &Options) -> Result<(u64, u64), BenchError> {
    let usual = AREA_BYTES.min(shape.size_bytes / 4);
    sized(NAME, shape, options, usual, BIN)
}
