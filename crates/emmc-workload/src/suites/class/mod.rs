//! The class that a card would get: SD speed class (C2 to C10, U1, U3) and application performance class (A1, A2).
//!
//! Speed class, after the physical layer specification 4.10, section 4.13 (the public, simplified one): the card is
//! divided into allocation units (AU; 4 MiB, the largest of SDHC and the part by which larger ones are measured;
//! `--size` sets another), each filled with recording units (RU) of 512 KiB.
//!
//! | figure | how |
//! |---|---|
//! | Pw | the slowest average over an AU, of 64 AUs written sequentially |
//! | P(u) | AUs in which a share u holds data that stays: the other RUs are written, in ascending order; the mean over eight AUs |
//! | Pm | the speed at which data that stays is moved: from all P(u), time = free / Pw + used / Pm by least squares |
//! | Pr | the mean of 256 single RUs read at random |
//! | T_FW | a FAT update between AUs: the largest mean over eight in a row, and the longest |
//! | T_FR | a read of 4 KiB of the FAT: the longest |
//! | busy | no write of an RU takes longer than 250 ms (its transfer is included in that figure) |
//!
//! **From memory, not from the text**: Pm of C2 to C6 (half of Pw), that C10 and U classes require no Pm, and that a
//! FAT update is a directory entry of one sector and two FATs of 16 KiB each. Application class: random 4 KiB requests
//! in 256 MiB that were written sequentially, ten seconds each, the flush after writes counts; A1 at queue depth 1, A2
//! at the target's depth (32, or `--queue-depth`); 10 MB/s sustained. The specification's own precondition and area are
//! from memory too.
//!
//! Absent on purpose: V classes, which are recorded with CMD20 that no block device passes on; UHS timing (the bus is
//! used in its current mode).

mod application;
mod speed;
mod verdict;

use emmc_port::TargetShape;

use super::area::stated;
use super::{Bench, Cost, Knob, Options, Suite};
use crate::drive::stream::BenchError;

const NAME: &str = "class";
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// A recording unit.
const RU: u64 = 512 * KIB;
/// AUs of the area.
const AUS: u64 = 64;

/// The suite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class;

/// The plan of a run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    from: u64,
    to: u64,
    au: u64,
    sector: u64,
    /// Requests outstanding for A2.
    depth: u32,
    seed: u64,
}

/// The measured figures; 0 if not measured. Unit: MB/s, ms, IOPS.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    pw: f64,
    /// Absent if moving cost no time.
    pm: Option<f64>,
    pr: f64,
    fat_mean_ms: f64,
    fat_longest_ms: f64,
    /// The most slow updates among eight in a row.
    fat_slow_of_eight: usize,
    fat_read_ms: f64,
    busy_ms: f64,
    sustained: f64,
    /// Random reads and writes, one at a time.
    one: [f64; 2],
    /// The same with a queue.
    many: [f64; 2],
    depth: u32,
}

impl Plan {
    fn new(shape: &TargetShape, options: &Options) -> Result<Self, BenchError> {
        let misfit = |what: String| Err(BenchError::Misfit { suite: NAME, what });
        let au = options.size_bytes.unwrap_or(4 * MIB);
        if !au.is_power_of_two() || !(2 * RU..=64 * MIB).contains(&au) {
            return misfit(format!("an allocation unit of {}: expected a power of two from 1 to 64 MiB", stated(au)));
        }
        let from = options.from_bytes.next_multiple_of(au);
        let to = from + AUS * au;
        if to > shape.size_bytes {
            let (au, to, size) = (stated(au), stated(to), stated(shape.size_bytes));
            return misfit(format!("{AUS} units of {au} end at {to}; the target has {size}"));
        }
        let depth = options.queue_depth.unwrap_or(32).min(shape.depth_max);
        Ok(Self { from, to, au, sector: u64::from(shape.sector_bytes), depth, seed: options.seed })
    }

    /// RUs of an AU.
    fn rus(&self) -> u64 {
        self.au / RU
    }
}

impl Suite for Class {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "SD speed class and application class: which classes the card meets, and what prevents the next"
    }

    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size, Knob::QueueDepth]
    }

    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError> {
        let plan = Plan::new(shape, options)?;
        let area = plan.to - plan.from;
        let [speed, application] = [speed::cost(&plan), application::cost(&plan)];
        Ok(Cost {
            written_bytes: area + speed.0 + application.0,
            read_bytes: speed.1 + application.1,
            from_bytes: plan.from,
            to_bytes: plan.to,
            steps: 0,
            ..Cost::default()
        })
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError> {
        let plan = Plan::new(bench.target.shape(), bench.options)?;
        let mut found = Found { depth: plan.depth, ..Found::default() };
        let ended =
            speed::measure(bench, &plan, &mut found).and_then(|()| application::measure(bench, &plan, &mut found));
        // Also if it was cancelled: the measurements so far.
        verdict::tell(bench, &found, ended.is_ok());
        ended
    }
}
