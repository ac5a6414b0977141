use super::*;
use crate::Latencies;
use crate::import::read;
use crate::judge::reference::reference;
use crate::stats::latency::Bucket;
use emmc_units::{Nanos, Rng};

fn named(name: &str) -> SavedResult {
    reference(name).unwrap().result()
}

fn buckets(values: impl Iterator<Item = u64>) -> Vec<Bucket> {
    values.map(|ns| Bucket { ns, count: 1 }).collect()
}

/// Values by definition: pairs counted one by one, variance with ties.
#[test]
fn ranks_are_compared_by_mann_whitney() {
    let test = rank_test(&buckets(1..=30), &buckets(6..=35)).unwrap();
    assert_eq!(test.second_larger, 587.5 / 900.0);
    assert!((test.z - 2.033564912944).abs() < 1e-9 && (test.chance - 0.041995482502).abs() < 1e-9, "{test:?}");
    assert_eq!(rank_test(&buckets(1..=30), &buckets(1..=19)), None);
    let same = [Bucket { ns: 7, count: 100 }];
    assert_eq!(rank_test(&same, &same), None);
}

/// Samples of one distribution differ about as often as the p-value says, those of two distributions always.
#[test]
fn the_rate_of_false_differences_matches_the_p_value() {
    let mut rng = Rng::new(7);
    let mut sample = |shift: u64| buckets((0..200).map(|_| shift + rng.below(1000)));
    let alike = (0..500).filter(|_| rank_test(&sample(0), &sample(0)).unwrap().chance < 0.05).count();
    assert!((8..=45).contains(&alike), "{alike} of 500, 25 are expected");
    assert!((0..50).all(|_| rank_test(&sample(0), &sample(250)).unwrap().chance < 0.001));
}

#[test]
fn pslc_doubles_the_write_speed_of_the_board_vendor() {
    let told = compare(&[named("colibri-t30-mlc"), named("colibri-t30-pslc")]);
    let ratio = |what: &str| {
        let row = told.rows.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("{what}"));
        assert_eq!(row.cells[1].certainty, Some(Certainty::CannotTell));
        row.cells[1].ratio.unwrap()
    };
    assert!((ratio("colibri-t30 block output") - 25778.0 / 12856.0).abs() < 1e-9);
    assert!((ratio("1 write") - 28.9241 / 13.6078).abs() < 1e-9);
    // `+++++` beside a number is no ratio.
    assert!(told.rows.iter().all(|row| row.what != "colibri-t30 block input"));
    assert_eq!(told.results[0].alone, 1);
}

#[test]
fn requests_match_across_tools_and_table_columns_stay_separate() {
    let fio = r#"{"fio version":"fio-3","jobs":[{"jobname":"a","job options":{"rw":"randwrite","bs":"4k"},
        "write":{"io_bytes":409600,"bw_bytes":12058624,"bw":11776,"iops":2944.0,"runtime":34,"total_ios":100}}]}"#;
    let fio = read("fio.json", fio.as_bytes()).unwrap();
    let card = named("nine-cards-sandisk-extreme-a1-32gb");
    let told = compare(&[card.clone(), fio]);
    assert_eq!(told.rows.len(), 1);
    let row = &told.rows[0];
    assert_eq!((row.what.as_str(), row.block_bytes, row.queue_depth), ("4 random write", Some(4096), Some(1)));
    assert_eq!((row.cells[1].called.as_deref(), row.cells[1].ratio), (Some("a random write"), Some(2.0)));
    assert_eq!((told.results[0].alone, told.results[1].alone), (49, 0));
    let same = compare(&[card.clone(), card]);
    assert_eq!(same.rows.len(), 50);
    assert!(same.rows.iter().all(|row| row.cells[1].ratio == Some(1.0) && row.cells[1].called.is_none()));
}

#[test]
fn three_results_share_rows_absent_from_the_first() {
    let cards = ["jetson-tx1", "colibri-t30-mlc", "colibri-t30-pslc"].map(named);
    let told = compare(&cards);
    let row = told.rows.iter().find(|row| row.what == "1 write").unwrap();
    assert_eq!((row.cells[0].value, row.cells[0].ratio, row.cells[1].ratio), (None, None, None));
    assert!(row.cells[2].ratio.unwrap() > 2.0);
}

#[test]
fn intervals_take_precedence_over_latencies() {
    let mut first = named("colibri-t30-mlc");
    first.outcomes.truncate(1);
    let mut second = first.clone();
    let told = |first: &SavedResult, second: &SavedResult| {
        let told = compare(&[first.clone(), second.clone()]);
        let row = told.rows.into_iter().find(|row| row.what == "colibri-t30 rewrite").unwrap();
        row.cells[1].certainty.unwrap()
    };
    let cell = |result: &mut SavedResult, change: &dyn Fn(&mut crate::Measurement)| {
        let mut cells = result.outcomes[0].measurements.iter_mut();
        change(cells.find(|cell| cell.column == "rewrite").unwrap());
    };
    cell(&mut first, &|cell| cell.op = "write".into());
    cell(&mut second, &|cell| cell.op = "write".into());
    assert_eq!(told(&first, &second), Certainty::CannotTell);
    let latency = |micros: u64| {
        let mut latencies = Latencies::default();
        (0..100).for_each(|number| latencies.record(Nanos::from_micros(micros + number), 0, 0));
        latencies.latency(1)
    };
    cell(&mut first, &|cell| cell.write_us = latency(100));
    for (micros, expected) in [(101, Certainty::NoDifferenceShown), (180, Certainty::Differs)] {
        cell(&mut second, &|cell| cell.write_us = latency(micros));
        assert_eq!(told(&first, &second), expected, "{micros}");
    }
    cell(&mut first, &|cell| cell.mb_per_s_interval = Some(Interval { low: 9.0, high: 11.0 }));
    for (low, expected) in [(10.5, Certainty::NoDifferenceShown), (11.5, Certainty::Differs)] {
        cell(&mut second, &|cell| cell.mb_per_s_interval = Some(Interval { low, high: 12.0 }));
        assert_eq!(told(&first, &second), expected, "{low}");
    }
}

