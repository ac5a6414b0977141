//! Flash that ages: times by wear, retries by wear, time and reads, and weak blocks.

use super::*;
use crate::profile::Ageing;

const RATED: u32 = 1000;

fn aged(ageing: Option<Ageing>) -> Nand {
    let mut config = NandConfig { ageing, ..config() };
    config.native.endurance = RATED + 1;
    flash_of(&config, StoredContent::Nothing)
}

/// Times of a program, a read and an erase of block 0 after `cycles`, the read `later` than the program. Unit: us.
fn times(nand: &mut Nand, cycles: u32, later: Nanos) -> [f64; 3] {
    nand.set_erase_count(0, cycles);
    let begun = nand.quiet_at();
    let programmed = nand.program(0, 0, &[1, 2], None, begun).unwrap();
    let at = programmed + later;
    let read = nand.read(0, 0, 1000, at).unwrap();
    let erased = nand.erase(0, read).unwrap();
    [programmed.since(begun), read.since(at), erased.since(read)].map(|time| time.as_micros_f64())
}

#[test]
fn programs_get_faster_and_erases_slower_with_wear() {
    let ageing = Ageing { program_faster: 0.2, erase_slower: 1.0, ..Ageing::default() };
    let mut nand = aged(Some(ageing));
    assert_eq!(times(&mut nand, 0, Nanos::ZERO), [510.0, 60.0, 3000.0]);
    // 1001 is the rating.
    let [program, read, erase] = times(&mut nand, RATED, Nanos::ZERO);
    assert!((program - 410.0).abs() < 1.0 && read == 60.0 && (erase - 6000.0).abs() < 10.0, "{program} {erase}");
    let [program, _, erase] = times(&mut nand, RATED / 2, Nanos::ZERO);
    assert!((program - 460.0).abs() < 1.0 && (erase - 4500.0).abs() < 10.0, "{program} {erase}");
}

#[test]
fn retries_grow_with_wear_time_and_reads() {
    let ageing = Ageing { retries_worn: 1.0, retries_year: 2.0, retries_disturbed: 4.0, ..Ageing::default() };
    let year = Nanos::from_secs(31_557_600);
    // Each retry is a sense of 50 us more. A part of one comes now and then, so the mean of four is looked at.
    let mean = |cycles, later, reads: u32| {
        let mut nand = aged(Some(ageing));
        nand.set_erase_count(0, cycles);
        let mut now = nand.program(0, 0, &[1, 2], None, Instant::START).unwrap();
        now = nand.program(0, 1, &[3, 4], None, now).unwrap();
        // Another page in between: what is in the page register is not sensed again.
        (0..reads).for_each(|read| now = nand.read(0, read % 2, 1000, now).unwrap());
        now = now + later;
        let begun = now;
        (0..4).for_each(|read| now = nand.read(0, read % 2, 1000, now).unwrap());
        (now.since(begun).as_micros_f64() / 4.0 - 60.0) / 50.0
    };
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 0.3, "{found}, not {expected}");
    near(mean(0, year, 25_000), 0.0);
    near(mean(RATED, Nanos::ZERO, 0), 1.0);
    near(mean(RATED / 2, Nanos::ZERO, 0), 0.5);
    near(mean(RATED, year, 0), 3.0);
    near(mean(RATED, Nanos::ZERO, 25_000), 2.0);
}

#[test]
fn flash_without_ageing_has_the_times_of_flash_whose_ageing_is_nothing() {
    let mut config = config();
    (config.native.time_spread, config.native.endurance) = (0.1, RATED);
    let run = |ageing| {
        let mut nand = flash_of(&NandConfig { ageing, ..config.clone() }, StoredContent::Nothing);
        let mut now = fill(&mut nand, 0, 32, Instant::START);
        (0..32).for_each(|page| now = nand.read(0, page, 1000, now).unwrap());
        nand.erase(0, now).unwrap()
    };
    assert_eq!(run(None), run(Some(Ageing::default())));
}

#[test]
fn endurance_spreads_below_the_rating_where_the_profile_says_so() {
    let mut config = config();
    (config.native.endurance, config.native.endurance_spread) = (RATED, 0.2);
    let mut of = |endurance_below| {
        config.ageing = Some(Ageing { endurance_below, ..Ageing::default() });
        let nand = Nand::new(&config, Geometry::new(&config, 1000, 500), 5);
        let below = nand.blocks().iter().filter(|block| block.endurance < RATED).count();
        let least = nand.blocks().iter().map(|block| block.endurance).min().unwrap();
        (below, least)
    };
    assert_eq!(of(false).0, 0);
    let (below, least) = of(true);
    assert!((400..600).contains(&below) && (100..700).contains(&least), "{below} {least}");
}
