use super::*;
use crate::ftl::RegionSpec;
use crate::ftl::page::PageFtl;
use crate::nand::FaultPlan;
use crate::nand::{Geometry, StoredContent};
use crate::profile::{NandConfig, shipped};
use emmc_units::Rng;

const UNIT: usize = 64;
const UNITS: u32 = 400;

fn flash() -> NandConfig {
    let mut config = shipped::named("generic-8g").unwrap().nand;
    (config.page_bytes, config.pages_per_block, config.factory_bad_blocks) = (4 * UNIT as u32, 16, 0);
    config
}

struct Rig {
    nand: Nand,
    front: SlcFront,
    now: Instant,
}

/// A front of two blocks for records and `log_blocks` of 32 units, before 400 units on 24 blocks of 64.
fn rig(flash: &NandConfig, log_blocks: u32, bypass_units: u32) -> Rig {
    let mut config = shipped::named("generic-8g").unwrap().ftl;
    (config.gc_low_blocks, config.wear.static_gap) = (3, 0);
    let bypass_bytes = bypass_units * UNIT as u32;
    let cache =
        SlcCache { blocks: 2 + log_blocks, low_blocks: 1, bypass_bytes, idle_fold: true, stream_fold_percent: 0 };
    let blocks: Vec<u32> = (0..cache.blocks + 24).collect();
    let geometry = Geometry::new(flash, blocks.len() as u32, UNIT as u32);
    let mut nand = Nand::new(flash, geometry, 1).keeping(StoredContent::Data);
    let (log, rest) = blocks.split_at(cache.blocks as usize);
    let mode = geometry.native;
    let spec = RegionSpec { blocks: rest.to_vec(), mode, units: UNITS, spares: 10, slc_blocks: 0, seed: 1 };
    let inner = Box::new(PageFtl::new(&config, &spec, &mut nand));
    let front = SlcFront::new(&config, &cache, log, inner, &mut nand);
    Rig { nand, front, now: Instant::START }
}

/// Units that the log holds.
fn held_units(front: &SlcFront) -> usize {
    front.log.index.len() + front.log.buffer.len()
}

impl Rig {
    fn write(&mut self, first: u32, contents: &[u8], durability: Durability) -> Result<(), FtlError> {
        let data: Vec<u8> = contents.iter().flat_map(|&byte| [byte; UNIT]).collect();
        let count = contents.len() as u32;
        let done = self.front.write(&mut self.nand, first, count, Some(&data), durability, self.now)?;
        self.now = self.now.max(done);
        Ok(())
    }

    fn put(&mut self, unit: u32, content: u8) {
        self.write(unit, &[content], Durability::Flash).unwrap();
    }

    fn read(&mut self, first: u32, count: u32) -> Vec<u8> {
        let mut out = vec![0xee; count as usize * UNIT];
        self.now = self.front.read(&mut self.nand, first, count, Some(&mut out), self.now).unwrap();
        for unit in out.chunks(UNIT) {
            assert!(unit.iter().all(|&byte| byte == unit[0]), "one unit holds parts of two");
        }
        out.chunks(UNIT).map(|unit| unit[0]).collect()
    }

    fn trim(&mut self, first: u32, count: u32, kind: TrimKind) {
        self.now = self.front.trim(&mut self.nand, first, count, kind, self.now).unwrap();
    }

    fn flush(&mut self) {
        self.now = self.front.flush(&mut self.nand, self.now).unwrap();
    }

    /// Power is lost now and returns.
    fn cycle(&mut self) {
        self.nand.power_off(self.now);
        self.nand.power_on(self.now);
        self.now = self.front.recover(&mut self.nand, self.now).unwrap();
        self.nand.decay();
        self.audit();
    }

    fn audit(&self) {
        self.front.audit(&self.nand).unwrap();
    }
}

#[test]
fn a_read_finds_units_in_the_open_page_the_log_and_the_main_layer() {
    let mut rig = rig(&flash(), 6, 8);
    rig.write(0, &[1; 12], Durability::Flash).unwrap();
    rig.write(2, &[2, 3, 4, 5], Durability::Flash).unwrap();
    rig.write(8, &[6, 7], Durability::Buffered).unwrap();
    assert_eq!(held_units(&rig.front), 6);
    assert_eq!(rig.read(0, 14), [1, 1, 2, 3, 4, 5, 1, 1, 6, 7, 1, 1, 0, 0]);
    // A newer self of a unit that waits takes its place, and one of a unit in the log waits before it.
    rig.write(8, &[8], Durability::Buffered).unwrap();
    rig.write(2, &[9], Durability::Buffered).unwrap();
    assert_eq!(rig.read(0, 14), [1, 1, 9, 3, 4, 5, 1, 1, 8, 7, 1, 1, 0, 0]);
    rig.flush();
    assert_eq!(rig.read(0, 14), [1, 1, 9, 3, 4, 5, 1, 1, 8, 7, 1, 1, 0, 0]);
    assert_eq!(rig.front.stats().padding_units, 1 + rig.front.inner.stats().padding_units);
    rig.audit();
}

