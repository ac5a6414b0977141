//! Host writes per second of real time through the page-mapped layer and the flash below it: every program, read and
//! erase with its time, all wear counted, no payload, one core.
//!
//! `cargo bench -p emmc-card --bench speed [-- NAME...]`; each figure is one long run. Processor time is used if the
//! kernel reports it, so that other load matters less. The whole device is timed in `device`.

use emmc_card::ftl::page::PageFtl;
use emmc_card::ftl::{Durability, Ftl, RegionSpec};
use emmc_card::nand::{Geometry, Nand};
use emmc_card::profile::{Profile, shipped};
use emmc_units::{Instant, Rng};

/// Units that are drawn, and prefetched, at a time.
const BATCH: usize = 64;

struct Part {
    nand: Nand,
    ftl: Box<dyn Ftl>,
    now: Instant,
    rng: Rng,
}

impl Part {
    /// 16 KiB pages, 2 planes, 1024 units of 4 KiB a block, nine tenths of them in use.
    fn new(user_gib: u64, change: impl Fn(&mut Profile)) -> Self {
        let mut profile = shipped::named("generic-8g").expect("it is shipped");
        profile.ftl.trim_frees = false;
        profile.ftl.separate_gc = false;
        profile.ftl.gc_low_blocks = 3;
        profile.nand.factory_bad_blocks = 0;
        change(&mut profile);
        let units = (user_gib << 30) / u64::from(profile.ftl.unit_bytes);
        let geometry = Geometry::new(&profile.nand, 0, profile.ftl.unit_bytes);
        let blocks = (units as f64 / 0.9 / f64::from(geometry.units_per_block())).round() as u32 + 3;
        let mut nand = Nand::new(&profile.nand, Geometry { blocks, ..geometry }, 1);
        let good = (0..blocks).collect();
        let mode = profile.nand.cell;
        let spec = RegionSpec { blocks: good, mode, units: units as u32, spares: 0, slc_blocks: 0, seed: 2 };
        let ftl = Box::new(PageFtl::new(&profile.ftl, &spec, &mut nand));
        Self { nand, ftl, now: Instant::START, rng: Rng::new(3) }
    }

    fn write(&mut self, unit: u32, count: u32) {
        let written = self.ftl.write(&mut self.nand, unit, count, None, Durability::Buffered, self.now);
        self.now = written.expect("it is not worn out");
    }

    fn sequential(&mut self, units: u64, count: u32) {
        let all = self.ftl.units();
        for step in 0..units / u64::from(count) {
            self.write((step * u64::from(count) % u64::from(all / count * count)) as u32, count);
        }
    }

    fn random(&mut self, writes: u64) {
        let all = u64::from(self.ftl.units());
        let (mut units, mut soon) = ([0; BATCH], [0; BATCH]);
        soon.fill_with(|| self.rng.below(all) as u32);
        for _ in 0..writes / BATCH as u64 {
            units = std::mem::replace(&mut soon, units);
            soon.fill_with(|| self.rng.below(all) as u32);
            self.ftl.foresee(&soon, &units);
            for unit in units {
                self.write(unit, 1);
            }
        }
    }

    fn random_read(&mut self, reads: u64) {
        for _ in 0..reads {
            let unit = self.rng.below(u64::from(self.ftl.units())) as u32;
            self.now = self.ftl.read(&mut self.nand, unit, 1, None, self.now).expect("it reads");
        }
    }
}

/// Processor time of this thread (Linux), else real time. Unit: seconds.
fn seconds(since: std::time::Instant) -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.map_or_else(|| since.elapsed().as_secs_f64(), |nanos| nanos / 1e9)
}

/// Bytes in memory (Linux; else 0).
fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).unwrap_or(0.0) * 4096.0
}

/// Times `units` units of `run` on a part that is ready for it.
fn time(name: &str, part: &mut Part, units: u64, run: fn(&mut Part, u64)) {
    let (before, simulated, clock) = (*part.nand.counters(), part.now, std::time::Instant::now());
    let begun = seconds(clock);
    run(part, units);
    let seconds = seconds(clock) - begun;
    let after = part.nand.counters();
    let programs = (after.unit_programs - before.unit_programs) as f64;
    let all_units = part.nand.geometry().blocks as f64 * f64::from(part.nand.geometry().units_per_block());
    println!(
        "{name:24} {:6.2} M host units/s  {:6.1} ns each  {:7.2} M unit programs/s  WA {:6.3}  {:6.0} x real time  {:5.2} bytes/unit",
        units as f64 / seconds / 1e6,
        seconds * 1e9 / units as f64,
        programs / seconds / 1e6,
        programs / units as f64,
        part.now.since(simulated).as_secs_f64() / seconds,
        resident_bytes() / all_units,
    );
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    let steady = |user_gib, rounds, change: fn(&mut Profile)| {
        let mut part = Part::new(user_gib, change);
        let all = u64::from(part.ftl.units());
        part.sequential(all, 64);
        part.random(rounds * all);
        (part, all)
    };
    for (name, gib, change) in [
        ("random-8g", 8, (|_| {}) as fn(&mut Profile)),
        ("random-8g-split", 8, |profile| profile.ftl.separate_gc = true),
        ("random-8g-levelled", 8, |profile| profile.ftl.wear.static_gap = 20),
        ("random-8g-fifo", 8, |profile| profile.ftl.gc = emmc_card::profile::GcPolicy::Fifo),
        ("random-64g", 64, |_| {}),
    ] {
        if is_wanted(name) {
            let (mut part, all) = steady(gib, if gib > 8 { 1 } else { 3 }, change);
            time(name, &mut part, if gib > 8 { all / 2 } else { 10 * all }, Part::random);
        }
    }
    for (name, run) in [
        ("sequential-8g", (|part, units| part.sequential(units, 1)) as fn(&mut Part, u64)),
        ("sequential-8g-128k", |part, units| part.sequential(units, 32)),
        ("random-read-8g", Part::random_read),
    ] {
        if is_wanted(name) {
            let (mut part, all) = steady(8, 0, |_| {});
            time(name, &mut part, 20 * all, run);
        }
    }
}
