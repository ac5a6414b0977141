//! Wear, failing blocks, and the end of life.

use super::*;

#[test]
fn a_failed_program_is_repeated_and_retires_its_block() {
    let mut flash = flash(CellMode::Slc);
    flash.spare_blocks = 6;
    flash.failures.program_ppb = 1_500_000;
    let mut bench = Bench::new(&flash, &config(), 46, 34 * 64, StoredContent::Data);
    let bytes = |unit: u32, round: u32| vec![(unit % 251) as u8 ^ round as u8; 512];
    let mut shadow = vec![0; bench.ftl.units() as usize];
    let mut rounds = 0;
    while bench.ftl.stats().replaced_blocks < 5 && rounds < 40_000 {
        rounds += 1;
        let unit = bench.rng.below(u64::from(bench.ftl.units())) as u32;
        let data = bytes(unit, rounds);
        let done = bench.ftl.write(&mut bench.nand, unit, 1, Some(&data), Durability::Buffered, bench.now);
        bench.now = done.unwrap();
        shadow[unit as usize] = rounds;
        if rounds % 500 == 0 {
            bench.audit();
        }
    }
    bench.ftl.flush(&mut bench.nand, bench.now).unwrap();
    bench.ftl.background(&mut bench.nand, bench.now).unwrap();
    bench.audit();
    assert_eq!((bench.ftl.stats().replaced_blocks, bench.ftl.spares()), (5, (1, 6)), "{rounds}");
    let mut out = [0; 512];
    for unit in 0..bench.ftl.units() {
        bench.ftl.read(&mut bench.nand, unit, 1, Some(&mut out), bench.now).unwrap();
        let round = shadow[unit as usize];
        assert_eq!(out.as_slice(), if round == 0 { vec![0; 512] } else { bytes(unit, round) }, "unit {unit}");
    }
}

#[test]
fn a_worn_out_part_refuses_writes_and_serves_reads() {
    let mut flash = flash(CellMode::Slc);
    flash.native.endurance = 20;
    flash.spare_blocks = 2;
    let mut bench = Bench::new(&flash, &config(), 42, 34 * 64, StoredContent::Nothing);
    bench.fill();
    let error = (0..1000).find_map(|_| bench.overwrite(100).err());
    assert_eq!(error, Some(FtlError::WornOut));
    assert_eq!(bench.ftl.spares(), (0, 2));
    assert_eq!(bench.write(0, 1, Durability::Buffered), Err(FtlError::WornOut));
    for unit in 0..bench.ftl.units() {
        assert!(bench.ftl.is_mapped(unit));
        bench.ftl.read(&mut bench.nand, unit, 1, None, bench.now).unwrap();
    }
    bench.audit();
    // Every block had its 20 cycles, except for the unevenness of greedy.
    assert!(bench.counters().erases > 38 * 15, "{}", bench.counters().erases);
}

#[test]
fn factory_bad_blocks_are_replaced_from_the_spares() {
    let mut flash = flash(CellMode::Slc);
    (flash.spare_blocks, flash.factory_bad_blocks) = (4, 3);
    let mut bench = Bench::new(&flash, &config(), 44, 34 * 64, StoredContent::Nothing);
    let (left, first) = bench.ftl.spares();
    assert!(left == first && (1..=4).contains(&left), "{left}");
    bench.fill();
    bench.overwrite(2000).unwrap();
    bench.audit();
}

/// The wear of all blocks except the log's after 60 000 writes to a tenth of the units, and the units copied.
fn spread(wear: WearLevelling, others: FtlConfig) -> (u32, u32, u64) {
    let mut bench = plain(&FtlConfig { wear, ..others });
    bench.fill();
    let hot = u64::from(bench.ftl.units() / 10);
    for _ in 0..60_000 {
        let unit = bench.rng.below(hot) as u32;
        bench.write(unit, 1, Durability::Buffered).unwrap();
    }
    bench.audit();
    let counts = (2..40).map(|block| bench.nand.block(block).erase_count);
    (counts.clone().min().unwrap(), counts.max().unwrap(), bench.ftl.stats().copied_units)
}

#[test]
fn static_levelling_limits_the_wear_difference_of_cold_data() {
    let (least, most, _) = spread(WearLevelling::default(), config());
    assert!(least == 0 && most > 100, "{least}..{most}");
    let (least, most, _) = spread(WearLevelling { dynamic: true, static_gap: 10 }, config());
    assert!(most - least <= 14, "{least}..{most}");
}

/// Each of the blocks needs one move for each gap of erases: more would be copies of data that the host is about to
/// write again, or static data that was mixed with it.
#[test]
fn static_levelling_copies_each_block_once_a_gap() {
    for others in
        [config(), FtlConfig { gc_pace: GcPace::Paced, ..config() }, FtlConfig { separate_gc: false, ..config() }]
    {
        let (_, _, without) = spread(WearLevelling { dynamic: true, static_gap: 0 }, others.clone());
        let (_, most, copied) = spread(WearLevelling { dynamic: true, static_gap: 10 }, others);
        let needed = 38 * 64 * u64::from(most) / 10;
        assert!(copied - without <= needed * 5 / 4, "{without} and then {copied}, {needed} needed");
    }
}
