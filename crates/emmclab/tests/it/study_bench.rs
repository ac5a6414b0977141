//! `study` with measurements: saved results, the measurement of a virtual card, and combinations that are refused.

use crate::support::{emmclab, save, scratch, testdata};
use serde_json::Value;

#[test]
fn saved_results_are_sections_before_the_capacity() {
    let folder = scratch("study_bench");
    let run = |words: &str| emmclab(words.split(' ')).stdout;
    let card = "sim:generic-8g";
    let trim = save(&folder, "trim.json", run(&format!("bench {card} --suite trim --size 512MiB --json")));
    let iozone =
        save(&folder, "iozone.json", run(&format!("bench {card} --suite iozone --rows 64,128 --size 8MiB --json")));
    let speed = run(&format!("bench {card} --suite speed --size 64MiB --json"));
    let speed_file = save(&folder, "speed.json", &speed);

    let study = ["study", card, "--full", "--bench", &trim, "--bench", &iozone, "--bench", &iozone];
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

    // The saved speed is reported instead of a new measurement.
    let json = emmclab(["study", card, "--bench", &speed_file, "--bench", &trim, "--json"]).json();
    let saved: Value = serde_json::from_str(&speed).unwrap();
    assert_eq!(json["speed"]["measurements"], saved["measurements"]);
    assert_eq!(json["benches"][0]["suite"], "trim");
}

#[test]
fn results_of_another_card_are_refused() {
    let folder = scratch("study_bench_refused");
    let result = emmclab("bench sim:generic-8g --suite speed --size 64MiB --json".split(' ')).stdout;
    let speed = save(&folder, "speed.json", &result);
    let refused = |args: &[&str], says: &str| {
        let run = emmclab(["study"].iter().chain(args)).exits(2);
        assert!(run.stderr.contains(says) && run.stderr.lines().count() == 1, "{args:?}: {}", run.stderr);
        assert_eq!(run.stdout, "", "{args:?}");
    };
    refused(&["sim:odroid-64g", "--bench", &speed], "measured on a card with CID");
    refused(&["sim:generic-8g", "--bench", &speed, "--bench", &speed], "is a second result of bench --suite speed");
    refused(&["sim:generic-8g", "--bench", &speed, "--measure"], "--measure");
    let dump = testdata("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex");
    refused(&[&dump, "--measure"], "is a saved source");
    refused(&[&dump, "--bench", &dump], "expected the output of bench --json");
}

/// Without a CID on both sides the owner of the speed is uncertain: a warning is required.
#[test]
fn a_result_of_an_uncertain_card_is_a_warning() {
    let result = emmclab("bench sim:generic-8g --suite speed --size 64MiB --json".split(' ')).stdout;
    let speed = save(&scratch("study_bench_unknown"), "speed.json", &result);
    let dump = testdata("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex");
    let run = emmclab(["study", &dump, "--full", "--bench", &speed]);
    let said = "it may have been measured on a different card";
    assert!(run.stdout.split_whitespace().collect::<Vec<_>>().join(" ").contains(said), "{}", run.stdout);
    let json = emmclab(["study", &dump, "--bench", &speed, "--json"]).json();
    assert_eq!(json["speed"]["doubts"][0]["code"], "other_card");
    let own = emmclab(["study", "sim:generic-8g", "--bench", &speed, "--json"]).json();
    assert_eq!(own["speed"]["doubts"], serde_json::json!([]));
}

/// A page that would overwrite a result of hours: refused, under every name.
#[test]
#[cfg(feature = "html")]
fn a_saved_result_is_not_overwritten() {
    let folder = scratch("study_bench_over");
    let text = emmclab("bench sim:generic-8g --suite speed --size 64MiB --json".split(' ')).stdout;
    let speed = save(&folder, "speed.json", &text);
    let link = folder.join("link.html").display().to_string();
    std::os::unix::fs::symlink(&speed, &link).unwrap();
    for output in [&speed, &link] {
        let args = ["study", "sim:generic-8g", "--bench", &speed, "-o", output, "--force"];
        let refused = emmclab(args).exits(4);
        assert!(refused.stderr.contains("is the source itself"), "{}", refused.stderr);
        assert_eq!(std::fs::read_to_string(&speed).unwrap(), text, "{output}");
    }
    let (dump, reply) =
        (testdata("ext_csd_raw/samsung-klm-8g/samsung-klm-8g.ext_csd.hex"), save(&folder, "reply", [0; 512]));
    emmclab(["study", &dump, "--vendor-reply", &format!("micron:0x11:{reply}"), "-o", &reply, "--force"]).exits(4);
    assert_eq!(std::fs::read(&reply).unwrap(), [0; 512]);
}

