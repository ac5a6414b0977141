//! dd, hdparm, tiotest and bonnie++ on virtual cards: the ratios of their columns are those of the card's figures.

use crate::cards::{card, told};
use emmc_workload::{Options, Outcome};

fn mb_per_s(outcome: &Outcome, row: &str, column: &str) -> f64 {
    let found = outcome.measurements.iter().find(|m| m.row == row && m.column == column);
    found.unwrap_or_else(|| panic!("{row}, {column}")).mb_per_s
}

#[track_caller]
fn close(found: f64, wanted: f64, share: f64) {
    assert!((found / wanted - 1.0).abs() <= share, "{found:.2} against {wanted:.2}");
}

fn small() -> Options {
    Options { size_bytes: Some(64 << 20), ..Options::default() }
}

#[test]
fn dd_reports_three_speeds_of_one_card() {
    let outcome = told("dd", &mut card("odroid-64g", |_| ()), &small());
    for row in ["4", "128", "1024"] {
        let [synced, direct, each] =
            ["conv=fdatasync", "oflag=direct", "oflag=dsync"].map(|c| mb_per_s(&outcome, row, c));
        println!("{row} KiB: {synced:.1} {direct:.1} {each:.1}");
        // The cache holds data that `dsync` must not leave in it.
        assert!(each < direct * 1.01 && each < synced);
    }
    let each_4k = mb_per_s(&outcome, "4", "oflag=dsync");
    assert!(each_4k < mb_per_s(&outcome, "4", "oflag=direct") / 3.0, "{each_4k}");
    // Written back in the same requests, for every block size of dd.
    close(mb_per_s(&outcome, "4", "conv=fdatasync"), mb_per_s(&outcome, "1024", "conv=fdatasync"), 0.03);
    // 151 MB/s was published of the module.
    close(mb_per_s(&outcome, "1024", "conv=fdatasync"), 151.0, 0.1);
}

#[test]
fn hdparm_reads_for_three_seconds_or_one_gibibyte() {
    let mut target = card("friendlyelec-emmc-8g", |_| ());
    told("dd", &mut target, &Options { rows: vec!["1024".into()], size_bytes: Some(1 << 30), ..Options::default() });
    let outcome = told("hdparm", &mut target, &Options::default());
    assert_eq!(outcome.written_bytes, 0);
    for measurement in &outcome.measurements {
        let (bytes, time_s) = (measurement.bytes.unwrap(), measurement.time_s.unwrap());
        println!("{}: {:.1} MB/s in {time_s:.2} s", measurement.row, measurement.mb_per_s);
        let is_over = bytes == 1 << 30 || (3.0..3.1).contains(&time_s);
        assert!(is_over, "{bytes} bytes in {time_s} s");
        // Its reads reach 132 MB/s; the page cache issues smaller requests.
        close(measurement.mb_per_s, 132.0, if measurement.row == "direct" { 0.05 } else { 0.2 });
    }
}

#[test]
fn a_rewrite_takes_the_time_of_a_read_and_a_write() {
    let outcome = told("bonnie", &mut card("friendlyelec-emmc-8g", |_| ()), &small());
    let grid = &outcome.grids[0];
    let [out, rewrite, read, seeks] =
        ["block out", "rewrite", "block in", "seeks"].map(|column| grid.value("64M", column).unwrap());
    println!("{out:.0} {rewrite:.0} {read:.0} {seeks:.0}");
    close(rewrite, 1.0 / (1.0 / out + 1.0 / read), 0.1);
    assert!(seeks > 100.0 && seeks * 8.0 < read);
}

#[test]
fn tiotest_writes_the_given_size_and_syncs_each_write_with_s() {
    let outcome = told("tiotest", &mut card("odroid-64g", |_| ()), &Options::default());
    assert_eq!(outcome.written_bytes, 2 * 4 * ((10 << 20) + 1000 * 4096));
    assert_eq!(outcome.read_bytes, outcome.written_bytes);
    let [plain, sync] = ["plain", "-S"].map(|mode| mb_per_s(&outcome, mode, "random write"));
    assert!(sync < plain / 3.0, "{sync} against {plain}");
    let grid = &outcome.grids[0];
    assert_eq!(grid.lines.len(), 8);
    assert!(grid.lines.iter().all(|line| line.values[0] <= line.values[1] && line.values[3] <= line.values[2]));
}
