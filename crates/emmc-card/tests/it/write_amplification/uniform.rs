//! Uniform random writes: greedy, first in first out, choices, random, windows.

use emmc_card::profile::{GcPace, GcPolicy};

use crate::models;
use crate::write_amplification::drive::{Drive, Setup, amplification, close};
use crate::write_amplification::table::TABLE;

/// Overwrites to reach steady state, and overwrites that are measured.
const WARM: u32 = 5;
const ROUNDS: u32 = 3;

fn simulated(setup: Setup) -> f64 {
    Drive::new(setup).measure(WARM, ROUNDS, &mut Drive::uniform)
}

fn model(setup: Setup) -> f64 {
    let Setup { rho, np, .. } = setup;
    match setup.gc {
        GcPolicy::Greedy => models::greedy(rho, f64::from(np)),
        GcPolicy::Fifo => models::fifo(rho),
        GcPolicy::DChoices(d) => models::d_choices(rho, np, d as i32),
        _ => unreachable!("no model"),
    }
}

#[track_caller]
fn check(gc: GcPolicy, rho: f64, np: u32, blocks: u32) {
    let setup = Setup::new(gc, rho, np, blocks);
    close(&format!("{gc:?} rho {rho} Np {np}"), simulated(setup), model(setup), 0.01);
}

#[test]
fn greedy_matches_within_a_hundredth() {
    for rho in [0.6, 0.8, 0.9, 0.95] {
        check(GcPolicy::Greedy, rho, 64, 4096);
    }
    check(GcPolicy::Greedy, 0.873, 256, 2048);
}

#[test]
fn fifo_matches_within_a_hundredth() {
    for rho in [0.6, 0.85, 0.95] {
        check(GcPolicy::Fifo, rho, 64, 4096);
    }
    check(GcPolicy::Fifo, 0.9, 128, 4096);
}

#[test]
fn random_choices_match_within_a_hundredth() {
    for (d, rho) in [(1, 0.7), (1, 0.9), (2, 0.8), (2, 0.9), (10, 0.7), (10, 0.9)] {
        check(GcPolicy::DChoices(d), rho, 64, 4096);
    }
}

/// Collection in steps has the same write amplification, with its reserve not counted among the blocks with data.
#[test]
fn paced_collection_matches_within_a_hundredth() {
    for (gc, separate_gc, rho) in [
        (GcPolicy::Greedy, false, 0.8),
        (GcPolicy::Greedy, false, 0.9),
        (GcPolicy::Greedy, true, 0.6),
        (GcPolicy::Greedy, true, 0.9),
        (GcPolicy::Greedy, true, 0.95),
        (GcPolicy::Fifo, true, 0.85),
        (GcPolicy::DChoices(2), true, 0.8),
        (GcPolicy::DChoices(1), true, 0.7),
    ] {
        let setup = Setup { separate_gc, pace: GcPace::Paced, ..Setup::new(gc, rho, 64, 4096) };
        close(&format!("paced, {gc:?} {separate_gc} rho {rho}"), simulated(setup), model(setup), 0.01);
    }
}

#[test]
fn golden_values_are_unchanged() {
    let at = |gc, np| simulated(Setup::new(gc, 0.9, np, 4096));
    close("FIFO at 0.90", at(GcPolicy::Fifo, 64), 5.179, 0.01);
    close("greedy at 0.90, 64 a block", at(GcPolicy::Greedy, 64), 4.816, 0.01);
}

#[test]
fn windows_are_between_fifo_and_greedy() {
    let at = |w| simulated(Setup::new(GcPolicy::Windowed(w), 0.85, 64, 4096));
    // The published figures are for 8192 blocks; a window of as large a share of these.
    for (w, published) in [(1, 3.520), (50, 3.490), (500, 3.391), (2000, 3.354)] {
        close(&format!("window of {w}"), at(w), published, 0.01);
    }
}

#[test]
fn sequential_overwrites_have_no_write_amplification() {
    for gc in [GcPolicy::Greedy, GcPolicy::Fifo, GcPolicy::Windowed(8), GcPolicy::CostBenefit] {
        let mut drive = Drive::new(Setup::new(gc, 0.9, 64, 256));
        drive.fill();
        let before = *drive.stats();
        for _ in 0..4 {
            drive.fill();
        }
        assert_eq!(amplification(&before, drive.stats()), 1.0, "{gc:?}");
    }
}

#[test]
fn random_writes_to_spare_blocks_need_no_garbage_collection() {
    let mut drive = Drive::new(Setup::new(GcPolicy::Greedy, 0.8, 64, 1024));
    drive.fill();
    let room = u64::from(1024 * 64 - drive.units());
    drive.uniform(room);
    assert_eq!((drive.stats().collections, drive.stats().copied_units), (0, 0));
    drive.uniform(64);
    assert!(drive.stats().collections > 0, "the room was no larger");
}

/// All of the table, at full size.
#[test]
#[ignore = "minutes; run in release"]
fn the_whole_table_matches() {
    for row in TABLE {
        let rho = row[0];
        for np in [64, 128, 256, 512, 1024] {
            check(GcPolicy::Greedy, rho, np, 4096);
            check(GcPolicy::Fifo, rho, np, 4096);
        }
        for d in [1, 2, 10] {
            check(GcPolicy::DChoices(d), rho, 64, 8192);
            check(GcPolicy::DChoices(d), rho, 256, 4096);
            check(GcPolicy::DChoices(d), rho, 1024, 4096);
        }
    }
    for (w, published) in [(1, 3.520), (10, 3.516), (100, 3.490), (1000, 3.391), (4000, 3.354)] {
        let found = simulated(Setup::new(GcPolicy::Windowed(w), 0.85, 64, 8192));
        close(&format!("window of {w} of 8192"), found, published, 0.01);
    }
}
