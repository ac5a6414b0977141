use super::*;
use crate::nand::{CellMode, Counters, StoredContent};
use crate::profile::{CellConfig, Failures, GcPace, Mapping, NandConfig, WearLevelling};
use emmc_units::Rng;

mod power;
mod refresh;
mod wear;

/// Small flash: 4 units a page, two planes, 16 pages a block.
pub(super) fn flash(cell: CellMode) -> NandConfig {
    let native = CellConfig {
        read_us: 50.0,
        program_us: if cell == CellMode::Mlc { vec![500.0, 1300.0] } else { vec![300.0] },
        erase_ms: 3.0,
        endurance: 3000,
        time_spread: 0.0,
        endurance_spread: 0.0,
    };
    NandConfig {
        cell,
        channels: 1,
        dies: 1,
        planes: 2,
        page_bytes: 2048,
        pages_per_block: 16,
        blocks: None,
        over_provisioning: 0.1,
        spare_blocks: 0,
        factory_bad_blocks: 0,
        channel_mb_s: 200.0,
        cached_program: true,
        multi_plane: true,
        multi_plane_read: false,
        native,
        slc: None,
        failures: Failures::default(),
        ageing: None,
    }
}

pub(super) fn config() -> FtlConfig {
    FtlConfig {
        mapping: Mapping::Page,
        unit_bytes: 512,
        gc: GcPolicy::Greedy,
        gc_low_blocks: 3,
        gc_pace: GcPace::default(),
        gc_busy_max_ms: 250,
        gc_high_blocks: 8,
        separate_gc: true,
        hot_cold: false,
        wear: WearLevelling::default(),
        mapping_cache: None,
        slc_cache: None,
        segment: None,
        refresh: None,
        trim_frees: true,
    }
}

pub(super) struct Bench {
    pub(super) nand: Nand,
    pub(super) ftl: PageFtl,
    pub(super) now: Instant,
    pub(super) rng: Rng,
}

impl Bench {
    pub(super) fn new(flash: &NandConfig, config: &FtlConfig, blocks: u32, units: u32, keep: StoredContent) -> Self {
        let mut nand = Nand::new(flash, Geometry::new(flash, blocks, config.unit_bytes), 7).keeping(keep);
        let spec = RegionSpec {
            blocks: (0..blocks).collect(),
            mode: flash.cell,
            units,
            spares: flash.spare_blocks,
            slc_blocks: 0,
            seed: 3,
        };
        let ftl = PageFtl::new(config, &spec, &mut nand);
        Self { nand, ftl, now: Instant::START, rng: Rng::new(11) }
    }

    pub(super) fn write(&mut self, first: u32, count: u32, durability: Durability) -> Result<(), FtlError> {
        self.now = self.ftl.write(&mut self.nand, first, count, None, durability, self.now)?;
        Ok(())
    }

    pub(super) fn fill(&mut self) {
        for first in (0..self.ftl.units()).step_by(8) {
            self.write(first, 8.min(self.ftl.units() - first), Durability::Buffered).unwrap();
        }
    }

    pub(super) fn overwrite(&mut self, count: u32) -> Result<(), FtlError> {
        for _ in 0..count {
            let unit = self.rng.below(u64::from(self.ftl.units())) as u32;
            self.write(unit, 1, Durability::Buffered)?;
        }
        Ok(())
    }

    pub(super) fn audit(&self) {
        self.ftl.audit(&self.nand).unwrap();
    }

    pub(super) fn counters(&self) -> Counters {
        *self.nand.counters()
    }
}

/// 64 units a block, 40 blocks: 34 full of data, 2 for the log.
fn plain(config: &FtlConfig) -> Bench {
    Bench::new(&flash(CellMode::Slc), config, 40, 34 * 64, StoredContent::Nothing)
}

#[test]
fn buffered_units_wait_for_their_stripe_and_are_read_from_memory() {
    let mut bench = plain(&config());
    bench.write(0, 7, Durability::Buffered).unwrap();
    assert_eq!((bench.counters().page_programs, bench.now), (0, Instant::START));
    bench.now = bench.ftl.read(&mut bench.nand, 0, 7, None, bench.now).unwrap();
    assert_eq!(bench.counters().page_reads, 0);
    bench.audit();
    bench.write(7, 1, Durability::Buffered).unwrap();
    assert_eq!(bench.counters().page_programs, 2);
    // Both planes in parallel: one program, two transfers of 2 KiB at 200 MB/s.
    assert_eq!(bench.now.0, 300_000 + 2 * 10_240);
    bench.ftl.read(&mut bench.nand, 0, 8, None, bench.now).unwrap();
    assert_eq!(bench.counters().page_reads, 2, "each page once");
    bench.ftl.read(&mut bench.nand, 100, 8, None, bench.now).unwrap();
    assert_eq!(bench.counters().page_reads, 2, "what was never written costs nothing");
    bench.audit();
}

