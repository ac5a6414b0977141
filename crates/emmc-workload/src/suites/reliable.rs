//! What durability costs by the size of a write: a flush at the end, a flush after each, and reliable writes.
//!
//! A write that is durable when it completes (`O_DSYNC`, FUA) is what Linux makes a reliable write of the card, if it
//! has them; on a card without a cache, or without reliable writes, the columns are equal. The order of the columns
//! changes with each row, so that a drift of the card is not taken for a difference.

use emmc_port::{BlockOp, TargetShape};
use emmc_units::Nanos;

use super::area::sized;
use super::{Bench, Cost, Knob, Options, Suite};
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, FlushAt, Limit, Stream};
use crate::result::{Figure, Pivot};

const NAME: &str = "reliable";
/// Unit: KiB.
const CHUNKS_KIB: [u64; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];
/// Unit: bytes.
const RANGE_BYTES: u64 = 64 << 20;
/// Most of one cell. Unit: bytes.
const CELL_BYTES: u64 = 16 << 20;
/// Longest cell.
const TIME_MAX: Nanos = Nanos::from_secs(5);
const LARGEST: u64 = 1 << 20;

/// The columns: name, order, durable when complete, flush.
const COLUMNS: [(&str, Order, bool, FlushAt); 5] = [
    ("write", Order::Sequential, false, FlushAt::End),
    ("flushed", Order::Sequential, false, FlushAt::Every(1)),
    ("reliable", Order::Sequential, true, FlushAt::Never),
    ("random write", Order::Random, false, FlushAt::End),
    ("random reliable", Order::Random, true, FlushAt::Never),
];

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reliable;

fn chunks(shape: &TargetShape, options: &Options) -> Result<Vec<u64>, BenchError> {
    let misfit = |what| BenchError::Misfit { suite: NAME, what };
    for row in &options.rows {
        if !CHUNKS_KIB.iter().any(|kib| kib.to_string() == *row) {
            let known: Vec<String> = CHUNKS_KIB.iter().map(u64::to_string).collect();
            return Err(misfit(format!("row {row:?}: expected a size in KiB: {}", known.join(", "))));
        }
    }
    let wanted = |kib: &u64| options.rows.is_empty() || options.rows.contains(&kib.to_string());
    let possible = |kib: &u64| kib << 10 >= u64::from(shape.sector_bytes);
    Ok(CHUNKS_KIB.into_iter().filter(wanted).filter(possible).collect())
}

impl Suite for Reliable {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "what durability costs by the size of a write: flushed at the end, after each, and as reliable writes"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::Rows]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let (from_bytes, to_bytes) = range(shape, options)?;
        let cells = (chunks(shape, options)?.len() * COLUMNS.len()) as u64;
        let written_bytes = cells * CELL_BYTES.min(to_bytes - from_bytes);
        Ok(Cost { written_bytes, read_bytes: 0, from_bytes, to_bytes, steps: cells as u32, ..Cost::default() })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let (from, to) = range(bench.target.shape(), bench.options)?;
        let (chunks, seed) = (chunks(bench.target.shape(), bench.options)?, bench.options.seed);
        bench.table(Pivot {
            table: NAME.into(),
            rows: "write KiB".into(),
            unit: "KiB/s".into(),
            caption: "KiB a second; flushes count; `reliable`: durable when it completes (O_DSYNC, FUA)".into(),
        });
        let mut worst: Option<(f64, u64)> = None;
        for (index, kib) in chunks.into_iter().enumerate() {
            let mut rates = [0.0; COLUMNS.len()];
            for turn in 0..COLUMNS.len() {
                let at = (turn + index) % COLUMNS.len();
                let (column, order, through, flush) = COLUMNS[at];
                let stream = Stream {
                    through,
                    flush,
                    seed: seed.wrapping_add(at as u64),
                    limit: Limit { bytes: CELL_BYTES.min(to - from), time: Some(TIME_MAX) },
                    ..Stream::pass(BlockOp::Write, order, from, to, kib << 10)
                };
                let measured = bench.measure(NAME, &kib.to_string(), column, &stream)?;
                rates[at] =
                    measured.written_bytes as f64 / measured.ended.since(measured.began).as_secs_f64().max(1e-9);
                bench.sync()?;
            }
            let share = rates[2] / rates[0].max(1e-9);
            if worst.is_none_or(|(least, _)| share < least) {
                worst = Some((share, kib));
            }
        }
        if let Some((share, kib)) = worst {
            let about = format!("of the speed of plain writes is left to reliable ones at the worst size, {kib} KiB");
            bench.figure(Figure::new("reliable writes", 100.0 * share, "%", about));
        }
        Ok(())
    }
}

/// A quarter of the target, or less if it is large.
fn range(shape: &TargetShape, options: &Options) -> Result<(u64, u64), BenchError> {
    let usual = RANGE_BYTES.min(shape.size_bytes / 4);
    sized(NAME, shape, options, usual, LARGEST)
}
