//! Requests of one kind: sequential or random, read or written, some at a time, on an empty or on an aged card.

use emmc_card::profile::{Mapping, Profile};
use emmc_port::{BlockOp, TargetShape};
use emmc_workload::{Bench, BenchError, Cost, Detail, FlushAt, Limit, Mix, Options, Order, Stream, Suite, Unwatched};

use super::{SimulateError, target};
use crate::cell::{Cell, Column, Figure, Requests};
use crate::measured::{Extent, Measured};

/// The capacity of the card in place of an aged one: what garbage collection costs follows from shares. Unit: bytes.
const AGED_BYTES: u64 = 512 << 20;
/// Most that a measurement of random requests moves. Unit: bytes.
const BYTES_MAX: u64 = 16 << 20;
/// The same of random reads, and of random writes to a new card, if what was measured is known. Unit: bytes.
const KNOWN_BYTES_MAX: u64 = 256 << 20;
/// Requests that percentiles need.
const REQUESTS_MIN: u64 = 2000;
/// The same of a measurement that moved less.
const KNOWN_REQUESTS_MIN: u64 = 500;
/// A request with which an area is filled. Unit: bytes.
const FILL_BLOCK: u64 = 128 << 10;
/// Most that is written only to be read. Unit: bytes.
const FILL_MAX: u64 = 1 << 30;
/// Of an aged card, sequential writes go to this part.
const WINDOW: u64 = 32;

/// Measurements of some cells in one area, as a suite.
struct Jobs {
    jobs: Vec<Job>,
    is_aged: bool,
    mapping: Mapping,
}

/// A measurement.
#[derive(Clone, Copy, PartialEq)]
struct Job {
    /// Without its figure.
    requests: Requests,
    /// Unit: bytes.
    block_bytes: u64,
    /// What was moved, if that is known. Unit: bytes.
    moved_bytes: Option<u64>,
    /// The part of the card over which its requests are spread. Unit: bytes.
    range_bytes: u64,
}

