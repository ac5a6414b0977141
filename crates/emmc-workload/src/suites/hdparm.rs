//! `hdparm -t`: sequential reads of 2 MiB from the target's start, for three seconds.
//!
//! `direct` is `hdparm -t --direct`, one read at a time. `buffered` is `hdparm -t`: the page cache reads ahead 128 KiB
//! at a time with two requests outstanding, which is what reaches the card. A read in progress is completed, and the
//! rate covers the time that passed; at most 1024 MiB are read, and none beyond the end (hdparm's limits). It measures
//! what hdparm measures: only sequential reads at the start of the target; ranges that were never written may be
//! answered without reading flash.

use emmc_port::{BlockOp, TargetShape};
use emmc_units::Nanos;

use super::{Bench, Cost, Knob, Options, Suite};
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, Limit, Stream};
use crate::result::Pivot;

const NAME: &str = "hdparm";
const BLOCK: u64 = 2 << 20;
const READ_AHEAD: u64 = 128 << 10;
const TIME: Nanos = Nanos::from_secs(3);
const MOST: u64 = 1024 << 20;

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hdparm;

/// End of the reads.
fn end(shape: &TargetShape, options: &Options) -> Result<u64, BenchError> {
    super::area::aligned(NAME, shape, options)?;
    let room = shape.size_bytes.saturating_sub(options.from_bytes);
    let bytes = options.size_bytes.unwrap_or(MOST).min(MOST).min(room) / BLOCK * BLOCK;
    match bytes {
        0 => Err(BenchError::Misfit { suite: NAME, what: format!("{room} bytes: expected at least {BLOCK}") }),
        _ => Ok(options.from_bytes + bytes),
    }
}

impl Suite for Hdparm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "sequential reads from the start for three seconds, as hdparm -t, with and without the page cache"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::ReadOnly]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let from = options.from_bytes;
        let read_bytes = 2 * (end(shape, options)? - from);
        Ok(Cost { read_bytes, from_bytes: from, to_bytes: from, steps: 2, ..Cost::default() })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let (from, to) = (bench.options.from_bytes, end(bench.target.shape(), bench.options)?);
        bench.table(Pivot {
            table: NAME.into(),
            rows: "way".into(),
            unit: "MiB/s".into(),
            caption: "hdparm prints MiB (2^20 bytes) as MB".into(),
        });
        let ahead = 2.min(bench.target.shape().depth_max);
        for (row, block, depth) in [("direct", BLOCK, 1), ("buffered", READ_AHEAD, ahead)] {
            let pass = Stream::pass(BlockOp::Read, Order::Sequential, from, to, block);
            let limit = Limit { time: Some(TIME), ..pass.limit };
            // If the target has a page cache, that one reads ahead.
            let cached = row == "buffered" && bench.target.through_page_cache(BlockOp::Read, true);
            let depth = if cached { 1 } else { depth };
            let measured = bench.measure(NAME, row, "read", &Stream { limit, depth, ..pass });
            bench.target.through_page_cache(BlockOp::Read, false);
            measured?;
        }
        Ok(())
    }
}
