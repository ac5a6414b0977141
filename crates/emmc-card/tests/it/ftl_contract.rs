//! The contract of every translation layer and every stack of them, through the trait alone.
//!
//! Each test runs over all stacks of [`STACKS`], on small flash with content. The torture (`emmc-torture`) cuts
//! power during operations; here power is cut while the card is idle.

use std::collections::BTreeMap;

use emmc_card::ftl::{self, Durability, Ftl, FtlError, RegionSpec, TrimKind};
use emmc_card::nand::{CellMode, Geometry, Nand, StoredContent};
use emmc_card::profile::{
    FtlConfig, GcPace, GcPolicy, Mapping, MappingCache, NandConfig, Segment, SegmentOrder, SlcCache, WearLevelling,
    shipped,
};
use emmc_units::{Instant, Rng};

const UNIT: usize = 32;

/// Name and configuration.
type Stack = (&'static str, fn() -> FtlConfig);

const STACKS: [Stack; 9] = [
    ("page", page),
    ("page, FIFO, one frontier", || FtlConfig { gc: GcPolicy::Fifo, separate_gc: false, ..page() }),
    ("page, hot and cold, background", || FtlConfig { hot_cold: true, gc_high_blocks: 6, ..page() }),
    ("page, map not in memory", || FtlConfig { mapping_cache: MAPPING_CACHE, ..page() }),
    ("page behind SLC", || FtlConfig { slc_cache: slc(0), ..page() }),
    ("page behind SLC, bypassed", || FtlConfig { slc_cache: slc(6), mapping_cache: MAPPING_CACHE, ..page() }),
    ("segment, linear", || segment(SegmentOrder::Linear, 0)),
    ("segment, random, shared logs", || segment(SegmentOrder::Random, 2)),
    ("segment behind SLC", || FtlConfig { slc_cache: slc(6), ..segment(SegmentOrder::Linear, 1) }),
];

const MAPPING_CACHE: Option<MappingCache> = Some(MappingCache { pages: 3, units_per_page: 32 });

fn page() -> FtlConfig {
    FtlConfig {
        mapping: Mapping::Page,
        unit_bytes: UNIT as u32,
        gc: GcPolicy::Greedy,
        gc_low_blocks: 3,
        gc_pace: GcPace::default(),
        gc_busy_max_ms: 250,
        gc_high_blocks: 0,
        separate_gc: true,
        hot_cold: false,
        wear: WearLevelling { dynamic: true, static_gap: 5 },
        mapping_cache: None,
        slc_cache: None,
        segment: None,
        refresh: None,
        trim_frees: true,
    }
}

fn segment(order: SegmentOrder, random_logs: u32) -> FtlConfig {
    let random_log_bytes = if random_logs > 0 { 4 * UNIT as u32 } else { 0 };
    let segment = Segment { open_aus: 2, order, random_logs, random_log_bytes, steps_back: 0, merges_at_once: 1 };
    FtlConfig { mapping: Mapping::Segment, segment: Some(segment), ..page() }
}

fn slc(bypass_units: u32) -> Option<SlcCache> {
    let bypass_bytes = bypass_units * UNIT as u32;
    Some(SlcCache { blocks: 6, low_blocks: 1, bypass_bytes, idle_fold: true, stream_fold_percent: 0 })
}

/// A layer, its flash, and the expected content of its units.
struct Rig {
    name: &'static str,
    nand: Nand,
    ftl: Box<dyn Ftl>,
    model: BTreeMap<u32, u8>,
    now: Instant,
    rng: Rng,
    next: u8,
}

fn flash() -> NandConfig {
    let mut config = shipped::named("generic-8g").unwrap().nand;
    (config.page_bytes, config.pages_per_block, config.factory_bad_blocks) = (2 * UNIT as u32, 32, 2);
    config
}

/// Every stack over flash like this.
fn rigs(flash: &NandConfig) -> impl Iterator<Item = Rig> + '_ {
    (1..).zip(STACKS).map(|(seed, (name, config))| {
        let config = config();
        let blocks = 40;
        let geometry = Geometry::new(flash, blocks, UNIT as u32);
        let mut nand = Nand::new(flash, geometry, seed).keeping(StoredContent::Data);
        let slc_blocks = config.slc_cache.map_or(0, |cache| cache.blocks);
        let (mode, units) = (CellMode::Mlc, 11 * geometry.units_in(CellMode::Mlc) - 3);
        let spec = RegionSpec { blocks: (0..blocks).collect(), mode, units, spares: 6, slc_blocks, seed };
        let ftl = ftl::build(&config, &spec, &mut nand);
        Rig { name, nand, ftl, model: BTreeMap::new(), now: Instant::START, rng: Rng::new(seed), next: 0 }
    })
}