#[test]
fn reading_the_log_reads_each_page_once() {
    let mut rig = rig(&flash(), 6, 0);
    rig.write(0, &[1, 2, 3, 4, 5, 6, 7, 8], Durability::Flash).unwrap();
    let before = rig.nand.counters().page_reads;
    rig.read(0, 8);
    assert_eq!(rig.nand.counters().page_reads, before + 2);
    rig.read(1, 2);
    assert_eq!(rig.nand.counters().page_reads, before + 3);
}

#[test]
fn units_overwritten_in_the_log_are_not_folded() {
    let mut rig = rig(&flash(), 6, 0);
    for round in 0..200u32 {
        for unit in 0..8 {
            rig.write(unit, &[(round + unit) as u8], Durability::Buffered).unwrap();
        }
    }
    rig.flush();
    let stats = *rig.front.stats();
    assert!(stats.folds >= 200 * 8 / 32 - 6, "{stats:?}");
    assert_eq!(rig.front.inner.stats().host_units, 0);
    assert_eq!((stats.copied_units, stats.host_units), (0, 1600));
    assert_eq!(rig.read(0, 8), [199, 200, 201, 202, 203, 204, 205, 206]);
    // Idle, the full blocks are folded: some of the last rounds' units are in the open one.
    while rig.front.background(&mut rig.nand, rig.now).unwrap().is_some() {}
    assert_eq!(rig.read(0, 8), [199, 200, 201, 202, 203, 204, 205, 206]);
    rig.audit();
}

#[test]
fn folding_keeps_all_units_and_charges_its_time() {
    let mut rig = rig(&flash(), 4, 0);
    for unit in 0..UNITS {
        rig.write(unit * 7 % UNITS, &[(unit % 251) as u8], Durability::Buffered).unwrap();
    }
    let stats = *rig.front.stats();
    // Distinct units: all that was folded had to be copied; one block may be folded in part.
    let copied = stats.copied_units - rig.front.inner.stats().copied_units;
    let begun = stats.foreground_stalls;
    assert!((begun - 1..=begun).contains(&stats.folds) && stats.folds > 8, "{stats:?}");
    assert!((32 * stats.folds..=32 * begun).contains(&copied), "{copied} {stats:?}");
    for unit in 0..UNITS {
        assert_eq!(rig.read(unit * 7 % UNITS, 1), [(unit % 251) as u8]);
    }
    rig.front.purge(&mut rig.nand, rig.now).unwrap();
    assert_eq!(held_units(&rig.front), 0);
    assert!((2..6).all(|block| rig.nand.block(block).next_page == 0), "a purge erases the log");
    rig.audit();
}

#[test]
fn a_large_write_voids_logged_units_also_after_a_cut() {
    let mut rig = rig(&flash(), 6, 8);
    for unit in 0..8 {
        rig.put(unit, 1);
    }
    rig.write(0, &[2; 8], Durability::Flash).unwrap();
    assert_eq!(held_units(&rig.front), 0);
    assert_eq!(rig.read(0, 8), [2; 8]);
    rig.cycle();
    assert_eq!(rig.read(0, 8), [2; 8]);
    // Cut into buffered chunks: the voids wait, and a flush makes them last.
    rig.put(20, 3);
    rig.write(12, &[4; 8], Durability::Buffered).unwrap();
    rig.write(20, &[4; 8], Durability::Buffered).unwrap();
    assert_eq!(rig.read(20, 1), [4]);
    rig.flush();
    rig.cycle();
    assert_eq!(rig.read(12, 16), [4; 16]);
    // A small write after a large one is newer again, regardless of records in between.
    rig.put(30, 5);
    rig.write(28, &[6; 8], Durability::Buffered).unwrap();
    rig.put(30, 7);
    rig.flush();
    rig.cycle();
    assert_eq!(rig.read(29, 3), [6, 7, 6]);
}

#[test]
fn trims_in_the_log_survive_a_cut() {
    let mut rig = rig(&flash(), 6, 8);
    rig.write(0, &[1; 16], Durability::Flash).unwrap();
    for unit in 0..16 {
        rig.put(unit, 2);
    }
    rig.write(40, &[9], Durability::Buffered).unwrap();
    rig.trim(0, 4, TrimKind::Trim);
    rig.trim(40, 1, TrimKind::Trim);
    assert_eq!(rig.front.stats().trimmed_units, 4);
    assert!(!rig.front.is_mapped(0) && rig.front.is_mapped(4) && !rig.front.is_mapped(40));
    // A discard may come back with a cut; written again it must not.
    rig.trim(8, 4, TrimKind::Discard);
    assert_eq!(rig.read(6, 8), [2, 2, 0, 0, 0, 0, 2, 2]);
    rig.write(8, &[3; 8], Durability::Flash).unwrap();
    rig.cycle();
    assert_eq!(rig.read(0, 17), [0, 0, 0, 0, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 0]);
    assert_eq!(rig.read(40, 1), [0]);
}

