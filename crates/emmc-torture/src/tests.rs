use super::*;

#[test]
fn seeds_identify_cases() {
    for case in [
        Case::Random { seed: 7 },
        Case::Area { seed: u32::MAX },
        Case::Trims { seed: u32::MAX },
        Case::Step { workload: 3, step: 1234 },
        Case::Step { workload: u32::MAX, step: 1 },
    ] {
        assert_eq!(Case::from_number(case.number()), case);
    }
}

/// The short form of `cargo xtask sim`.
#[test]
fn workloads_survive_a_cut_at_every_step() {
    for workload in 0..3 {
        for step in 1.. {
            match torture(Case::Step { workload, step }) {
                Ok(outcome) if !outcome.reached => break,
                Ok(_) => {}
                Err(violation) => panic!("{violation}"),
            }
        }
    }
}

#[test]
fn workloads_survive_random_cuts() {
    let mut cuts = 0;
    for seed in (0..30).chain(RANDOM_SEEDS) {
        cuts += torture(Case::Random { seed }).unwrap_or_else(|violation| panic!("{violation}")).cuts;
    }
    assert!(cuts > 800, "{cuts}");
}

#[test]
fn areas_beside_the_users_survive_random_cuts() {
    let mut cuts = 0;
    for seed in (0..40).chain(AREA_SEEDS) {
        cuts += torture(Case::Area { seed }).unwrap_or_else(|violation| panic!("{violation}")).cuts;
    }
    assert!(cuts > 1000, "{cuts}");
}

/// More trims to take over than a block of their log had pages for; a unit in memory whose program had failed, taken
/// for one in flash; the seed that detects the segment layer's wait for other units of allocation; a worn-out part
/// whose units fall back to copies in a block that was free again; and a worn-out part whose log of single-bit blocks
/// has no place for a unit that a cut has interrupted.
const TRIM_SEEDS: [u32; 5] = [65, 252, 634, 2208, 401_000_201];

/// A write that was acknowledged before the failed program of its padding had ended: a cut in that program took it.
const RANDOM_SEEDS: [u32; 1] = [406_001_294];

/// A worn-out part without a block for the copies of what a cut has interrupted; and a write past the cache that was
/// acknowledged before the drained units on the page of its beginning were in flash.
const AREA_SEEDS: [u32; 2] = [507_001_371, 609_001_803];

#[test]
fn trims_survive_while_their_log_begins_another_block() {
    let mut cuts = 0;
    for seed in (0..60).chain(TRIM_SEEDS) {
        cuts += torture(Case::Trims { seed }).unwrap_or_else(|violation| panic!("{violation}")).cuts;
    }
    assert!(cuts > 1500, "{cuts}");
}

/// A unit that is written after its discard, while the discard is recorded and the log begins another block.
#[test]
fn a_discard_is_not_recorded_after_a_later_write() {
    for seed in [11_111_934, 11_130_272] {
        torture(Case::Random { seed }).unwrap_or_else(|violation| panic!("{violation}"));
    }
}

/// At the cut, every free block of the main layer held units whose newest copies were in the cache.
#[test]
fn units_of_the_cache_take_no_block_of_recovery() {
    torture(Case::Random { seed: 11_130_909 }).unwrap_or_else(|violation| panic!("{violation}"));
}

/// Cut while a unit waits in memory whose copy before was in a block that was retired.
#[test]
fn a_block_is_not_retired_before_what_replaced_its_units_is_durable() {
    torture(Case::Random { seed: 13_001_821 }).unwrap_or_else(|violation| panic!("{violation}"));
}

/// Small writes that write the rest of a page of their log again.
#[test]
fn parts_that_keep_pages_in_their_log_survive_random_cuts() {
    for name in ["sandisk-extreme-pro-a2-64g", "sandisk-extreme-plus-a2-64g"] {
        for seed in 0..12 {
            let profile = emmc_card::profile::shipped::named(name).unwrap();
            assert!(profile.controller.small_page_bytes > 0);
            torture_profile(profile, seed).unwrap_or_else(|violation| panic!("{name}, seed {seed}: {violation}"));
        }
    }
    // An eMMC, with its cache on, off or absent; the area is no multiple of this page.
    for seed in 0..12 {
        let mut profile = emmc_card::profile::shipped::named("generic-8g").unwrap();
        (profile.controller.small_write_bytes, profile.controller.small_page_bytes) = (65_536, 12 << 10);
        if seed % 2 == 0 {
            profile.controller.cache_bytes = 0;
        }
        torture_profile(profile, seed).unwrap_or_else(|violation| panic!("eMMC, seed {seed}: {violation}"));
    }
}

/// A longer form, for `cargo xtask mutants`.
#[test]
#[ignore = "a minute; cargo xtask mutants runs it"]
fn workloads_survive_many_random_cuts() {
    for seed in 30..600 {
        torture(Case::Random { seed }).unwrap_or_else(|violation| panic!("{violation}"));
    }
}