impl Rig {
    /// The clock after a reply, which is never before the request.
    fn done(&mut self, done: Instant) {
        assert!(done >= self.now, "{}: done before it was asked for", self.name);
        self.now = done;
    }

    fn write(&mut self, first: u32, count: u32, durability: Durability) -> Result<(), FtlError> {
        let contents: Vec<u8> = (0..count)
            .map(|_| {
                self.next = self.next % 250 + 1;
                self.next
            })
            .collect();
        let data: Vec<u8> = contents.iter().flat_map(|&content| [content; UNIT]).collect();
        let done = self.ftl.write(&mut self.nand, first, count, Some(&data), durability, self.now)?;
        self.done(done);
        self.model.extend((first..).zip(contents));
        Ok(())
    }

    fn trim(&mut self, first: u32, count: u32, kind: TrimKind) {
        let done = self.ftl.trim(&mut self.nand, first, count, kind, self.now).unwrap();
        self.done(done);
        self.model.retain(|unit, _| !(first..first + count).contains(unit));
    }

    fn flush(&mut self) {
        let done = self.ftl.flush(&mut self.nand, self.now).unwrap();
        self.done(done);
    }

    /// Reads units and compares them; units never written read as zero.
    fn check(&mut self, first: u32, count: u32) {
        let mut out = vec![0xee; count as usize * UNIT];
        let done = self.ftl.read(&mut self.nand, first, count, Some(&mut out), self.now).unwrap();
        self.done(done);
        for (unit, found) in (first..).zip(out.chunks(UNIT)) {
            let wanted = self.model.get(&unit).copied();
            assert!(found.iter().all(|&byte| byte == wanted.unwrap_or(0)), "{}: unit {unit}: {found:?}", self.name);
            assert_eq!(self.ftl.is_mapped(unit), wanted.is_some(), "{}: unit {unit}", self.name);
        }
    }

    fn check_all(&mut self) {
        self.check(0, self.ftl.units());
        self.audit();
    }

    fn audit(&self) {
        self.ftl.audit(&self.nand).unwrap_or_else(|what| panic!("{}: {what}", self.name));
        assert_eq!(self.nand.counters().violations, 0, "{}", self.name);
    }

    /// A range of units, mostly short.
    fn range(&mut self) -> (u32, u32) {
        let units = self.ftl.units();
        let most = [1, 1, 4, 12, 70][self.rng.below(5) as usize];
        let count = 1 + self.rng.below(most) as u32;
        // Half of the writes go to a sixteenth of the units.
        let among = if self.rng.below(2) == 0 { units / 16 } else { units };
        (self.rng.below(u64::from(among.max(count) - count) + 1) as u32, count)
    }

    fn step(&mut self) {
        let (first, count) = self.range();
        match self.rng.below(32) {
            0..=9 => self.write(first, count, Durability::Buffered).unwrap(),
            10..=14 => self.write(first, count, Durability::Flash).unwrap(),
            15..=19 => self.write(first, count, Durability::Reliable).unwrap(),
            20 => self.trim(first, count, TrimKind::Discard),
            21 => self.trim(first, count, TrimKind::Trim),
            22 => self.flush(),
            23 => {
                if let Some(done) = self.ftl.background(&mut self.nand, self.now).unwrap() {
                    self.done(done);
                }
            }
            _ => self.check(first, count),
        }
    }