/// The cells of requests: those of an empty card on a new one, those of an aged card on one that is filled and
/// overwritten.
///
/// Errors: a profile that makes no card; a card that is too small or fails.
pub(super) fn simulated(profile: &Profile, measured: &Measured) -> Result<Vec<Cell>, SimulateError> {
    let mut cells = Vec::new();
    for is_aged in [false, true] {
        let card = if is_aged { small(profile) } else { profile.clone() };
        let job = |cell: &Cell| match cell.column {
            Column::Requests(requests) if requests.is_aged == is_aged => {
                let requests = Requests { figure: Figure::Rate, ..requests };
                let Extent { moved_bytes, range_bytes } =
                    measured.extents.get(&(requests, cell.kib)).copied().unwrap_or_default();
                let range_bytes = match range_bytes {
                    _ if is_aged => u64::MAX,
                    Some(range) if requests.is_random => range,
                    _ => measured.range_bytes.max(BYTES_MAX),
                };
                Some(Job { requests, block_bytes: cell.kib << 10, moved_bytes, range_bytes })
            }
            _ => None,
        };
        let mut jobs: Vec<_> = measured.cells.iter().filter_map(job).collect();
        jobs.sort_by_key(|job| {
            let Requests { is_write, is_random, depth, .. } = job.requests;
            // A new card is written before it is read, in the same way. An aged one is read as it is, and sequential
            // writes come last: they leave little of its state behind.
            match is_aged {
                true => (is_write, !is_random, job.block_bytes, depth, false),
                false => (is_random, false, job.block_bytes, depth, !is_write),
            }
        });
        jobs.dedup();
        if jobs.is_empty() {
            continue;
        }
        let suite = Jobs { jobs, is_aged, mapping: card.ftl.mapping };
        let outcome = Bench::run(
            &suite,
            &mut target(&card)?,
            &Options { detail: Detail::WithoutIntervals, ..Options::default() },
            &mut Unwatched,
        )?;
        for (job, found) in suite.jobs.iter().zip(&outcome.measurements) {
            let (requests, block) = (&job.requests, &job.block_bytes);
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

/// The same card with fewer bytes; itself if it cannot be smaller. Garbage collection depends on the number of blocks,
/// so these have fewer pages; where an allocation unit is a block, there are fewer of them.
pub(crate) fn small(profile: &Profile) -> Profile {
    let factor = (profile.areas.user_bytes / AGED_BYTES).max(1);
    let factor = u32::try_from(factor.next_power_of_two()).unwrap_or(1).min(profile.nand.pages_per_block / 16).max(1);
    let mut smaller = profile.clone();
    if profile.ftl.mapping == Mapping::Page {
        smaller.nand.pages_per_block /= factor;
    }
    smaller.areas.user_bytes = (profile.areas.user_bytes / u64::from(factor)) >> 20 << 20;
    if smaller.check().is_ok() { smaller } else { profile.clone() }
}

/// Whole requests of a fill, one at least. Unit: bytes.
fn whole(bytes: u64) -> u64 {
    (bytes / FILL_BLOCK).max(1) * FILL_BLOCK
}

impl Jobs {
    /// The end of what is written before it is read. Unit: bytes.
    fn written_to(&self, size_bytes: u64) -> u64 {
        let is_pass = |job: &&Job| job.requests.is_write && !job.requests.is_random;
        let ends = |jobs: &mut dyn Iterator<Item = &Job>| jobs.map(|job| job.range_bytes).max();
        let end = match ends(&mut self.jobs.iter().filter(is_pass)) {
            Some(end) => end,
            None if self.is_aged => u64::MAX,
            None => ends(&mut self.jobs.iter()).unwrap_or(0).min(FILL_MAX),
        };
        whole(end.min(size_bytes))
    }

    /// The part of the card over which the requests of a measurement are spread. Unit: bytes.
    fn range(&self, job: &Job, size_bytes: u64) -> u64 {
        let is_random_write = job.requests.is_write && job.requests.is_random;
        let most = if is_random_write { size_bytes } else { self.written_to(size_bytes) };
        whole(job.range_bytes.min(most))
    }

    /// What random writes overwrite before an aged card is measured. Unit: bytes.
    fn overwritten_bytes(&self, range: u64) -> u64 {
        match self.mapping {
            Mapping::Page => 2 * range,
            // Allocation units are merged at once: nothing settles but their logs.
            Mapping::Segment => range / 16 / 4096 * 4096,
        }
    }

    /// What a measurement moves. Unit: bytes.
    fn bytes(&self, job: &Job, range: u64) -> u64 {
        let (block, requests) = (job.block_bytes, job.requests);
        let least = REQUESTS_MIN * block;
        match (requests.is_random, self.is_aged && requests.is_write) {
            // How fast writes to a new card are depends on how many there were: they fill a log. Reads wait at first
            // for what writes left to do.
            (true, false) if job.moved_bytes.is_some() => {
                let least = KNOWN_REQUESTS_MIN * block;
                job.moved_bytes.unwrap_or(0).clamp(least, KNOWN_BYTES_MAX.max(least))
            }
            (true, _) => BYTES_MAX.max(least).min(range.max(least)),
            (false, false) => range,
            (false, true) => (range / WINDOW).clamp(block, range.max(block)),
        }
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
        let ranges = self.jobs.iter().map(|job| (job.block_bytes, self.range(job, shape.size_bytes)));
        if let Some((block, range)) = ranges.clone().find(|(block, range)| block > range) {
            let what = format!("requests of {block} bytes in a range of {range}");
            return Err(BenchError::Misfit { suite: self.name(), what });
        }
        let to_bytes = ranges.map(|(_, range)| range).fold(self.written_to(shape.size_bytes), u64::max);
        let written_bytes = 2 * to_bytes + self.overwritten_bytes(to_bytes);
        let steps = 2 + self.jobs.len() as u32;
        Ok(Cost { written_bytes, read_bytes: to_bytes, from_bytes: 0, to_bytes, steps, ..Cost::default() })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let (size_bytes, depth_max) = (bench.target.shape().size_bytes, bench.target.shape().depth_max);
        let written_to = self.written_to(size_bytes);
        let fills = self.is_aged || self.jobs.iter().all(|job| job.requests.is_random || !job.requests.is_write);
        if fills {
            let fill = Stream::pass(BlockOp::Write, Order::Sequential, 0, written_to, FILL_BLOCK);
            bench.prepare("fill", &fill)?;
        }
        if self.is_aged {
            let random = Stream::pass(BlockOp::Write, Order::Random, 0, written_to, 4096);
            let limit = Limit { bytes: self.overwritten_bytes(written_to), time: None };
            bench.prepare("age", &Stream { limit, ..random })?;
        }
        for (seed, job) in (1..).zip(&self.jobs) {
            let (requests, block, range) = (&job.requests, job.block_bytes, self.range(job, size_bytes));
            let op = if requests.is_write { BlockOp::Write } else { BlockOp::Read };
            let order = if requests.is_random { Order::Random } else { Order::Sequential };
            let stream = Stream {
                mix: Mix::Only(op),
                depth: u32::from(requests.depth).min(depth_max),
                limit: Limit { bytes: self.bytes(job, range), time: None },
                flush: if requests.is_write && !self.is_aged { FlushAt::End } else { FlushAt::Never },
                // Reads in the order of writes before them would find neighbours in one page of the flash.
                seed,
                ..Stream::pass(op, order, 0, range, block)
            };
            bench.measure(self.name(), &block.to_string(), &requests.to_string(), &stream)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use emmc_card::profile::shipped;

    use super::*;
    use crate::simulate::tests::measured_by;
    use crate::simulate::{Plan, simulate};

    /// What a suite finds of a card, the same card repeats: 2 %, but 5 % where only some of the requests are repeated.
    #[test]
    fn a_card_repeats_its_own_results() {
        let card = small(&shipped::named("friendlyelec-emmc-8g").unwrap());
        for (suite, most) in [("speed", 0.02), ("dd", 0.05), ("steady", 0.05), ("trim", 0.05)] {
            let measured = measured_by(suite, &card, &Options::default()).unwrap();
            let again = simulate(&card, &Plan { measured: measured.clone(), is_search: false }).unwrap();
            for cell in &measured.cells {
                let us = crate::cell::time(&again, cell.column, cell.kib).unwrap();
                assert!((us / cell.us - 1.0).abs() < most, "{suite}: {} {}: {us} {}", cell.column, cell.kib, cell.us);
            }
        }
    }

    /// States that are not repeated.
    #[test]
    fn results_of_other_states_are_left_out() {
        let card = shipped::named("friendlyelec-emmc-8g").unwrap();
        for suite in ["hdparm", "flashbench-align"] {
            let options = Options { read_only: true, ..Options::default() };
            let error = measured_by(suite, &card, &options).unwrap_err().to_string();
            assert!(error.contains("reads of a card that holds no data"), "{suite}: {error}");
        }
        let trim = measured_by("trim", &small(&card), &Options::default()).unwrap();
        let aged = trim.left_out.iter().filter(|why| why.contains("aged") && why.contains("has not settled"));
        assert_eq!((aged.count(), trim.cells.iter().any(|cell| cell.column.to_string().contains("aged"))), (4, false));
        // A part of the card, overwritten until it settles, leaves the rest free.
        let part = Options { size_bytes: Some(128 << 20), ..Options::default() };
        let part = measured_by("steady", &small(&card), &part).unwrap();
        assert!(part.cells.iter().all(|cell| !cell.column.to_string().contains("aged")), "{part:?}");
    }
}
