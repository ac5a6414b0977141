//! Recorded requests on a virtual card.

use std::sync::Arc;

use crate::cards::card;
use emmc_workload::trace::read;
use emmc_workload::{Bench, BenchError, Options, Outcome, Replay, Unwatched, named};

fn told(timed: bool, wrap: bool, text: &str, depth: Option<u32>) -> Result<Outcome, BenchError> {
    let trace = Arc::new(read("trace", text.as_bytes()).unwrap());
    let options = Options { replay: Some(Replay { trace, timed, wrap }), queue_depth: depth, ..Options::default() };
    Bench::run(named("replay").unwrap(), &mut card("friendlyelec-emmc-8g", |_| ()), &options, &mut Unwatched)
}

fn figure(outcome: &Outcome, name: &str) -> f64 {
    outcome.figures.iter().find(|figure| figure.name == name).and_then(|figure| figure.value).unwrap()
}

const TRACE: &str =
    "fio version 3 iolog\n0 /f write 0 65536\n100000 /f sync\n200000 /f read 0 4096\n500000 /f read 4096 8192\n";

#[test]
fn a_trace_runs_at_its_own_speed_or_the_cards() {
    let [timed, fast] = [true, false].map(|timed| told(timed, false, TRACE, Some(1)).unwrap());
    for outcome in [&timed, &fast] {
        assert_eq!((outcome.written_bytes, outcome.read_bytes), (65536, 12288));
        let reads = outcome.measurements.iter().find(|cell| cell.row == "read").unwrap();
        assert_eq!((reads.requests, reads.block_bytes), (Some(2), 6144));
        assert_eq!(figure(outcome, "recorded"), 0.5);
    }
    assert!((0.5..0.6).contains(&figure(&timed, "replayed")), "{}", figure(&timed, "replayed"));
    assert!(figure(&fast, "replayed") < 0.1);
    assert_eq!(figure(&timed, "late requests"), 0.0);
}

#[test]
fn late_requests_are_reported() {
    let lines: String = (0..50).map(|number| format!("{number} /f write {} 524288\n", number * 524_288)).collect();
    let outcome = told(true, false, &format!("fio version 3 iolog\n{lines}"), Some(1)).unwrap();
    assert!(figure(&outcome, "late requests") > 40.0);
}

#[test]
fn requests_outside_are_refused_or_wrapped() {
    let text = "fio version 2 iolog\n/f write 1099511627776 4096\n/f write 4096 512\n";
    let error = told(false, false, text, None).unwrap_err().to_string();
    assert!(error.starts_with("replay: request 1: 4096 bytes at byte 1099511627776; the area has "), "{error}");
    assert_eq!(told(false, true, text, None).unwrap().written_bytes, 4608);
    let odd = told(false, true, "fio version 2 iolog\n/f write 100 512\n", None).unwrap_err().to_string();
    assert!(odd.ends_with("request 1: 512 bytes at byte 100; sectors are of 512"), "{odd}");
    let none = Bench::run(
        named("replay").unwrap(),
        &mut card("friendlyelec-emmc-8g", |_| ()),
        &Options::default(),
        &mut Unwatched,
    );
    assert_eq!(none.unwrap_err().to_string(), "replay: no trace: --trace FILE names one");
}
