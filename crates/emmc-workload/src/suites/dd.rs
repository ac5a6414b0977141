//! `dd`, as people time cards with it: `bs=` blocks from the start, in the three modes that give three speeds.
//!
//! | column | requests |
//! |---|---|
//! | `conv=fdatasync` | through the page cache: written back in 512 KiB, with the target's queue depth (32 at most), one flush at the end that counts |
//! | `oflag=direct` | one block at a time, no flush: the end may remain in the card's cache |
//! | `iflag=direct` | the same blocks read, one at a time |
//! | `oflag=dsync` | one block at a time, each durable before the next (FUA) |
//!
//! On a target with its own page cache (a virtual card behind a board) `conv=fdatasync` writes the blocks through it,
//! and `plain` is the same without the flush, so data left in memory was not written.
//!
//! Rows (`--rows`) are block sizes in KiB: 4, 128 and 1024 by default; `--size` is the amount, 256 MiB by default.
//! Improved: data do not compress (dd's zeros do), and a column takes at most 60 s: then the rate covers the completed
//! part. Absent on purpose: the time of the page cache and its copying (`emmc-host`).

use emmc_port::{BlockOp, TargetShape};
use emmc_units::Nanos;

use super::area::{block_bytes, sized};
use super::{Bench, Cost, Knob, Options, Suite};
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, FlushAt, Limit, Stream};
use crate::result::Pivot;

const NAME: &str = "dd";
const SIZE: u64 = 256 << 20;
const BLOCKS_KIB: [u64; 3] = [4, 128, 1024];
const WRITTEN_BACK: u64 = 512 << 10;
const WRITTEN_BACK_DEPTH: u32 = 32;
const COLUMN_TIME: Nanos = Nanos::from_secs(60);
/// Granularity. Unit: bytes.
const UNIT: u64 = 1 << 20;

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dd;

#[derive(Clone, Debug)]
struct Plan {
    from: u64,
    to: u64,
    blocks_kib: Vec<u64>,
}

impl Plan {
    fn new(shape: &TargetShape, options: &Options) -> Result<Self, BenchError> {
        let (from, to) = sized(NAME, shape, options, SIZE.min(options.room(shape)), UNIT)?;
        let mut blocks_kib = Vec::new();
        for row in &options.rows {
            match block_bytes(row, 16384).filter(|bytes| *bytes <= to - from) {
                Some(bytes) => blocks_kib.push(bytes >> 10),
                None => {
                    let what = format!("row {row:?}: expected a block size in KiB, a power of two up to 16384");
                    return Err(BenchError::Misfit { suite: NAME, what });
                }
            }
        }
        if blocks_kib.is_empty() {
            blocks_kib = BLOCKS_KIB.to_vec();
        }
        Ok(Self { from, to, blocks_kib })
    }

    fn stream(&self, op: BlockOp, block_bytes: u64) -> Stream {
        let pass = Stream::pass(op, Order::Sequential, self.from, self.to, block_bytes);
        Stream { limit: Limit { time: Some(COLUMN_TIME), ..pass.limit }, ..pass }
    }
}

impl Suite for Dd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "sequential blocks, as dd with conv=fdatasync, oflag=direct, oflag=dsync and iflag=direct"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::Rows, Knob::ReadOnly]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let plan = Plan::new(shape, options)?;
        let (rows, size) = (plan.blocks_kib.len() as u64, plan.to - plan.from);
        let columns = if options.read_only { 0 } else { 3 };
        Ok(Cost {
            written_bytes: columns * rows * size,
            read_bytes: rows * size,
            from_bytes: plan.from,
            to_bytes: if columns == 0 { plan.from } else { plan.to },
            steps: ((columns + 1) * rows) as u32,
            ..Cost::default()
        })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let plan = Plan::new(bench.target.shape(), bench.options)?;
        bench.table(Pivot {
            table: NAME.into(),
            rows: "bs, KiB".into(),
            unit: "MB/s".into(),
            caption: "as dd reports it, in MB of 10^6 bytes".into(),
        });
        let depth = WRITTEN_BACK_DEPTH.min(bench.target.shape().depth_max);
        for kib in &plan.blocks_kib {
            let row = kib.to_string();
            let block = kib << 10;
            if !bench.options.read_only {
                if bench.target.through_page_cache(BlockOp::Write, true) {
                    let ended = through_cache(bench, &row, &plan.stream(BlockOp::Write, block));
                    bench.target.through_page_cache(BlockOp::Write, false);
                    ended?;
                } else {
                    let back = plan.stream(BlockOp::Write, WRITTEN_BACK);
                    bench.measure(NAME, &row, "conv=fdatasync", &Stream { depth, flush: FlushAt::End, ..back })?;
                }
                let direct = plan.stream(BlockOp::Write, block);
                bench.measure(NAME, &row, "oflag=direct", &direct)?;
            }
            // Before `oflag=dsync`, whose small blocks may each fill a page of the flash.
            bench.measure(NAME, &row, "iflag=direct", &plan.stream(BlockOp::Read, block))?;
            if !bench.options.read_only {
                let synced = Stream { through: true, ..plan.stream(BlockOp::Write, block) };
                bench.measure(NAME, &row, "oflag=dsync", &synced)?;
            }
        }
        Ok(())
    }
}

/// Blocks through the target's own page cache, which is empty before and after.
fn through_cache(bench: &mut Bench<'_>, row: &str, blocks: &Stream) -> Result<(), BenchError> {
    bench.measure(NAME, row, "plain", blocks)?;
    bench.sync()?;
    bench.measure(NAME, row, "conv=fdatasync", &Stream { flush: FlushAt::End, ..*blocks })?;
    Ok(())
}
