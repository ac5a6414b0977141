//! The layer over small flash, compared with a plain model of the writes.

mod refresh;
mod shared_logs;

use std::collections::BTreeMap;

use emmc_units::{Instant, Nanos, Rng};

use super::SegmentFtl;
use crate::ftl::{Durability, Ftl, FtlError, RegionSpec, TrimKind};
use crate::nand::FaultPlan;
use crate::nand::{CellMode, Geometry, Nand, StoredContent};
use crate::profile::{
    CellConfig, Failures, FtlConfig, GcPace, Mapping, NandConfig, Segment, SegmentOrder, WearLevelling,
};

const UNIT: u32 = 512;
const AUS: u32 = 10;

/// Flash of 16 pages of two units a block, in two planes, for ten AUs.
struct Bench {
    nand: Nand,
    ftl: SegmentFtl,
    now: Instant,
    content: BTreeMap<u32, u64>,
    stamp: u64,
}

fn nand_config(cell: CellMode, failures: Failures, endurance: u32) -> NandConfig {
    let cell_config = CellConfig {
        read_us: 50.0,
        program_us: vec![400.0, 1200.0],
        erase_ms: 3.0,
        endurance,
        time_spread: 0.0,
        endurance_spread: 0.0,
    };
    NandConfig {
        cell,
        channels: 1,
        dies: 1,
        planes: 2,
        page_bytes: 2 * UNIT,
        pages_per_block: 16,
        blocks: None,
        over_provisioning: 0.1,
        spare_blocks: 3,
        factory_bad_blocks: 1,
        channel_mb_s: 40.0,
        cached_program: true,
        multi_plane: true,
        multi_plane_read: false,
        native: cell_config.clone(),
        slc: Some(cell_config),
        failures,
        ageing: None,
    }
}

fn ftl_config(order: SegmentOrder, open_aus: u32, random_logs: u32) -> FtlConfig {
    FtlConfig {
        mapping: Mapping::Segment,
        unit_bytes: UNIT,
        gc: Default::default(),
        gc_low_blocks: 1,
        gc_pace: GcPace::default(),
        gc_busy_max_ms: 250,
        gc_high_blocks: 4,
        separate_gc: false,
        hot_cold: false,
        wear: WearLevelling { dynamic: true, static_gap: 0 },
        mapping_cache: None,
        slc_cache: None,
        segment: Some(Segment {
            open_aus,
            order,
            random_logs,
            random_log_bytes: 2 * UNIT,
            steps_back: 0,
            merges_at_once: 1,
        }),
        refresh: None,
        trim_frees: true,
    }
}

impl Bench {
    fn new(config: &FtlConfig, nand: &NandConfig, seed: u64) -> Self {
        let segment = config.segment.unwrap();
        let blocks = AUS + segment.open_aus + segment.random_logs + 2 + 2 + nand.spare_blocks;
        let geometry = Geometry::new(nand, blocks, UNIT);
        let mut flash = Nand::new(nand, geometry, seed).keeping(StoredContent::Data);
        let spec = RegionSpec {
            blocks: (0..blocks).collect(),
            mode: nand.cell,
            units: AUS * 32 - 5,
            spares: nand.spare_blocks,
            slc_blocks: 0,
            seed,
        };
        let ftl = SegmentFtl::new(config, &spec, &mut flash);
        Self { nand: flash, ftl, now: Instant::START, content: BTreeMap::new(), stamp: 0 }
    }

    fn plain(order: SegmentOrder, open_aus: u32, random_logs: u32) -> Self {
        let nand = nand_config(CellMode::Mlc, Failures::default(), 100_000);
        Self::new(&ftl_config(order, open_aus, random_logs), &nand, 1)
    }

    fn bytes(unit: u32, stamp: u64) -> Vec<u8> {
        let word = [u64::from(unit).to_le_bytes(), stamp.to_le_bytes()].concat();
        word.repeat(UNIT as usize / 16)
    }

