//! The part of a target that a suite works on, and its write limit.

use emmc_port::TargetShape;
use emmc_units::Bytes;

use super::{Bench, Options};
use crate::drive::stream::BenchError;

/// Granularity of the area of a suite that uses all there is. Unit: bytes.
const UNIT: u64 = 4 << 20;
/// The smallest area of such a suite: below it the measurement itself changes most of it.
const WHOLE_MIN: u64 = 16 << 20;

/// The suite's part of a target: the requested size, or everything from the start on; whole multiples of `unit`.
///
/// Errors: less than one unit of space; a size beyond the end.
pub(super) fn area(
    suite: &'static str,
    shape: &TargetShape,
    options: &Options,
    unit: u64,
) -> Result<(u64, u64), BenchError> {
    at_least(suite, shape, options, unit, unit)
}

/// The same with a minimum of more than one unit.
///
/// Errors: as [`area`].
fn at_least(
    suite: &'static str,
    shape: &TargetShape,
    options: &Options,
    unit: u64,
    least: u64,
) -> Result<(u64, u64), BenchError> {
    aligned(suite, shape, options)?;
    let (from, size, name) = (options.from_bytes, shape.size_bytes, &shape.name);
    let room = size.saturating_sub(from);
    let asked = options.size_bytes.unwrap_or(room);
    let wanted = asked / unit * unit;
    let what = if from >= size {
        format!("{} {}: {name} has {}", from_option(suite), stated(from), stated(size))
    } else if wanted < least {
        let (least, asked, size) = (stated(least), stated(asked), stated(size));
        format!("at least {least} are needed; {asked} {} were given, {name} has {size}", start(from))
    } else if wanted > room {
        format!("{} {} do not fit: {name} has {}", stated(wanted), start(from), stated(size))
    } else {
        return Ok((from, from + wanted));
    };
    Err(BenchError::Misfit { suite, what })
}

/// The option that says where the area of a suite begins: `probe` has `--from` for saved results.
pub fn from_option(suite: &str) -> &'static str {
    if suite == "probe" { "--start" } else { "--from" }
}

/// A size in a message.
pub(super) fn stated(bytes: u64) -> String {
    Bytes(bytes).stated()
}

/// Where an area begins, in a message.
pub(super) fn start(from_bytes: u64) -> String {
    if from_bytes == 0 { "from the start on".into() } else { format!("from {} on", stated(from_bytes)) }
}

/// Checks that start and size are whole sectors.
///
/// Errors: the option that is not.
pub(super) fn aligned(suite: &'static str, shape: &TargetShape, options: &Options) -> Result<(), BenchError> {
    let sector = u64::from(shape.sector_bytes).max(1);
    let given = [(from_option(suite), options.from_bytes), ("--size", options.size_bytes.unwrap_or(0))];
    match given.into_iter().find(|(_, bytes)| bytes % sector != 0) {
        None => Ok(()),
        Some((option, bytes)) => {
            let what = format!("{option} {}: expected a multiple of its sectors of {}", stated(bytes), stated(sector));
            Err(BenchError::Misfit { suite, what })
        }
    }
}

/// The same for a suite with a default size.
///
/// Errors: as [`area`].
pub(super) fn sized(
    suite: &'static str,
    shape: &TargetShape,
    options: &Options,
    usual: u64,
    unit: u64,
) -> Result<(u64, u64), BenchError> {
    let size_bytes = Some(options.size_bytes.unwrap_or(usual.max(unit)));
    area(suite, shape, &Options { size_bytes, ..options.clone() }, unit)
}

/// A row as a block size in KiB: a power of two up to `most`. Unit: bytes.
pub(super) fn block_bytes(row: &str, most_kib: u64) -> Option<u64> {
    row.parse().ok().filter(|kib: &u64| kib.is_power_of_two() && *kib <= most_kib).map(|kib| kib << 10)
}

/// The same for a suite that puts all of it into a state.
///
/// Errors: as [`area`]; less than 16 MiB.
pub(super) fn whole(suite: &'static str, shape: &TargetShape, options: &Options) -> Result<(u64, u64), BenchError> {
    at_least(suite, shape, options, UNIT, WHOLE_MIN)
}

/// Bytes that may be written beyond the required ones: the rest of the budget, or of the default. Unit: bytes.
///
/// Errors: the budget is less than `least`, which `what` needs.
pub(super) fn beyond(
    suite: &'static str,
    options: &Options,
    usual: u64,
    must: u64,
    least: (u64, &str),
) -> Result<u64, BenchError> {
    let budget = options.write_budget_bytes.unwrap_or(usual);
    if budget < least.0 {
        let what = format!("a write budget of {budget} bytes: {} need at least {}", least.1, least.0);
        return Err(BenchError::Misfit { suite, what });
    }
    Ok(budget - must)
}

impl Bench<'_> {
    /// Adds a remark if a large part of the target was not used.
    pub(super) fn remark_rest(&mut self, (from, to): (u64, u64), why: &str) {
        let size = self.target.shape().size_bytes;
        if size - (to - from) >= size / 100 {
            self.remark(format!("Only {} of {} MiB {why}.", (to - from) >> 20, size >> 20));
        }
    }
}
