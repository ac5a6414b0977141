//! The figures of the application class.

use emmc_port::BlockOp;
use emmc_units::Nanos;

use super::super::Bench;
use super::{Found, MIB, Plan, RU};
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, FlushAt, Limit, Stream};
use crate::result::Pivot;

/// From memory: the area of the specification's pattern.
const AREA: u64 = 256 * MIB;
const PASS_TIME: Nanos = Nanos::from_secs(10);
const PASS_BYTES: u64 = 128 * MIB;

/// Written and read. Unit: bytes, at most.
pub(super) fn cost(plan: &Plan) -> (u64, u64) {
    let area = (plan.to - plan.from).min(AREA);
    let pass = PASS_BYTES.min(area);
    (area + 2 * pass, 2 * pass)
}

pub(super) fn measure(bench: &mut Bench<'_>, plan: &Plan, found: &mut Found) -> Result<(), BenchError> {
    let to = plan.to.min(plan.from + AREA);
    let fill = Stream::pass(BlockOp::Write, Order::Sequential, plan.from, to, RU);
    let fill = Stream { flush: FlushAt::End, ..fill };
    found.sustained = bench.measure("speed class", "sustained", "RUs written sequentially", &fill)?.bytes_per_s() / 1e6;
    bench.table(Pivot {
        table: "application class".into(),
        rows: "queue depth".into(),
        unit: "IOPS".into(),
        caption: "random 4 KiB requests in 256 MiB; the flush after writes counts".into(),
    });
    let limit = Limit { bytes: PASS_BYTES.min(to - plan.from), time: Some(PASS_TIME) };
    for (depth, iops) in [(1, &mut found.one), (plan.depth, &mut found.many)] {
        for (index, op, column) in [(0, BlockOp::Read, "read"), (1, BlockOp::Write, "write")] {
            let flush = if op == BlockOp::Write { FlushAt::End } else { FlushAt::Never };
            let seed = plan.seed.wrapping_add(u64::from(depth) * 2 + index as u64);
            let pass = Stream::pass(op, Order::Random, plan.from, to, 4096);
            let pass = Stream { limit, flush, depth, seed, ..pass };
            let measured = bench.measure("application class", &depth.to_string(), column, &pass)?;
            iops[index] = measured.bytes_per_s() / 4096.0;
        }
    }
    Ok(())
}
