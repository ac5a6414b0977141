//! SLC cache, pSLC, a map that exceeds the memory, and the collapsing drive of a blog: speeds at the translation layer,
//! as a host sees them.
//!
//! The flash is 2D MLC of one die and two planes with the times of `generic-8g`, without spread, in small blocks.

use emmc_card::ftl::{self, Durability, Ftl, RegionSpec, TrimKind};
use emmc_card::nand::{CellMode, Geometry, Nand};
use emmc_card::profile::{FtlConfig, MappingCache, NandConfig, SlcCache, shipped};
use emmc_units::{Instant, Nanos, Rng};

const UNIT: u32 = 4096;

/// Units of a block as built, and with one bit a cell.
const NATIVE_UNITS: u32 = 256;
const PSLC_UNITS: u32 = 128;

/// What fills a page on both planes.
const STRIPE: u32 = 8;

fn flash() -> NandConfig {
    let mut config = shipped::named("generic-8g").unwrap().nand;
    (config.pages_per_block, config.factory_bad_blocks) = (64, 0);
    (config.native.time_spread, config.native.endurance_spread) = (0.0, 0.0);
    let slc = config.slc.as_mut().unwrap();
    (slc.time_spread, slc.endurance_spread) = (0.0, 0.0);
    config
}

fn layer() -> FtlConfig {
    let mut config = shipped::named("generic-8g").unwrap().ftl;
    (config.gc_low_blocks, config.gc_high_blocks, config.wear.static_gap) = (3, 0, 0);
    config
}

struct Rig {
    nand: Nand,
    ftl: Box<dyn Ftl>,
    now: Instant,
    rng: Rng,
}

impl Rig {
    /// A region that offers `data_blocks` blocks full of units on `extra_blocks` more, in a cell mode.
    fn new(config: &FtlConfig, mode: CellMode, data_blocks: u32, extra_blocks: u32) -> Self {
        let slc_blocks = config.slc_cache.map_or(0, |cache| cache.blocks);
        let blocks = data_blocks + extra_blocks + slc_blocks;
        let nand = flash();
        let geometry = Geometry::new(&nand, blocks, UNIT);
        let mut nand = Nand::new(&nand, geometry, 1);
        let units = data_blocks * geometry.units_in(mode);
        let spec = RegionSpec { blocks: (0..blocks).collect(), mode, units, spares: 0, slc_blocks, seed: 1 };
        let ftl = ftl::build(config, &spec, &mut nand);
        Self { nand, ftl, now: Instant::START, rng: Rng::new(7) }
    }

    /// MLC with an SLC cache of 16 blocks (8 MiB), half full of data.
    fn cached() -> Self {
        let cache = SlcCache {
            blocks: 2 + 16,
            low_blocks: 1,
            bypass_bytes: 16 * UNIT,
            idle_fold: true,
            stream_fold_percent: 0,
        };
        let mut rig = Self::new(&FtlConfig { slc_cache: Some(cache), ..layer() }, CellMode::Mlc, 64, 24);
        rig.fill(rig.ftl.units() / 2);
        rig
    }

    fn write(&mut self, first: u32, count: u32) {
        let durability = Durability::Buffered;
        self.now = self.ftl.write(&mut self.nand, first, count, None, durability, self.now).unwrap();
    }

    /// Writes the first units sequentially, in large pieces.
    fn fill(&mut self, units: u32) {
        for first in (0..units).step_by(64) {
            self.write(first, 64.min(units - first));
        }
        self.now = self.ftl.flush(&mut self.nand, self.now).unwrap();
    }

    /// MB/s of random 4 KiB writes among the first `among` units, eight outstanding.
    fn random_writes(&mut self, among: u32, count: u32) -> f64 {
        let start = self.now;
        for _ in 0..count / STRIPE {
            let mut done = self.now;
            for _ in 0..STRIPE {
                let unit = self.rng.below(among.into()) as u32;
                let write = self.ftl.write(&mut self.nand, unit, 1, None, Durability::Buffered, self.now);
                done = done.max(write.unwrap());
            }
            self.now = done;
        }
        rate(count / STRIPE * STRIPE, self.now.since(start))
    }