    /// Power is lost without operations in progress, and returns.
    fn cycle(&mut self) {
        self.now = self.now.max(self.nand.quiet_at());
        self.nand.power_off(self.now);
        self.nand.power_on(self.now);
        let done = self.ftl.recover(&mut self.nand, self.now).unwrap();
        self.done(done);
        self.nand.decay();
    }

    /// After a purge no good block has programmed pages without valid units.
    fn stale_units(&self) -> usize {
        let used = self.ftl.blocks().iter().flat_map(|&block| self.nand.spare(block));
        used.filter(|&&unit| unit != u32::MAX).count()
    }
}

#[test]
fn new_flash_reads_as_zero_in_no_time() {
    for mut rig in rigs(&flash()) {
        rig.check_all();
        let counters = rig.nand.counters();
        assert_eq!((counters.page_reads, counters.page_programs, rig.now), (0, 0, Instant::START), "{}", rig.name);
        assert_eq!(rig.ftl.urgency(&rig.nand), 0, "{}", rig.name);
    }
}

#[test]
fn any_requests_in_any_order_read_back_what_was_written() {
    for mut rig in rigs(&flash()) {
        for _ in 0..6_000 {
            rig.step();
        }
        rig.check_all();
        let stats = *rig.ftl.stats();
        assert!(stats.collections + stats.full_merges > 20, "{}: {stats:?}", rig.name);
        assert_eq!(stats.folds > 20, rig.name.contains("SLC"), "{}: {stats:?}", rig.name);
        assert_eq!(stats.map_misses > 20, rig.name.contains("map not") || rig.name.contains("bypassed"), "{stats:?}");
    }
}

#[test]
fn flushed_and_durable_writes_survive_a_power_loss() {
    for mut rig in rigs(&flash()) {
        for round in 0..12 {
            for _ in 0..150 {
                rig.step();
            }
            let (first, count) = rig.range();
            match round % 3 {
                0 => rig.flush(),
                1 => {
                    rig.flush();
                    rig.write(first, count, Durability::Reliable).unwrap();
                }
                _ => {
                    rig.flush();
                    rig.write(first, count, Durability::Flash).unwrap();
                    rig.trim(first, count.div_ceil(2), TrimKind::Trim);
                }
            }
            // Discards may be undone: those of this round are not checked.
            let lost: Vec<u32> = (0..rig.ftl.units()).filter(|unit| !rig.model.contains_key(unit)).collect();
            rig.cycle();
            for unit in lost {
                if rig.ftl.is_mapped(unit) {
                    rig.trim(unit, 1, TrimKind::Trim);
                }
            }
            rig.check_all();
        }
    }
}

#[test]
fn trims_survive_a_power_loss_and_discards_read_as_zero_before_it() {
    for mut rig in rigs(&flash()) {
        let units = rig.ftl.units();
        for first in (0..units).step_by(50) {
            rig.write(first, 50.min(units - first), Durability::Reliable).unwrap();
        }
        for _ in 0..200 {
            let (first, count) = rig.range();
            rig.write(first, count, Durability::Buffered).unwrap();
            rig.trim(first, count, TrimKind::Discard);
            rig.check(first, count);
        }
        rig.trim(0, units / 2, TrimKind::Trim);
        rig.trim(units - 5, 5, TrimKind::Trim);
        rig.cycle();
        rig.check(0, units / 2);
        rig.check(units - 5, 5);
        assert!((0..units / 2).all(|unit| !rig.ftl.is_mapped(unit)), "{}", rig.name);
        rig.audit();
    }
}

