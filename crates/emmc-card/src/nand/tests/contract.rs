use super::*;

const START: Instant = Instant::START;

/// Breaks the contract once, on new flash of which block 1 is bad and block 2 has two pages.
fn breach(act: impl FnOnce(&mut Nand)) -> Nand {
    let mut nand = flash(StoredContent::Data);
    nand.mark_bad(1, Instant::START);
    fill(&mut nand, 2, 2, START);
    act(&mut nand);
    nand
}

/// Every breach stops a debug build and is counted in release.
macro_rules! breaches {
    ($($name:ident: $act:expr;)*) => {$(
        #[test]
        #[cfg_attr(debug_assertions, should_panic(expected = "the contract of the flash is broken"))]
        fn $name() {
            let act: fn(&mut Nand) = $act;
            assert_eq!(breach(act).counters().violations, 1);
        }
    )*};
}

breaches! {
    skipped_page: |nand| _ = nand.program(0, 1, &[1, 2], None, START);
    program_twice: |nand| _ = nand.program(2, 1, &[1, 2], None, START);
    too_few_units: |nand| _ = nand.program(0, 0, &[1], None, START);
    program_bad_block: |nand| _ = nand.program(1, 0, &[1, 2], None, START);
    erase_bad_block: |nand| _ = nand.erase(1, START);
    mode_of_programmed_block: |nand| nand.set_mode(2, CellMode::Pslc);
    stamp_of_programmed_block: |nand| nand.set_stamp(2, 7);
    record_too_long: |nand| _ = nand.program_record(0, 0, &[0; 1033], START);
    beyond_the_block: |nand| {
        nand.set_mode(0, CellMode::Pslc);
        fill(nand, 0, 16, START);
        let _ = nand.program(0, 16, &[1, 2], None, START);
    };
}

#[test]
#[cfg_attr(debug_assertions, should_panic(expected = "the contract of the flash is broken"))]
fn a_power_cut_needs_sequence_numbers() {
    let mut nand = flash(StoredContent::Nothing);
    nand.arm(crate::nand::FaultPlan { step: 1, seed: 1 });
    assert_eq!(nand.counters().violations, 1);
}

#[test]
fn programmed_content_reads_back() {
    let mut nand = flash(StoredContent::Data);
    nand.set_stamp(3, 42);
    assert_eq!(nand.stamp(3), None);
    let bytes: Vec<u8> = (0..1000u32).map(|at| (at % 251) as u8).collect();
    nand.program(3, 0, &[70, 71], Some(&bytes), START).unwrap();
    let zeros = [0; 1000];
    nand.program(3, 1, &[72, NO_UNIT], Some(&zeros), START).unwrap();
    nand.program_record(3, 2, b"a record", START).unwrap();
    let first = nand.geometry().first_unit(3, 0);
    assert_eq!(nand.spare(3), [70, 71, 72, NO_UNIT, NO_UNIT, NO_UNIT]);
    assert_eq!(nand.unit_data(first), Some(&bytes[..500]));
    assert_eq!(nand.unit_data(first + 2), Some(&zeros[..500]));
    assert_eq!(nand.unit_data(first + 3), None);
    assert_eq!(nand.unit_data(first + 1), Some(&bytes[500..]));
    assert_eq!((nand.record(3, 2), nand.record(3, 1)), (Some(&b"a record"[..]), None));
    assert_eq!(nand.stamp(3), Some(42));
    let orders: Vec<_> = (0..4).map(|page| nand.order(3, page)).collect();
    assert!(orders[..3].is_sorted() && orders[0].is_some() && orders[3].is_none());

    nand.erase(3, START).unwrap();
    assert_eq!((nand.unit_data(first), nand.record(3, 2), nand.stamp(3)), (None, None, None));
    assert_eq!((nand.order(3, 0), nand.spare(3).len(), nand.logical(first)), (None, 0, NO_UNIT));
}

#[test]
fn flash_without_content_has_the_same_times() {
    let run = |keep| {
        let mut nand = flash(keep);
        let mut now = START;
        for round in 0..5 {
            now = fill(&mut nand, round, 32, now);
            now = nand.read(round, 3, 500, now).unwrap();
            now = nand.erase(round, now).unwrap();
        }
        (now, *nand.counters(), nand.unit_data(0).is_some())
    };
    assert_eq!(run(StoredContent::Nothing), run(StoredContent::Data));
    assert_eq!(run(StoredContent::Orders), run(StoredContent::Data));
}

#[test]
fn word_lines_pair_pages_a_row_apart() {
    let geometry = *flash(StoredContent::Nothing).geometry();
    assert_eq!(geometry.word_line(CellMode::Mlc, 1).collect::<Vec<_>>(), [1, 5]);
    assert_eq!(geometry.word_line(CellMode::Mlc, 14).collect::<Vec<_>>(), [10, 14]);
    assert_eq!(geometry.word_line(CellMode::Tlc, 14).collect::<Vec<_>>(), [14, 18, 22]);
    assert_eq!(geometry.word_line(CellMode::Pslc, 14).collect::<Vec<_>>(), [14]);
    assert_eq!([0, 1, 8, 9, 31].map(|page| geometry.whole_word_lines(CellMode::Mlc, page)), [0, 8, 8, 16, 32]);
    assert_eq!([0, 1, 15].map(|page| geometry.whole_word_lines(CellMode::Pslc, page)), [0, 4, 16]);
}

#[test]
fn records_that_do_not_fit_the_flash_are_refused() {
    let record = |tag: u8, numbers: &[u32]| {
        let mut bytes = vec![tag];
        numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes
    };
    let mode = |code: CellMode| [record(5, &[0]), vec![code as u8]].concat();
    let program = |page: u32| record(1, &[0, page, 7, 0, 2, 10, 11, 1, 1]);
    let forget = |first: u32, count: u32| record(8, &[0, first, count]);
    let taken = |records: &[Vec<u8>]| flash(StoredContent::Data).replay_all(&records.concat());
    assert!(taken(&[mode(CellMode::Pslc), program(0), forget(0, 1), forget(3, 0)]));
    assert!(!taken(&[mode(CellMode::Tlc)]));
    assert!(!taken(&[mode(CellMode::Slc)]));
    assert!(taken(&[program(31)]));
    assert!(!taken(&[program(31), mode(CellMode::Pslc)]), "more pages than the mode has");
    assert!(!taken(&[mode(CellMode::Pslc), program(16)]));
    assert!(!taken(&[program(0), forget(63, 2)]));
    assert!(!taken(&[program(0), forget(u32::MAX, 2)]));
}