#[test]
fn durable_writes_pad_their_last_page_only() {
    let mut bench = plain(&config());
    bench.write(0, 10, Durability::Flash).unwrap();
    assert_eq!((bench.counters().page_programs, bench.ftl.stats().padding_units), (3, 2));
    bench.write(20, 12, Durability::Flash).unwrap();
    assert_eq!((bench.counters().page_programs, bench.ftl.stats().padding_units), (6, 2), "whole pages are not padded");
    bench.write(3, 1, Durability::Flash).unwrap();
    let counters = bench.counters();
    assert_eq!((counters.page_programs, counters.unit_programs), (7, 28));
    let before = bench.now;
    bench.now = bench.ftl.flush(&mut bench.nand, bench.now).unwrap();
    assert_eq!((bench.now, bench.counters()), (before, counters), "nothing waits");
    bench.audit();
}

#[test]
fn reliable_writes_fill_the_word_lines_that_hold_data() {
    let mut bench = Bench::new(&flash(CellMode::Mlc), &config(), 40, 1000, StoredContent::Nothing);
    bench.write(0, 1, Durability::Reliable).unwrap();
    // Page 0 shares its word line with page 2 (two lanes).
    assert_eq!((bench.counters().page_programs, bench.ftl.stats().padding_units), (3, 11));
    bench.write(1, 1, Durability::Reliable).unwrap();
    // Page 3 is the second of a word line whose first is padding.
    assert_eq!(bench.counters().page_programs, 4);
    bench.write(8, 16, Durability::Reliable).unwrap();
    assert_eq!(bench.counters().page_programs, 8, "whole word lines are not padded");
    bench.write(8, 4, Durability::Buffered).unwrap();
    bench.write(8, 4, Durability::Buffered).unwrap();
    bench.ftl.flush(&mut bench.nand, bench.now).unwrap();
    assert_eq!(bench.counters().page_programs, 12, "a flush protects as well");
    bench.audit();
}

#[test]
fn every_policy_preserves_all_units_under_random_writes() {
    let policies =
        [GcPolicy::Greedy, GcPolicy::Fifo, GcPolicy::DChoices(3), GcPolicy::Windowed(5), GcPolicy::CostBenefit];
    for gc in policies {
        for (separate_gc, hot_cold) in [(false, false), (true, false), (true, true)] {
            let config = FtlConfig { gc, separate_gc, hot_cold, ..config() };
            // 32 blocks of data, 2 of the log, 3 frontiers, and one more than are kept free.
            let mut bench = Bench::new(&flash(CellMode::Slc), &config, 40, 32 * 64, StoredContent::Nothing);
            bench.fill();
            for _ in 0..50 {
                bench.overwrite(200).unwrap();
                bench.audit();
            }
            let (stats, counters) = (*bench.ftl.stats(), bench.counters());
            assert!(stats.copied_units > 1000 && stats.collections > 50, "{gc:?} {stats:?}");
            let waiting: u32 = bench.ftl.frontiers.iter().map(|f| f.fill - f.programmed).sum();
            let placed = stats.host_units + stats.copied_units + stats.padding_units;
            assert_eq!(placed, counters.unit_programs + u64::from(waiting), "{gc:?}");
            assert_eq!(bench.ftl.map.mapped(), bench.ftl.units());
        }
    }
}