    fn write(&mut self, first: u32, count: u32, durability: Durability) -> Result<(), FtlError> {
        self.stamp += 1;
        let data: Vec<u8> = (first..first + count).flat_map(|unit| Self::bytes(unit, self.stamp)).collect();
        self.now = self.ftl.write(&mut self.nand, first, count, Some(&data), durability, self.now)?;
        self.content.extend((first..first + count).map(|unit| (unit, self.stamp)));
        Ok(())
    }

    fn read(&mut self, unit: u32) -> Vec<u8> {
        let mut out = vec![0xaa; UNIT as usize];
        self.now = self.ftl.read(&mut self.nand, unit, 1, Some(&mut out), self.now).unwrap();
        out
    }

    fn check(&mut self) {
        self.ftl.audit(&self.nand).unwrap();
        for unit in 0..self.ftl.units() {
            let expected = self.content.get(&unit).map_or(vec![0; UNIT as usize], |&stamp| Self::bytes(unit, stamp));
            assert_eq!(self.read(unit), expected, "unit {unit}");
            assert_eq!(self.ftl.is_mapped(unit), self.content.contains_key(&unit));
        }
    }

    /// A random step.
    fn step(&mut self, rng: &mut Rng) -> Result<(), FtlError> {
        let units = self.ftl.units();
        let first = rng.below(u64::from(units)) as u32;
        let long = if rng.below(3) == 0 { 40 } else { 4 };
        let count = (1 + rng.below(long) as u32).min(units - first);
        match rng.below(20) {
            0 => {
                let kind = if rng.below(2) == 0 { TrimKind::Trim } else { TrimKind::Discard };
                let count = (count * 3).min(units - first);
                self.now = self.ftl.trim(&mut self.nand, first, count, kind, self.now)?;
                self.content.retain(|unit, _| !(first..first + count).contains(unit));
            }
            1 => self.now = self.ftl.flush(&mut self.nand, self.now)?,
            2 => {
                if let Some(done) = self.ftl.background(&mut self.nand, self.now)? {
                    self.now = done;
                }
            }
            3..=10 => self.write(first, count, Durability::Buffered)?,
            11..=16 => self.write(first, count, Durability::Flash)?,
            _ => self.write(first, count, Durability::Reliable)?,
        }
        Ok(())
    }
}

const SHAPES: [(SegmentOrder, u32, u32); 4] = [
    (SegmentOrder::Linear, 3, 0),
    (SegmentOrder::Linear, 2, 2),
    (SegmentOrder::Random, 3, 0),
    (SegmentOrder::Random, 1, 1),
];

#[test]
fn writes_in_any_order_read_back() {
    for (index, (order, open_aus, random_logs)) in SHAPES.into_iter().enumerate() {
        let mut bench = Bench::plain(order, open_aus, random_logs);
        let mut rng = Rng::new(index as u64);
        for round in 0..400 {
            bench.step(&mut rng).unwrap();
            if round % 20 == 0 {
                bench.check();
            }
        }
        bench.now = bench.ftl.purge(&mut bench.nand, bench.now).unwrap();
        bench.check();
        let held: u32 = bench.nand.blocks().iter().map(|block| block.next_page).sum();
        let mapped = (0..bench.ftl.units()).filter(|&unit| bench.ftl.is_mapped(unit)).count() as u32;
        assert!(held * 2 <= mapped * 2 + 64 + 2 * bench.nand.counters().erases as u32, "purge left {held} pages");
        assert_eq!(bench.nand.counters().violations, 0);
    }
}

