//! The short answer to "how fast is it": large sequential requests and small random ones, single and queued.
//!
//! Takes seconds and writes little. On a writable target, data is written before it is read: on a target that is too
//! slow for all of the range, the range ends where the first row's writes did. `judge/causes.rs` reports what limits
//! each figure.

use emmc_port::{BlockOp, TargetShape};
use emmc_units::Nanos;

use super::area::sized;
use super::{Bench, Cost, Knob, Options, Suite};
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, FlushAt, Limit, Stream};
use crate::result::Pivot;

pub(crate) const NAME: &str = "speed";
/// Queue depth of the queued row: the maximum of CMDQ_DEPTH.
pub(crate) const MANY: u32 = 32;
/// Unit: bytes.
const RANGE_BYTES: u64 = 256 << 20;
/// Unit: bytes.
const LARGE: u64 = 512 << 10;
const SMALL: u64 = 4 << 10;
/// Bytes of the rows of small requests, and their time limit.
const SMALL_BYTES: u64 = 16 << 20;
const TIME_MAX: Nanos = Nanos::from_secs(10);

/// The rows: name, order, size of a request, requests outstanding, bytes.
pub(crate) const ROWS: [(&str, Order, u64, u32, u64); 3] = [
    ("512 KiB sequential", Order::Sequential, LARGE, 1, RANGE_BYTES),
    ("4 KiB random", Order::Random, SMALL, 1, SMALL_BYTES),
    ("4 KiB random, queued", Order::Random, SMALL, MANY, SMALL_BYTES),
];

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed;

impl Suite for Speed {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "the short answer: 512 KiB sequential, 4 KiB random, single and 32 queued, read and write"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::ReadOnly]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let (from_bytes, to_bytes) = range(shape, options)?;
        let read_bytes = ROWS.iter().map(|row| row.4.min(to_bytes - from_bytes)).sum();
        Ok(match options.read_only {
            true => {
                Cost { written_bytes: 0, read_bytes, from_bytes, to_bytes: from_bytes, steps: 3, ..Cost::default() }
            }
            false => Cost { written_bytes: read_bytes, read_bytes, from_bytes, to_bytes, steps: 6, ..Cost::default() },
        })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let (from, mut to) = range(bench.target.shape(), bench.options)?;
        let read_only = bench.options.read_only;
        let depth_max = bench.target.shape().depth_max;
        for (unit, rows) in [("MB/s", &ROWS[..1]), ("IOPS", &ROWS[1..])] {
            bench.table(Pivot {
                table: format!("{NAME}, {unit}"),
                rows: "requests".into(),
                unit: unit.into(),
                caption: "Writes end with a flush, which counts".into(),
            });
            for (number, (row, order, block, depth, bytes)) in (0..).zip(rows.iter().copied()) {
                // Reads in the order of the writes before them would find neighbours in one page of the flash.
                let seed = |op| bench.options.seed.wrapping_add(2 * number + u64::from(op == BlockOp::Read));
                let stream = |op, to: u64, seed: u64| Stream {
                    depth: depth.min(depth_max),
                    limit: Limit { bytes: bytes.min(to - from), time: Some(TIME_MAX) },
                    flush: if op == BlockOp::Write { FlushAt::End } else { FlushAt::Never },
                    seed,
                    ..Stream::pass(op, order, from, to, block)
                };
                let table = format!("{NAME}, {unit}");
                if !read_only {
                    let written =
                        bench.measure(&table, row, "write", &stream(BlockOp::Write, to, seed(BlockOp::Write)))?;
                    if order == Order::Sequential {
                        to = to.min(from + written.written_bytes.max(LARGE));
                    }
                }
                bench.measure(&table, row, "read", &stream(BlockOp::Read, to, seed(BlockOp::Read)))?;
            }
        }
        if read_only {
            bench.remark("Nothing was written: unmapped ranges may have been read faster than data.");
        }
        Ok(())
    }
}

/// A quarter of the target, or less if it is large.
fn range(shape: &TargetShape, options: &Options) -> Result<(u64, u64), BenchError> {
    let usual = RANGE_BYTES.min(shape.size_bytes / 4);
    sized(NAME, shape, options, usual, LARGE)
}