    fn sequential_writes(&mut self, from: u32, count: u32) -> f64 {
        let start = self.now;
        for first in (from..from + count).step_by(STRIPE as usize) {
            self.write(first, STRIPE);
        }
        rate(count, self.now.since(start))
    }

    fn read(&mut self, first: u32, count: u32) {
        self.now = self.ftl.read(&mut self.nand, first, count, None, self.now).unwrap();
    }

    /// Microseconds of a random 4 KiB read among the first `among` units.
    fn random_reads(&mut self, among: u32, count: u32) -> f64 {
        let start = self.now;
        for _ in 0..count {
            let unit = self.rng.below(among.into()) as u32;
            self.read(unit, 1);
        }
        self.now.since(start).0 as f64 / 1e3 / f64::from(count)
    }

    fn sequential_reads(&mut self, count: u32) -> f64 {
        let start = self.now;
        for first in (0..count).step_by(STRIPE as usize) {
            self.read(first, STRIPE);
        }
        rate(count, self.now.since(start))
    }

    /// Leaves the card idle until its background work is complete.
    fn idle(&mut self) {
        while let Some(done) = self.ftl.background(&mut self.nand, self.now).unwrap() {
            self.now = self.now.max(done);
        }
    }

    fn audit(&self) {
        self.ftl.audit(&self.nand).unwrap();
        assert_eq!(self.nand.counters().violations, 0);
    }

    /// Units programmed into blocks of a mode, computed from erases and present content.
    fn erases(&self, mode: CellMode) -> u32 {
        self.nand.blocks().iter().filter(|block| block.mode == mode).map(|block| block.erase_count).sum()
    }
}

fn rate(units: u32, time: Nanos) -> f64 {
    f64::from(units) * f64::from(UNIT) / (time.0 as f64 / 1e3)
}

/// What a stripe of both planes allows when each waits for the one before: two transfers, then both program together.
fn stripe_rate(program_us: f64) -> f64 {
    let transfer_us = 2.0 * 16384.0 / 200.0;
    32768.0 / (transfer_us + program_us)
}

fn near(found: f64, wanted: f64, share: f64) {
    assert!((found / wanted - 1.0).abs() <= share, "{found:.2}, not {wanted:.2}");
}

#[test]
fn a_burst_runs_at_slc_speed_until_the_cache_is_full() {
    let mut rig = Rig::cached();
    let among = rig.ftl.units() / 2;
    // 14 blocks: two more are free, and one stays so.
    let burst = rig.random_writes(among, 14 * PSLC_UNITS);
    // The first page of a block waits alone, once in 16 stripes.
    near(burst, stripe_rate(250.0), 0.05);
    assert_eq!((rig.ftl.stats().folds, rig.ftl.stats().foreground_stalls), (0, 0));
    // From here on every block written is one folded: read, programmed at 500/1300 us, erased.
    rig.random_writes(among, 4 * PSLC_UNITS);
    let folding = rig.random_writes(among, 20 * PSLC_UNITS);
    assert!(rig.ftl.stats().foreground_stalls >= 20);
    assert!(burst > 3.0 * folding, "{burst:.1} MB/s, then {folding:.1} MB/s");
    // A quarter of the page programs is for the cache, so it cannot be slower than that either.
    assert!(folding > 8.0, "{folding:.1} MB/s");
    rig.audit();
}

#[test]
fn idle_time_frees_the_cache() {
    let mut rig = Rig::cached();
    let among = rig.ftl.units() / 2;
    let burst = rig.random_writes(among, 14 * PSLC_UNITS);
    let folding = rig.random_writes(among, 20 * PSLC_UNITS);
    assert_eq!(rig.ftl.urgency(&rig.nand), 2, "a full cache slows the next write");
    let before = rig.now;
    rig.idle();
    assert!(rig.now > before);
    assert_eq!(rig.ftl.urgency(&rig.nand), 0);
    let again = rig.random_writes(among, 13 * PSLC_UNITS);
    near(again, burst, 0.02);
    assert!(again > 3.0 * folding);
    rig.audit();
}