/// A result of ours with one value of it changed.
fn changed(text: &str, place: &str, to: Value) -> String {
    let mut value: Value = serde_json::from_str(text).unwrap();
    *value.pointer_mut(place).unwrap_or_else(|| panic!("{place}")) = to;
    value.to_string()
}

#[test]
fn contradictory_results_are_refused_by_all_commands() {
    let folder = scratch("study_bench_unsound");
    let text = emmclab("bench sim:generic-8g --suite speed --size 64MiB --json".split(' ')).stdout;
    let good = save(&folder, "good.json", &text);
    emmclab(["import", &good]).exits(0);
    let found: Value = serde_json::from_str(&text).unwrap();
    let at = |place: &str| found.pointer(place).and_then(Value::as_f64).unwrap_or_else(|| panic!("{place}"));
    let cell = "/measurements/1";
    let interval = serde_json::json!({"low": 2.0, "high": 1.0});
    for (place, to, says) in [
        ("/state_before/holds_share", 7.into(), "state_before: holds_share 7; expected a share of 0 to 1"),
        ("/measurements/1/state/of_share", (-0.5).into(), "of_share -0.5; expected a share"),
        ("/measurements/1/range_bytes", 100.into(), "range_bytes 100; expected the size of a request, "),
        ("/measurements/1/mb_per_s", (-1.0).into(), "expected speeds that a card may have"),
        ("/measurements/1/mb_per_s", (at(&format!("{cell}/mb_per_s")) * 1.2).into(), "bytes in"),
        ("/measurements/1/iops", (at(&format!("{cell}/iops")) * 0.8).into(), "requests in"),
        ("/measurements/1/mb_per_s_interval", interval, "expected the lower end first"),
        ("/measurements/1/read_us/p50", 1e9.into(), "that ascend"),
        (
            "/measurements/1/read_us/count",
            1.into(),
            "requests in its histogram; expected the same number as its count, 1",
        ),
        ("/schema", "emmclab.bench/2".into(), "it is a document of the schema \"emmclab.bench/2\""),
        ("/schema", Value::Null, ""),
    ] {
        let bad = save(&folder, "bad.json", changed(&text, place, to));
        let readers: [&[&str]; 3] =
            [&["study", "sim:generic-8g", "--bench", &bad], &["compare", &good, &bad], &["import", &bad]];
        for args in readers {
            let refused = emmclab(args).exits(2);
            assert!(refused.stderr.contains(&bad) && refused.stderr.contains(says), "{place}: {}", refused.stderr);
            assert_eq!((refused.stdout.as_str(), refused.stderr.lines().count()), ("", 1), "{place} {args:?}");
        }
    }
}

/// A device or a pipe may have no end.
#[test]
fn endless_input_is_refused() {
    let folder = scratch("study_bench_endless");
    let result = save(
        &folder,
        "speed.json",
        emmclab("bench sim:generic-8g --suite speed --size 64MiB --json".split(' ')).stdout,
    );
    let endless = "/dev/zero";
    let readers: [&[&str]; 4] = [
        &["study", "sim:generic-8g", "--bench", endless],
        &["compare", &result, endless],
        &["import", endless],
        &["bench", "sim:generic-8g", "--suite", "replay", "--trace", endless],
    ];
    for args in readers {
        let refused = emmclab(args).exits(2);
        assert!(refused.stderr.contains("/dev/zero: expected a file or a pipe"), "{args:?}: {}", refused.stderr);
    }
    let large = folder.join("large.json");
    std::fs::File::create(&large).unwrap().set_len((64 << 20) + 1).unwrap();
    let refused = emmclab(["import", &large.display().to_string()]).exits(2);
    assert!(refused.stderr.contains("expected at most 67108864 bytes, found"), "{}", refused.stderr);
}
