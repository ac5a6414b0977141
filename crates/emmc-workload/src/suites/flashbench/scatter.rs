//! `flashbench --scatter`: read time by position.
//!
//! 512 places (`2^9`), one block of 16 KiB apart, read in the shift register's order; the fastest of eight visits
//! counts. `--rows N` is flashbench's `--span`: places are N blocks apart. A pattern that repeats at equal distances is
//! the size of an allocation unit or a stripe. Improved: if not all places fit on the target, those that fit are
//! visited, and the report says so.

use emmc_port::{BlockOp, TargetShape};

use super::super::area::aligned;
use super::super::{Bench, Cost, Knob, Options, Suite};
use super::places::scattered;
use super::{BLOCK, ROUNDS, numbers, requests};
use crate::drive::stream::BenchError;
use crate::result::grid::Grid;

const NAME: &str = "flashbench-scatter";
const PLACES: u64 = 1 << 9;

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Scatter;

/// Number of places, and their distance.
fn plan(shape: &TargetShape, options: &Options) -> Result<(u64, u64), BenchError> {
    aligned(NAME, shape, options)?;
    let misfit = |what| Err(BenchError::Misfit { suite: NAME, what });
    let rows = numbers(NAME, options, "the distance between places in blocks of 16 KiB")?;
    let apart = rows.first().copied().unwrap_or(1).saturating_mul(BLOCK);
    let room = options.room(shape);
    let fit = if room < BLOCK { 0 } else { (room - BLOCK) / apart + 1 };
    if rows.len() > 1 || fit < 2 {
        return misfit(format!("places {apart} bytes apart: {fit} fit; expected one distance and room for two places"));
    }
    Ok((fit.min(PLACES), apart))
}

impl Suite for Scatter {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "read time by position, as flashbench -s"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::Rows, Knob::ReadOnly]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let (places, _) = plan(shape, options)?;
        let read_bytes = places * ROUNDS as u64 * BLOCK;
        Ok(Cost {
            read_bytes,
            from_bytes: options.from_bytes,
            to_bytes: options.from_bytes,
            steps: 1,
            ..Cost::default()
        })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let (places, apart) = plan(bench.target.shape(), bench.options)?;
        let from = bench.options.from_bytes;
        let order = scattered(places);
        let offsets: Vec<u64> = (0..ROUNDS).flat_map(|_| order.iter().map(|place| from + place * apart)).collect();
        let reads = requests(BlockOp::Read, bench.target.shape(), BLOCK, bench.options.seed);
        let (_, times) = bench.visit("scatter", &reads, &offsets)?;
        let mut fastest = vec![f64::INFINITY; places as usize];
        for (time, place) in times.iter().zip(order.iter().cycle()) {
            let known = &mut fastest[*place as usize];
            *known = known.min(time.0 as f64 / 1e6);
        }
        let caption = "the fastest of eight reads of 16 KiB at each place";
        let mut grid = Grid::new("scatter", "place, MiB", &[("time", "ms")], caption);
        for (place, time) in fastest.iter().enumerate() {
            grid.line(format!("{}", (from + place as u64 * apart) as f64 / 1_048_576.0), &[*time]);
        }
        bench.grid(grid);
        if places < PLACES {
            bench.remark(format!("Only {places} of {PLACES} places fit on the target."));
        }
        Ok(())
    }
}
