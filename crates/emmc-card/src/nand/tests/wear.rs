use super::*;

fn spread_flash(spread: f64) -> Nand {
    let mut config = config();
    config.native.endurance = 1000;
    config.native.endurance_spread = spread;
    config.slc.as_mut().unwrap().endurance = 10_000;
    Nand::new(&config, Geometry::new(&config, 4000, 500), 9)
}

#[test]
fn endurance_varies_above_the_rating_only() {
    let mut nand = spread_flash(0.1);
    let drawn: Vec<u32> = nand.blocks().iter().map(|block| block.endurance).collect();
    assert!(drawn.iter().all(|&endurance| endurance >= 1000));
    let mean = drawn.iter().sum::<u32>() / 4000;
    // The mean of |z| is 0.798.
    assert!((1076..=1084).contains(&mean), "{mean}");
    assert!((1300..1500).contains(drawn.iter().max().unwrap()));
    assert!(spread_flash(0.0).blocks().iter().all(|block| block.endurance == 1000));
    nand.set_mode(3, CellMode::Pslc);
    assert_eq!(nand.endurance_of(3), drawn[3] * 10);
    assert_eq!(nand.endurance_of(4), drawn[4]);
}

#[test]
fn a_block_fails_after_its_endurance() {
    let mut nand = flash(StoredContent::Data);
    for _ in 0..20 {
        fill(&mut nand, 4, 3, Instant::START);
        nand.erase(4, Instant::START).unwrap();
    }
    fill(&mut nand, 4, 3, Instant::START);
    assert_eq!(nand.erase(4, Instant::START), Err(NandError::EraseFailed { block: 4 }));
    assert_eq!(nand.block(4).health, BlockHealth::GrownBad);
    assert_eq!(nand.read(4, 0, 500, Instant::START), Err(NandError::Uncorrectable { block: 4, page: 0 }));
    assert!(nand.spare(4).iter().all(|&unit| unit == NO_UNIT));
    assert_eq!((nand.counters().erases, nand.counters().erase_failures), (20, 1));
}

#[test]
fn factory_bad_blocks_depend_on_the_seed() {
    let mut config = config();
    config.factory_bad_blocks = 5;
    let bad = |seed| {
        let nand = Nand::new(&config, Geometry::new(&config, 60, 500), seed);
        let blocks = nand.blocks().iter().enumerate();
        blocks.filter(|(_, block)| block.health == BlockHealth::FactoryBad).map(|(at, _)| at).collect::<Vec<_>>()
    };
    assert_eq!(bad(1).len(), 5);
    assert_eq!(bad(1), bad(1));
    assert_ne!(bad(1), bad(2));
}

#[test]
fn programs_and_erases_fail_at_the_given_rate() {
    let mut config = config();
    config.failures = Failures { program_ppb: 2_000_000, erase_ppm: 10_000 };
    config.native.endurance = 1_000_000;
    let flash = |seed| Nand::new(&config, Geometry::new(&config, 12, 500), seed).keeping(StoredContent::Orders);
    let mut nand = flash(0);
    let (mut programs, mut erases, mut block) = (0u32, 0u32, 0);
    while programs < 100_000 {
        if nand.erase(block, Instant::START).is_err() {
            erases += 1;
            block += 1;
            if block == 12 {
                nand = flash(u64::from(erases));
                block = 0;
            }
            continue;
        }
        for page in 0..32 {
            programs += 1;
            if let Err(error) = nand.program(block, page, &[3, 4], None, Instant::START) {
                // The failure is known when the program ends.
                assert_eq!(error, NandError::ProgramFailed { block, done: nand.quiet_at() });
                assert!(nand.quiet_at() > Instant::START);
                // The page is used and has no content; the next one can be programmed.
                assert_eq!(nand.page_units(block, page), [NO_UNIT; 2]);
                assert_eq!(nand.block(block).next_page, page + 1);
                let read = nand.read(block, page, 500, Instant::START);
                assert_eq!(read, Err(NandError::Uncorrectable { block, page }));
                erases += 1 << 16;
            }
        }
    }
    let (program_failures, erase_failures) = (erases >> 16, erases & 0xffff);
    // 100 000 programs at 0.2 %, 3125 erases at 1 %: three standard deviations either way.
    assert!((140..260).contains(&program_failures), "{program_failures}");
    assert!((14..48).contains(&erase_failures), "{erase_failures}");
}
