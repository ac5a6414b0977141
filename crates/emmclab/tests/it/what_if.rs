//! `sim what-if`, `sim life`, `advise part`: documents, files that they read, and what is refused.

use crate::contract::words;
use crate::keys::documents;
use crate::support::{emmclab, save, scratch, testdata};

/// A card whose whole life takes seconds.
fn small() -> String {
    format!("sim:{}", testdata("virtual-cards/small-card.toml"))
}

#[test]
fn what_if_and_life_documents_keep_their_keys() {
    let small = small();
    let part = testdata("virtual-cards/small-card.toml");
    documents(
        "sim-what-if",
        &[
            words(&format!("sim what-if {small} --rate 2GB/day --random 70% --change cache=off --change pslc=all")),
            words(&format!("sim what-if {small} --rate 2GB/day --random 0 --fs ext4 --change discard=online")),
        ],
    );
    documents("sim-life", &[words(&format!("sim life {small} --workload 2GB/day,random=50%"))]);
    documents(
        "advise-part",
        &[words(&format!("advise part --workload 200MB/day,data=64MiB --years 0.01 --among {part} colibri-t30-4g"))],
    );
}

#[test]
fn several_changes_stand_beside_today_and_a_folder_is_not_changed() {
    let folder = scratch("what_if_folder").join("card").display().to_string();
    emmclab(["sim", "create", &folder, &small()]).exits(0);
    let before = emmclab(["sim", "info", &folder, "--json"]).exits(0).stdout;
    let asked = [
        "sim",
        "what-if",
        &folder,
        "--rate",
        "2GB/day",
        "--change",
        "cache=off,cq=off",
        "--change",
        "part=2x",
        "--change",
        "pslc=all",
    ];
    let document = emmclab(asked.into_iter().chain(["--json"])).exits(0).json();
    let names: Vec<&str> =
        document["answers"].as_array().unwrap().iter().map(|answer| answer["change"].as_str().unwrap()).collect();
    assert_eq!(names, ["today", "cache=off,cq=off", "part=2x", "pslc=all"]);
    let of = |index: usize, key: &str| document["answers"][index][key].as_f64().unwrap();
    assert!(of(1, "years_to_end_of_life") < of(0, "years_to_end_of_life"));
    assert_eq!(of(2, "user_bytes"), 2.0 * of(0, "user_bytes"));
    assert_eq!(of(3, "enhanced_bytes"), of(0, "user_bytes") / 2.0);
    assert_eq!(emmclab(["sim", "info", &folder, "--json"]).exits(0).stdout, before);
    emmclab(asked).exits(0).says(&["What if: virtual card small-card", "x today", "part=2x"]);
}

#[test]
fn a_recording_and_a_history_are_loads() {
    let folder = scratch("what_if_loads");
    let small = small();
    let lines: String = (0..512).map(|n| format!("{},write,{},8\n", n * 10_000, n * 97 % 4096 * 8)).collect();
    let trace = save(&folder, "t.csv", lines);
    let ask = |more: &[&str]| {
        let base = ["sim", "what-if", &small, "--change", "depth=4", "--json"];
        emmclab(base.iter().chain(more).copied())
    };
    let recorded = ask(&["--workload", &trace]).exits(0).json();
    assert!(recorded["duty"]["sentence"].as_str().unwrap().contains("512 recorded requests"), "{}", recorded["duty"]);
    let slower = ask(&["--workload", &trace, "--rate", "1GB/day"]).exits(0).json();
    assert_eq!(slower["duty"]["bytes_per_day"].as_f64().unwrap().round(), 1e9);
    let history = save(
        &folder,
        "h.ndjson",
        "{\"time\": \"2026-01-01T00:00:00Z\", \"life_a\": 1, \"life_b\": 1, \"written_bytes\": 1000000000}\n\
         {\"time\": \"2026-01-11T00:00:00Z\", \"life_a\": 1, \"life_b\": 1, \"written_bytes\": 21000000000}\n",
    );
    let known = ask(&["--history", &history]).exits(0).json();
    assert_eq!(known["duty"]["bytes_per_day"].as_f64().unwrap().round(), 2e9);
    let refused = ask(&["--workload", &trace, "--random", "50%"]).exits(2);
    assert!(refused.stderr.contains("a recording has its own requests"), "{}", refused.stderr);
    let none = ask(&["--history", &testdata("../examples/wear.ndjson")]).exits(2);
    assert!(none.stderr.contains("no line has written_bytes"), "{}", none.stderr);
}

