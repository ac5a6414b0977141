//! `flashbench --interval`: read time by size, and a fitted line.
//!
//! Reads of 512 bytes, twice that, and so on to 1 MiB: eight of each size, nine blocks of 16 KiB apart. It shows the
//! fastest, the mean and the slowest with the rate of the mean; the line `time = access time + size / rate` is fitted
//! by least squares to the fastest of 4 KiB and more, and each size's residual is shown. Improved: the default number
//! of sizes is not 0, sizes alternate instead of running in sequence, and figures that cannot be computed are absent.

use emmc_port::{BlockOp, TargetShape};

use super::super::area::{aligned, start, stated};
use super::super::{Bench, Cost, Knob, Options, Suite};
use super::{BLOCK, ROUNDS, label, requests};
use crate::drive::stream::BenchError;
use crate::result::Figure;
use crate::result::grid::Grid;

const NAME: &str = "flashbench-interval";
const LARGEST: u64 = 1 << 20;
const FITTED_FROM: u64 = 4096;
/// Unit: bytes.
const APART: u64 = 9 * BLOCK;

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct IntervalSuite;

/// Sizes, smallest first.
fn sizes(shape: &TargetShape, options: &Options) -> Result<Vec<u64>, BenchError> {
    aligned(NAME, shape, options)?;
    let need = (ROUNDS as u64 - 1) * APART + LARGEST;
    let room = options.room(shape);
    if room < need {
        let what = format!("{} {}: expected at least {}", stated(room), start(options.from_bytes), stated(need));
        return Err(BenchError::Misfit { suite: NAME, what });
    }
    let smallest = u64::from(shape.sector_bytes).max(512);
    Ok(std::iter::successors(Some(smallest), |size| Some(size * 2)).take_while(|size| *size <= LARGEST).collect())
}

impl Suite for IntervalSuite {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "read time by size: rate and access time, as flashbench -i"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::ReadOnly]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let sizes = sizes(shape, options)?;
        let read_bytes = sizes.iter().sum::<u64>() * ROUNDS as u64;
        let steps = (sizes.len() * ROUNDS) as u32;
        Ok(Cost { read_bytes, from_bytes: options.from_bytes, to_bytes: options.from_bytes, steps, ..Cost::default() })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let sizes = sizes(bench.target.shape(), bench.options)?;
        let (from, seed) = (bench.options.from_bytes, bench.options.seed);
        let mut times = vec![Vec::new(); sizes.len()];
        for round in 0..ROUNDS as u64 {
            for (size, times) in sizes.iter().zip(&mut times) {
                let reads = requests(BlockOp::Read, bench.target.shape(), *size, seed);
                let step = format!("reads of {}", label(*size));
                let (_, took) = bench.visit(&step, &reads, &[from + round * APART])?;
                times.extend(took.iter().map(|time| time.0 as f64 / 1e3));
            }
        }
        let fastest: Vec<(f64, f64)> = sizes
            .iter()
            .zip(&times)
            .map(|(size, times)| (*size as f64, times.iter().copied().fold(f64::INFINITY, f64::min)))
            .collect();
        let line = Line::through(fastest.iter().copied().filter(|(size, _)| *size >= FITTED_FROM as f64));
        bench.grid(grid(&fastest, &times, line));
        let note = "least squares through the fastest of 4 KiB and more";
        bench.figure(Figure::new("rate", line.and_then(Line::mb_per_s), "MB/s", note));
        bench.figure(Figure::new("access time", line.map(|line| line.access_us), "us", note));
        Ok(())
    }
}

fn grid(fastest: &[(f64, f64)], times: &[Vec<f64>], line: Option<Line>) -> Grid {
    let columns = [("fastest", "us"), ("mean", "us"), ("slowest", "us"), ("rate", "MB/s"), ("residual", "us")];
    let mut grid = Grid::new("interval", "size", &columns, "reads by their size; rate: of the mean");
    for ((size, fastest), times) in fastest.iter().zip(times) {
        let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
        let slowest = times.iter().copied().fold(0.0, f64::max);
        let beside = line.map(|line| fastest - line.access_us - line.us_per_byte * size);
        grid.line(label(*size as u64), &[*fastest, mean, slowest, size / mean]);
        if let Some(last) = grid.lines.last_mut() {
            last.values.push(beside);
        }
    }
    grid
}

/// A line through sizes in bytes and times in microseconds.
#[derive(Clone, Copy, Debug)]
struct Line {
    access_us: f64,
    us_per_byte: f64,
}

impl Line {
    /// By least squares; nothing if all sizes are the same.
    fn through(points: impl Iterator<Item = (f64, f64)> + Clone) -> Option<Self> {
        let count = points.clone().count() as f64;
        let (x, y) = points.clone().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
        let (above, below) = points.fold((0.0, 0.0), |(above, below), point| {
            (above + (point.0 - x) * (point.1 - y), below + (point.0 - x).powi(2))
        });
        (below > 0.0).then(|| Self { access_us: y - above / below * x, us_per_byte: above / below })
    }

    /// Bytes a microsecond are MB a second; nothing if larger reads are not slower.
    fn mb_per_s(self) -> Option<f64> {
        (self.us_per_byte > 0.0).then(|| 1.0 / self.us_per_byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_line_is_recovered() {
        let line =
            Line::through([4096.0, 8192.0, 65536.0].map(|size| (size, 200.0 + size / 25.0)).into_iter()).unwrap();
        assert!((line.access_us - 200.0).abs() < 1e-6 && (line.mb_per_s().unwrap() - 25.0).abs() < 1e-6, "{line:?}");
        assert!(Line::through([(4096.0, 1.0)].into_iter()).is_none());
        assert!(Line::through([(4096.0, 2.0), (8192.0, 1.0)].into_iter()).unwrap().mb_per_s().is_none());
    }
}
