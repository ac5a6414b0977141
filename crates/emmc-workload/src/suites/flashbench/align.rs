//! `flashbench --align`: the cost of a request that crosses a boundary.
//!
//! For each power of two from twice the block to the largest of which seven fit on the target: at seven such boundaries
//! a block that ends there (pre), one that crosses it in its middle (on) and one that starts there (post). The fastest
//! of eight visits counts for each place, then the mean of the seven; `diff` is on minus the mean of pre and post. The
//! write variant does the same with writes. Rows (`--rows`) are block sizes in KiB.
//!
//! Improved: the largest boundary is small enough for all seven to be on the target; pre, on and post alternate within
//! each round, in an order that changes from round to round, so that drift affects all equally (neighbours are still
//! never visited in sequence: a card may have the last block buffered); and beside the mean it reports at how many of
//! the seven places on was slower than both its neighbours.

use emmc_port::{BlockOp, TargetShape};

use super::super::{Bench, Cost, Knob, Options, Suite, area};
use super::{BLOCK, KIB, ROUNDS, label, numbers, requests};
use crate::drive::stream::BenchError;
use crate::result::grid::Grid;

const NAME: &str = "flashbench-align";
/// Boundaries of a size.
const PLACES: u64 = 7;

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Align;

/// The boundaries to test with blocks of a size.
#[derive(Clone, Debug)]
struct Plan {
    block: u64,
    from: u64,
    spacing: u64,
    /// Largest first.
    aligns: Vec<u64>,
}

impl Plan {
    fn all(shape: &TargetShape, options: &Options) -> Result<Vec<Self>, BenchError> {
        let mut blocks = numbers(NAME, options, "a block size in KiB")?;
        if blocks.is_empty() {
            blocks.push(BLOCK / KIB);
        }
        blocks.into_iter().map(|kib| Self::new(shape, options, kib.saturating_mul(KIB))).collect()
    }

    fn new(shape: &TargetShape, options: &Options, block: u64) -> Result<Self, BenchError> {
        let misfit = |what| BenchError::Misfit { suite: NAME, what };
        if !block.is_power_of_two() || block < 2 * u64::from(shape.sector_bytes) || block > 1 << 30 {
            let least = label(2 * u64::from(shape.sector_bytes));
            return Err(misfit(format!("a block of {block} bytes: expected a power of two from {least} on")));
        }
        let (from, to) = area(NAME, shape, options, u64::from(shape.sector_bytes))?;
        let spacing = (to - from - block) / PLACES;
        if spacing < 2 * block {
            let least = label(15 * block);
            return Err(misfit(format!("{} bytes: blocks of {} need {least}", to - from, label(block))));
        }
        // The largest power of two up to a seventh of the target.
        let spacing = 1 << (63 - spacing.leading_zeros());
        let aligns = super::halvings(spacing, 2 * block).collect();
        Ok(Self { block, from, spacing, aligns })
    }

    /// The position of a block: 0 before the boundary, 1 across it, 2 after it.
    fn offset(&self, align: u64, place: u64, kind: u64) -> u64 {
        self.from + align + place * self.spacing + kind * (self.block / 2) - self.block
    }

    /// Every request, with boundary, place, kind.
    fn requests(&self) -> Vec<(u64, [usize; 3])> {
        let mut all = Vec::new();
        for round in 0..ROUNDS {
            for index in 0..self.aligns.len() {
                // Alternately up and down.
                let index = if round % 2 == 0 { index } else { self.aligns.len() - 1 - index };
                for kind in 0..3 {
                    let kind = (kind + round) % 3;
                    for place in 0..PLACES {
                        let offset = self.offset(self.aligns[index], place, kind as u64);
                        all.push((offset, [index, place as usize, kind]));
                    }
                }
            }
        }
        all
    }

    fn bytes(&self) -> u64 {
        (ROUNDS * self.aligns.len() * 3) as u64 * PLACES * self.block
    }
}