#[test]
fn what_cannot_be_asked_is_one_clear_line() {
    let small = small();
    let rate = ["--rate", "2GB/day"];
    for (card, more, says) in [
        (small.as_str(), &["--change", "chache=off"][..], "no such key"),
        (&small, &["--change", "pslc=200MiB"], "the card can have 64.0 MiB"),
        (&small, &["--change", "pslc=all", "--data", "100%"], "do not fit into a partition of 64.0 MiB (--data)"),
        (&small, &["--change", "part=generic-9g"], "no profile"),
        (&small, &["--change", "depth=2", "--block", "10000s"], "--block"),
        (&small, &["--change", "depth=2", "--wrap"], "--wrap belongs to a recording"),
        (&small, &["--change", "depth=2", "--data", "1GiB"], "do not fit"),
        (&small, &["--change", "depth=2", "--commit", "soon"], "--commit soon"),
        (&small, &["--change", "depth=2", "--random", "0.7"], "expected 0% to 100%"),
        ("sim:sandisk-ultra-8g", &["--change", "pslc=all"], "an SD card has no enhanced area"),
        ("sim:generic-9g", &["--change", "depth=2"], "generic-9g"),
    ] {
        let run = emmclab(["sim", "what-if", card].iter().chain(&rate).chain(more).copied()).exits(2);
        let first = run.stderr.lines().next().unwrap_or_default();
        assert!(first.contains(says), "{more:?}: {}", run.stderr);
    }
    for (rate, says) in [
        ("0GB/day", "nothing is written"),
        ("2GB", "a size and a time"),
        ("2XB/day", "a size and a time"),
        ("1B/day", "expected 10 kB to 1000 TB a day"),
    ] {
        let run = emmclab(["sim", "life", &small, "--rate", rate]).exits(2);
        assert!(run.stderr.contains(says), "{rate}: {}", run.stderr);
    }
    let missing = emmclab(["sim", "life", &small, "--workload", "no-such.trace"]).exits(2);
    assert!(missing.stderr.contains("neither a rate such as 2GB/day nor a file"), "{}", missing.stderr);
    let share = emmclab(["advise", "part", "--workload", "2GB/day,data=10%"]).exits(2);
    assert!(share.stderr.contains("a share of what?"), "{}", share.stderr);
    let none = emmclab(["advise", "part", "--workload", "2GB/day,data=1TiB", "--among", "generic-8g"]).exits(2);
    assert!(none.stderr.contains("no part can be simulated"), "{}", none.stderr);
    let short = ["advise", "part", "--workload", "2GB/day", "--among", "colibri-t30-4g", "--years", "500"];
    emmclab(short).exits(1).says(&["no part of 1 fits", "No part fits", "500 are needed"]);
}

/// What stays in the card's cache wears nothing: a life would not end, and has no ratio to another one.
#[test]
fn a_load_that_the_cache_absorbs_has_no_life() {
    let (small, trace) = (small(), testdata("block_traces/fio_iolog_v3.log"));
    let life = emmclab(["sim", "life", &small, "--workload", &trace]).exits(2);
    assert!(life.stderr.contains("stays in the card's cache"), "{}", life.stderr);
    let asked = emmclab(["sim", "what-if", &small, "--workload", &trace, "--change", "depth=8"]).exits(0);
    assert!(!asked.stdout.contains("NaN"), "{}", asked.stdout);
}

