//! Requests of one kind: sequential or random, read or written, some at a time, on an empty or on an aged card.

use emmc_card::profile::Profile;
use emmc_port::{BlockOp, TargetShape};
use emmc_workload::{Bench, BenchError, Cost, Detail, FlushAt, Limit, Mix, Options, Order, Stream, Suite, Unwatched};

use super::{SimulateError, target};
use crate::cell::{Cell, Column, Figure, Requests};
use crate::measured::Measured;

/// The capacity of the card in place of an aged one: what garbage collection costs follows from shares. Unit: bytes.
const AGED_BYTES: u64 = 512 << 20;
/// Most that a measurement moves. Unit: bytes.
const BYTES_MAX: u64 = 16 << 20;
/// Requests that percentiles need.
const REQUESTS_MIN: u64 = 2000;
/// A request with which an area is filled. Unit: bytes.
const FILL_BLOCK: u64 = 128 << 10;
/// How often the area is overwritten at random before it counts as aged.
const OVERWRITTEN: u64 = 2;

/// Measurements of some cells in one area, as a suite.
struct Jobs {
    /// Without their figures, and the size of a request in bytes.
    jobs: Vec<(Requests, u64)>,
    /// Unit: bytes; the whole card if it is aged.
    range_bytes: u64,
    is_aged: bool,
}

/// The cells of requests: those of an empty card on a new one, those of an aged card on one that is filled and
/// overwritten.
///
/// Errors: a profile that makes no card; a card that is too small or fails.
pub(super) fn simulated(profile: &Profile, measured: &Measured) -> Result<Vec<Cell>, SimulateError> {
    let mut cells = Vec::new();
    for is_aged in [false, true] {
        let job = |cell: &Cell| match cell.column {
            Column::Requests(requests) if requests.is_aged == is_aged => {
                Some((Requests { figure: Figure::Rate, ..requests }, cell.kib << 10))
            }
            _ => None,
        };
        let mut jobs: Vec<_> = measured.cells.iter().filter_map(job).collect();
        // Writes before reads, sequential ones before random ones, as the first leave most behind.
        jobs.sort_by_key(|(requests, block)| (requests.is_random, !requests.is_write, requests.depth, *block));
        jobs.dedup();
        if jobs.is_empty() {
            continue;
        }
        let (suite, profile) = match is_aged {
            true => (Jobs { jobs, range_bytes: u64::MAX, is_aged }, small(profile)),
            false => (Jobs { jobs, range_bytes: measured.range_bytes.max(BYTES_MAX), is_aged }, profile.clone()),
        };
        let outcome = Bench::run(
            &suite,
            &mut target(&profile)?,
            &Options { detail: Detail::WithoutIntervals, ..Options::default() },
            &mut Unwatched,
        )?;
        for ((requests, block), found) in suite.jobs.iter().zip(&outcome.measurements) {
            let latency = if requests.is_write { &found.write_us } else { &found.read_us };
            let figures = [
                (Figure::Rate, Some(*block as f64 / found.mb_per_s)),
                (Figure::P50, latency.as_ref().map(|latency| latency.p50)),
                (Figure::P90, latency.as_ref().map(|latency| latency.p90)),
                (Figure::P99, latency.as_ref().map(|latency| latency.p99)),
            ];
            cells.extend(figures.into_iter().filter_map(|(figure, us)| {
                let column = Column::Requests(Requests { figure, ..*requests });
                Some(Cell { column, kib: block >> 10, us: us? })
            }));
        }
    }
    Ok(cells)
}

/// The same card with fewer bytes in as many blocks; itself if it cannot be smaller.
pub(crate) fn small(profile: &Profile) -> Profile {
    let factor = (profile.areas.user_bytes / AGED_BYTES).max(1);
    let factor = u32::try_from(factor.next_power_of_two()).unwrap_or(1).min(profile.nand.pages_per_block / 16).max(1);
    let mut smaller = profile.clone();
    smaller.nand.pages_per_block /= factor;
    smaller.areas.user_bytes = (profile.areas.user_bytes / u64::from(factor)) >> 20 << 20;
    if smaller.check().is_ok() { smaller } else { profile.clone() }
}

impl Jobs {
    fn range(&self, size_bytes: u64) -> u64 {
        self.range_bytes.min(size_bytes) / FILL_BLOCK * FILL_BLOCK
    }
}

impl Suite for Jobs {
    fn name(&self) -> &'static str {
        "requests"
    }

    fn about(&self) -> &'static str {
        "the measurements of some cells"
    }

    fn cost(&self, shape: &TargetShape, _: &Options) -> Result<Cost, BenchError> {
        let range = self.range(shape.size_bytes);
        if let Some((_, block)) = self.jobs.iter().find(|(_, block)| *block > range) {
            let what = format!("requests of {block} bytes in a range of {range}");
            return Err(BenchError::Misfit { suite: self.name(), what });
        }
        let written_bytes = (2 + OVERWRITTEN) * range;
        let steps = 2 + self.jobs.len() as u32;
        Ok(Cost { written_bytes, read_bytes: range, from_bytes: 0, to_bytes: range, steps })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let (range, depth_max) = (self.range(bench.target.shape().size_bytes), bench.target.shape().depth_max);
        let pass = |op, order, block| Stream::pass(op, order, 0, range, block);
        let fills = self.is_aged || self.jobs.iter().all(|(requests, _)| requests.is_random || !requests.is_write);
        if fills {
            bench.prepare("fill", &pass(BlockOp::Write, Order::Sequential, FILL_BLOCK))?;
        }
        if self.is_aged {
            let random = pass(BlockOp::Write, Order::Random, 4096);
            let limit = Limit { bytes: OVERWRITTEN * range, time: None };
            bench.prepare("age", &Stream { limit, ..random })?;
        }
        for (requests, block) in &self.jobs {
            let op = if requests.is_write { BlockOp::Write } else { BlockOp::Read };
            let order = if requests.is_random { Order::Random } else { Order::Sequential };
            let least = REQUESTS_MIN * block;
            let bytes = if requests.is_random { BYTES_MAX.max(least) } else { range };
            let stream = Stream {
                mix: Mix::Only(op),
                depth: u32::from(requests.depth).min(depth_max),
                limit: Limit { bytes: bytes.min(range.max(least)), time: None },
                flush: if requests.is_write && !self.is_aged { FlushAt::End } else { FlushAt::Never },
                ..pass(op, order, *block)
            };
            bench.measure(self.name(), &block.to_string(), &requests.to_string(), &stream)?;
        }
        Ok(())
    }
}