#[test]
fn folded_units_survive_a_cut_erase() {
    // The erase of the oldest block is one step: found by trying, and cut at every step around.
    for step in 1..120 {
        let mut rig = rig(&flash(), 4, 0);
        for round in 0..3u8 {
            for unit in 0..32 {
                rig.put(unit % 16, round * 32 + unit as u8);
            }
        }
        let wanted: Vec<u8> = (0..16).map(|unit| 2 * 32 + 16 + unit as u8).collect();
        assert_eq!(rig.read(0, 16), wanted);
        rig.nand.arm(FaultPlan { step: rig.nand.steps() + step, seed: step });
        while rig.front.purge(&mut rig.nand, rig.now).is_ok() && rig.nand.off_since().is_none() {
            // The purge has fewer steps: the cut is after it.
            rig.nand.power_off(rig.nand.quiet_at());
        }
        rig.now = rig.now.max(rig.nand.off_since().unwrap());
        rig.cycle();
        assert_eq!(rig.read(0, 16), wanted, "step {step}");
    }
}

#[test]
fn a_shrinking_log_loses_no_data() {
    let mut flash = flash();
    flash.slc.as_mut().unwrap().endurance = 40;
    flash.native.endurance = 3_000_000;
    flash.failures.program_ppb = 40_000;
    let mut rig = rig(&flash, 6, 0);
    let mut model = vec![0; UNITS as usize];
    let mut rng = Rng::new(5);
    let first_size = rig.front.log.blocks();
    for step in 0..60_000u32 {
        let unit = rng.below(UNITS.into()) as u32;
        rig.write(unit, &[(step % 255) as u8 + 1], Durability::Buffered).unwrap();
        model[unit as usize] = (step % 255) as u8 + 1;
        if step % 1000 == 0 {
            let probe = rng.below(UNITS.into()) as u32;
            assert_eq!(rig.read(probe, 1), [model[probe as usize]]);
            rig.audit();
        }
    }
    assert!(first_size == 6 && rig.front.log.blocks() < 2, "{}", rig.front.log.blocks());
    assert!(!rig.front.log.is_usable());
    assert_eq!(held_units(&rig.front), 0);
    assert_eq!(rig.read(0, UNITS), model);
    assert!(rig.nand.counters().program_failures > 0, "programs failed too");
    rig.flush();
    rig.cycle();
    assert_eq!(rig.read(0, UNITS), model);
}

/// Full blocks of the log hold nothing valid. An erase takes as long as the programs of two writes that bypass the log,
/// and comes with every third.
#[test]
fn blocks_without_valid_units_are_not_erased_all_at_once() {
    let mut rig = rig(&flash(), 12, 8);
    rig.front.stream_fold_percent = 100;
    // The same units again and again.
    for index in 0..10 * 32 + 4 {
        rig.put(index % 4, 1);
    }
    assert!(rig.front.log.full.len() >= 9, "{}", rig.front.log.full.len());
    let spaced = i64::from(rig.nand.units_in_erase());
    let (mut written, mut folds) = (0, Vec::new());
    while rig.front.log.has_full() {
        let before = rig.front.own.folds;
        rig.write(16 + written % 256, &[2; 8], Durability::Flash).unwrap();
        written += 8;
        folds.extend((before..rig.front.own.folds).map(|_| i64::from(written)));
    }
    let gaps: Vec<i64> = folds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.len() >= 8 && spaced > 8, "{gaps:?} {spaced}");
    let mean = gaps.iter().sum::<i64>() / gaps.len() as i64;
    assert!((spaced..=spaced + 8).contains(&mean), "{gaps:?}: {spaced} units and those of a write each");
    rig.audit();
}

/// A block that held three units is folded to one page: writes of a row still take one program of both planes each.
#[test]
fn a_fold_ends_with_a_whole_row() {
    let mut config = flash();
    (config.native.time_spread, config.planes) = (0.0, 2);
    config.native.program_us = vec![700.0];
    let took = |held: u32| {
        let mut rig = rig(&config, 6, 8);
        rig.write(0, &[1; 64], Durability::Flash).unwrap();
        for index in 0..8 {
            rig.put(index % held.max(1), 2);
        }
        rig.put(200, 2);
        if held > 0 {
            rig.now = rig.front.fold_oldest(&mut rig.nand, rig.now).unwrap();
            assert_eq!(rig.front.own.folds, 1);
        }
        rig.now = rig.nand.quiet_at().max(rig.now);
        let from = rig.now;
        rig.write(100, &[3; 8], Durability::Flash).unwrap();
        rig.now.since(from)
    };
    assert_eq!(took(3), took(0));
}
