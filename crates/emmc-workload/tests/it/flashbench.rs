//! Suites of flashbench on the two parts of the thread of 2011.

use crate::cards::{card, figure, told};
use emmc_workload::{Options, Outcome, named};

/// device,open_au_nr,b_option,page_size_setting,block_label,block_KiB,rate_as_printed
const PUBLISHED: &str = include_str!("../../../../testdata/flashbench/open_au_2011.csv");

/// What was printed: number of units, block, MB/s.
fn published(device: &str) -> Vec<(u64, String, f64)> {
    let rate = |text: &str| {
        let (number, scale) = match text.strip_suffix("M/s") {
            Some(number) => (number, 1.0),
            None => (text.strip_suffix("K/s").expect("a rate"), 1e-3),
        };
        number.parse::<f64>().expect("a number") * scale
    };
    let lines = PUBLISHED.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let of_device = lines.filter(|fields| fields[0] == device);
    of_device.map(|fields| (fields[1].parse().unwrap(), fields[4].to_string(), rate(fields[6]))).collect()
}

fn rate(outcome: &Outcome, table: &str, block: &str, units: u64) -> Option<f64> {
    let column = if units == 1 { "1 AU".into() } else { format!("{units} AUs") };
    let found = outcome.measurements.iter().find(|m| m.table == table && m.row == block && m.column == column);
    found.map(|measurement| measurement.mb_per_s)
}

/// The search finds the number of the model, and the rates fall at the same block sizes.
fn check(profile: &str, device: &str, open: u64, near: usize) {
    let mut target = card(profile, |_| ());
    let found = told("flashbench-open-au", &mut target, &Options::default());
    println!("{:?}", found.figures);
    assert_eq!(figure(&found, "open AUs, linear"), open as f64);
    let small = |units| rate(&found, "open-au, linear", "64KiB", units).unwrap();
    assert!(small(open) > 5.0 * small(open + 1), "{} against {}", small(open), small(open + 1));

    // The published runs were not the first on those parts: neither are these.
    let mut rows: Vec<String> = published(device).iter().map(|row| row.0.to_string()).collect();
    rows.dedup();
    rows.retain(|row| row != "50");
    let again = told("flashbench-open-au", &mut target, &Options { rows, ..Options::default() });
    let mut errors = Vec::new();
    for (units, block, wanted) in published(device) {
        let Some(rate) = rate(&again, "open-au, linear", &block, units) else { continue };
        println!("{profile} {units:2} AUs {block:>6}: {rate:6.3} MB/s, published {wanted:6.3}");
        errors.push((units, block, rate / wanted - 1.0));
    }
    let within = errors.iter().filter(|(_, _, error)| error.abs() <= 0.25).count();
    assert!(within >= near, "only {within} of {} cells are within 25 %: {errors:.2?}", errors.len());
}

#[test]
fn seven_open_units_are_found() {
    check("toshiba-7au", "toshiba", 7, 20);
}

#[test]
fn twenty_open_units_are_found() {
    check("sandisk-20au", "sandisk", 20, 12);
}

#[test]
fn a_count_too_large_is_refused_with_the_largest_possible() {
    let target = card("toshiba-7au", |_| ());
    let shape = emmc_port::BlockTarget::shape(&target);
    let suite = named("flashbench-open-au").unwrap();
    let most = (shape.size_bytes - (16 << 20) - (4 << 20)) / (48 << 20) + 1;
    let cost = |count: u64| suite.cost(shape, &Options { rows: vec![count.to_string()], ..Options::default() });
    assert!(cost(most).unwrap().to_bytes <= shape.size_bytes);
    let error = cost(most + 1).unwrap_err().to_string();
    assert!(error.contains(&format!("at most {most}")), "{error}");
}

#[test]
fn crossing_a_boundary_costs_one_more_unit() {
    let mut target = card("toshiba-7au", |_| ());
    // Something to read.
    told("flashbench-open-au", &mut target, &Options { rows: vec!["4".into()], ..Options::default() });
    let outcome = told("flashbench-align", &mut target, &Options::default());
    for verb in ["read", "write"] {
        let grid = outcome.grids.iter().find(|grid| grid.name == format!("align, {verb}, 16KiB")).unwrap();
        println!("{grid:?}");
        // A mapping unit of this part is 32 KiB: a block across a boundary touches two.
        let at = |row: &str, column: &str| grid.value(row, column).unwrap();
        assert!(at("32KiB", "pre") > 0.0 && at("256MiB", "post") > 0.0);
        assert!((0.0..=7.0).contains(&at("4MiB", "slower at")));
    }
    let reads_only = told("flashbench-align", &mut target, &Options { read_only: true, ..Options::default() });
    assert_eq!((reads_only.written_bytes, reads_only.grids.len()), (0, 1));
}

#[test]
fn a_line_through_reads_gives_bus_and_flash_times() {
    let mut target = card("toshiba-7au", |_| ());
    let outcome = told("flashbench-interval", &mut target, &Options::default());
    // The card is unwritten and returns zeros, so only its bus counts: four lines at 43.2 MHz.
    let rate = figure(&outcome, "rate");
    assert!((17.0..22.0).contains(&rate), "{rate}");
    let access = figure(&outcome, "access time");
    assert!((100.0..400.0).contains(&access), "{access}");
}

#[test]
fn scatter_visits_512_places() {
    let mut target = card("toshiba-7au", |_| ());
    let outcome = told("flashbench-scatter", &mut target, &Options::default());
    assert_eq!(outcome.grids[0].lines.len(), 512);
    assert_eq!(outcome.read_bytes, 8 * 512 * 16384);
    assert!(outcome.grids[0].lines.iter().all(|line| line.values[0].is_some_and(|ms| ms > 0.0 && ms < 10.0)));
}

#[test]
fn all_units_of_a_linear_part_are_alike_for_small_writes() {
    let mut target = card("toshiba-7au", |_| ());
    let options = Options { rows: vec!["3".into()], ..Options::default() };
    let outcome = told("flashbench-find-fat", &mut target, &options);
    for row in ["4MiB", "128KiB", "16KiB"] {
        let of_row = || outcome.measurements.iter().filter(|m| m.table == "find-fat, linear" && m.row == row);
        let rates: Vec<f64> = of_row().map(|measurement| measurement.mb_per_s).collect();
        assert_eq!(rates.len(), 3);
        assert!(rates.iter().all(|rate| (rate / rates[0] - 1.0).abs() < 0.25), "{row}: {rates:.2?}");
    }
}
