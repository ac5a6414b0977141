use super::*;
use emmc_units::Bytes;

fn none(_: &str) -> Result<Vec<u8>, String> {
    Err("no file is expected here".into())
}

fn read(text: &str) -> Result<Job, JobError> {
    Job::from_json(text, &mut none)
}

fn phase(keys: &str) -> Result<Phase, JobError> {
    read(&format!("{{\"phases\": [{{\"kind\": \"flush\"}}, {{{keys}}}]}}")).map(|mut job| job.phases.remove(1))
}

fn transfer(keys: &str) -> Transfer {
    match phase(keys).unwrap().work {
        Work::Transfer(transfer) => transfer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_is_read() {
    let job = read(
        r#"{"seed": 7, "cache": false, "queue_depth": 4, "block": "8KiB", "phases": [
            {"kind": "fill"},
            {"kind": "random", "amount": "2.5x", "block": "4KiB", "range": ["0%", "50%"], "queue_depth": 32, "seed": 9},
            {"kind": "sequential_read", "amount": "512MiB", "cache": true}
        ]}"#,
    );
    let job = job.unwrap();
    assert_eq!((job.seed, job.phases.len()), (7, 3));
    assert_eq!((job.phases[1].queue_depth, job.phases[1].cache, job.phase_seed(1)), (32, false, 9));
    assert_eq!((job.phases[2].queue_depth, job.phases[2].cache), (4, true));
    assert_ne!(job.phase_seed(0), job.phase_seed(2));
    let Work::Transfer(random) = &job.phases[1].work else { panic!() };
    let half = Target { area: Area::User, from: Size::Percent(0), to: Size::Percent(50) };
    let expected = Transfer {
        pattern: Pattern::Ordered(Order::Random),
        read_share: 0.0,
        amount: Amount::Capacities(2.5),
        block_bytes: 4096,
        target: half,
        reliable: false,
        force: false,
    };
    assert_eq!(*random, expected);
    let Work::Transfer(read) = &job.phases[2].work else { panic!() };
    assert_eq!((read.read_share, read.amount, read.block_bytes), (1.0, Amount::Bytes(512 << 20), 8192));
}