#[test]
fn garbage_collection_moves_exactly_the_valid_units() {
    // A model of all writes, compared with the copies that the flash reports.
    let mut bench = plain(&FtlConfig { separate_gc: true, ..config() });
    bench.fill();
    bench.overwrite(3000).unwrap();
    let victim = bench.ftl.victims.pick(&bench.ftl.map).unwrap();
    let first = bench.ftl.geometry.first_unit(victim, 0);
    let shadow: Vec<u32> = (0..bench.ftl.units()).map(|unit| bench.ftl.map.lookup(unit)).collect();
    let within = |physical: u32| physical >= first && physical < first + 64;
    let current = shadow.iter().filter(|&&physical| within(physical)).count() as u64;
    assert!((1..64).contains(&current), "{current}");
    let (copied, reads) = (bench.ftl.stats.copied_units, bench.counters().page_reads);
    bench.ftl.collect(&mut bench.nand, victim, bench.ftl.roles.gc, bench.now).unwrap();
    assert_eq!(bench.ftl.stats.copied_units - copied, current);
    let mut pages: Vec<u32> = shadow.iter().filter(|&&at| within(at)).map(|at| at / 4).collect();
    pages.sort_unstable();
    pages.dedup();
    assert_eq!(bench.counters().page_reads - reads, pages.len() as u64, "each page with valid units once");
    for (unit, &before) in (0..).zip(&shadow) {
        let moved = bench.ftl.map.lookup(unit) != before;
        assert_eq!(moved, within(before), "unit {unit}");
    }
    bench.audit();
}

#[test]
fn sequential_overwrites_copy_nothing() {
    for gc in [GcPolicy::Greedy, GcPolicy::Fifo, GcPolicy::CostBenefit] {
        let mut bench = plain(&FtlConfig { gc, ..config() });
        for _ in 0..5 {
            bench.fill();
        }
        assert_eq!(bench.ftl.stats().copied_units, 0, "{gc:?}");
        bench.audit();
    }
}

#[test]
fn background_work_restores_free_blocks_and_stops() {
    let mut bench = plain(&config());
    bench.fill();
    bench.overwrite(2000).unwrap();
    assert!(bench.ftl.urgency(&bench.nand) >= 1);
    let mut steps = 0;
    while let Some(done) = bench.ftl.background(&mut bench.nand, bench.now).unwrap() {
        bench.now = done;
        steps += 1;
        assert!(steps < 1000);
    }
    assert_eq!(bench.ftl.pool.free(), 3, "34 blocks of data, 2 of the log, 1 being written to leave 3 free");
    assert_eq!(bench.ftl.urgency(&bench.nand), 0);
    bench.audit();
}

#[test]
fn trimmed_units_are_not_copied_and_cost_no_read() {
    let mut bench = plain(&config());
    bench.fill();
    let half = bench.ftl.units() / 2;
    bench.now = bench.ftl.trim(&mut bench.nand, 0, half, TrimKind::Trim, bench.now).unwrap();
    assert_eq!(bench.ftl.stats().trimmed_units, u64::from(half));
    assert!(!bench.ftl.is_mapped(0) && bench.ftl.is_mapped(half));
    let reads = bench.counters().page_reads;
    bench.ftl.read(&mut bench.nand, 0, half, None, bench.now).unwrap();
    assert_eq!(bench.counters().page_reads, reads);
    let copied = bench.ftl.stats().copied_units;
    for unit in 0..half {
        bench.write(unit, 1, Durability::Buffered).unwrap();
    }
    assert_eq!(bench.ftl.stats().copied_units, copied, "the trimmed blocks are empty");
    bench.ftl.trim(&mut bench.nand, 5, 100, TrimKind::Discard, bench.now).unwrap();
    assert!(!bench.ftl.is_mapped(104) && bench.ftl.is_mapped(105));
    bench.audit();
}

#[test]
fn a_purge_leaves_no_obsolete_copy() {
    let mut bench = plain(&config());
    bench.fill();
    bench.overwrite(3000).unwrap();
    bench.ftl.trim(&mut bench.nand, 0, 500, TrimKind::Trim, bench.now).unwrap();
    bench.now = bench.ftl.purge(&mut bench.nand, bench.now).unwrap();
    bench.audit();
    let mut seen = 0;
    for &block in bench.ftl.blocks() {
        let first = bench.ftl.geometry.first_unit(block, 0);
        for (physical, &unit) in (first..).zip(bench.nand.spare(block)) {
            assert!(unit == NO_UNIT || bench.ftl.map.lookup(unit) == physical);
            seen += u32::from(unit != NO_UNIT);
        }
    }
    assert_eq!(seen, bench.ftl.units() - 500);
    bench.overwrite(3000).unwrap();
    bench.audit();
}

#[test]
fn a_part_that_ignores_trims_keeps_content_and_has_no_log() {
    let mut bench = plain(&FtlConfig { trim_frees: false, ..config() });
    bench.fill();
    bench.ftl.trim(&mut bench.nand, 0, 10, TrimKind::Trim, bench.now).unwrap();
    assert!(bench.ftl.is_mapped(0));
    assert_eq!(bench.ftl.pool.free(), 6);
    bench.audit();
}
