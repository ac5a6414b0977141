//! flashbench's `--align`: what a read pays for crossing boundaries of powers of two.
//!
//! The costs of growing boundaries are levels that rise: nothing inside of a page, then the second page, then the
//! next unit. A step counts if it is four times the typical difference of neighbouring rows, which is never taken as
//! less than what flashbench prints; a row that stands out alone between its neighbours is no step. Boundaries beyond
//! any unit only repeat the last level, and their rows are the ones that flashbench wraps at the end of the device, so
//! they are left out.

use emmc_workload::Grid;

use crate::result::{Evidence, Parameter, Value};
use crate::robust::median;
use crate::saved::{labelled, number, size};

/// No unit is larger. Unit: bytes.
const LARGEST: u64 = 128 << 20;
/// Steps up to here are those of pages, from there on those of units. Unit: bytes.
const PAGE_MAX: u64 = 256 << 10;
const UNIT_MIN: u64 = 512 << 10;
/// A step is this many times the noise.
const CLEAR: f64 = 4.0;
/// No noise is smaller: flashbench prints times of 100 us and more no finer. Unit: microseconds.
const RESOLUTION_US: f64 = 1.0;
const ROWS_MIN: usize = 5;
/// The witness.
const READS: &str = "reads across boundaries";

/// A boundary from which on a read pays more.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    boundary: u64,
    below_us: f64,
    above_us: f64,
}

/// The levels of one run.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    steps: Vec<Step>,
    noise_us: f64,
    rows: Vec<(u64, f64)>,
}

/// The levels of the longest table of reads.
pub(super) fn levels<'a>(grids: impl Iterator<Item = &'a Grid>) -> Option<Levels> {
    let all = grids.filter(|grid| grid.name.starts_with("align") && !grid.name.contains("write")).map(costs);
    let mut rows = all.max_by_key(Vec::len).filter(|rows| !rows.is_empty())?;
    rows.sort_by_key(|(boundary, _)| *boundary);
    rows.retain(|(boundary, _)| *boundary <= LARGEST);
    let times: Vec<f64> = rows.iter().map(|(_, time)| *time).collect();
    let apart: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let noise_us = median(&apart);
    let mut places = Vec::new();
    if rows.len() >= ROWS_MIN {
        split(&times, clear_us(noise_us), 0, &mut places);
        // One row alone at the end is no level: on a device of that size flashbench reads across its end.
        places.retain(|place| place + 2 <= times.len());
    }
    places.sort_unstable();
    let mut borders = vec![0];
    borders.extend(&places);
    borders.push(times.len());
    let middle = |index: usize| median(&times[borders[index]..borders[index + 1]]);
    let step = |(index, place): (usize, &usize)| Step {
        boundary: rows[*place].0,
        below_us: middle(index),
        above_us: middle(index + 1),
    };
    let steps = places.iter().enumerate().map(step).collect();
    Some(Levels { steps, noise_us, rows })
}

/// The least difference that is a step.
fn clear_us(noise_us: f64) -> f64 {
    CLEAR * noise_us.max(RESOLUTION_US)
}

/// Boundaries and their costs; what flashbench printed without a unit follows from the three times beside it.
fn costs(grid: &Grid) -> Vec<(u64, f64)> {
    let row = |line: &emmc_workload::GridLine| {
        let value = |column| grid.value(&line.row, column);
        let from_times = || Some(value("on")? - (value("pre")? + value("post")?) / 2.0);
        Some((labelled(&line.row)?, value("diff").or_else(from_times)?))
    };
    grid.lines.iter().filter_map(row).collect()
}

/// Where a rising step divides the times best, and the same in both parts.
fn split(times: &[f64], least: f64, first: usize, places: &mut Vec<usize>) {
    let apart = |part: &[f64]| {
        let middle = median(part);
        part.iter().map(|time| (time - middle).abs()).sum::<f64>()
    };
    let sum = |place: &usize| apart(&times[..*place]) + apart(&times[*place..]);
    let best = (1..times.len()).min_by(|a, b| sum(a).total_cmp(&sum(b)));
    let Some(place) = best.filter(|place| median(&times[*place..]) - median(&times[..*place]) >= least) else { return };
    places.push(first + place);
    split(&times[..place], least, first, places);
    split(&times[place..], least, first + place, places);
}

impl Levels {
    fn seen(&self) -> String {
        let (Some((least, _)), Some((most, _))) = (self.rows.first(), self.rows.last()) else { return String::new() };
        let range = format!("boundaries of {} to {}", size(*least as f64), size(*most as f64));
        let noise = format!("rows differ by {:.0} us", self.noise_us);
        if self.rows.len() < ROWS_MIN {
            return format!("only {}, {range}", number(self.rows.len() as u64, "row"));
        }
        let step = |step: &Step| {
            format!("from {} on {:.0} us instead of {:.0}", size(step.boundary as f64), step.above_us, step.below_us)
        };
        match self.steps.is_empty() {
            true => format!("no clear step over {range}; {noise}"),
            false => format!("{}; {noise}", self.steps.iter().map(step).collect::<Vec<_>>().join(", ")),
        }
    }

    /// The boundary of the last step.
    pub(super) fn unit(&self) -> Evidence {
        let last = self.steps.last().filter(|step| step.boundary >= UNIT_MIN);
        let seen = match (last, self.steps.is_empty()) {
            (None, false) => format!("no step among large boundaries ({})", self.seen()),
            _ => self.seen(),
        };
        Evidence::new(READS, seen, last.map(|step| Value::Whole(step.boundary)))
    }

    /// The boundary of the first step, if what is below it is inside of a page.
    fn page(&self) -> Option<u64> {
        let first = self.steps.first().filter(|step| step.boundary <= PAGE_MAX)?;
        let is_inside = first.below_us < (first.above_us / 4.0).max(clear_us(self.noise_us) / 2.0);
        is_inside.then_some(first.boundary)
    }
}

/// The page.
pub(super) fn page(levels: Option<&Levels>) -> Parameter {
    let Some(levels) = levels else { return Parameter::unknown("flashbench -a shows it", "bytes", vec![]) };
    let value = levels.page().map(Value::Whole);
    let evidence = vec![Evidence::new(READS, levels.seen(), value.clone())];
    match value {
        Some(value) => Parameter::of(value, "bytes", evidence),
        None => Parameter::unknown(format!("no step among small boundaries: {}", levels.seen()), "bytes", evidence),
    }
}
