use super::*;
use crate::nand::{CellMode, Geometry};

const BLOCKS: u32 = 300;
const UNITS: u32 = 8;

fn map() -> Map {
    let geometry = Geometry {
        blocks: 1000,
        pages_per_block: UNITS,
        units_per_page: 1,
        unit_bytes: 4096,
        dies: 1,
        planes: 1,
        channels: 1,
        native: CellMode::Slc,
    };
    Map::new(BLOCKS * UNITS, &geometry, 500..500 + BLOCKS)
}

/// All blocks full, closed in the order of their numbers.
fn full(policy: GcPolicy) -> (Map, Victims) {
    let mut map = map();
    let mut victims = Victims::new(policy, 500..500 + BLOCKS, UNITS, 1);
    for unit in 0..BLOCKS * UNITS {
        map.set(unit, 500 * UNITS + unit);
    }
    for block in 500..500 + BLOCKS {
        victims.insert(block, UNITS);
    }
    (map, victims)
}

fn drop_units(map: &mut Map, victims: &mut Victims, block: u32, count: u32) {
    for index in 0..count {
        map.clear((block - 500) * UNITS + index);
        victims.lower(block, map.valid_in(block));
    }
}

#[test]
fn greedy_agrees_with_a_full_search() {
    let (mut map, mut victims) = full(GcPolicy::Greedy);
    let mut rng = Rng::new(5);
    for _ in 0..2000 {
        let unit = rng.below(u64::from(BLOCKS * UNITS)) as u32;
        let old = map.clear(unit);
        if old != crate::nand::NO_UNIT {
            victims.lower(map.block_of(old), map.valid_in(map.block_of(old)));
        }
        if rng.below(10) == 0 {
            let least = victims.iter().map(|block| map.valid_in(block)).min().unwrap();
            let found = victims.pick(&map).unwrap();
            assert_eq!(map.valid_in(found), least);
            assert!(!victims.contains(found));
        }
    }
    assert!(victims.iter().count() < 150);
}

#[test]
fn fifo_picks_the_block_closed_first() {
    let (mut map, mut victims) = full(GcPolicy::Fifo);
    drop_units(&mut map, &mut victims, 600, 8);
    assert_eq!([victims.pick(&map), victims.pick(&map)], [Some(500), Some(501)]);
    victims.insert(500, UNITS);
    victims.remove(502);
    assert_eq!(victims.pick(&map), Some(503));
    assert_eq!(victims.emptiest(&map), Some(600));
}

#[test]
fn a_window_contains_the_oldest_blocks_only() {
    let (mut map, mut victims) = full(GcPolicy::Windowed(10));
    drop_units(&mut map, &mut victims, 510, 8);
    drop_units(&mut map, &mut victims, 509, 1);
    assert_eq!(victims.pick(&map), Some(509));
    assert_eq!(victims.pick(&map), Some(510), "it has come into the window");
    assert_eq!(victims.pick(&map), Some(500), "the oldest of equals");
}

#[test]
fn more_random_choices_find_emptier_victims() {
    let mean = |count| {
        let (mut map, mut victims) = full(GcPolicy::DChoices(count));
        for block in 500..500 + BLOCKS {
            drop_units(&mut map, &mut victims, block, block % (UNITS + 1));
        }
        let mut sum = 0;
        for _ in 0..100 {
            let block = victims.pick(&map).unwrap();
            sum += map.valid_in(block);
            victims.insert(block, map.valid_in(block));
        }
        f64::from(sum) / 100.0
    };
    let (one, ten) = (mean(1), mean(10));
    assert!((3.0..5.0).contains(&one) && ten < 1.0, "{one} {ten}");
}

#[test]
fn cost_benefit_weighs_age_against_valid_data() {
    let (mut map, mut victims) = full(GcPolicy::CostBenefit);
    // 300 closings ago, 2 of 8 free: 300 x 2 / 6 = 100. 100 closings ago, 4 of 8 free: 100 x 4 / 4 = 100; one more tips
    // it.
    drop_units(&mut map, &mut victims, 500, 2);
    drop_units(&mut map, &mut victims, 700, 4);
    assert_eq!(victims.pick(&map), Some(500));
    drop_units(&mut map, &mut victims, 799, 8);
    assert_eq!(victims.pick(&map), Some(799), "nothing to copy");
    drop_units(&mut map, &mut victims, 501, 1);
    assert_eq!(victims.pick(&map), Some(700));
}

#[test]
fn no_candidate_gives_no_victim() {
    for policy in
        [GcPolicy::Greedy, GcPolicy::Fifo, GcPolicy::DChoices(3), GcPolicy::Windowed(3), GcPolicy::CostBenefit]
    {
        let mut victims = Victims::new(policy, 500..600, UNITS, 1);
        assert_eq!(victims.pick(&map()), None);
    }
}
