//! `flashbench --find-fat`: does a part of the card handle small writes better, as cards do for the FAT?
//!
//! For each block size from the allocation unit down to 16 KiB: the first six units (`--rows N`: the first N) are each
//! filled with blocks of that size, one unit at a time; sequentially, then in the order of `--random`. Each unit's rate
//! has its own column. A unit that keeps its rate where the others' falls is made for small writes. `--size` is the
//! allocation unit (`--erasesize`). Destroys data from the very first sector on. A pass over one unit takes at most 60
//! s: then the rate covers the completed part.

use emmc_port::{BlockOp, TargetShape};
use emmc_units::Nanos;

use super::super::area::aligned;
use super::super::{Bench, Cost, Knob, Options, Suite};
use super::places::scattered;
use super::{BLOCK, for_at_most, halvings, label, numbers, requests, unit};
use crate::drive::stream::BenchError;
use crate::result::Pivot;

const NAME: &str = "flashbench-find-fat";
const UNITS: u64 = 6;
const PASS_TIME: Nanos = Nanos::from_secs(60);

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct FindFat;

/// The allocation unit, and how many are tested.
fn plan(shape: &TargetShape, options: &Options) -> Result<(u64, u64), BenchError> {
    aligned(NAME, shape, options)?;
    let (unit, rows) = (unit(NAME, options)?, numbers(NAME, options, "the number of allocation units to test")?);
    let units = rows.first().copied().unwrap_or(UNITS);
    let room = shape.size_bytes.saturating_sub(options.from_bytes) / unit;
    if rows.len() > 1 || units > room {
        let what = format!("{units} units of {}: there is room for {room}; expected one number", label(unit));
        return Err(BenchError::Misfit { suite: NAME, what });
    }
    Ok((unit, units))
}

impl Suite for FindFat {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "which of the first allocation units handles small writes, as flashbench -f"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::Rows]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let (unit, units) = plan(shape, options)?;
        let passes = 2 * halvings(unit, BLOCK).count() as u64;
        Ok(Cost {
            written_bytes: passes * unit * units,
            read_bytes: 0,
            from_bytes: options.from_bytes,
            to_bytes: options.from_bytes + unit * units,
            steps: (passes * units) as u32,
            ..Cost::default()
        })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let (unit, units) = plan(bench.target.shape(), bench.options)?;
        let from = bench.options.from_bytes;
        for random in [false, true] {
            let table = if random { "find-fat, random" } else { "find-fat, linear" };
            bench.table(Pivot {
                table: table.into(),
                rows: "block".into(),
                unit: "MB/s".into(),
                caption: format!("rate of each unit of {}, filled alone with blocks of one size", label(unit)),
            });
            for block in halvings(unit, BLOCK) {
                let blocks = unit / block;
                let places = if random { scattered(blocks) } else { (0..blocks).collect() };
                let writes = requests(BlockOp::Write, bench.target.shape(), block, bench.options.seed);
                for number in 0..units {
                    let begin = from + number * unit;
                    let offsets: Vec<u64> = places.iter().map(|place| begin + place * block).collect();
                    let (row, column) = (label(block), format!("AU {number}"));
                    bench.measure_at([table, &row, &column], &for_at_most(writes, PASS_TIME), &offsets)?;
                }
            }
        }
        Ok(())
    }
}
