//! The suite `steady` on a card with a known steady state: greedy garbage collection with pages of one unit, so the
//! exact model of write amplification gives the time of a write.

#[path = "../../../emmc-card/tests/it/models/mod.rs"]
#[allow(dead_code, reason = "of the models only the greedy one is needed")]
mod models;

use crate::cards::{card, figure, told};
use emmc_card::nand::CellMode;
use emmc_card::profile::{GcPolicy, Layout, Profile, RegionRole, TRIM_LOG_BLOCKS};
use emmc_sim::SimTarget;
use emmc_workload::{Options, Outcome};

const UNIT: u32 = 4096;
const PAGES: u32 = 64;
const PROGRAM_US: f64 = 500.0;
const READ_US: f64 = 60.0;
const ERASE_MS: f64 = 3.5;
const FREE: u32 = 3;

/// One die, one plane, one unit per page, no cache, no random variation.
fn plain(profile: &mut Profile) {
    profile.areas.user_bytes = 64 << 20;
    profile.areas.enhanced_groups_max = 0;
    profile.areas.wp_group_bytes = profile.areas.erase_group_bytes;
    let nand = &mut profile.nand;
    (nand.channels, nand.dies, nand.planes) = (1, 1, 1);
    (nand.page_bytes, nand.pages_per_block) = (UNIT, PAGES);
    nand.over_provisioning = 0.25;
    (nand.spare_blocks, nand.factory_bad_blocks) = (4, 0);
    (nand.cached_program, nand.multi_plane) = (false, false);
    (nand.cell, nand.slc) = (CellMode::Slc, None);
    nand.native.program_us = vec![PROGRAM_US];
    (nand.native.read_us, nand.native.erase_ms) = (READ_US, ERASE_MS);
    (nand.native.time_spread, nand.native.endurance_spread) = (0.0, 0.0);
    (profile.ftl.slc_cache, profile.ftl.mapping_cache) = (None, None);
    (profile.ftl.gc, profile.ftl.separate_gc, profile.ftl.unit_bytes) = (GcPolicy::Greedy, false, UNIT);
    (profile.ftl.gc_low_blocks, profile.ftl.gc_high_blocks) = (FREE, 0);
    profile.ftl.wear.static_gap = 0;
    (profile.controller.cache_bytes, profile.controller.buffer_bytes) = (0, UNIT);
    profile.controller.write_reliability = false;
    profile.registers.clear();
}

/// Units of data over units of the blocks that hold them.
fn rho(target: &SimTarget) -> f64 {
    let profile = target.device().profile();
    let layout = Layout::factory(profile, 1).unwrap();
    let (_, main) = layout.regions.iter().find(|(role, _)| *role == RegionRole::Main).unwrap();
    let blocks = main.blocks.len() as u32 - main.spares - TRIM_LOG_BLOCKS - FREE;
    f64::from(main.units) / f64::from(blocks * PAGES)
}

fn iops(outcome: &Outcome) -> f64 {
    figure(outcome, "4 KiB writes")
}

#[test]
fn the_steady_state_matches_the_model() {
    let mut target = card("generic-8g", plain);
    let rho = rho(&target);
    // Without collection: the first writes of all to a new card.
    let fresh = {
        let mut new = card("generic-8g", plain);
        let options = Options { rows: vec!["4".into()], size_bytes: Some(8 << 20), ..Options::default() };
        let outcome = told("iozone", &mut new, &options);
        outcome.measurements.iter().find(|m| m.column == "write").unwrap().iops
    };
    let outcome = told("steady", &mut target, &Options::default());
    target.device().audit().unwrap();
    let amplification = models::greedy(rho, f64::from(PAGES));
    // A copied page is read, sent out and in again, and programmed; a block is erased for as many writes as it frees
    // pages.
    let sent_us = f64::from(UNIT) / target.device().profile().nand.channel_mb_s;
    let copy_us = READ_US + 2.0 * sent_us + PROGRAM_US;
    let erase_us = ERASE_MS * 1e3 * amplification / f64::from(PAGES);
    let expected = 1e6 / (1e6 / fresh + (amplification - 1.0) * copy_us + erase_us);
    let found = iops(&outcome);
    println!("rho {rho:.4}, WA {amplification:.3}, fresh {fresh:.0}, expected {expected:.0}, found {found:.0}");
    println!("{:?} {:?}", target.device().stats(), target.device().nand().counters());
    assert!((found / expected - 1.0).abs() < 0.03, "{found:.1} against {expected:.1}");
    assert!(figure(&outcome, "rounds to steady state") >= 5.0);
    let interval = outcome.figures.iter().find(|figure| figure.name == "4 KiB writes").unwrap().interval.unwrap();
    assert!(interval.low < found && found < interval.high && interval.high / interval.low < 1.1, "{interval:?}");
}

#[test]
fn an_exhausted_budget_is_reported() {
    let mut target = card("generic-8g", plain);
    // Twice sequentially, the mix at the end, and five rounds, the first of which use the free blocks.
    let options = Options { write_budget_bytes: Some((64 << 20) * 2 + (22 << 20)), ..Options::default() };
    let outcome = told("steady", &mut target, &options);
    assert!(outcome.written_bytes <= options.write_budget_bytes.unwrap(), "{}", outcome.written_bytes);
    assert!(
        outcome.remarks.iter().any(|text| text.contains("write budget was used up after 5 rounds")),
        "{:?}",
        outcome.remarks
    );
    let rounds = outcome.figures.iter().find(|figure| figure.name == "rounds to steady state").unwrap();
    assert_eq!(rounds.value, None);
    let why = "steady: the write budget ended before there was an answer";
    assert_eq!(outcome.ended_early.as_deref(), Some(why));
}
