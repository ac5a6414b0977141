//! `study` with what was measured: saved results beside what a virtual card is measured for, and what cannot go together.
#![cfg(all(feature = "bench", feature = "sim"))]

mod support;

use serde_json::Value;
use support::{emmclab, save, scratch, testdata};

#[test]
fn saved_results_become_sections_before_the_capacity() {
    let folder = scratch("study_bench");
    let run = |words: &str| emmclab(words.split(' ')).stdout;
    let card = "sim:generic-8g";
    let trim = save(&folder, "trim.json", run(&format!("bench {card} --suite trim --size 512MiB --json")));
    let iozone = save(&folder, "iozone.json", run(&format!("bench {card} --rows 64,128 --size 8MiB --json")));
    let speed = run(&format!("bench {card} --suite speed --size 64MiB --json"));
    let speed_file = save(&folder, "speed.json", &speed);

    let study = ["study", card, "--bench", &trim, "--bench", &iozone, "--bench", &iozone];
    let text = emmclab(study);
    let at = |heading: &str| {
        let place = text.stdout.lines().position(|line| line == heading);
        place.unwrap_or_else(|| panic!("no {heading:?} in\n{}", text.stdout))
    };
    assert!(at("Speed") < at("Measured: trim") && at("Measured: trim") < at("Measured: iozone"));
    assert!(at("Measured: iozone") < at("Capacity"));
    // A state of the target is a bar, a size of a record a row.
    let bar = |line: &&str| line.contains("write, aged") && line.contains('█') && line.contains("MB/s");
    assert!(text.stdout.lines().any(|line| bar(&line)), "{}", text.stdout);
    let text = text.says(&["record KiB", "Verdict:"]);
    assert!(!text.stdout.contains("bench-iozone"));

    // The speed that was saved is told instead of one that is measured now.
    let json = emmclab(["study", card, "--bench", &speed_file, "--bench", &trim, "--json"]).json();
    let saved: Value = serde_json::from_str(&speed).unwrap();
    assert_eq!(json["speed"]["measurements"], saved["measurements"]);
    assert_eq!(json["benches"][0]["suite"], "trim");
}

#[test]
fn results_that_do_not_belong_to_the_card_are_refused() {
    let folder = scratch("study_bench_refused");
    let result = emmclab("bench sim:generic-8g --suite speed --size 64MiB --json".split(' ')).stdout;
    let speed = save(&folder, "speed.json", &result);
    let refused = |args: &[&str], says: &str| {
        let run = emmclab(["study"].iter().chain(args)).exits(2);
        assert!(run.stderr.contains(says) && run.stderr.lines().count() == 1, "{args:?}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{args:?}");
    };
    refused(&["sim:odroid-64g", "--bench", &speed], "measured on a card whose CID is");
    refused(&["sim:generic-8g", "--bench", &speed, "--bench", &speed], "a second result of bench --suite speed");
    refused(&["sim:generic-8g", "--bench", &speed, "--measure"], "--measure");
    let dump = testdata("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex");
    refused(&[&dump, "--measure"], "is a saved source");
    refused(&[&dump, "--bench", &dump], "expected what bench --json printed");
}

/// Without a CID on both sides nobody can tell whose speed it is: a warning, never silence.
#[test]
fn a_result_of_a_card_that_may_be_another_is_a_warning() {
    let result = emmclab("bench sim:generic-8g --suite speed --size 64MiB --json".split(' ')).stdout;
    let speed = save(&scratch("study_bench_unknown"), "speed.json", &result);
    let dump = testdata("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex");
    let run = emmclab(["study", &dump, "--bench", &speed]);
    let said = "it may have been measured on another card than the one that is studied";
    assert!(run.stdout.split_whitespace().collect::<Vec<_>>().join(" ").contains(said), "{}", run.stdout);
    let json = emmclab(["study", &dump, "--bench", &speed, "--json"]).json();
    assert_eq!(json["speed"]["doubts"][0]["code"], "other_card");
    let own = emmclab(["study", "sim:generic-8g", "--bench", &speed, "--json"]).json();
    assert_eq!(own["speed"]["doubts"], serde_json::json!([]));
}
