//! The JSON of a suite's outcome: keys are added, never changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cards::{card, shrunk, told};
use emmc_workload::trace::read;
use emmc_workload::{Options, Replay, suites};
use serde_json::Value;

const GOLDEN: &str = include_str!("../golden/outcome_keys.txt");

/// Every suite that needs only a small target, with the options that shorten it.
fn cases() -> Vec<(&'static str, Options)> {
    let options = |size_mib: u64, rows: &[&str]| Options {
        size_bytes: (size_mib > 0).then_some(size_mib << 20),
        rows: rows.iter().map(|row| row.to_string()).collect(),
        ..Options::default()
    };
    vec![
        ("iozone", options(4, &["4", "128"])),
        ("flashbench-align", options(0, &[])),
        ("flashbench-open-au", options(1, &["2"])),
        ("flashbench-find-fat", options(1, &["2"])),
        ("flashbench-scatter", options(0, &[])),
        ("flashbench-interval", options(0, &[])),
        ("tiotest", options(4, &[])),
        ("dd", options(4, &["128"])),
        ("hdparm", options(4, &[])),
        ("bonnie", options(4, &[])),
        ("class", options(1, &[])),
        ("steady", options(16, &[])),
        ("trim", options(32, &[])),
        ("burst", options(64, &[])),
        ("speed", options(16, &[])),
        ("reliable", options(4, &["4", "32"])),
        ("boot", options(160, &[])),
        ("install", options(900, &[])),
        ("fs", options(900, &["discard"])),
        ("replay", Options { replay: Some(recorded()), ..options(0, &[]) }),
    ]
}

/// Reads, writes and a trim, as fio's iolog has them.
fn recorded() -> Replay {
    let mut log = String::from("fio version 2 iolog\n/dev/a add\n/dev/a open\n");
    for number in 0..200u64 {
        let op = if number % 3 == 0 { "write" } else { "read" };
        log += &format!("/dev/a {op} {} 4096\n", number * 8192);
    }
    log += "/dev/a trim 0 65536\n/dev/a close\n";
    let trace = read("recorded", log.as_bytes()).expect("it is an iolog");
    Replay { trace: Arc::new(trace), timed: false, wrap: false }
}

/// Where every value is: keys joined by points, `[]` for the elements of a list.
fn paths(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                paths(value, &path, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| paths(value, &format!("{at}[]"), found)),
        _ => _ = found.insert(at.to_string()),
    }
}

#[test]
fn keys_match_the_golden_file() {
    let mut found = BTreeSet::new();
    for (name, options) in cases() {
        let outcome = told(name, &mut card("odroid-64g", |profile| shrunk(profile, 8)), &options);
        let text = serde_json::to_string(&outcome).unwrap();
        // Not to the last digit; but NaN would not be read back at all.
        let back: emmc_workload::Outcome =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(back.measurements.len() == outcome.measurements.len() && back.figures.len() == outcome.figures.len());
        let told = outcome.measurements.len() + outcome.grids.len() + outcome.figures.len();
        assert!(told > 0, "{name} tells nothing");
        for pivot in &outcome.tables {
            assert!(
                outcome.measurements.iter().any(|measurement| measurement.table == pivot.table),
                "{name}: {pivot:?}"
            );
        }
        paths(&serde_json::to_value(&outcome).unwrap(), "", &mut found);
    }
    if std::env::var_os("EMMCLAB_WRITE_KEYS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/outcome_keys.txt");
        let lines: String = found.iter().map(|key| format!("{key}\n")).collect();
        return std::fs::write(path, lines).unwrap();
    }
    let golden: BTreeSet<String> = GOLDEN.lines().map(str::to_string).collect();
    let missing: Vec<&String> = golden.difference(&found).collect();
    assert!(missing.is_empty(), "keys that scripts may rely on are gone: {missing:#?}");
    let new: Vec<&String> = found.difference(&golden).collect();
    let how = "if they are meant, run with EMMCLAB_WRITE_KEYS=1 and read the difference";
    assert!(new.is_empty(), "new keys; {how}: {new:#?}");
}

#[test]
fn no_suite_exceeds_its_stated_cost() {
    for (name, options) in cases() {
        let mut target = card("odroid-64g", |profile| shrunk(profile, 8));
        let suite = emmc_workload::named(name).unwrap();
        let shape = emmc_port::BlockTarget::shape(&target).clone();
        let cost = suite.cost(&shape, &options).unwrap();
        let outcome = told(name, &mut target, &options);
        assert!(outcome.written_bytes <= cost.written_bytes, "{name}: {} of {cost:?}", outcome.written_bytes);
        assert!(outcome.read_bytes <= cost.read_bytes, "{name}: {} of {cost:?}", outcome.read_bytes);
        assert!(cost.to_bytes <= shape.size_bytes && cost.from_bytes <= cost.to_bytes, "{name}: {cost:?}");
        assert!(cost.written_bytes == 0 || cost.to_bytes > cost.from_bytes, "{name}: what is lost is said: {cost:?}");
        // It writes most of the stated amount; the amount of file suites is less exact.
        let on_files = ["boot", "install", "fs"].contains(&name);
        assert!(
            on_files || outcome.written_bytes * 5 >= cost.written_bytes * 2,
            "{name}: {} of {cost:?}",
            outcome.written_bytes
        );
    }
}

#[test]
fn names_are_unique_and_described() {
    let names: BTreeSet<&str> = suites().iter().map(|suite| suite.name()).collect();
    assert_eq!(names.len(), suites().len());
    assert!(suites().iter().all(|suite| suite.about().len() > 20));
}
