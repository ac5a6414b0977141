//! The modules of a blog: their speed when full and never trimmed, and the gain of one trim; ext4 compared with f2fs.
//!
//! `bench --suite trim` measures each complete module: the same profile, all its blocks.

use emmc_workload::Options;

use crate::cards::{card, told};

#[test]
fn a_slow_module_recovers_after_one_trim_and_reads_stay_fast() {
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
        let speed = |state, table: &str, column: &str| {
            let is_it = |found: &&emmc_workload::Measurement| {
                found.table == table && found.row == state && found.column == column
            };
            outcome.measurements.iter().find(is_it).unwrap().mb_per_s
        };
        let (small, large) = ("random, 4 KiB", "sequential, 128 KiB");
        let write = |state, table| speed(state, table, "write");
        assert!(write(aged, large) * 4.0 < write(fresh, large), "{profile}: no collapse");
        assert!(write(aged, small) * 1.5 < write(fresh, small), "{profile}: no collapse of small writes");
        for table in [small, large] {
            assert!(write(trimmed, table) > write(fresh, table) * 0.9, "{profile}: {table} writes do not recover");
        }
        // Small reads do not change; sequential reads become slower because the copies are scattered.
        let read = |state, table| speed(state, table, "read");
        for (table, most) in [(small, 0.05), (large, 0.2)] {
            let change = read(aged, table) / read(fresh, table) - 1.0;
            assert!(change.abs() < most, "{profile}: {table} reads {change}");
        }
    }
}

#[test]
fn ext4_and_f2fs_are_equally_fast_on_a_fresh_module() {
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
