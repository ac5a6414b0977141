use super::*;
use crate::result::Outcome;
use crate::result::context::{BusFacts, CardFacts, Context, Effort, FilesystemFacts, HostFacts};
use crate::stats::interval::Interval;
use crate::stats::latency::Stalls;

fn cell(mb_per_s: f64) -> Measurement {
    Measurement {
        table: "t".into(),
        row: "4".into(),
        column: "read".into(),
        op: "read".into(),
        order: "sequential".into(),
        block_bytes: 4096,
        queue_depth: 1,
        requests: Some(1000),
        bytes: Some(4_096_000),
        time_s: Some(1.0),
        flush_s: Some(0.0),
        mb_per_s,
        mb_per_s_interval: Some(Interval { low: mb_per_s * 0.99, high: mb_per_s * 1.01 }),
        iops: 1000.0,
        stalls: Some(Stalls::default()),
        ..Measurement::default()
    }
}

fn result(kind: TargetKind, cell: Measurement, context: Context) -> BenchResult {
    BenchResult {
        target: "d".into(),
        target_kind: kind,
        size_bytes: 1 << 30,
        engine: "pread".into(),
        seed: 1,
        outcome: Outcome { measurements: vec![cell], ..Outcome::default() },
        context,
        doubts: Vec::new(),
        causes: Vec::new(),
    }
}

fn codes(kind: TargetKind, cell: Measurement, context: Context) -> Vec<String> {
    doubts(&result(kind, cell, context)).into_iter().map(|doubt| doubt.code).collect()
}

fn nothing() -> Context {
    Context::default()
}

#[test]
fn an_ordinary_result_has_no_doubts() {
    let bus =
        BusFacts { mode: "mmc HS200".into(), lines: 8, clock_hz: 200_000_000, mb_per_s_max: 200.0, source: "".into() };
    let host = HostFacts { governors: vec!["performance".into()], ..HostFacts::default() };
    let effort = Effort { time_s: 1.0, user_s: 0.1, system_s: 0.2 };
    let context = Context { bus: Some(bus), host: Some(host), effort: Some(effort), ..nothing() };
    assert_eq!(codes(TargetKind::Device, cell(150.0), context.clone()), [""; 0]);
    assert_eq!(codes(TargetKind::Device, cell(210.0), context.clone()), ["faster_than_bus"]);
    // Trimmed ranges read as fast as the bus.
    assert_eq!(codes(TargetKind::Device, cell(180.0), context.clone()), ["state_unknown"]);
    let state = crate::CardState { kind: crate::StateKind::Filled, ..Default::default() };
    let known = Measurement { state: Some(state), ..cell(180.0) };
    assert_eq!(codes(TargetKind::Device, known, context.clone()), [""; 0]);
    let mut written = result(TargetKind::Device, cell(180.0), context);
    written.outcome.written_bytes = 1;
    assert_eq!(doubts(&written), []);
}

#[test]
fn without_a_bus_mode_the_fastest_is_assumed() {
    let card = CardFacts { kind: Some("emmc".into()), ..CardFacts::default() };
    let context = Context { card: Some(card), ..nothing() };
    assert_eq!(codes(TargetKind::Device, cell(395.0), context.clone()), [""; 0]);
    assert_eq!(codes(TargetKind::Device, cell(900.0), context), ["faster_than_bus"]);
    assert_eq!(codes(TargetKind::File, cell(900.0), nothing()), [""; 0]);
}

#[test]
fn each_condition_gives_its_doubt() {
    let filesystem = |in_memory, cached, hole_bytes| {
        let facts = FilesystemFacts { fstype: "tmpfs".into(), in_memory, cached, hole_bytes, ..Default::default() };
        Context { filesystem: Some(facts), ..nothing() }
    };
    let card = |card| Context { card: Some(card), ..nothing() };
    let queueing = CardFacts { queueing_offered: Some(true), queueing_on: Some(false), ..Default::default() };
    let cache = CardFacts { cache_bytes: Some(1), cache_on: Some(false), ..Default::default() };
    let host = HostFacts { governors: vec!["ondemand".into(), "performance".into()], ..Default::default() };
    let effort = Effort { time_s: 1.0, user_s: 0.5, system_s: 0.5 };
    for (context, code) in [
        (filesystem(true, false, 0), "page_cache"),
        (filesystem(false, true, 0), "page_cache"),
        (filesystem(false, false, 4096), "holes"),
        (card(queueing), "queueing_off"),
        (card(cache), "cache_off"),
        (Context { host: Some(host), ..nothing() }, "governor"),
        (Context { effort: Some(effort), ..nothing() }, "processor_bound"),
    ] {
        assert_eq!(codes(TargetKind::File, cell(1.0), context), [code]);
    }
}

#[test]
fn each_measurement_has_its_own_doubts() {
    let alone = |change: fn(&mut Measurement)| {
        let mut cell = cell(10.0);
        change(&mut cell);
        codes(TargetKind::Device, cell, nothing())
    };
    assert_eq!(alone(|cell| cell.bytes = Some((1 << 30) + 1)), ["wraps"]);
    assert_eq!(alone(|cell| cell.errors = 1), ["failed_requests"]);
    assert_eq!(alone(|cell| cell.mb_per_s_interval = None), ["few_requests"]);
    assert_eq!(alone(|cell| cell.mb_per_s_interval = Some(Interval { low: 5.0, high: 15.0 })), ["few_requests"]);
    let mut stopped = result(TargetKind::Device, cell(10.0), nothing());
    stopped.outcome.ended_early = Some("stopped".into());
    assert_eq!(doubts(&stopped).len(), 1);
}

#[test]
fn doubts_of_many_cells_are_counted() {
    let mut many = result(TargetKind::Device, cell(10.0), nothing());
    let bad = Measurement { errors: 2, ..cell(10.0) };
    many.outcome.measurements = vec![bad; 6];
    let [doubt] = doubts(&many).try_into().unwrap();
    assert!(doubt.evidence.ends_with("4 read: 2 requests; and 2 more"), "{}", doubt.evidence);
}
