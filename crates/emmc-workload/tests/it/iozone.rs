//! The suite `iozone` on virtual cards: reproducible for a seed, and independent of real time.

use crate::cards::{card, told};
use emmc_card::profile::shipped;
use emmc_workload::Options;

#[test]
fn two_runs_with_one_seed_are_identical() {
    let rows = vec!["4".to_string(), "128".to_string()];
    let options = Options { size_bytes: Some(16 << 20), rows, ..Options::default() };
    let run = |seed| {
        let outcome = told("iozone", &mut card("friendlyelec-emmc-8g", |_| ()), &Options { seed, ..options.clone() });
        serde_json::to_string(&outcome).unwrap()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// Seconds that this thread has had of a processor (Linux), else of real time.
fn seconds(since: std::time::Instant) -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok());
    nanos.map_or_else(|| since.elapsed().as_secs_f64(), |nanos| nanos / 1e9)
}

#[test]
#[ignore = "a measurement: cargo test --release -p emmc-workload --test it iozone:: -- --ignored --nocapture"]
fn the_whole_matrix_runs_on_every_profile() {
    for name in shipped::names() {
        let mut target = card(name, |_| ());
        let clock = std::time::Instant::now();
        let began = seconds(clock);
        let outcome = told("iozone", &mut target, &Options::default());
        let requests: u64 = outcome.measurements.iter().filter_map(|measurement| measurement.requests).sum();
        let took = seconds(clock) - began;
        println!("{name:>30}: {took:.2} s, {:.0} ns a request", took * 1e9 / requests as f64);
        assert_eq!(outcome.measurements.len(), 15 * 6);
    }
}
