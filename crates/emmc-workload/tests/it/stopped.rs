//! Stopped suites report their measurements; options that a suite does not support are refused.

use crate::cards::{card, shrunk};
use emmc_port::BlockTarget;
use emmc_workload::{Bench, BenchError, Knob, Options, Outcome, Progress, StateKind, Watch, named, suites};

/// Stops a bench at its n-th poll.
struct After(u32);

impl Watch for After {
    fn progress(&mut self, _: Progress<'_>) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

fn stopped(suite: &str, looks: u32, size_mib: Option<u64>) -> Result<Outcome, BenchError> {
    let mut target = card("odroid-64g", |profile| shrunk(profile, 8));
    let options = Options { size_bytes: size_mib.map(|mib| mib << 20), ..Options::default() };
    Bench::run(named(suite).unwrap(), &mut target, &options, &mut After(looks))
}

/// At every point of a stop: the measurements so far, marked, and the written bytes.
#[test]
fn measurements_before_a_stop_are_reported() {
    for (suite, size_mib) in [("steady", Some(64)), ("trim", Some(64)), ("class", None)] {
        let whole = {
            let mut target = card("odroid-64g", |profile| shrunk(profile, 8));
            let options = Options { size_bytes: size_mib.map(|mib| mib << 20), ..Options::default() };
            Bench::run(named(suite).unwrap(), &mut target, &options, &mut emmc_workload::Unwatched).unwrap()
        };
        let (mut cut, mut before) = (0, 0);
        for looks in [2, 5, 10, 20, 40, 80, 160, 320] {
            let outcome = stopped(suite, looks, size_mib).unwrap();
            if outcome.ended_early.is_none() {
                assert_eq!(outcome.measurements.len(), whole.measurements.len());
                continue;
            }
            cut += 1;
            assert_eq!(outcome.ended_early.as_deref(), Some("stopped"));
            assert!(outcome.trimmed_bytes > 0 || outcome.written_bytes > 0);
            assert!(outcome.written_bytes < whole.written_bytes, "{suite} {looks}");
            // Every measurement but the last is complete; the last may be shortened, and is marked so.
            assert!(outcome.measurements.len() >= before, "{suite} {looks}");
            before = outcome.measurements.len();
            for (told, whole) in outcome.measurements.iter().zip(&whole.measurements) {
                assert_eq!((&told.row, &told.column), (&whole.row, &whole.column));
                if told.ended_early {
                    assert!(told.requests <= whole.requests, "{suite} {looks}: {} {}", told.row, told.column);
                } else {
                    assert_eq!(told, whole);
                }
            }
            let early = outcome.measurements.iter().filter(|told| told.ended_early).count();
            assert!(early <= 1 && outcome.measurements.iter().rev().skip(1).all(|told| !told.ended_early));
            assert!(!outcome.figures.is_empty() && !outcome.remarks.is_empty(), "{suite} {looks}");
        }
        assert!(cut >= 3 && before >= 2, "{suite}: stopped {cut} times, with up to {before} measurements");
    }
}

/// Completed rounds are reported with speed, percentiles and their intervals.
#[test]
fn a_stopped_steady_suite_reports_its_rounds() {
    let mut most = 0;
    for looks in (10..200).step_by(10) {
        let outcome = stopped("steady", looks, Some(64)).unwrap();
        let rounds = outcome.measurements.iter().filter(|told| told.table == "rounds" && !told.ended_early).count();
        if outcome.ended_early.is_none() || rounds == 0 {
            continue;
        }
        most = most.max(rounds);
        assert_eq!(outcome.grids[0].lines.len(), rounds);
        let speed = outcome.figures.iter().find(|figure| figure.name == "4 KiB writes").unwrap();
        assert!(speed.value.is_some_and(|iops| iops > 0.0));
        let p50 = outcome.figures.iter().find(|figure| figure.name == "4 KiB writes, p50").unwrap();
        let interval = p50.interval.unwrap();
        assert!(interval.low <= p50.value.unwrap() && p50.value.unwrap() <= interval.high);
    }
    assert!(most >= 2, "{most} rounds at most");
}

#[test]
fn states_match_the_writes_of_the_suite() {
    let mut target = card("odroid-64g", |profile| shrunk(profile, 8));
    let run = |target: &mut dyn BlockTarget| {
        Bench::run(named("trim").unwrap(), target, &Options::default(), &mut emmc_workload::Unwatched).unwrap()
    };
    let first = run(&mut target);
    let of = |outcome: &Outcome, row: &str| {
        let told = outcome.measurements.iter().find(|told| told.row == row).unwrap();
        told.state.clone().unwrap()
    };
    assert_eq!((first.state_before.kind, first.state_before.holds_share), (StateKind::Fresh, Some(0.0)));
    for (row, kind, holds) in [
        ("fresh", StateKind::Fresh, 0.0),
        ("filled", StateKind::Filled, 1.0),
        ("aged", StateKind::Aged, 1.0),
        ("trimmed", StateKind::Trimmed, 0.0),
    ] {
        let state = of(&first, row);
        assert_eq!(state.kind, kind, "{row}: {state:?}");
        assert!((state.holds_share.unwrap() - holds).abs() < 0.01, "{row}: {state:?}");
        assert_eq!(state.trimmed_share, state.holds_share.map(|share| 1.0 - share));
    }
    // Once used it is not fresh again.
    assert_eq!(of(&run(&mut target), "fresh").kind, StateKind::Trimmed);
}

#[test]
fn unsupported_options_are_refused_before_any_io() {
    let mut refused = 0;
    for suite in suites() {
        for knob in Knob::ALL.into_iter().filter(|knob| !suite.follows().contains(knob)) {
            let mut options = Options::default();
            match knob {
                Knob::From => options.from_bytes = 4096,
                Knob::Size => options.size_bytes = Some(64 << 20),
                Knob::Rows => options.rows.push("4".into()),
                Knob::ReadOnly => options.read_only = true,
                Knob::QueueDepth => options.queue_depth = Some(2),
                Knob::WriteBudget => options.write_budget_bytes = Some(1 << 30),
                Knob::Trace => continue,
            }
            let mut target = card("generic-8g", |_| ());
            let error = Bench::run(*suite, &mut target, &options, &mut emmc_workload::Unwatched).unwrap_err();
            let start = format!("suite {} cannot follow {}; suites that can: ", suite.name(), knob.option());
            assert!(error.to_string().starts_with(&start) && error.to_string().len() > start.len() + 2, "{error}");
            assert_eq!(target.device().stats().host_units, 0);
            refused += 1;
        }
    }
    assert!(refused > 40, "{refused}");
    let options = Options { queue_depth: Some(2), ..Options::default() };
    let error =
        Bench::run(named("dd").unwrap(), &mut card("generic-8g", |_| ()), &options, &mut emmc_workload::Unwatched);
    let expected = "suite dd cannot follow --queue-depth; suites that can: tiotest, class, steady, replay";
    assert_eq!(error.unwrap_err().to_string(), expected);
}

/// Records the progress at each poll.
#[derive(Default)]
struct Shares(Vec<Option<f64>>);

impl Watch for Shares {
    fn progress(&mut self, progress: Progress<'_>) -> bool {
        self.0.push(progress.share());
        true
    }
}

/// Progress never decreases and never exceeds the end, in every suite.
#[test]
fn progress_grows_from_zero_to_complete() {
    for name in ["iozone", "dd", "hdparm", "speed", "reliable", "steady", "trim", "burst", "tiotest", "boot"] {
        let suite = named(name).unwrap();
        let mut target = card("odroid-64g", |profile| shrunk(profile, 8));
        let size_bytes = suite.follows().contains(&Knob::Size).then_some(64 << 20);
        let rows = if name == "iozone" { vec!["4".into(), "128".into()] } else { Vec::new() };
        let (options, mut shares) = (Options { size_bytes, rows, ..Options::default() }, Shares::default());
        Bench::run(suite, &mut target, &options, &mut shares).unwrap();
        let shares: Vec<f64> = shares.0.into_iter().map(|share| share.unwrap()).collect();
        assert!(shares.is_sorted() && shares[0] >= 0.0, "{name}: {shares:?}");
        let last = shares[shares.len() - 1];
        assert!((0.3..=1.0).contains(&last), "{name}: {last}");
    }
}