#[test]
fn every_kind_is_read() {
    let streams =
        transfer(r#""kind": "sequential", "amount": "1x", "streams": 8, "spacing": "4MiB", "shuffled": true"#);
    assert_eq!(streams.pattern, Pattern::Sequential { streams: 8, spacing: Some(4 << 20), shuffled: true });
    let hot =
        transfer(r#""kind": "hot_cold", "amount": "1x", "hot_share": 0.2, "write_share": 0.8, "read_share": 0.5"#);
    assert_eq!(
        (hot.pattern, hot.read_share),
        (Pattern::Ordered(Order::HotCold { hot_share: 0.2, request_share: 0.8 }), 0.5)
    );
    let zipf = transfer(r#""kind": "zipf", "amount": "1x", "s": 1, "scrambled": true, "force": true"#);
    assert_eq!((zipf.pattern, zipf.force), (Pattern::Ordered(Order::Zipf { s: 1.0, scrambled: true }), true));
    let mixed = transfer(r#""kind": "mixed", "amount": "until worn out", "trim_share": 0.2"#);
    assert_eq!((mixed.pattern, mixed.amount), (Pattern::Mixed { trim_share: 0.2 }, Amount::UntilWornOut));
    assert_eq!(transfer(r#""kind": "random_read", "amount": "1x""#).read_share, 1.0);
    assert_eq!(transfer(r#""kind": "fill", "area": "boot1""#).target.area, Area::Boot(1));
    let whole = Target { area: Area::User, from: Size::Percent(0), to: Size::Max };
    let trim = Trim { target: whole, share: 0.5, block_bytes: 4096, discard: true };
    assert_eq!(phase(r#""kind": "trim", "share": 0.5, "discard": true"#).unwrap().work, Work::Trim(trim));
    let idle = Work::Idle { time: Nanos::from_millis(1500), background: true };
    assert_eq!(phase(r#""kind": "idle", "seconds": 1.5"#).unwrap().work, idle);
    assert_eq!(phase(r#""kind": "power_cycle", "notify": false"#).unwrap().work, Work::PowerCycle { notify: false });
    let Work::Replay(replay) = phase(r#""kind": "trace", "records": "0 0 0 8 0", "timed": false"#).unwrap().work else {
        panic!()
    };
    assert_eq!((replay.trace.requests.len(), replay.timed, replay.wrap), (1, false, false));
}

#[test]
fn a_named_trace_is_loaded() {
    let text = r#"{"phases": [{"kind": "trace", "file": "a.csv"}]}"#;
    let mut asked = Vec::new();
    let job = Job::from_json(text, &mut |name| {
        asked.push(name.to_string());
        Ok("0,w,0,8".into())
    });
    assert_eq!((job.unwrap().phases.len(), asked), (1, vec!["a.csv".to_string()]));
    let missing = Job::from_json(text, &mut |_| Err("it cannot be opened".into())).unwrap_err();
    assert_eq!(missing.to_string(), "job: phase 1 (trace): file: found \"a.csv\", but it cannot be opened");
}

#[test]
fn errors_name_the_field() {
    for (keys, error) in [
        (r#""kind": "rando", "amount": "1x""#, "phase 2: kind: found \"rando\", must be one of fill, sequential"),
        (r#""amount": "1x""#, "phase 2: kind: found nothing, must be one of fill"),
        (r#""kind": "random""#, "phase 2 (random): amount: found nothing, must say how much"),
        (
            r#""kind": "random", "amount": "4096""#,
            "phase 2 (random): amount: found \"4096\", but size \"4096\" has no unit",
        ),
        (r#""kind": "random", "amount": 4096"#, "phase 2 (random): amount: found 4096, must be a size in quotes"),
        (
            r#""kind": "random", "amount": "-1x""#,
            "phase 2 (random): amount: found \"-1x\", must be a multiple of the capacity",
        ),
        (
            r#""kind": "random", "amount": "0x""#,
            "phase 2 (random): amount: found \"0x\", must be a multiple of the capacity",
        ),
        (
            r#""kind": "random", "amount": "1000000001x""#,
            "phase 2 (random): amount: found \"1000000001x\", must be a multiple of the capacity above 0x, at most 1000000x",
        ),
        (
            r#""kind": "random", "amount": "1000000000GiB""#,
            "phase 2 (random): amount: found \"1000000000GiB\", must be at most 1024 TiB",
        ),
        (r#""kind": "random", "amount": "nanx""#, "phase 2 (random): amount: found \"nanx\", must be a multiple"),
        (r#""kind": "random", "amount": "1000B""#, "phase 2 (random): amount: found \"1000B\", must be whole sectors"),
        (r#""kind": "random", "amount": "50%""#, "phase 2 (random): amount: found \"50%\", must be whole sectors"),
        (
            r#""kind": "random", "amount": "1x", "block": "0B""#,
            "phase 2 (random): block: found \"0B\", must be whole sectors",
        ),
        (
            r#""kind": "random", "amount": "1x", "block": "1GiB""#,
            "phase 2 (random): block: found \"1GiB\", must be at most 65535s",
        ),
        (
            r#""kind": "random", "amount": "1x", "blok": "4KiB""#,
            "phase 2 (random): blok: found \"4KiB\", but the keys here are kind, seed",
        ),
        (
            r#""kind": "random", "amount": "1x", "range": "0%""#,
            "phase 2 (random): range: found \"0%\", must be a beginning and an end",
        ),
        (
            r#""kind": "random", "amount": "1x", "range": ["0s", "3B"]"#,
            "phase 2 (random): range: found [\"0s\",\"3B\"], must be whole sectors",
        ),
        (
            r#""kind": "random", "amount": "1x", "queue_depth": 0"#,
            "phase 2 (random): queue_depth: found 0, must be a whole number from 1 to 256",
        ),
        (r#""kind": "random", "amount": "1x", "seed": -1"#, "phase 2 (random): seed: found -1, must be a whole number"),
        (r#""kind": "random", "amount": "1x", "cache": 1"#, "phase 2 (random): cache: found 1, must be true or false"),
        (
            r#""kind": "random", "amount": "1x", "area": "rpmb""#,
            "phase 2 (random): area: found \"rpmb\", must be user, boot0",
        ),
        (
            r#""kind": "random", "amount": "1x", "read_share": 2"#,
            "phase 2 (random): read_share: found 2, must be a number from 0 to 1",
        ),
        (
            r#""kind": "random_read", "amount": "until worn out""#,
            "phase 2 (random_read): amount: found \"until worn out\", but reading",
        ),
        (
            r#""kind": "hot_cold", "amount": "1x", "hot_share": 0.1"#,
            "phase 2 (hot_cold): write_share: found nothing, must say which",
        ),
        (r#""kind": "zipf", "amount": "1x", "s": 0"#, "phase 2 (zipf): s: found 0, must be a number from 0.001 to 20"),
        (
            r#""kind": "mixed", "amount": "1x", "trim_share": 0.5"#,
            "phase 2 (mixed): trim_share: found 0.5, must be a number from 0 to 0.499",
        ),
        (
            r#""kind": "sequential", "amount": "1x", "spacing": "6KiB""#,
            "phase 2 (sequential): spacing: found \"6 KiB\", must be a multiple of the block, 4 KiB",
        ),
        (r#""kind": "fill", "amount": "1x""#, "phase 2 (fill): amount: found \"1x\", but the keys here are"),
        (r#""kind": "idle""#, "phase 2 (idle): seconds: found nothing, must say how long"),
        (r#""kind": "idle", "seconds": -1"#, "phase 2 (idle): seconds: found -1, must be a number from 0"),
        (r#""kind": "trace""#, "phase 2 (trace): file: found nothing, must be a trace"),
        (
            r#""kind": "trace", "records": "x""#,
            "phase 2 (trace): records: found \"a trace\", but records: no trace is recognised in it",
        ),
    ] {
        let found = phase(keys).unwrap_err().to_string();
        assert!(found.starts_with(&format!("job: {error}")), "{keys}\n{found}\n{error}");
    }
    for (text, error) in [
        ("{", "job: EOF while parsing"),
        ("[]", "job: it: found [], must be an object in braces"),
        ("{}", "job: phases: found nothing, must be a list of at least one phase"),
        (r#"{"phases": []}"#, "job: phases: found [], must be a list of at least one phase"),
        (r#"{"phases": [3]}"#, "job: phase 1: it: found 3, must be an object in braces"),
        (r#"{"seed": "1", "phases": [{"kind": "flush"}]}"#, "job: seed: found \"1\", must be a whole number"),
        (r#"{"threads": 4, "phases": [{"kind": "flush"}]}"#, "job: threads: found 4, but the keys here are seed"),
    ] {
        let found = read(text).unwrap_err().to_string();
        assert!(found.starts_with(error), "{text}\n{found}");
    }
    assert_eq!(Bytes(6144).to_string(), "6 KiB");
}

#[test]
fn text_of_a_hostile_file_is_truncated() {
    let error = phase(&format!("\"kind\": \"{}\"", "x".repeat(100_000))).unwrap_err().to_string();
    assert!(error.len() < 400, "{}", error.len());
}
