use std::collections::BTreeSet;

use super::*;
use crate::nand::FaultPlan;
use crate::nand::{CellMode, Geometry, NO_UNIT, StoredContent};
use crate::profile::{CellConfig, Failures, NandConfig};
use emmc_units::Rng;

const UNITS: u32 = 600;

fn cell(endurance: u32) -> CellConfig {
    CellConfig {
        read_us: 50.0,
        program_us: vec![500.0, 1300.0],
        erase_ms: 3.0,
        endurance,
        time_spread: 0.0,
        endurance_spread: 0.0,
    }
}

fn config(endurance: u32, failures: Failures) -> NandConfig {
    NandConfig {
        cell: CellMode::Mlc,
        channels: 1,
        dies: 2,
        planes: 1,
        page_bytes: 32,
        pages_per_block: 16,
        blocks: None,
        over_provisioning: 0.1,
        spare_blocks: 0,
        factory_bad_blocks: 0,
        channel_mb_s: 100.0,
        cached_program: true,
        multi_plane: true,
        multi_plane_read: false,
        native: cell(endurance),
        slc: Some(cell(endurance)),
        failures,
        ageing: None,
    }
}

fn flash(endurance: u32, failures: Failures, keep: StoredContent) -> Nand {
    let config = config(endurance, failures);
    Nand::new(&config, Geometry::new(&config, 8, 16), 7).keeping(keep)
}

/// What a layer knows: the sequence number of each unit's newest page, and which units are in flash.
struct Layer {
    nand: Nand,
    log: TrimLog,
    pages: Vec<u64>,
    block: u32,
    fresh_block: bool,
    now: Instant,
}

impl Layer {
    fn new(nand: Nand) -> Self {
        let mut nand = nand;
        let log = TrimLog::new(&mut nand, &[0, 1], UNITS);
        Self { nand, log, pages: vec![0; UNITS as usize], block: 2, fresh_block: false, now: Instant::START }
    }

    /// Programs one page of data, for its sequence number.
    fn write(&mut self, unit: u32) -> Result<(), FtlError> {
        if self.fresh_block || self.nand.block(self.block).next_page == self.nand.pages_of(self.block) {
            self.fresh_block = false;
            self.block = 2 + (self.block - 1) % 6;
            self.now = self.nand.erase(self.block, self.now)?;
        }
        let page = self.nand.block(self.block).next_page;
        self.now = self.nand.program(self.block, page, &[unit, NO_UNIT], None, self.now)?;
        self.pages[unit as usize] = self.nand.order(self.block, page).unwrap();
        Ok(())
    }

    fn trim(&mut self, first: u32, count: u32) -> Result<(), FtlError> {
        let Self { nand, log, pages, now, .. } = self;
        pages[first as usize..(first + count) as usize].fill(0);
        *now = log.append(nand, first, count, &|unit| pages[unit as usize] != 0, *now)?;
        Ok(())
    }

    /// Replays; the units that count as trimmed, judged by the sequence numbers of pages.
    fn recover(&mut self, pages: &[u64]) -> Result<BTreeSet<u32>, FtlError> {
        let replay = self.log.replay(&mut self.nand, self.now)?;
        self.pages = pages.to_vec();
        for trim in &replay.trims {
            for unit in trim.first..trim.first + trim.count {
                if self.pages.get(unit as usize).is_some_and(|&order| order < trim.order) {
                    self.pages[unit as usize] = 0;
                }
            }
        }
        let Self { nand, log, pages, .. } = self;
        self.now = log.settle(nand, &|unit| pages[unit as usize] != 0, &[], replay.done)?;
        Ok((0..UNITS).filter(|&unit| self.pages[unit as usize] == 0).collect())
    }
}

/// Writes and trims; `expected` gets the unit that is being changed, the truth before and after.
fn run(layer: &mut Layer, rng: &mut Rng, rounds: u32) -> Result<(), (FtlError, Vec<u64>)> {
    for _ in 0..rounds {
        let before = layer.pages.clone();
        let first = rng.below(u64::from(UNITS)) as u32;
        let outcome = match rng.below(3) {
            0 => layer.write(first),
            _ => layer.trim(first, 1 + rng.below(u64::from((UNITS - first).min(40))) as u32),
        };
        outcome.map_err(|error| (error, before))?;
    }
    Ok(())
}