#[test]
fn different_conditions_are_listed() {
    let [mut first, mut second] = [named("jetson-tx1"), named("jetson-tx1")];
    let state = "ref:jetson-tx1: the card's state (fresh, filled, aged, trimmed) is not known for both results for 4 \
                 figures: the state alone can explain a difference";
    assert_eq!(compare(&[first.clone(), second.clone()]).warnings, [state]);
    first.engine = Some("io_uring".into());
    second.engine = Some("pread".into());
    second.name = "mine".into();
    second.context.card = Some(crate::result::context::CardFacts { cache_on: Some(true), ..Default::default() });
    let told = compare(&[first, second]).warnings;
    let expected = [
        "the engine differs: io_uring in ref:jetson-tx1, pread in mine",
        "the card's cache is known for only one of ref:jetson-tx1 and mine: on",
        &state.replace("ref:jetson-tx1", "mine"),
    ];
    assert_eq!(told, expected);
    let nothing = compare(&[named("zynq"), named("colibri-t30-mlc")]);
    assert_eq!((nothing.rows.len(), nothing.warnings.len()), (0, 1));
}

#[test]
fn states_that_differ_or_are_unknown_are_reported() {
    use crate::{CardState, StateKind};
    let state = |kind, holds| CardState { kind, holds_share: Some(holds), of_share: Some(1.0), ..CardState::default() };
    let told = |ours: Option<CardState>, theirs: Option<CardState>| {
        let mut both = [named("colibri-t30-mlc"), named("colibri-t30-mlc")];
        both[1].name = "mine".into();
        for (result, state) in both.iter_mut().zip([ours, theirs]) {
            let cells = result.outcomes.iter_mut().flat_map(|outcome| &mut outcome.measurements);
            cells.for_each(|cell| cell.state = state.clone());
        }
        compare(&both).warnings
    };
    let [fresh, aged] = [state(StateKind::Fresh, 0.0), state(StateKind::Aged, 0.98)];
    assert_eq!(told(Some(fresh.clone()), Some(fresh.clone())), Vec::<String>::new());
    let differ = told(Some(fresh.clone()), Some(aged.clone()));
    assert!(differ.len() == 1 && differ[0].starts_with("mine: the card's state differs"), "{differ:?}");
    assert!(differ[0].ends_with("fresh, 0 % holds data before, aged, 98 % holds data here"), "{differ:?}");
    // The state of a small part of the target does not count.
    let part = CardState { of_share: Some(0.01), ..aged.clone() };
    for unknown in [None, Some(CardState::default()), Some(part)] {
        let told = told(unknown, Some(aged.clone()));
        assert!(told.len() == 1 && told[0].contains("is not known for both"), "{told:?}");
    }
}

/// Percentiles are compared by their own intervals, and speeds after a warm-up by those after it.
#[test]
fn percentiles_and_settled_speeds_are_compared_if_both_have_intervals() {
    let mut both = [named("colibri-t30-mlc"), named("colibri-t30-mlc")];
    let interval = |middle: f64| Some(Interval { low: middle * 0.99, high: middle * 1.01 });
    for (result, speed) in both.iter_mut().zip([10.0, 12.0]) {
        let cell = &mut result.outcomes[0].measurements[0];
        cell.op = "write".into();
        let mut rng = Rng::new(speed as u64);
        let mut latencies = Latencies::default();
        for number in 0..2000 {
            let slow = number % 50 == 0 && speed > 11.0;
            latencies.record(Nanos::from_micros(100 + rng.below(20) + if slow { 900 } else { 0 }), 0, 0);
        }
        cell.write_us = latencies.latency(1);
        cell.mb_per_s_interval = Some(Interval { low: 5.0, high: 20.0 });
        cell.warm_up = Some(crate::WarmUp {
            requests: 100,
            time_s: 1.0,
            is_settled: true,
            mb_per_s: speed,
            mb_per_s_interval: interval(speed),
        });
    }
    let told = compare(&both);
    let cell = &told.rows[0].cells[1];
    assert_eq!(cell.certainty, Some(Certainty::Differs), "{cell:?}");
    assert_eq!(cell.evidence, "95 % intervals after the warm-up are apart");
    let ranks: Vec<_> = cell.percentiles.iter().map(|found| (found.rank.as_str(), found.certainty)).collect();
    let (same, apart) = (Certainty::NoDifferenceShown, Certainty::Differs);
    assert_eq!(ranks, [("p50", same), ("p90", same), ("p95", same), ("p99", apart)], "{:?}", cell.percentiles);
}
