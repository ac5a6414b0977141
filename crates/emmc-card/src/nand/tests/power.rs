use super::*;
use crate::nand::FaultPlan;
use crate::nand::page_store::PageState;

const START: Instant = Instant::START;

fn state(nand: &Nand, block: u32, page: u32) -> PageState {
    nand.store.as_ref().unwrap().state(&nand.geometry, block, page)
}

fn cut_program(page: u32, seed: u64) -> Nand {
    let mut nand = flash(StoredContent::Data);
    let now = fill(&mut nand, 0, page, START);
    nand.arm(FaultPlan { step: nand.steps() + 1, seed });
    let units = [10 * page, 10 * page + 1];
    assert_eq!(nand.program(0, page, &units, None, now), Err(NandError::PowerLost));
    nand
}

#[test]
fn every_operation_fails_without_power() {
    let mut nand = cut_program(3, 1);
    let at = nand.off_since().unwrap();
    assert_eq!(nand.read(0, 0, 500, at), Err(NandError::PowerLost));
    assert_eq!(nand.program(1, 0, &[1, 2], None, at), Err(NandError::PowerLost));
    assert_eq!(nand.erase(1, at), Err(NandError::PowerLost));
    assert_eq!(nand.scan_page(0, 0, at), Err(NandError::PowerLost));
    nand.power_on(at);
    nand.read(0, 0, 500, at).unwrap();
    nand.program(1, 0, &[1, 2], None, at).unwrap();
    let mut plain = flash(StoredContent::Nothing);
    plain.power_off(START);
    assert_eq!(plain.erase(1, START), Err(NandError::PowerLost));
    assert_eq!(plain.read(1, 0, 0, START), Err(NandError::PowerLost));
}

#[test]
fn an_interrupted_program_ends_in_one_of_four_ways() {
    let (mut seen, mut lower) = ([0; 4], [0; 4]);
    for seed in 0..800 {
        // Page 5 is the upper one of page 1's word line.
        let nand = cut_program(5, seed);
        let page = state(&nand, 0, 5);
        seen[page as usize] += 1;
        assert_eq!(nand.block(0).next_page, if page == PageState::Erased { 5 } else { 6 });
        let interrupted = matches!(page, PageState::Torn | PageState::Unstable);
        let torn = [page, state(&nand, 0, 1)].contains(&PageState::Torn);
        assert_eq!(nand.store.as_ref().unwrap().unsound[0], torn);
        if interrupted {
            lower[state(&nand, 0, 1) as usize] += 1;
        }
        for other in [0, 2, 3, 4] {
            assert_eq!(state(&nand, 0, other), PageState::Good);
        }
    }
    // Erased and good one in eight each, torn and unstable three to one; the pair good, unstable, torn one to one to
    // two.
    assert!((70..130).contains(&seen[0]) && (70..130).contains(&seen[1]), "{seen:?}");
    assert!((120..180).contains(&seen[2]) && (400..500).contains(&seen[3]), "{seen:?}");
    assert!(lower[1] > 110 && lower[2] > 110 && lower[3] > 240 && lower[0] == 0, "{lower:?}");
}

#[test]
fn slc_has_no_paired_pages() {
    for seed in 0..50 {
        let mut nand = flash(StoredContent::Orders);
        nand.set_mode(0, CellMode::Pslc);
        let now = fill(&mut nand, 0, 5, START);
        nand.arm(FaultPlan { step: nand.steps() + 1, seed });
        nand.program(0, 5, &[1, 2], None, now).unwrap_err();
        assert!((0..5).all(|page| state(&nand, 0, page) == PageState::Good));
    }
}

#[test]
fn an_interrupted_erase_is_detected_and_must_be_repeated() {
    let mut whole = 0;
    for seed in 0..100 {
        let mut nand = flash(StoredContent::Data);
        let now = fill(&mut nand, 0, 32, START);
        nand.arm(FaultPlan { step: nand.steps() + 1, seed });
        assert_eq!(nand.erase(0, now), Err(NandError::PowerLost));
        let at = nand.off_since().unwrap();
        nand.power_on(at);
        let survey = Survey::take(&mut nand, &[0], at).unwrap();
        match survey.blocks[0].soundness {
            Soundness::Full => assert_eq!((survey.pages.len(), nand.block(0).erase_count), (32, 0)),
            Soundness::Erased => assert_eq!((survey.pages.len(), nand.block(0).erase_count), (0, 1)),
            Soundness::Damaged => {
                whole += 1;
                assert_eq!((nand.block(0).erase_count, nand.counters().erases), (1, 1));
                assert!(survey.pages.len() < 20 && survey.pages.iter().all(|page| page.doubtful));
                for page in &survey.pages {
                    let unit = nand.geometry().first_unit(0, page.page);
                    assert_eq!(nand.unit_data(unit).unwrap()[0], page.page as u8 + 1);
                    assert_eq!(nand.logical(unit), 10 * page.page);
                }
                nand.decay();
                assert!(nand.spare(0).iter().all(|&unit| unit == NO_UNIT));
                nand.erase(0, at).unwrap();
                assert_eq!(fill(&mut nand, 0, 1, at), nand.quiet_at());
            }
            Soundness::Open => panic!("an erase leaves no open block"),
        }
    }
    assert!((60..90).contains(&whole), "{whole}");
}