#[test]
fn merges_are_switch_partial_or_full() {
    let mut bench = Bench::plain(SegmentOrder::Random, 1, 0);
    for au in 0..4 {
        bench.write(au * 32, 32, Durability::Flash).unwrap();
    }
    // First writes replace nothing; overwriting whole AUs copies nothing.
    assert_eq!((bench.ftl.stats().switch_merges, bench.ftl.stats().copied_units), (0, 0));
    for au in 0..4 {
        bench.write(au * 32, 32, Durability::Flash).unwrap();
    }
    bench.write(0, 8, Durability::Flash).unwrap();
    assert_eq!((bench.ftl.stats().switch_merges, bench.ftl.stats().copied_units), (4, 0));
    bench.write(32 + 8, 8, Durability::Flash).unwrap();
    assert_eq!((bench.ftl.stats().partial_merges, bench.ftl.stats().copied_units), (1, 24));
    bench.write(64, 8, Durability::Flash).unwrap();
    assert_eq!((bench.ftl.stats().full_merges, bench.ftl.stats().copied_units), (1, 24 + 32));
    bench.check();
}

#[test]
fn opening_a_linear_au_in_its_middle_copies_its_start() {
    let mut bench = Bench::plain(SegmentOrder::Linear, 1, 0);
    bench.write(0, 64, Durability::Flash).unwrap();
    bench.write(16, 8, Durability::Flash).unwrap();
    assert_eq!(bench.ftl.stats().copied_units, 16);
    bench.write(24, 2, Durability::Flash).unwrap();
    bench.write(32, 2, Durability::Flash).unwrap();
    // 16 before, 6 after, none twice.
    assert_eq!((bench.ftl.stats().copied_units, bench.ftl.stats().partial_merges), (22, 1));
    // Going back closes it.
    bench.write(40, 2, Durability::Flash).unwrap();
    let merges = bench.ftl.stats().partial_merges + bench.ftl.stats().full_merges;
    bench.write(34, 2, Durability::Flash).unwrap();
    assert_eq!(bench.ftl.stats().partial_merges + bench.ftl.stats().full_merges, merges + 1);
    bench.check();
}

#[test]
fn fully_trimmed_aus_cost_no_copies() {
    let mut bench = Bench::plain(SegmentOrder::Linear, 1, 0);
    bench.write(0, 128, Durability::Flash).unwrap();
    bench.now = bench.ftl.trim(&mut bench.nand, 0, 128, TrimKind::Trim, bench.now).unwrap();
    bench.content.clear();
    for index in 0..16 {
        bench.write(index % 4 * 32 + index / 4 * 8, 8, Durability::Flash).unwrap();
    }
    // Each chunk continues in the block of its AU, which has space.
    assert_eq!(bench.ftl.stats().copied_units, 0);
    bench.check();
}

#[test]
fn failed_programs_and_erases_are_survived_until_the_spares_are_used() {
    for seed in 0..6 {
        let failures = Failures { program_ppb: 4_000_000, erase_ppm: 3_000 };
        let (order, open_aus, random_logs) = SHAPES[seed as usize % 4];
        let mut bench =
            Bench::new(&ftl_config(order, open_aus, random_logs), &nand_config(CellMode::Mlc, failures, 100_000), seed);
        let mut rng = Rng::new(seed);
        let mut ended = Ok(());
        for _ in 0..6_000 {
            ended = bench.step(&mut rng);
            if ended.is_err() {
                break;
            }
            bench.ftl.audit(&bench.nand).unwrap();
        }
        assert_eq!(ended, Err(FtlError::WornOut), "seed {seed}");
        assert_eq!(bench.ftl.spares().0, 0);
        // Everything that was acknowledged still reads; the write that failed may be there in part.
        let mut lost = 0;
        for (unit, stamp) in bench.content.clone() {
            lost += u32::from(bench.read(unit) != Bench::bytes(unit, stamp));
        }
        assert!(lost <= 40, "seed {seed}: {lost} units changed by the last write");
        assert_eq!(bench.nand.counters().violations, 0);
    }
}