#[test]
fn without_idle_folding_the_cache_stays_full() {
    let cache = SlcCache { blocks: 2 + 16, low_blocks: 1, bypass_bytes: 0, idle_fold: false, stream_fold_percent: 0 };
    let mut rig = Rig::new(&FtlConfig { slc_cache: Some(cache), ..layer() }, CellMode::Mlc, 64, 24);
    let among = rig.ftl.units() / 2;
    rig.random_writes(among, 30 * PSLC_UNITS);
    rig.idle();
    let stalls = rig.ftl.stats().foreground_stalls;
    rig.random_writes(among, 4 * PSLC_UNITS);
    assert!(rig.ftl.stats().foreground_stalls >= stalls + 3);
}

#[test]
fn large_writes_bypass_the_cache_at_native_speed() {
    let mut rig = Rig::cached();
    let start = rig.now;
    for first in (0..4096).step_by(64) {
        rig.write(first, 64);
    }
    // Two pages a plane, 500 and 1300 us alternately; the next stripe is sent while one programs.
    let native = rate(4096, rig.now.since(start));
    let programmed = 32768.0 / 900.0;
    assert!(native > 0.8 * programmed && native < 1.05 * programmed, "{native:.1} MB/s of {programmed:.1}");
    assert_eq!(rig.erases(CellMode::Pslc), 0);
    assert!(rig.nand.blocks().iter().filter(|block| block.mode == CellMode::Pslc).all(|block| block.next_page == 0));
}

#[test]
fn overwrites_in_the_cache_save_native_programs() {
    let (mut hot, mut wide) = (Rig::cached(), Rig::cached());
    let host = 200 * PSLC_UNITS;
    let (before, all) = (*hot.nand.counters(), hot.ftl.units() / 2);
    hot.random_writes(64, host);
    wide.random_writes(all, host);
    let share = |rig: &Rig| {
        let programmed = rig.nand.counters().unit_programs - before.unit_programs;
        // All of the host's units went to the cache first.
        (programmed as f64 - f64::from(host)) / f64::from(host)
    };
    // Of 64 units each at most one copy is valid in a block of 128 when it is the oldest, and nearly always none.
    assert!(share(&hot) < 0.01, "{}", share(&hot));
    // A cache of 2048 units over 8192: some are overwritten before they are folded, the others are folded once, and
    // collected.
    assert!((0.7..1.6).contains(&share(&wide)), "{}", share(&wide));
    assert_eq!(hot.erases(CellMode::Mlc), 0, "hot data do not wear native blocks");
    assert!(wide.erases(CellMode::Mlc) > 20);
    hot.audit();
    wide.audit();
}

#[test]
fn the_cache_wears_evenly_and_by_written_volume() {
    let mut rig = Rig::cached();
    let rounds = 50;
    rig.random_writes(rig.ftl.units() / 2, rounds * 16 * PSLC_UNITS);
    let worn: Vec<u32> = (2..18).map(|block| rig.nand.block(block).erase_count).collect();
    let (least, most) = (worn.iter().min().unwrap(), worn.iter().max().unwrap());
    assert!(most - least <= 1, "{worn:?}");
    assert_eq!(worn.iter().sum::<u32>(), rig.ftl.stats().folds as u32);
    let written = rig.nand.blocks()[2..18].iter().map(|block| block.next_page * 4).sum::<u32>();
    let (programmed, host) = (rig.ftl.stats().folds as u32 * PSLC_UNITS + written, rounds * 16 * PSLC_UNITS);
    // Of four units that wait for their page, two are the same once in a while.
    assert!(programmed <= host && host - programmed < host / 1000, "{programmed} of {host}");
    // pSLC endures ten times as many.
    assert_eq!(rig.nand.endurance_of(2), 30_000);
    assert_eq!(rig.nand.endurance_of(40), 3_000);
}

#[test]
fn pslc_has_half_the_capacity_and_twice_the_speed() {
    let mut speeds = Vec::new();
    for (mode, blocks) in [(CellMode::Mlc, 32), (CellMode::Pslc, 32)] {
        let mut rig = Rig::new(&layer(), mode, blocks, 10);
        let units = rig.ftl.units();
        assert_eq!(units, blocks * if mode == CellMode::Mlc { NATIVE_UNITS } else { PSLC_UNITS });
        let write = rig.sequential_writes(0, units);
        speeds.push((write, rig.sequential_reads(units), rig.random_reads(units, 500)));
        rig.audit();
    }
    let ratio = speeds[1].0 / speeds[0].0;
    assert!((2.0..3.0).contains(&ratio), "written {ratio:.2} times as fast: {speeds:?}");
    near(speeds[0].0, stripe_rate(900.0), 0.03);
    near(speeds[1].0, stripe_rate(250.0), 0.03);
    // Reads: 60 us become 28 us, and the transfer stays.
    assert!(speeds[1].1 > 1.1 * speeds[0].1, "{speeds:?}");
    near(speeds[0].2 - speeds[1].2, 32.0, 0.01);
}

