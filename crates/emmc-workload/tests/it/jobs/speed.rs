//! Effects on speed: the cache, the queue, idle time, trim.

use crate::jobs::{Found, run_on, small};
use emmc_workload::job::PhaseResult;

fn last(result: &Found) -> &PhaseResult {
    result.run.phases.last().unwrap()
}

#[test]
fn the_cache_hides_programs() {
    let phases = |cache| {
        format!(
            r#"{{"kind": "fill"}}, {{"kind": "random", "amount": "1MiB", "range": ["0%", "50%"], "cache": {cache}}}"#
        )
    };
    let (_, with) = run_on(small(), &phases(true));
    let (_, without) = run_on(small(), &phases(false));
    let (with, without) = (last(&with), last(&without));
    assert!(with.work.latency_us.all.p50 * 3.0 < without.work.latency_us.all.p50, "{with:?}\n{without:?}");
    // Without it a write takes the time of its page: 500 or 1300 us, plus the queue, the firmware and the transfers.
    assert!((580.0..1550.0).contains(&without.work.latency_us.all.p50), "{without:?}");
}

#[test]
fn a_queue_makes_reads_of_several_dies_overlap() {
    let mut profile = small();
    profile.nand.dies = 4;
    profile.nand.planes = 1;
    profile.controller.read_overhead_us = 0.0;
    let reads = |profile, depth| {
        let phases = format!(
            r#"{{"kind": "fill"}}, {{"kind": "flush"}}, {{"kind": "random_read", "amount": "16MiB", "queue_depth": {depth}}}"#
        );
        let (_, result) = run_on(profile, &phases);
        last(&result).clone()
    };
    let (one, eight) = (reads(profile.clone(), 1), reads(profile.clone(), 8));
    let gain = eight.work.requests_per_s / one.work.requests_per_s;
    // At depth 1 a read also takes its commands, the wait for the next poll and the transfer; at depth 8 other reads
    // hide those. What four dies can read bounds the rate.
    let bound = 4.0 / (profile.nand.native.read_us * 1e-6);
    assert!(gain > 2.0 && eight.work.requests_per_s < 1.01 * bound, "{gain}, {bound}: {eight:?}");
    assert!(eight.work.latency_us.all.p50 > one.work.latency_us.all.p50);
    // Without a command queue the requests wait at the host instead, without any gain.
    profile.controller.queue_depth = 0;
    let (one, eight) = (reads(profile.clone(), 1), reads(profile, 8));
    let ratio = eight.work.requests_per_s / one.work.requests_per_s;
    assert!((0.98..1.02).contains(&ratio), "{ratio}");
    assert!(eight.work.latency_us.all.p50 > 7.5 * one.work.latency_us.all.p50);
}

#[test]
fn idle_time_restores_speed() {
    let mut profile = small();
    profile.ftl.gc_high_blocks = 24;
    let phases = |background| {
        format!(
            r#"{{"kind": "fill"}}, {{"kind": "random", "amount": "3x"}},
               {{"kind": "idle", "seconds": 60, "background": {background}}}, {{"kind": "random", "amount": "4MiB"}}"#
        )
    };
    let (_, with) = run_on(profile.clone(), &phases(true));
    let (_, without) = run_on(profile, &phases(false));
    let gain = last(&with).work.mb_per_s / last(&without).work.mb_per_s;
    assert!(gain > 1.5, "{gain}");
    assert!(last(&with).work.stalls < last(&without).work.stalls);
    assert_eq!(last(&with).work.copied_units, 0, "the blocks that idle time has freed are enough for 4 MiB");
}

#[test]
fn trim_restores_speed() {
    let phases = |trim: &str| {
        format!(
            r#"{{"kind": "fill"}}, {{"kind": "random", "amount": "3x"}}, {trim}
               {{"kind": "random", "amount": "32MiB", "range": ["0%", "50%"]}}"#
        )
    };
    let (_, with) = run_on(small(), &phases(r#"{"kind": "trim", "range": ["50%", "100%"]},"#));
    let (_, without) = run_on(small(), &phases(""));
    let (with, without) = (last(&with), last(&without));
    assert!(
        with.work.mb_per_s > 1.5 * without.work.mb_per_s,
        "{} against {}",
        with.work.mb_per_s,
        without.work.mb_per_s
    );
    assert!(with.work.write_amplification.unwrap() < without.work.write_amplification.unwrap() - 0.5);
    // A card that ignores trims has no gain.
    let mut deaf = small();
    deaf.ftl.trim_frees = false;
    let (_, deaf) = run_on(deaf, &phases(r#"{"kind": "trim", "range": ["50%", "100%"]},"#));
    assert!(last(&deaf).work.mb_per_s < 1.15 * without.work.mb_per_s);
}
