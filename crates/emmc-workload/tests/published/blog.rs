//! The blog's modules: what they do when they are full and never trimmed, and what one trim gives back; ext4 against f2fs.
//!
//! Each module is measured whole by `bench --suite trim`; the same profile, all its blocks.

use emmc_workload::{Options, Outcome};

use super::cards::{card, told};

fn mb_per_s(outcome: &Outcome, row: &str, column: &str) -> f64 {
    let found = outcome.measurements.iter().find(|found| found.row == row && found.column == column);
    found.unwrap_or_else(|| panic!("{row} {column}")).mb_per_s
}

#[test]
#[ignore = "whole modules of 64 and 128 GB: half a minute in a release build"]
fn a_glacial_module_recovers_after_one_trim_and_reads_never_suffered() {
    for profile in ["odroid-64g", "odroid-128g", "pine64-64g"] {
        let outcome = told("trim", &mut card(profile, |_| ()), &Options::default());
        println!("{profile}: {:?}", outcome.remarks);
        for found in &outcome.measurements {
            println!(
                "  {:<22} {:<8} {:<12} {:>8.2} MB/s {:>7.0} a second",
                found.table, found.row, found.column, found.mb_per_s, found.iops
            );
        }
        let (fresh, aged, trimmed) = ("fresh", "aged", "trimmed");
        let small: Vec<f64> = [fresh, aged, trimmed]
            .iter()
            .map(|state| {
                let is_small = |found: &&emmc_workload::Measurement| {
                    found.row == *state && found.column == "write" && found.block_bytes == 4096
                };
                outcome.measurements.iter().find(is_small).unwrap().iops
            })
            .collect();
        assert!(small[1] * 4.0 < small[0], "{profile}: collapse {small:?}");
        assert!(small[2] > small[0] * 0.9, "{profile}: recovery {small:?}");
        let read = |state| mb_per_s(&outcome, state, "read");
        assert!((read(aged) / read(fresh) - 1.0).abs() < 0.15, "{profile}: reads {} {}", read(fresh), read(aged));
    }
}

#[test]
fn ext4_and_f2fs_are_alike_on_a_fresh_module() {
    for profile in ["odroid-64g", "pine64-64g"] {
        let outcome = told("fs", &mut card(profile, |_| ()), &Options::default());
        let grid = outcome.grids.iter().find(|grid| grid.name == "fs").unwrap();
        for line in &grid.lines {
            println!("{profile} {:<16} {:?}", line.row, line.values);
        }
        for work in ["write", "read", "random write", "random read"] {
            let ratio = grid.value(work, "f2fs over ext4").unwrap();
            assert!((ratio - 1.0).abs() < 0.05, "{profile} {work}: {ratio}");
        }
    }
}
