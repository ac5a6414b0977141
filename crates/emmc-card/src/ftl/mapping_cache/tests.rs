use super::*;
use crate::nand::FaultPlan;
use crate::nand::StoredContent;
use crate::profile::shipped;
use emmc_units::Rng;

/// More than any of these logs and cuts need: a cache that never writes ends a test, too.
const TOUCHES_MAX: u32 = 100_000;

/// Flash of a few small blocks: 8 pages of 16 KiB each when used with one bit a cell.
fn flash(blocks: u32) -> Nand {
    let mut config = shipped::named("generic-8g").unwrap().nand;
    (config.pages_per_block, config.factory_bad_blocks, config.native.time_spread) = (16, 0, 0.0);
    let slc = config.slc.as_mut().unwrap();
    slc.time_spread = 0.0;
    Nand::new(&config, Geometry::new(&config, blocks, 4096), 1).keeping(StoredContent::Orders)
}

fn cache(nand: &mut Nand, pages: u32, units: u32) -> MappingCache {
    let config = profile::MappingCache { pages, units_per_page: 100 };
    let blocks: Vec<u32> = (0..MappingCache::blocks_for(&config, units, nand.geometry())).collect();
    MappingCache::new(&config, units, &blocks, nand)
}

#[test]
fn a_cache_miss_costs_a_read_and_a_hit_nothing() {
    let mut nand = flash(8);
    let mut cache = cache(&mut nand, 4, 1000);
    let mut now = Instant::START;
    for unit in (0..400).chain(0..400) {
        now = cache.touch(&mut nand, unit, true, now).unwrap();
    }
    assert_eq!((now, cache.misses(), nand.steps()), (Instant::START, 0, 0));
    // A fifth page evicts one of the four, with a program because it is dirty; loading it again is a read.
    now = cache.touch(&mut nand, 400, false, now).unwrap();
    assert_eq!((cache.misses(), cache.writes(), nand.counters().page_programs), (0, 1, 1));
    for unit in [0, 100, 200, 300] {
        let before = now;
        now = cache.touch(&mut nand, unit, false, now).unwrap();
        assert_eq!(now > before, cache.misses() == 1, "unit {unit}");
        if cache.misses() == 1 {
            break;
        }
    }
    // Two pages are evicted, on two planes in parallel: two transfers and 250 us; then the read of 28 us and its
    // transfer.
    let transfer = 16384.0 / 200e6 * 1e9;
    let wanted = 250e3 + 28e3 + 3.0 * transfer;
    let took = now.since(Instant::START).0 as f64;
    assert!((took - wanted).abs() < 0.01 * wanted, "{took} ns, not {wanted}");
    assert_eq!(nand.counters().page_reads, 1);
    cache.audit(&nand).unwrap();
}

#[test]
fn clean_pages_are_evicted_without_a_program() {
    let mut nand = flash(8);
    let mut cache = cache(&mut nand, 2, 1000);
    for round in 0..3 {
        for page in 0..10 {
            cache.touch(&mut nand, page * 100, round == 0, Instant::START).unwrap();
        }
    }
    assert_eq!(cache.writes(), 10, "each page was changed once");
    assert_eq!(cache.misses(), 20);
}

#[test]
fn a_run_touches_each_mapping_page_once() {
    let mut nand = flash(8);
    let mut cache = cache(&mut nand, 2, 1000);
    cache.touch_run(&mut nand, 150, 201, true, Instant::START).unwrap();
    // Pages 1, 2 and 3: the first of them has left.
    assert_eq!(cache.writes(), 1);
    cache.touch_run(&mut nand, 150, 0, false, Instant::START).unwrap();
}

#[test]
fn garbage_collection_of_the_log_wears_blocks() {
    let mut nand = flash(16);
    let mut cache = cache(&mut nand, 3, 3000);
    let (mut rng, mut now) = (Rng::new(1), Instant::START);
    for _ in 0..20_000 {
        now = cache.touch(&mut nand, rng.below(3000) as u32, true, now).unwrap();
    }
    cache.audit(&nand).unwrap();
    let counters = *nand.counters();
    assert_eq!(counters.page_programs, cache.writes());
    assert!(counters.erases >= cache.writes() / 8 - 9, "{counters:?}");
    assert_eq!(counters.violations, 0);
    let worn: Vec<u32> = cache.blocks().map(|block| nand.block(block).erase_count).collect();
    let (least, most) = (worn.iter().min().unwrap(), worn.iter().max().unwrap());
    assert!(*least > 0 && most - least <= most / 4 + 2, "{worn:?}");
    // Two thirds of the pages are not in memory, so about that share of accesses miss.
    assert!((17_000..19_000).contains(&cache.misses()), "{}", cache.misses());
}

#[test]
fn a_cut_at_any_step_leaves_a_log_that_works() {
    for step in 1..400 {
        let mut nand = flash(16);
        let mut cache = cache(&mut nand, 3, 1500);
        let mut rng = Rng::new(step);
        nand.arm(FaultPlan { step, seed: step });
        let mut now = Instant::START;
        let cut = (0..TOUCHES_MAX).find_map(|_| match cache.touch(&mut nand, rng.below(1500) as u32, true, now) {
            Ok(done) => {
                now = done;
                None
            }
            Err(error) => Some(error),
        });
        assert_eq!(cut, Some(FtlError::PowerLost), "step {step}");
        let now = nand.off_since().unwrap();
        nand.power_on(now);
        let mut now = cache.recover(&mut nand, &|_| false, now).unwrap();
        nand.decay();
        cache.audit(&nand).unwrap_or_else(|what| panic!("step {step}: {what}"));
        for _ in 0..100 {
            now = cache.touch(&mut nand, rng.below(1500) as u32, true, now).unwrap();
        }
        cache.audit(&nand).unwrap_or_else(|what| panic!("step {step}, later: {what}"));
        assert_eq!(nand.counters().violations, 0);
    }
}

#[test]
fn bad_blocks_are_tolerated_until_no_space_is_left() {
    let mut config = shipped::named("generic-8g").unwrap().nand;
    (config.pages_per_block, config.factory_bad_blocks) = (16, 0);
    (config.native.endurance, config.slc.as_mut().unwrap().endurance) = (10, 30);
    config.failures.program_ppb = 2_000_000;
    let mut nand = Nand::new(&config, Geometry::new(&config, 16, 4096), 1);
    let mut cache = cache(&mut nand, 3, 3000);
    let mut rng = Rng::new(1);
    let end = (0..TOUCHES_MAX).find_map(|writes| {
        let touched = cache.touch(&mut nand, rng.below(3000) as u32, true, Instant::START);
        touched.err().map(|error| (writes, error))
    });
    let (writes, error) = end.expect("the log wears out");
    assert_eq!(error, FtlError::WornOut);
    // Nine blocks of 30 cycles and more, 8 pages each; programs also go to collecting.
    assert!(writes > 1000, "{writes}");
    // Lookups still work, and so does a power cycle.
    for unit in 0..3000 {
        cache.touch(&mut nand, unit, false, Instant::START).unwrap();
    }
    cache.recover(&mut nand, &|_| false, Instant::START).unwrap();
    cache.touch(&mut nand, 0, false, Instant::START).unwrap();
    cache.audit(&nand).unwrap();
}