#[test]
fn a_purge_leaves_valid_content_only() {
    for mut rig in rigs(&flash()) {
        for _ in 0..2_000 {
            rig.step();
        }
        let done = rig.ftl.purge(&mut rig.nand, rig.now).unwrap();
        rig.done(done);
        assert_eq!(rig.stale_units(), rig.model.len(), "{}", rig.name);
        rig.check_all();
        let all = rig.ftl.units();
        rig.trim(0, all, TrimKind::Trim);
        let done = rig.ftl.purge(&mut rig.nand, rig.now).unwrap();
        rig.done(done);
        assert_eq!(rig.stale_units(), 0, "{}", rig.name);
        rig.check_all();
    }
}

#[test]
fn background_work_ends_and_changes_no_content() {
    for mut rig in rigs(&flash()) {
        for _ in 0..3_000 {
            rig.step();
        }
        let mut steps = 0;
        while let Some(done) = rig.ftl.background(&mut rig.nand, rig.now).unwrap() {
            rig.done(done);
            steps += 1;
            assert!(steps < 500, "{}: never done", rig.name);
        }
        assert!(rig.ftl.urgency(&rig.nand) < 2 || !rig.name.contains("background"), "{}", rig.name);
        rig.check_all();
    }
}

#[test]
fn bad_blocks_are_replaced_until_the_part_is_worn_out() {
    let mut flash = flash();
    (flash.native.endurance, flash.slc.as_mut().unwrap().endurance) = (40, 400);
    flash.failures.program_ppb = 20_000;
    for mut rig in rigs(&flash) {
        let (spares, all) = rig.ftl.spares();
        assert!(spares == all && all > 0, "{}", rig.name);
        let mut left = spares;
        let (first, count) = loop {
            let (first, count) = rig.range();
            match rig.write(first, count, Durability::Flash) {
                Ok(()) => {}
                Err(FtlError::WornOut) => break (first, count),
                Err(error) => panic!("{}: {error}", rig.name),
            }
            assert!(rig.ftl.spares().0 <= left, "{}: spares grow", rig.name);
            left = rig.ftl.spares().0;
        };
        assert!(rig.nand.counters().erase_failures > 0, "{}", rig.name);
        assert!(rig.ftl.stats().replaced_blocks > 0, "{}", rig.name);
        // The last request may have been executed partly. A layer may still accept another unit, or refuse it.
        let again = rig.write(first, 1, Durability::Reliable);
        assert!(matches!(again, Ok(()) | Err(FtlError::WornOut)), "{}: {again:?}", rig.name);
        let size = rig.ftl.units();
        rig.check(0, first);
        rig.check(first + count, size - first - count);
        assert_eq!(rig.nand.counters().violations, 0, "{}", rig.name);
    }
}

#[test]
fn the_same_seed_gives_the_same_flash() {
    let run = || -> Vec<(u64, u64, Instant, String)> {
        rigs(&flash())
            .map(|mut rig| {
                for _ in 0..1_500 {
                    rig.step();
                }
                let stats = format!("{:?}", rig.ftl.stats());
                (rig.nand.counters().page_programs, rig.nand.counters().erases, rig.now, stats)
            })
            .collect()
    };
    assert_eq!(run(), run());
}

#[test]
fn every_erase_is_charged_and_every_unit_counted() {
    for mut rig in rigs(&flash()) {
        for _ in 0..3_000 {
            rig.step();
        }
        rig.flush();
        let counters = *rig.nand.counters();
        let worn: u64 = rig.nand.blocks().iter().map(|block| u64::from(block.erase_count)).sum();
        assert_eq!(worn, counters.erases, "{}", rig.name);
        let standing: u64 = rig.nand.blocks().iter().map(|block| u64::from(block.next_page)).sum();
        assert!(counters.page_programs >= standing, "{}", rig.name);
        // Programmed units are host writes, copies, padding and the layers' own pages, without units that were
        // overwritten in memory.
        let stats = *rig.ftl.stats();
        assert!(
            counters.unit_programs <= 2 * (stats.host_units + stats.copied_units + stats.padding_units) + 4_000,
            "{}: {counters:?} {stats:?}",
            rig.name
        );
        assert!(counters.unit_programs + stats.host_units / 2 > stats.host_units, "{}", rig.name);
    }
}