/// Cuts at a step, then again during recovery, until a recovery completes; acknowledged trims must hold, and one in
/// progress must have affected each unit completely or not at all.
fn cut_at(step: u64, seed: u64) -> bool {
    let mut layer = Layer::new(flash(1000, Failures::default(), StoredContent::Orders));
    let mut rng = Rng::new(seed);
    let base = layer.nand.steps();
    layer.nand.arm(FaultPlan { step: base + step, seed: seed ^ step });
    let Err((error, before)) = run(&mut layer, &mut rng, 60) else { return false };
    assert_eq!(error, FtlError::PowerLost);
    let after = layer.pages.clone();
    let mut shaken = Rng::new(seed + step);
    loop {
        layer.now = layer.now.max(layer.nand.off_since().unwrap());
        layer.nand.power_on(layer.now);
        if shaken.below(3) > 0 {
            let step = layer.nand.steps() + 1 + shaken.below(6);
            layer.nand.arm(FaultPlan { step, seed: shaken.next_u64() });
        }
        // A page that was written when power went is for the layer to find; here it is as if it had not been.
        match layer.recover(&before) {
            Err(error) => assert_eq!(error, FtlError::PowerLost),
            Ok(trimmed) => {
                for unit in 0..UNITS {
                    let (old, new) = (before[unit as usize], after[unit as usize]);
                    let gone = trimmed.contains(&unit);
                    assert!(gone || old != 0, "seed {seed} step {step}: trimmed unit {unit} is back");
                    assert!(!gone || old == 0 || new == 0, "seed {seed} step {step}: unit {unit} is lost");
                }
                break;
            }
        }
    }
    layer.nand.disarm();
    layer.nand.decay();
    // A trim that was found once is found again.
    layer.fresh_block = true;
    let told = layer.pages.clone();
    layer.nand.power_off(layer.now);
    layer.nand.power_on(layer.now);
    layer.recover(&before).unwrap();
    assert_eq!(layer.pages, told, "seed {seed} step {step}");
    run(&mut layer, &mut rng, 20).unwrap();
    true
}

#[test]
fn a_cut_at_any_step_loses_no_acknowledged_trim() {
    for seed in 0..8 {
        let cuts = (1..).take_while(|&step| cut_at(step, seed)).count();
        assert!(cuts > 70, "{cuts}");
    }
}

#[test]
fn the_checkpoint_keeps_trims() {
    let mut layer = Layer::new(flash(1000, Failures::default(), StoredContent::Orders));
    for unit in 0..UNITS {
        layer.pages[unit as usize] = 1;
    }
    let written = layer.pages.clone();
    for unit in 0..100 {
        layer.trim(unit, 1).unwrap();
    }
    // Eight pages: three checkpoint pages, the seal, four trims.
    assert!(layer.nand.block(0).erase_count + layer.nand.block(1).erase_count >= 20);
    assert_eq!(layer.recover(&written).unwrap(), (0..100).collect());
}

#[test]
fn a_simulation_without_content_has_the_same_costs() {
    let [kept, plain] = [StoredContent::Orders, StoredContent::Nothing].map(|keep| {
        let mut layer = Layer::new(flash(1000, Failures::default(), keep));
        for unit in 0..100 {
            layer.trim(unit, 1).unwrap();
        }
        (layer.now, *layer.nand.counters())
    });
    assert_eq!(kept, plain);
}

#[test]
fn failed_blocks_are_replaced_until_none_is_left() {
    let failures = Failures { program_ppb: 10_000_000, erase_ppm: 0 };
    let mut layer = Layer::new(flash(40, failures, StoredContent::Orders));
    let mut trims = 0;
    while layer.trim(trims % UNITS, 1).is_ok() {
        trims += 1;
    }
    assert_eq!(layer.log.good_blocks(&layer.nand), 1);
    assert_eq!(layer.nand.counters().violations, 0);
    assert!(layer.nand.counters().program_failures > 3);
    // Two blocks of 40 cycles and 4 trims a cycle, minus the losses by failures.
    assert!((240..=330).contains(&trims), "{trims}");
    // The block that is left may have a page that power was cut on: it is read, and not written on.
    layer.nand.power_off(layer.now);
    layer.nand.power_on(layer.now);
    layer.log.replay(&mut layer.nand, layer.now).unwrap();
    assert_eq!(layer.log.try_append(&mut layer.nand, 0, 1, layer.now), Ok(None));
    layer.log.add_block(&mut layer.nand, 7);
    layer.trim(0, 1).unwrap();
}

#[test]
fn capacity_is_reported() {
    let config = config(10, Failures::default());
    let geometry = Geometry::new(&config, 8, 16);
    assert!(TrimLog::fits(&geometry, 6 * 32 * 8) && !TrimLog::fits(&geometry, 6 * 32 * 8 + 1));
    assert_eq!(runs(&[0b0110_0001, 0b1]).collect::<Vec<_>>(), [(0, 1), (5, 2), (8, 1)]);
    assert_eq!(bitmap(0, 11, &|unit| unit != 3 && unit != 10), [0b1000, 0b100]);
}
