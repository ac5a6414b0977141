//! Outputs of fio, dd, hdparm and bonnie++, as people have them: which of their rates become cells.

use emmc_card::profile::shipped;
use emmc_twin::{Cell, Measured, Plan, SimulateError, check, simulate};
use emmc_workload::import::read;

fn measured(name: &str, text: &str) -> Measured {
    Measured::of(&read(name, text.as_bytes()).unwrap()).unwrap()
}

/// Names, sizes in KiB, and MB a second.
fn rates(measured: &Measured) -> Vec<(String, u64, f64)> {
    let rate = |cell: &Cell| (cell.column.to_string(), cell.kib, (cell.kib_per_s() * 0.1024).round() / 100.0);
    measured.cells.iter().map(rate).collect()
}

fn serial(profiles: &[emmc_card::profile::Profile], plan: &Plan) -> Vec<Result<Vec<Cell>, SimulateError>> {
    profiles.iter().map(|profile| simulate(profile, plan)).collect()
}

/// The board's console: hdparm -t, then bonnie++ on a file.
#[test]
fn hdparm_reads_ahead_and_bonnie_writes_back() {
    let text = include_str!("../../../../testdata/seeds_console/wrrel_on_colibri-imx6s.txt");
    let found = measured("imx6", text);
    let [reads, writes] = &rates(&found)[..] else { panic!("{found:?}") };
    // 240 MiB in 3.02 s, and 10722 KiB/s.
    assert_eq!(*reads, ("sequential reads at 2".into(), 128, 83.33));
    assert_eq!(*writes, ("sequential writes at 32".into(), 512, 10.98));
    let all = found.left_out.join("\n");
    assert!(all.contains("block input: reads of a file through the page cache") && all.contains("rewrite"), "{all}");
    // The profile of that part has been set from this hdparm and a dd of the same session.
    let checked = check(&shipped::named("colibri-imx6s-4g").unwrap(), &found, &serial).unwrap();
    assert!(checked.cells.iter().all(|cell| cell.error_percent.abs() < 15.0), "{:?}", checked.cells);
}

/// dd with a sync is the device's rate; it comes after bonnie++, which has the same requests.
#[test]
fn dd_with_a_sync_writes_back() {
    for (text, rate) in [
        (include_str!("../../../../testdata/seeds_console/t30_bonnie_dd_before.txt"), 9.28),
        (include_str!("../../../../testdata/seeds_console/t30_bonnie_dd_after.txt"), 19.73),
    ] {
        let found = measured("t30", text);
        assert_eq!(rates(&found), [("sequential writes at 32".into(), 512, rate)]);
    }
    let unsynced = "# dd if=/dev/zero of=test.img bs=1M count=64\n64+0 records in\n64+0 records out\n\
                    67108864 bytes (67 MB) copied, 0.5 s, 134 MB/s\n";
    let error = Measured::of(&read("dd", unsynced.as_bytes()).unwrap()).unwrap_err().to_string();
    assert!(error.contains("without a sync: part of them may have stayed in memory"), "{error}");
    let direct = unsynced.replace("count=64", "count=64 oflag=direct");
    assert_eq!(rates(&measured("dd", &direct)), [("sequential writes at 1".into(), 1024, 134.22)]);
    // A flush after each write is neither.
    for each in ["oflag=dsync", "oflag=direct,dsync", "oflag=sync"] {
        let text = unsynced.replace("count=64", &format!("count=64 {each}"));
        let error = Measured::of(&read("dd", text.as_bytes()).unwrap()).unwrap_err().to_string();
        assert!(error.contains("a flush after each write"), "{each}: {error}");
    }
}

/// Jobs of fio with a flush after each write, or after every few.
#[test]
fn jobs_with_flushes_are_left_out() {
    let text = include_str!("../../../../testdata/bench_results/fio_3.33_three_jobs.json");
    let with = |option: &str| {
        measured("fio", &text.replace("\"rw\": \"randwrite\"", &format!("\"rw\": \"randwrite\", {option}")))
    };
    let all = measured("fio", text).cells.len();
    for (option, cells) in [
        ("\"fsync\" : \"1\"", 2),
        ("\"fdatasync\" : \"32\"", 2),
        ("\"sync\" : \"dsync\"", 2),
        ("\"fsync\" : \"0\"", all),
        ("\"sync\" : \"none\"", all),
    ] {
        let found = with(option);
        assert_eq!(found.cells.len(), cells, "{option}: {found:?}");
        let says = found.left_out.iter().any(|why| why.ends_with("a flush after each write, or after every few"));
        assert_eq!(says, cells < all, "{option}: {found:?}");
    }
    let wrong = text.replace("\"rw\": \"randwrite\"", "\"rw\": \"randwrite\", \"fsync\" : \"often\"");
    let error = read("fio", wrong.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("fsync: often") && error.contains("a whole number from 0"), "{error}");
}

/// Random writes of fio are those of a full card, with their percentiles; reads have their rate.
#[test]
fn jobs_of_fio_are_requests_of_their_depth() {
    let found = measured("fio", include_str!("../../../../testdata/bench_results/fio_3.33_three_jobs.json"));
    let names: Vec<(String, u64)> = found.cells.iter().map(|cell| (cell.column.to_string(), cell.kib)).collect();
    let expected = [
        ("aged random writes at 1", 4),
        ("aged random writes at 1 p50", 4),
        ("aged random writes at 1 p90", 4),
        ("aged random writes at 1 p99", 4),
        ("sequential reads at 1", 128),
        ("random reads at 8", 4),
    ];
    assert_eq!(names, expected.map(|(name, kib)| (name.to_owned(), kib)));
    let us = |place: usize| found.cells[place].us;
    assert!(us(1) <= us(2) && us(2) <= us(3), "{found:?}");
    let checked = check(&shipped::named("generic-8g").unwrap(), &found, &serial).unwrap();
    assert_eq!(checked.cells.len(), expected.len(), "each is simulated: {:?}", checked.cells);
    let mixed = include_str!("../../../../testdata/bench_results/fio_3.33_mixed.json");
    let error = Measured::of(&read("mixed", mixed.as_bytes()).unwrap()).unwrap_err().to_string();
    assert!(error.contains("no measurement that can be repeated"), "{error}");
}

/// Phases that bonnie++ found too short have no rate.
#[test]
fn a_run_of_bonnie_without_figures_is_refused() {
    let text = include_str!("../../../../testdata/bench_results/bonnie_2.00a.txt");
    let error = Measured::of(&read("bonnie", text.as_bytes()).unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("bonnie: no measurement that can be repeated"), "{error}");
}