/// Blocks go bad while it is measured: their erases count as wear.
#[test]
fn wear_near_the_end_of_a_life_follows_the_amplification() {
    let card = format!("{}@94%", small());
    let asked = ["sim", "what-if", &card, "--rate", "500MB/day", "--change", "cache=off", "--json"];
    let document = emmclab(asked).exits(0).json();
    let wear = |index: usize| {
        let of = |key: &str| document["answers"][index][key].as_f64().unwrap();
        of("wear_percent_per_day") / of("write_amplification")
    };
    assert!((wear(0) / wear(1) - 1.0).abs() < 0.05, "{} {}", wear(0), wear(1));
}

#[test]
fn a_log_in_memory_changes_nothing_where_there_is_no_log() {
    let asked = ["sim", "what-if", &small(), "--rate", "200MB/day", "--change", "log=ram", "--json"];
    let document = emmclab(asked).exits(0).json();
    let [today, changed] = [0, 1].map(|index| document["answers"][index]["years_to_end_of_life"].as_f64().unwrap());
    assert_eq!(today, changed);
    let notes = document["answers"][1]["notes"].to_string();
    assert!(notes.contains("and so no log: nothing changes"), "{notes}");
}

/// Blocks retire towards the end: what they bore still counts.
#[test]
fn no_register_of_a_life_goes_back() {
    let asked = ["sim", "life", &small(), "--workload", "2GB/day,random=100%", "--json"];
    let document = emmclab(asked).exits(0).json();
    let steps = document["steps"].as_array().unwrap();
    assert!(steps.len() > 10 && document["grown_bad"].as_u64() > Some(1), "{document}");
    for register in ["DEVICE_LIFE_TIME_EST_TYP_B", "PRE_EOL_INFO"] {
        let of = steps.iter().filter(|step| step["register"] == register);
        let values: Vec<u64> = of.map(|step| step["value"].as_u64().unwrap()).collect();
        assert!(values.is_sorted(), "{register}: {values:?}");
    }
}

#[test]
fn parts_of_one_name_have_the_names_of_their_files() {
    let (folder, part) = (scratch("advise_names"), testdata("virtual-cards/small-card.toml"));
    let copy = save(&folder, "my-part.toml", std::fs::read(&part).unwrap());
    let load = ["advise", "part", "--workload", "200MB/day,data=64MiB", "--years", "0.001", "--among"];
    let document = emmclab(load.iter().copied().chain([&*part, &*copy, "--json"])).exits(0).json();
    let names: Vec<&str> =
        document["fitting"].as_array().unwrap().iter().map(|part| part["profile"].as_str().unwrap()).collect();
    assert_eq!(names, ["small-card", "my-part"]);
    let twice = emmclab(load.iter().copied().chain([&*part, &*part])).exits(2);
    assert!(twice.stderr.contains("small-card.toml: named twice"), "{}", twice.stderr);
    let other = save(&folder, "small-card.toml", std::fs::read(&part).unwrap());
    let same = emmclab(load.iter().copied().chain([&*part, &*other])).exits(2);
    assert!(same.stderr.contains("another part has the name \"small-card\" too"), "{}", same.stderr);
}

#[test]
fn the_answer_stands_before_the_tables() {
    let small = small();
    let changes = ["--change", "cache=off", "--change", "pslc=all"];
    let asked = ["sim", "what-if", &small, "--rate", "200MB/day", "--data", "20%"];
    let run = emmclab(asked.iter().chain(&changes).copied()).exits(0);
    let lines: Vec<&str> = run.stdout.lines().take(6).collect();
    assert!(lines[3].starts_with("TODAY  lives ") && lines[3].contains("WA "), "{lines:?}");
    // The best change first.
    let life = lines[4].split_once("times with pslc=all; ").unwrap_or_else(|| panic!("{lines:?}"));
    assert!(life.0.starts_with("LIFE ") && life.1.ends_with("times with cache=off"), "{lines:?}");
    assert!(lines[5].starts_with("SPEED "), "{lines:?}");
    let life = emmclab(["sim", "life", &small, "--rate", "200MB/day"]).exits(0);
    life.says(&["LIFE ", " days, ", "then the card is read-only"]);
}