#[test]
fn an_interrupted_erase_of_an_erased_block_is_detected() {
    let found = (0..20).filter(|&seed| {
        let mut nand = flash(StoredContent::Orders);
        nand.arm(FaultPlan { step: 1, seed });
        nand.erase(0, START).unwrap_err();
        nand.power_on(us(9000));
        Survey::take(&mut nand, &[0], us(9000)).unwrap().blocks[0].soundness == Soundness::Damaged
    });
    assert!(found.count() > 10);
}

#[test]
fn operations_in_progress_are_interrupted_and_queued_ones_undone() {
    let mut nand = flash(StoredContent::Data);
    let mut done = Vec::new();
    for page in 0..6 {
        done.push(nand.program(0, page, &[page, page], None, START).unwrap());
    }
    // Die 0 did pages 0 and 1 by 520 us and is at 4 and 5; die 1 did 2 and 3 by 540 us.
    assert_eq!(done[1], us(520));
    let mut early = nand.clone();
    early.power_off(us(515));
    assert_eq!(state(&early, 0, 0), PageState::Good);
    for page in 1..4 {
        assert!(matches!(state(&early, 0, page), PageState::Torn | PageState::Unstable), "{page}");
    }
    assert_eq!((state(&early, 0, 4), early.block(0).next_page), (PageState::Erased, 4));
    assert_eq!(early.counters().page_programs, 4);
    let mut late = nand.clone();
    late.power_off(us(1000));
    assert!((2..4).all(|page| state(&late, 0, page) == PageState::Good));
    assert!((4..6).all(|page| state(&late, 0, page) != PageState::Good && state(&late, 0, page) != PageState::Erased));
    nand.power_off(us(2020));
    assert!((0..6).all(|page| state(&nand, 0, page) == PageState::Good));
}

#[test]
fn an_erase_that_had_not_started_is_undone_with_later_operations() {
    let mut nand = flash(StoredContent::Data);
    nand.set_stamp(0, 9);
    let settled = fill(&mut nand, 0, 32, START);
    nand.passed(settled);
    nand.program(1, 0, &[1, 2], None, settled).unwrap();
    let before = nand.clone();
    let erased = nand.erase(0, settled).unwrap();
    nand.set_stamp(0, 10);
    nand.program(0, 0, &[5, 6], Some(&[7; 1000]), erased).unwrap();
    nand.power_off(Instant(settled.0 + 100_000));
    assert_eq!((nand.block(0), nand.spare(0)), (before.block(0), before.spare(0)));
    assert_eq!(nand.stamp(0), Some(9));
    for unit in 0..64 {
        assert_eq!(nand.unit_data(unit), before.unit_data(unit));
    }
    assert_eq!(nand.counters().erases, 0);
}

#[test]
fn sequence_numbers_continue_and_sessions_differ() {
    let mut nand = flash(StoredContent::Orders);
    let mut orders = Vec::new();
    let mut now = START;
    for page in 0..4 {
        now = fill(&mut nand, 0, page + 1, now);
        orders.push(nand.order(0, page).unwrap());
        nand.power_off(now);
        nand.power_on(now);
    }
    assert!(orders.windows(2).all(|pair| pair[1] >> 40 == (pair[0] >> 40) + 1));
    // Each was the last of its session: all are doubtful, with their word lines.
    let survey = Survey::take(&mut nand, &[0], now).unwrap();
    assert!(survey.pages.iter().all(|page| page.doubtful) && survey.pages.len() == 4);
    assert_eq!(survey.blocks[0].soundness, Soundness::Open);
}