/// Cuts power at a step, recovers, and checks each unit against its possible contents.
fn cut(bench: &mut Bench, rng: &mut Rng, in_recovery: bool) {
    let before = bench.content.clone();
    let plan = FaultPlan { step: bench.nand.steps() + 1 + rng.below(60), seed: rng.next_u64() };
    bench.nand.arm(plan);
    let mut may_be: BTreeMap<u32, Vec<Option<u64>>> = BTreeMap::new();
    let note = |may_be: &mut BTreeMap<u32, Vec<Option<u64>>>, unit: u32, stamp: Option<u64>| {
        may_be.entry(unit).or_insert_with(|| vec![before.get(&unit).copied()]).push(stamp);
    };
    loop {
        let units = bench.ftl.units();
        let first = rng.below(u64::from(units)) as u32;
        let long = if rng.below(3) == 0 { 40 } else { 4 };
        let count = (1 + rng.below(long) as u32).min(units - first);
        let result = if rng.below(16) == 0 {
            (first..first + count).for_each(|unit| note(&mut may_be, unit, None));
            let done = bench.ftl.trim(&mut bench.nand, first, count, TrimKind::Trim, bench.now);
            done.map(|done| {
                bench.now = done;
                (first..first + count).for_each(|unit| drop(may_be.insert(unit, vec![None])));
            })
        } else {
            (first..first + count).for_each(|unit| note(&mut may_be, unit, Some(bench.stamp + 1)));
            let done = bench.write(first, count, Durability::Reliable);
            if done.is_ok() {
                (first..first + count).for_each(|unit| drop(may_be.insert(unit, vec![Some(bench.stamp)])));
            }
            done
        };
        match result {
            Ok(()) => bench.nand.passed(bench.now),
            Err(error) => break assert_eq!(error, FtlError::PowerLost),
        }
    }
    bench.now = bench.nand.off_since().unwrap().max(bench.now);
    loop {
        bench.nand.power_on(bench.now);
        if in_recovery && rng.below(2) == 0 {
            bench.nand.arm(FaultPlan { step: bench.nand.steps() + 1 + rng.below(30), seed: rng.next_u64() });
        }
        match bench.ftl.recover(&mut bench.nand, bench.now) {
            Ok(done) => break bench.now = done,
            Err(error) => assert_eq!(error, FtlError::PowerLost),
        }
    }
    bench.nand.disarm();
    bench.nand.passed(bench.now);
    bench.nand.decay();
    bench.ftl.audit(&bench.nand).unwrap();
    bench.content.clear();
    for unit in 0..bench.ftl.units() {
        let found = bench.read(unit);
        let allowed = may_be.remove(&unit).unwrap_or_else(|| vec![before.get(&unit).copied()]);
        let bytes = |stamp: &Option<u64>| stamp.map_or(vec![0; UNIT as usize], |stamp| Bench::bytes(unit, stamp));
        let matching = allowed.iter().find(|&stamp| bytes(stamp) == found);
        let Some(stamp) = matching else {
            let (at, stamp) = (&found[..8], u64::from_le_bytes(found[8..16].try_into().unwrap()));
            panic!("step {} unit {unit} holds {at:?} of {stamp}, may be {allowed:?}", bench.nand.steps());
        };
        bench.content.extend(stamp.map(|stamp| (unit, stamp)));
    }
}

#[test]
fn reliable_writes_survive_cuts_also_during_recovery() {
    for seed in 0..60u64 {
        let (order, open_aus, random_logs) = SHAPES[seed as usize % 4];
        let cell = if seed % 3 == 0 { CellMode::Slc } else { CellMode::Mlc };
        let mut nand = nand_config(cell, Failures::default(), 100_000);
        if cell == CellMode::Slc {
            nand.slc = None;
        }
        let mut bench = Bench::new(&ftl_config(order, open_aus, random_logs), &nand, seed);
        let mut rng = Rng::new(1000 + seed);
        for _ in 0..30 {
            cut(&mut bench, &mut rng, seed % 2 == 1);
        }
        assert_eq!(bench.nand.counters().violations, 0);
    }
}