impl Suite for Align {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "the cost of a request across a boundary of each size, read and write, as flashbench -a"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::Size, Knob::Rows, Knob::ReadOnly]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let plans = Plan::all(shape, options)?;
        let bytes = plans.iter().map(Plan::bytes).sum();
        let end = plans.iter().map(|plan| plan.offset(plan.aligns[0], PLACES - 1, 2) + plan.block).max();
        let writes = !options.read_only;
        Ok(Cost {
            written_bytes: if writes { bytes } else { 0 },
            read_bytes: bytes,
            from_bytes: options.from_bytes,
            to_bytes: if writes { end.unwrap_or(0) } else { options.from_bytes },
            steps: plans.len() as u32 * (1 + u32::from(writes)),
            ..Cost::default()
        })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        for plan in Plan::all(bench.target.shape(), bench.options)? {
            sweep(bench, &plan, BlockOp::Read, "read")?;
            if !bench.options.read_only {
                sweep(bench, &plan, BlockOp::Write, "write")?;
            }
        }
        Ok(())
    }
}

fn sweep(bench: &mut Bench<'_>, plan: &Plan, op: BlockOp, verb: &str) -> Result<(), BenchError> {
    let (offsets, places): (Vec<u64>, Vec<[usize; 3]>) = plan.requests().into_iter().unzip();
    let stream = requests(op, bench.target.shape(), plan.block, bench.options.seed);
    let name = format!("align, {verb}, {}", label(plan.block));
    let (_, times) = bench.visit(&name, &stream, &offsets)?;
    let mut fastest = vec![[[f64::INFINITY; 3]; PLACES as usize]; plan.aligns.len()];
    for (time, [align, place, kind]) in times.iter().zip(places) {
        let known = &mut fastest[align][place][kind];
        *known = known.min(time.0 as f64 / 1e3);
    }
    let columns = [("pre", "us"), ("on", "us"), ("post", "us"), ("diff", "us"), ("slower at", "of 7")];
    let caption = "the fastest of eight visits, mean of seven places; diff: on minus the mean of pre and post; slower at: \
                   places where on took longer than both";
    let mut grid = Grid::new(name, "boundary", &columns, caption);
    for (align, places) in plan.aligns.iter().zip(&fastest) {
        let mean = |kind: usize| places.iter().map(|place| place[kind]).sum::<f64>() / PLACES as f64;
        let [pre, on, post] = [mean(0), mean(1), mean(2)];
        let slower = places.iter().filter(|place| place[1] > place[0].max(place[2])).count();
        grid.line(label(*align), &[pre, on, post, on - (pre + post) / 2.0, slower as f64]);
    }
    bench.grid(grid);
    Ok(())
}

#[cfg(test)]
mod tests {
    use emmc_port::TargetKind;

    use super::*;

    /// A target of a power of two, where flashbench itself passes the end.
    #[test]
    fn places_are_inside_and_unique() {
        for size_bytes in [256 << 20, 1 << 30, 7_784_628_224, 240 << 10] {
            let shape = TargetShape {
                name: "t".into(),
                kind: TargetKind::File,
                size_bytes,
                sector_bytes: 512,
                depth_max: 1,
                can_trim: false,
                engine: "none",
            };
            let plan = Plan::new(&shape, &Options::default(), BLOCK).unwrap();
            assert!(plan.spacing * 7 + plan.block <= size_bytes && plan.spacing * 15 > size_bytes - plan.block);
            let requests = plan.requests();
            assert!(requests.iter().all(|(offset, _)| offset + plan.block <= size_bytes));
            let mut first: Vec<u64> = requests.iter().filter(|(_, of)| of[0] == 0).map(|(offset, _)| *offset).collect();
            first.sort_unstable();
            first.dedup();
            assert_eq!(first.len(), 21);
            let neighbours = requests.windows(2).any(|two| two[0].0.abs_diff(two[1].0) < plan.block);
            assert!(!neighbours);
        }
    }
}
