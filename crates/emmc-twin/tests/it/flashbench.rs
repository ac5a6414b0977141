//! The two cards of the mailing list's thread, from flashbench's text.

use emmc_card::profile::Profile;
use emmc_regs::CardKind;
use emmc_twin::{Cell, ErrorSummary, Known, Measured, Plan, SimulateError, Twin, fit, simulate};
use emmc_workload::import::read;

fn serial(profiles: &[Profile], plan: &Plan) -> Vec<Result<Vec<Cell>, SimulateError>> {
    profiles.iter().map(|profile| simulate(profile, plan)).collect()
}

/// The fit of a text: its median error, and how many units are open.
fn fitted(name: &str, text: &str) -> Twin {
    let measured = Measured::of(&read(name, text.as_bytes()).unwrap()).unwrap();
    let (profile, twin) = fit(CardKind::Emmc, &measured, (None, &[], &Known::default()), &serial).unwrap();
    for cell in &twin.cells {
        println!("{} {} KiB: {:+.1} %", cell.column, cell.record_kib, cell.error_percent);
    }
    for found in &twin.parameters {
        println!("{} {:.2} {}", found.name, found.value, found.is_determined);
    }
    println!("{name}: {:?} {:?} {}", twin.error, twin.firmware, twin.simulations);
    assert_eq!(profile.ftl.segment.map(|segment| segment.open_aus), twin.firmware.segment.map(|one| one.open_units));
    twin
}

/// The numbers of open units are those of the parts, and half of all cells are within 12 %.
#[test]
fn two_cards_of_2011() {
    let [toshiba, sandisk] = [
        ("toshiba", include_str!("../../../../testdata/flashbench/toshiba-2011.txt")),
        ("sandisk", include_str!("../../../../testdata/flashbench/sandisk-2011.txt")),
    ]
    .map(|(name, text)| fitted(name, text));
    let open = |twin: &Twin| twin.firmware.segment.map(|segment| segment.open_units);
    assert_eq!((open(&toshiba), open(&sandisk)), (Some(7), Some(20)));
    let all = toshiba.cells.iter().chain(&sandisk.cells).map(|cell| cell.error_percent);
    let error = ErrorSummary::of(all).unwrap();
    assert!(error.median <= 12.0, "{error:?}");
}