#[test]
fn random_reads_beyond_the_mapping_cache_cost_an_extra_flash_read() {
    let cache = MappingCache { pages: 4, units_per_page: 1024 };
    let config = FtlConfig { mapping_cache: Some(cache), ..layer() };
    let mut rig = Rig::new(&config, CellMode::Mlc, 64, 20);
    let units = rig.ftl.units();
    assert_eq!(units, 16 * 1024);
    rig.fill(units);
    rig.random_reads(4 * 1024, 100);
    let before = *rig.nand.counters();
    let within = rig.random_reads(4 * 1024, 1000);
    let between = *rig.nand.counters();
    assert_eq!(between.page_reads - before.page_reads, 1000, "no read for the map");
    let misses = rig.ftl.stats().map_misses;
    let beyond = rig.random_reads(units, 4000);
    let reads = rig.nand.counters().page_reads - between.page_reads;
    // Four of sixteen mapping pages are in memory.
    near(reads as f64 / 4000.0, 1.0 + 12.0 / 16.0, 0.03);
    near(beyond - within, 0.75 * (28.0 + 16384.0 / 200.0), 0.05);
    assert_eq!(rig.ftl.stats().map_misses - misses, reads - 4000);
    rig.audit();
}

#[test]
fn a_drive_overwritten_without_trim_collapses_and_one_trim_restores_it() {
    // Over-provisioning of 4 %, as the blog's modules seem to have.
    let (blocks, extra) = (400, 16 + 2 + 3);
    let config = FtlConfig { gc_high_blocks: 64, ..layer() };
    let mut rig = Rig::new(&config, CellMode::Mlc, blocks, extra);
    let units = rig.ftl.units();
    let half = units / 2;
    let fresh_sequential = rig.sequential_writes(0, half);
    let fresh_random = rig.random_writes(half, 8 * NATIVE_UNITS);
    let (fresh_reads, fresh_read) = (rig.sequential_reads(half), rig.random_reads(half, 500));
    // Used for long: full, and overwritten in small pieces all over.
    rig.fill(units);
    rig.random_writes(units, 3 * units);
    let random = rig.random_writes(units, 8 * NATIVE_UNITS);
    let sequential = rig.sequential_writes(0, units / 8);
    assert!(fresh_random > 8.0 * random, "random {fresh_random:.1}, then {random:.2} MB/s");
    assert!(fresh_sequential > 3.0 * sequential, "sequential {fresh_sequential:.1}, then {sequential:.2} MB/s");
    // Reads do not differ: one page each, in every place.
    near(rig.random_reads(units, 500), fresh_read, 0.05);
    let reads = rig.sequential_reads(units / 16);
    assert!(reads > 0.25 * fresh_reads, "read {fresh_reads:.1}, then {reads:.1} MB/s");
    // The file system uses half; the other half is trimmed once.
    rig.now = rig.ftl.trim(&mut rig.nand, half, units - half, TrimKind::Trim, rig.now).unwrap();
    rig.random_writes(half, units);
    let sustained = rig.random_writes(half, 8 * NATIVE_UNITS);
    assert!(sustained > 0.6 * fresh_random, "fresh {fresh_random:.1}, trimmed {sustained:.1} MB/s");
    // With some time to collect all of it is back, but for an erase of 3.5 ms before each block of 34 ms.
    let (fresh_random, fresh_sequential) = (fresh_random * 34.0 / 37.5, fresh_sequential * 34.0 / 37.5);
    rig.idle();
    near(rig.random_writes(half, 8 * NATIVE_UNITS), fresh_random, 0.03);
    rig.idle();
    near(rig.sequential_writes(0, half / 8), fresh_sequential, 0.03);
    rig.audit();
}
