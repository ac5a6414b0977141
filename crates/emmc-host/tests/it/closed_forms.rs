//! The closed forms against the discrete-event model.

use emmc_host::{CqEngine, PLATFORMS, Pipeline, Spans};
use emmc_units::{Bytes, Nanos};

/// 1 to 64 and then with growing steps, up to 10 000.
fn counts() -> Vec<u64> {
    let mut counts: Vec<u64> = (1..=64).collect();
    while counts.last().is_some_and(|last| *last < 10_000) {
        let last = counts[counts.len() - 1];
        counts.push((last + last / 3).min(10_000));
    }
    counts
}

/// The largest relative error of the closed form.
fn worst(pipeline: &Pipeline, counts: &[u64]) -> (f64, u64) {
    let off = |requests: u64| {
        let (closed, model) = (pipeline.makespan(requests), pipeline.simulate(requests, 0).end.0 as f64 / 1e3);
        let off = (closed.us / model - 1.0).abs();
        assert!(!closed.is_exact || off < 1e-9, "said to be exact: {pipeline:?} {requests}: {} {model}", closed.us);
        (off, requests)
    };
    counts.iter().map(|count| off(*count)).fold((0.0, 0), |worst, one| if one.0 > worst.0 { one } else { worst })
}

/// Every workload of the paper, with every way to share the stages.
fn papers() -> impl Iterator<Item = Pipeline> {
    let workloads =
        PLATFORMS.iter().flat_map(|platform| platform.workloads.iter().map(move |one| platform.pipeline(one)));
    let depths = workloads.flat_map(|pipeline| [1, 2, 3, 8, 32].map(|depth| Pipeline { depth, ..pipeline }));
    let cores = depths.flat_map(|pipeline| [1, 2, 4].map(|cores| Pipeline { cores, ..pipeline }));
    cores.flat_map(|pipeline| [CqEngine::Hardware, CqEngine::None].map(|engine| Pipeline { engine, ..pipeline }))
}

#[test]
fn closed_forms_match_for_one_to_ten_thousand_requests() {
    let counts = counts();
    let mut tried = 0;
    for pipeline in papers() {
        let (off, at) = worst(&pipeline, &counts);
        // The requirement is 1 %; they are equal.
        assert!(off < 1e-9, "{pipeline:?}: {:.4} % at {at} requests", off * 100.0);
        tried += 1;
    }
    assert_eq!(tried, 6 * 5 * 3 * 2);
}

#[test]
fn exact_results_are_exact_for_all_spans() {
    let times = [10, 50, 100, 300, 500, 1000];
    let mut exact = 0;
    for pre in times {
        for hw in times {
            for post in times {
                for (depth, cores, gap) in [(1, 2, 0), (2, 2, 30), (3, 1, 0), (8, 1, 30), (4, 3, 0), (32, 4, 30)] {
                    let gap = Nanos::from_micros(gap).min(Nanos::from_micros(pre + post));
                    let pipeline = Pipeline::new(Spans::from_micros(pre, hw, post), Bytes(4096));
                    let pipeline =
                        Pipeline { depth, cores, gap, engine: CqEngine::Software, ..pipeline }.checked().unwrap();
                    let half = Pipeline { serial: Nanos::from_micros(pre / 2), ..pipeline };
                    for pipeline in [pipeline, half] {
                        worst(&pipeline, &[1, 2, 3, 7, 40, 101]);
                        exact += u32::from(pipeline.makespan(101).is_exact);
                    }
                }
            }
        }
    }
    assert!(exact > 1000, "the grid must reach the exact cases: {exact}");
}

/// No schedule can be faster than any of the terms of the period.
#[test]
fn the_period_is_a_lower_bound() {
    for (pre, hw, post) in [(100, 100, 100), (10, 500, 500), (300, 200, 900), (50, 10, 1000)] {
        for (depth, cores, serial) in [(32, 1, pre), (3, 2, pre / 2), (8, 4, 0), (2, 3, pre)] {
            let pipeline = Pipeline::new(Spans::from_micros(pre, hw, post), Bytes(512));
            let pipeline = Pipeline { depth, cores, serial: Nanos::from_micros(serial), ..pipeline };
            let end = pipeline.simulate(2000, 0).end.0 as f64;
            assert!(end >= 1999.0 * pipeline.period_ns(), "{pipeline:?}: {end}");
        }
    }
}

#[test]
fn the_papers_formula_is_exact_after_its_typing_error_is_corrected() {
    // Table 3, random read, 32 requests on two cores: Pre x N + T + Post.
    let read = Pipeline::new(Spans::from_micros(737, 524, 383), Bytes(64 << 10));
    assert_eq!(read.makespan(32).us, 737.0 * 32.0 + 524.0 + 383.0);
    // The balanced case: (N + 2) D.
    let balanced = Pipeline::new(Spans::from_micros(50, 50, 50), Bytes(4096));
    assert_eq!(balanced.makespan(32).us, 34.0 * 50.0);
}

#[test]
fn the_model_is_deterministic_and_does_all_the_work() {
    let read = Pipeline::new(Spans::from_micros(737, 524, 383), Bytes(64 << 10));
    let run = read.simulate(100, 3);
    assert_eq!(run, read.simulate(100, 3));
    assert_eq!((run.device_busy, run.cores_busy), (Nanos::from_micros(52_400), Nanos::from_micros(112_000)));
    let [first, second, third] = run.first.as_slice() else { panic!("{run:?}") };
    for times in [first, second, third] {
        assert_eq!(times.pre_end.since(times.pre_start), read.spans.pre);
        assert_eq!(times.hw_end.since(times.hw_start), read.spans.hw);
        assert_eq!(times.post_end.since(times.post_start), read.spans.post);
        assert!(times.pre_end <= times.hw_start && times.hw_end <= times.post_start);
    }
    assert!(second.pre_start >= first.pre_end && third.hw_start >= second.hw_end);
}
