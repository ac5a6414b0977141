//! `flashbench`: a card's structure as seen from outside, one suite for each of its modes.
//!
//! Requests, their sizes, places and orders are flashbench's; its writes are `O_SYNC`. Improved: no place wraps at the
//! target's end (a size that does not fit is refused in advance, with one that does), no place is counted twice,
//! compared measurements alternate instead of running in sequence, and every figure has its unit. Absent on purpose:
//! conclusions beyond the number of open allocation units; they are for `probe`.

mod align;
mod find_fat;
mod interval;
mod open_au;
mod places;
mod scatter;

pub(super) use align::Align;
pub(super) use find_fat::FindFat;
pub(super) use interval::IntervalSuite;
pub(super) use open_au::OpenAu;
pub use open_au::open_unit_offsets;
pub(super) use scatter::Scatter;

use emmc_port::{BlockOp, TargetShape};
use emmc_units::Nanos;

use super::Options;
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, Limit, Stream};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// `--blocksize`, the default. Unit: bytes.
const BLOCK: u64 = 16 * KIB;
/// `--erasesize`, the default. Unit: bytes.
const AU: u64 = 4 * MIB;
/// `--count`, the default: how often each place is visited.
const ROUNDS: usize = 8;

/// Requests of a size at listed places on the target, one at a time; writes use FUA.
fn requests(op: BlockOp, shape: &TargetShape, block_bytes: u64, seed: u64) -> Stream {
    let whole = Stream::pass(op, Order::Sequential, 0, shape.size_bytes, block_bytes);
    Stream { through: op == BlockOp::Write, seed, ..whole }
}

/// The same with a time limit.
fn for_at_most(stream: Stream, time: Nanos) -> Stream {
    Stream { limit: Limit { time: Some(time), ..stream.limit }, ..stream }
}

/// `--size` as the assumed allocation unit.
///
/// Errors: not a power of two of 64 KiB to 1 GiB.
fn unit(suite: &'static str, options: &Options) -> Result<u64, BenchError> {
    let unit = options.size_bytes.unwrap_or(AU);
    if !unit.is_power_of_two() || !(64 * KIB..=1 << 30).contains(&unit) {
        let what = format!("an allocation unit of {unit} bytes: expected a power of two from 64 KiB to 1 GiB");
        return Err(BenchError::Misfit { suite, what });
    }
    Ok(unit)
}

/// Rows as numbers.
///
/// Errors: a row that is not a number of at least 1.
fn numbers(suite: &'static str, options: &Options, what: &str) -> Result<Vec<u64>, BenchError> {
    let number = |row: &String| match row.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(BenchError::Misfit { suite, what: format!("row {row:?}: expected {what}") }),
    };
    options.rows.iter().map(number).collect()
}

/// A size as flashbench prints it, e.g. `4MiB`.
fn label(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 30 && b % (1 << 30) == 0 => format!("{}GiB", b >> 30),
        b if b >= MIB && b % MIB == 0 => format!("{}MiB", b >> 20),
        b if b >= KIB && b % KIB == 0 => format!("{}KiB", b >> 10),
        b => format!("{b}B"),
    }
}

/// The unit, its half, and so on down to `smallest`.
fn halvings(largest: u64, smallest: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(largest), |size| Some(size / 2)).take_while(move |size| *size >= smallest)
}
