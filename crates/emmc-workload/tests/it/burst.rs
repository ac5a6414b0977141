//! The suite `burst` on cards whose log of small writes is known.

use crate::cards::{card, told};
use emmc_workload::{Measurement, Options, Outcome};

fn run(change: impl FnOnce(&mut emmc_card::profile::Profile)) -> Outcome {
    let options = Options { size_bytes: Some(320 << 20), rows: vec!["4".into()], ..Options::default() };
    told("burst", &mut card("friendlyelec-emmc-8g", change), &options)
}

fn volume(outcome: &Outcome) -> Option<f64> {
    outcome.figures.iter().find(|figure| figure.name == "4 KiB random, fast for").expect("it is reported").value
}

/// A block of its log holds 2 MiB in one bit a cell, a quarter of which is data: each write takes a page of 16 KiB. A
/// few blocks are kept free.
#[test]
fn small_writes_are_fast_until_the_log_is_full() {
    let found = [24, 41, 82].map(|blocks| {
        let outcome = run(|profile| profile.ftl.slc_cache.as_mut().expect("it has a log").blocks = blocks);
        volume(&outcome).expect("a fall")
    });
    println!("{found:?}");
    for (more, blocks) in found.windows(2).zip([17.0, 41.0]) {
        assert!((more[1] - more[0] - blocks * 0.5).abs() < 0.5, "{found:?}");
    }
    assert!(found[0] > 16.0 * 0.5 && found[0] < 24.0 * 0.5, "{found:?}");
}

#[test]
fn a_card_without_a_log_has_no_fall() {
    let outcome = run(|profile| (profile.ftl.slc_cache, profile.nand.slc) = (None, None));
    assert_eq!(volume(&outcome), None);
    assert!(outcome.figures[0].note.contains("does not fall clearly within 320 MiB"), "{:?}", outcome.figures);
}

/// Both columns by default, one of them by its block; each part is as large as all before it.
#[test]
fn columns_are_chosen_by_their_block() {
    let cells = |rows: &[&str]| {
        let rows = rows.iter().map(|row| row.to_string()).collect();
        let options = Options { size_bytes: Some(40 << 20), rows, ..Options::default() };
        let outcome = told("burst", &mut card("friendlyelec-emmc-8g", |_| ()), &options);
        let of = |cell: &Measurement| (cell.column.clone(), cell.row.clone(), cell.bytes.unwrap() >> 20);
        outcome.measurements.iter().map(of).collect::<Vec<_>>()
    };
    let column = |name: &str| [("32", 32), ("40", 8)].map(|(row, mib)| (name.to_string(), row.to_string(), mib));
    assert_eq!(cells(&[]), [column("512 KiB sequential"), column("4 KiB random")].concat());
    assert_eq!(cells(&["4"]), column("4 KiB random"));
}

/// What is slow was written for half as long as what is fast, and no more than another part beyond that.
#[test]
fn it_ends_soon_after_the_fall() {
    let outcome = run(|_| ());
    let written = outcome.written_bytes >> 20;
    assert_eq!(written, 64, "{:?}", outcome.figures);
}
