//! flashbench -O: allocation units filled in rotation.

use emmc_card::profile::Profile;
use emmc_port::{BlockOp, TargetShape};
use emmc_units::Nanos;
use emmc_workload::{
    Bench, BenchError, Cost, Detail, Limit, Options, Order, Stream, Suite, Unwatched, open_unit_offsets,
};

use super::{SimulateError, target};
use crate::cell::{Cell, Column};
use crate::measured::Measured;

/// Space before the first unit, as flashbench leaves it. Unit: bytes.
const BEFORE: u64 = 16 << 20;
/// A pass takes at most this long: the rate is that of the completed part.
const PASS_TIME: Nanos = Nanos::from_secs(60);

/// The passes of some cells, as a suite.
struct Passes {
    /// Number of units, whether the order is random, the block in bytes.
    passes: Vec<(u16, bool, u64)>,
    unit_bytes: u64,
}

/// The cells of flashbench -O, in the order of their measurement. Units that one of them writes to hold data already:
/// nobody runs it once.
///
/// Errors: a profile that makes no card; a card that is too small or fails.
pub(super) fn simulated(profile: &Profile, measured: &Measured) -> Result<Vec<Cell>, SimulateError> {
    let pass = |cell: &Cell| match cell.column {
        Column::OpenUnits { units, is_random } => Some((units, is_random, cell.kib << 10)),
        _ => None,
    };
    let passes: Vec<_> = measured.cells.iter().filter_map(pass).collect();
    if passes.is_empty() {
        return Ok(Vec::new());
    }
    let suite = Passes { passes, unit_bytes: measured.unit_bytes };
    let outcome = Bench::run(
        &suite,
        &mut target(profile)?,
        &Options { detail: Detail::Speeds, ..Options::default() },
        &mut Unwatched,
    )?;
    let cell = |((units, is_random, block), found): (&(u16, bool, u64), &emmc_workload::Measurement)| Cell {
        column: Column::OpenUnits { units: *units, is_random: *is_random },
        kib: block >> 10,
        us: *block as f64 / found.mb_per_s,
    };
    Ok(suite.passes.iter().zip(&outcome.measurements).map(cell).collect())
}

impl Passes {
    fn offsets(&self, units: u16, is_random: bool, block: u64) -> Vec<u64> {
        let from = BEFORE.next_multiple_of(self.unit_bytes);
        open_unit_offsets((from, self.unit_bytes), units.into(), block, is_random)
    }
}

impl Suite for Passes {
    fn name(&self) -> &'static str {
        "flashbench -O"
    }

    fn about(&self) -> &'static str {
        "the passes of some cells"
    }

    fn cost(&self, shape: &TargetShape, _: &Options) -> Result<Cost, BenchError> {
        let end = |&(units, _, _): &(u16, bool, u64)| self.offsets(units, false, self.unit_bytes).into_iter().max();
        let to_bytes = self.passes.iter().filter_map(end).max().unwrap_or(0) + self.unit_bytes;
        if to_bytes > shape.size_bytes {
            let what = format!("the units end at byte {to_bytes}; the target has {}", shape.size_bytes);
            return Err(BenchError::Misfit { suite: self.name(), what });
        }
        let written = |&(units, _, _): &(u16, bool, u64)| 2 * u64::from(units) * self.unit_bytes;
        let written_bytes = self.passes.iter().map(written).sum();
        let steps = 2 * self.passes.len() as u32;
        Ok(Cost { written_bytes, read_bytes: 0, from_bytes: BEFORE, to_bytes, steps, ..Cost::default() })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let size = bench.target.shape().size_bytes;
        let writes = |block| {
            let whole = Stream::pass(BlockOp::Write, Order::Sequential, 0, size, block);
            Stream { through: true, limit: Limit { time: Some(PASS_TIME), ..whole.limit }, ..whole }
        };
        let most = self.passes.iter().map(|pass| pass.0).max().unwrap_or(1);
        bench.visit("units", &writes(self.unit_bytes), &self.offsets(most, false, self.unit_bytes))?;
        for &(units, is_random, block) in &self.passes {
            let column = Column::OpenUnits { units, is_random }.to_string();
            let row = block.to_string();
            bench.measure_at([self.name(), &row, &column], &writes(block), &self.offsets(units, is_random, block))?;
        }
        Ok(())
    }
}