#[test]
fn a_cut_affects_the_last_row_of_each_die_only() {
    let mut nand = flash(StoredContent::Orders);
    let now = fill(&mut nand, 0, 32, START);
    let now = fill(&mut nand, 1, 9, now);
    nand.power_off(now);
    nand.power_on(now);
    let survey = Survey::take(&mut nand, &[0, 1, 2], now).unwrap();
    let doubtful: Vec<_> =
        survey.pages.iter().filter(|page| page.doubtful).map(|page| (page.block, page.page)).collect();
    // Die 0's last is page 8 of block 1, in the row of planes 8 and 9; die 1's are 6 and 7, with their pairs 2 and 3.
    assert_eq!(doubtful, [(1, 2), (1, 3), (1, 6), (1, 7), (1, 8)]);
    assert!(survey.pages.is_sorted_by_key(|page| page.order) && survey.pages.len() == 41);
    let kinds: Vec<_> = survey.blocks.iter().map(|block| block.soundness).collect();
    assert_eq!(kinds, [Soundness::Full, Soundness::Open, Soundness::Erased]);
    // One read each for full and erased, ten for the open one, over two dies.
    assert_eq!(nand.counters().page_reads, 12);
    assert!(survey.done > now);
}

#[test]
fn the_same_seed_gives_the_same_damage() {
    for seed in 0..20 {
        let (one, two) = (cut_program(13, seed), cut_program(13, seed));
        assert_eq!(one.off_since(), two.off_since());
        assert!((0..16).all(|page| state(&one, 0, page) == state(&two, 0, page)));
    }
}

#[test]
fn a_stamp_on_no_page_is_lost() {
    let mut nand = flash(StoredContent::Orders);
    nand.set_stamp(0, 7);
    nand.set_stamp(1, 8);
    let now = fill(&mut nand, 1, 1, START);
    nand.power_off(now);
    nand.power_on(now);
    let now = fill(&mut nand, 0, 1, now);
    assert_eq!((nand.stamp(0), nand.stamp(1)), (None, Some(8)));
    assert!(now > START);
}

/// A layer marks a block with the time at which the copies of its content are safe.
#[test]
fn a_mark_after_the_cut_is_undone() {
    for (cut, health) in [(99, BlockHealth::Good), (100, BlockHealth::GrownBad)] {
        let mut nand = flash(StoredContent::Data);
        nand.mark_bad(3, us(100));
        assert_eq!(nand.block(3).health, BlockHealth::GrownBad);
        nand.power_off(us(cut));
        assert_eq!(nand.block(3).health, health);
    }
}

#[test]
fn a_failed_erase_after_the_cut_is_undone() {
    let mut config = config();
    config.failures.erase_ppm = 1_000_000;
    for late in [false, true] {
        let mut nand = flash_of(&config, StoredContent::Data);
        let now = fill(&mut nand, 0, 3, START);
        assert_eq!(nand.erase(0, now), Err(NandError::EraseFailed { block: 0 }));
        assert_eq!((nand.block(0).health, nand.counters().erase_failures), (BlockHealth::GrownBad, 1));
        let at = if late { nand.quiet_at() } else { now };
        nand.power_off(at);
        nand.power_on(at);
        let read = nand.read(0, 2, 1000, at);
        if late {
            assert_eq!((nand.block(0).health, nand.counters().erase_failures), (BlockHealth::GrownBad, 1));
            assert!(read.is_err());
        } else {
            assert_eq!((nand.block(0).health, nand.counters().erase_failures), (BlockHealth::Good, 0));
            assert_eq!((read.is_ok(), nand.page_units(0, 2)), (true, [20, 21].as_slice()));
        }
    }
}

#[test]
fn bytes_are_released_when_no_cut_can_need_them() {
    let later = us(1_000_000);
    let mut nand = flash(StoredContent::Data);
    let done = fill(&mut nand, 0, 4, START);
    let orders = [0, 1, 2].map(|unit| nand.order_of(unit));
    nand.forget([(0, orders[0]), (1, orders[1]), (2, orders[2] + 1)].into_iter(), later);
    nand.passed(done);
    assert_eq!(nand.unit_data(0), Some(&[1; 500][..]), "it is not time yet");
    let mut cut = nand.clone();
    cut.power_off(done);
    cut.power_on(later);
    assert_eq!(cut.unit_data(0), Some(&[1; 500][..]), "a cut came before");
    nand.passed(later);
    assert_eq!([0, 1, 2].map(|unit| nand.unit_data(unit).is_some()), [false, false, true]);
    // Erased and rewritten in between: it has other bytes.
    nand.forget([(2, orders[2])].into_iter(), us(2_000_000));
    let erased = nand.erase(0, later).unwrap();
    fill(&mut nand, 0, 4, erased);
    nand.passed(us(3_000_000));
    assert_eq!(nand.unit_data(2), Some(&[2; 500][..]));
}
