//! A layer over flash, driven to its steady state.

use emmc_card::ftl::page::PageFtl;
use emmc_card::ftl::{Durability, Ftl, FtlStats, RegionSpec, TrimKind};
use emmc_card::nand::{CellMode, Geometry, Nand};
use emmc_card::profile::{CellConfig, Failures, FtlConfig, GcPace, GcPolicy, Mapping, NandConfig, WearLevelling};
use emmc_units::{Instant, Rng};

/// Free blocks that the layer keeps.
const FREE: u32 = 3;

/// Blocks' worth of clean places that paced collection keeps beside these, on average: one that the host's block and
/// the other open block have left, and half of the victim in progress.
const RESERVE: u32 = 2;

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) gc: GcPolicy,
    pub(crate) separate_gc: bool,
    pub(crate) rho: f64,
    /// Units a block, a multiple of 8.
    pub(crate) np: u32,
    /// Blocks that hold data in the steady state.
    pub(crate) blocks: u32,
    pub(crate) trims: bool,
    pub(crate) pace: GcPace,
}

impl Setup {
    pub(crate) fn new(gc: GcPolicy, rho: f64, np: u32, blocks: u32) -> Self {
        Self { gc, separate_gc: false, rho, np, blocks, trims: false, pace: GcPace::AtOnce }
    }
}

/// A part of one die of two planes, four units a page.
pub(crate) struct Drive {
    pub(crate) nand: Nand,
    pub(crate) ftl: PageFtl,
    pub(crate) now: Instant,
    pub(crate) rng: Rng,
}

fn flash(np: u32) -> NandConfig {
    NandConfig {
        cell: CellMode::Slc,
        channels: 1,
        dies: 1,
        planes: 2,
        page_bytes: 16384,
        pages_per_block: np / 4,
        blocks: None,
        over_provisioning: 0.1,
        spare_blocks: 0,
        factory_bad_blocks: 0,
        channel_mb_s: 200.0,
        cached_program: true,
        multi_plane: true,
        multi_plane_read: false,
        native: CellConfig {
            read_us: 50.0,
            program_us: vec![500.0],
            erase_ms: 3.0,
            endurance: 1_000_000,
            time_spread: 0.0,
            endurance_spread: 0.0,
        },
        slc: None,
        failures: Failures::default(),
        ageing: None,
    }
}

impl Drive {
    pub(crate) fn new(setup: Setup) -> Self {
        let flash = flash(setup.np);
        let config = FtlConfig {
            mapping: Mapping::Page,
            unit_bytes: 4096,
            gc: setup.gc,
            gc_low_blocks: FREE,
            gc_pace: setup.pace,
            gc_busy_max_ms: 250,
            gc_high_blocks: 0,
            separate_gc: setup.separate_gc,
            hot_cold: false,
            wear: WearLevelling::default(),
            mapping_cache: None,
            slc_cache: None,
            segment: None,
            refresh: None,
            trim_frees: setup.trims,
        };
        // When a victim is chosen, all data is in full blocks; free ones, that of collected units if there is one, and
        // the log of trims do not count.
        let apart = u32::from(setup.separate_gc);
        let reserve = if setup.pace == GcPace::Paced { RESERVE } else { 0 };
        let blocks = setup.blocks + FREE + apart + reserve + 2 * u32::from(setup.trims);
        let mut nand = Nand::new(&flash, Geometry::new(&flash, blocks, 4096), 1);
        let spec = RegionSpec {
            blocks: (0..blocks).collect(),
            mode: CellMode::Slc,
            units: (f64::from(setup.blocks * setup.np) * setup.rho).round() as u32,
            spares: 0,
            slc_blocks: 0,
            seed: 2,
        };
        let ftl = PageFtl::new(&config, &spec, &mut nand);
        Self { nand, ftl, now: Instant::START, rng: Rng::new(3) }
    }

    pub(crate) fn units(&self) -> u32 {
        self.ftl.units()
    }

    pub(crate) fn stats(&self) -> &FtlStats {
        self.ftl.stats()
    }

    pub(crate) fn write(&mut self, unit: u32) {
        let written = self.ftl.write(&mut self.nand, unit, 1, None, Durability::Buffered, self.now);
        self.now = written.expect("the part is not worn out");
    }

    pub(crate) fn discard(&mut self, unit: u32) {
        let discarded = self.ftl.trim(&mut self.nand, unit, 1, TrimKind::Discard, self.now);
        self.now = discarded.expect("the part is not worn out");
    }

    pub(crate) fn fill(&mut self) {
        for unit in 0..self.units() {
            self.write(unit);
        }
    }

    pub(crate) fn uniform(&mut self, writes: u64) {
        for _ in 0..writes {
            let unit = self.rng.below(u64::from(self.units())) as u32;
            self.write(unit);
        }
    }

    /// The write amplification of `run` on a full part, after `run` has brought it to its steady state.
    pub(crate) fn measure(&mut self, warm: u32, rounds: u32, run: &mut dyn FnMut(&mut Self, u64)) -> f64 {
        let round = u64::from(self.units());
        self.fill();
        run(self, u64::from(warm) * round);
        let before = *self.ftl.stats();
        run(self, u64::from(rounds) * round);
        amplification(&before, self.ftl.stats())
    }
}

/// Units programmed for each that the host wrote, between two moments.
pub(crate) fn amplification(before: &FtlStats, after: &FtlStats) -> f64 {
    let host = (after.host_units - before.host_units) as f64;
    let copied = (after.copied_units - before.copied_units) as f64;
    let padding = (after.padding_units - before.padding_units) as f64;
    (host + copied + padding) / host
}

/// Asserts that a figure is within a share of its expected value.
#[track_caller]
pub(crate) fn close(what: &str, found: f64, wanted: f64, share: f64) {
    let error = found / wanted - 1.0;
    println!("{what}: {found:.4}, model {wanted:.4}, {:+.2} %", error * 100.0);
    assert!(error.abs() <= share, "{what}: {found:.4} is {:+.2} % off {wanted:.4}", error * 100.0);
}
