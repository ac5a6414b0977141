//! The suite `trim` on cards that need it and on one that does not.

use crate::cards::{card, figure, shrunk, told};
use emmc_workload::{BenchError, Measurement, Options};

#[test]
fn a_full_and_aged_module_collapses_and_one_trim_restores_it() {
    let mut target = card("odroid-64g", |profile| shrunk(profile, 8));
    let outcome = told("trim", &mut target, &Options::default());
    for measurement in &outcome.measurements {
        let Measurement { table, row, column, mb_per_s, iops, .. } = measurement;
        println!("{table}, {row}, {column}: {mb_per_s:.1} MB/s, {iops:.0} a second");
    }
    println!("{:?}", outcome.remarks);
    assert!(figure(&outcome, "4 KiB writes, aged") > 5.0);
    assert!((90.0..110.0).contains(&figure(&outcome, "4 KiB writes, trimmed")));
    assert!((85.0..115.0).contains(&figure(&outcome, "4 KiB reads, aged")));
    assert!(outcome.remarks.iter().any(|text| text.contains("x slower once full and aged, back to")));
    assert!(outcome.remarks.iter().any(|text| text.contains("DISCARD")));
    // The real cost equals the stated one.
    assert!(outcome.trimmed_bytes >= 2 * 900_000_000, "{}", outcome.trimmed_bytes);
}

/// The module of the blog, whole: a tenth of a second a gibibyte.
#[test]
fn the_shipped_module_is_restored_by_one_trim() {
    let outcome = told("trim", &mut card("odroid-64g", |_| ()), &Options::default());
    assert!(figure(&outcome, "sequential writes, aged") > 10.0 && figure(&outcome, "4 KiB writes, aged") > 3.0);
    assert!(figure(&outcome, "sequential writes, trimmed") > 90.0);
    assert!((97.0..103.0).contains(&figure(&outcome, "4 KiB writes, trimmed")));
    assert!(figure(&outcome, "4 KiB reads, aged") > 95.0 && figure(&outcome, "sequential reads, aged") > 75.0);
}

#[test]
fn a_module_with_many_spare_blocks_needs_no_trim() {
    let mut target = card("odroid-64g", |profile| {
        shrunk(profile, 8);
        profile.nand.over_provisioning = 3.0;
    });
    let outcome = told("trim", &mut target, &Options::default());
    assert!(outcome.remarks.iter().any(|text| text.contains("no need for trim")), "{:?}", outcome.remarks);
}

#[test]
fn the_cost_is_reported_before_the_run_and_kept_to() {
    let mut target = card("odroid-64g", |profile| shrunk(profile, 8));
    let suite = emmc_workload::named("trim").unwrap();
    let options = Options { size_bytes: Some(64 << 20), ..Options::default() };
    let cost = suite.cost(emmc_port::BlockTarget::shape(&target), &options).unwrap();
    let outcome = told("trim", &mut target, &options);
    assert_eq!((cost.written_bytes, cost.read_bytes), (outcome.written_bytes, outcome.read_bytes));
    assert!(outcome.remarks.iter().any(|text| text.starts_with("Only 64 of")), "{:?}", outcome.remarks);
    let tight = Options { write_budget_bytes: Some(64 << 20), ..options };
    let error = suite.cost(emmc_port::BlockTarget::shape(&target), &tight).unwrap_err();
    assert!(matches!(error, BenchError::Misfit { .. }) && error.to_string().contains("at least"), "{error}");
}
