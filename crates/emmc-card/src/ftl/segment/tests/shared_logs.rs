//! Shared logs: what goes there, and how the oldest is reclaimed.

use super::*;
use crate::profile::GcPace;

#[test]
fn a_shared_log_holds_small_writes_until_it_is_full() {
    let mut bench = Bench::plain(SegmentOrder::Linear, 2, 2);
    bench.write(0, bench.ftl.units(), Durability::Flash).unwrap();
    bench.now = bench.ftl.flush(&mut bench.nand, bench.now).unwrap();
    let before = *bench.ftl.stats();
    // Two logs of 16 pages, a page a write, far from each other and to AUs that are not open.
    let target = |index: u32| index * 7 % 8 * 32 + index % 30;
    for index in 0..32 {
        bench.write(target(index), 1, Durability::Flash).unwrap();
    }
    assert_eq!(bench.ftl.stats().copied_units, before.copied_units);
    // Then one more log is written, and each write of a page merges an AU of the oldest.
    for index in 32..40 {
        assert_eq!(bench.ftl.stats().full_merges, before.full_merges + u64::from(index - 32));
        bench.write(target(index), 1, Durability::Flash).unwrap();
    }
    assert_eq!(bench.ftl.stats().full_merges, before.full_merges + 8, "every AU had something in the oldest log");
    assert_eq!((bench.ftl.shared.len(), bench.ftl.stats().collections), (2, 1));
    // What is larger opens its AU, also where it comes in parts of which the last is small.
    bench.write(96, 4, Durability::Buffered).unwrap();
    bench.write(100, 1, Durability::Flash).unwrap();
    let index = bench.ftl.open_index(3).unwrap();
    assert_eq!(bench.ftl.open[index].last, Some(4));
    bench.check();
}

/// Worst and total time of small writes to all AUs, with the merges that they made.
fn small_writes(pace: GcPace, merges_at_once: u32, cut_every: u32) -> (Nanos, Nanos, u64) {
    let mut config = FtlConfig { gc_pace: pace, ..ftl_config(SegmentOrder::Linear, 2, 2) };
    config.segment.as_mut().unwrap().merges_at_once = merges_at_once;
    let mut bench = Bench::new(&config, &nand_config(CellMode::Mlc, Failures::default(), 100_000), 1);
    bench.write(0, bench.ftl.units(), Durability::Flash).unwrap();
    bench.now = bench.ftl.flush(&mut bench.nand, bench.now).unwrap();
    let (before, begun, mut worst) = (bench.ftl.stats().full_merges, bench.now, Nanos::ZERO);
    let mut rng = Rng::new(5);
    for index in 1..=400 {
        let start = bench.now;
        bench.write(rng.below(u64::from(bench.ftl.units())) as u32, 1, Durability::Flash).unwrap();
        worst = worst.max(bench.now.since(start));
        bench.ftl.audit(&bench.nand).unwrap();
        if cut_every > 0 && index % cut_every == 0 {
            bench.nand.power_off(bench.now);
            bench.nand.power_on(bench.now);
            bench.now = bench.ftl.recover(&mut bench.nand, bench.now).unwrap();
            bench.check();
        }
    }
    (worst, bench.now.since(begun), bench.ftl.stats().full_merges - before)
}

#[test]
fn a_paced_card_spreads_the_merges_of_the_oldest_log_over_writes() {
    let (at_once, total, merges) = small_writes(GcPace::AtOnce, 1, 0);
    let (paced, paced_total, paced_merges) = small_writes(GcPace::Paced, 1, 0);
    // A merge programs 16 pages, 0.8 ms on average, of two planes, and erases two blocks; a log has units of all AUs.
    assert!(at_once > Nanos::from_millis(70), "at once {at_once:?}");
    assert!(paced < Nanos::from_millis(20), "paced {paced:?}");
    assert!(paced_merges <= merges && paced_total <= total, "{paced_merges} of {merges}, {paced_total:?} of {total:?}");
}

/// Between the two: the longest write has that many merges, whatever was written before it.
#[test]
fn a_paced_card_may_wait_for_some_merges_and_do_them_in_one_write() {
    let (one, total, merges) = small_writes(GcPace::Paced, 1, 0);
    let (four, four_total, four_merges) = small_writes(GcPace::Paced, 4, 0);
    let times = four.0 as f64 / one.0 as f64;
    assert!((2.0..=4.5).contains(&times), "{one:?}, {four:?}");
    assert!(four_merges <= merges && four_total <= total, "{four_merges} of {merges}, {four_total:?} of {total:?}");
    for cut_every in [7, 19, 33, 46] {
        small_writes(GcPace::Paced, 4, cut_every);
    }
}

/// Cuts at every point of a reclaim lose nothing, and the first writes after one are no burst of merges.
#[test]
fn a_reclaim_in_steps_goes_on_after_a_cut() {
    for cut_every in [7, 19, 33, 46] {
        let (worst, ..) = small_writes(GcPace::Paced, 1, cut_every);
        assert!(worst < Nanos::from_millis(40), "a cut after {cut_every} writes: {worst:?}");
    }
}

/// A reliable write finds the shared log in the middle of a word line, with a unit waiting, and takes the next one.
#[test]
fn valid_data_of_a_shared_log_moves_to_the_next() {
    let mut bench = Bench::plain(SegmentOrder::Linear, 2, 2);
    bench.write(20, 4, Durability::Flash).unwrap();
    bench.write(40, 1, Durability::Flash).unwrap();
    bench.write(5, 1, Durability::Buffered).unwrap();
    assert!(bench.ftl.shared[0].is_waiting());
    bench.write(72, 1, Durability::Reliable).unwrap();
    assert_eq!(bench.ftl.shared.len(), 2);
    bench.check();
    bench.now = bench.ftl.flush(&mut bench.nand, bench.now).unwrap();
    bench.nand.power_off(bench.now);
    bench.nand.power_on(bench.now);
    bench.now = bench.ftl.recover(&mut bench.nand, bench.now).unwrap();
    bench.check();
}
