//! Input without a bound is refused with the limit, before it is read: files of 3 GiB, deep JSON, amounts of 10^18
//! bytes.

use std::fs::File;

use crate::support::{emmclab, names_in, save, scratch, skip};

/// One line that contains each of `says`, or the two of a wrong argument; nothing is written.
fn refused(args: &[&str], says: &[&str]) {
    let run = emmclab(args).exits(2);
    assert!(run.stdout.is_empty() && run.stderr.lines().count() <= 2, "{args:?}: {run:?}");
    for word in says {
        assert!(run.stderr.contains(word), "{args:?}: no {word:?} in {}", run.stderr);
    }
}

#[test]
fn files_of_3_gib_are_refused() {
    let folder = scratch("unbounded_files");
    let path = folder.join("huge");
    // A hole: it takes no space.
    if let Err(error) = File::create(&path).and_then(|file| file.set_len(3 << 30)) {
        return skip(&format!("no file of 3 GiB here: {error}"));
    }
    let huge = path.to_str().unwrap();
    let size = "found 3221225472";
    for args in [
        &["sim", "run", "sim:generic-8g", "--job", huge][..],
        &["import", huge],
        &["compare", huge, huge],
        &["probe", "--from", huge],
        &["twin", "check", huge, huge],
        &["bench", "sim:generic-8g", "--board", huge],
        &["sim", "create", "none", huge],
        &["sim", "what-if", "generic-8g", "--workload", huge, "--change", "cache=off"],
        &["apply", huge, "sim:none"],
    ] {
        refused(args, &["expected", "at most", size]);
    }
    refused(&["restore", huge, "--check"], &["no clone"]);
    let job = save(&folder, "job.json", r#"{"phases":[{"kind":"trace","file":"huge"}]}"#);
    refused(&["sim", "run", "sim:generic-8g", "--job", &job], &["at most 1073741824 bytes", size]);
    assert_eq!(names_in(&folder), ["huge", "job.json"]);
}

#[test]
fn deep_json_is_refused() {
    let folder = scratch("unbounded_depth");
    let deep = save(&folder, "deep", "[".repeat(200_000) + &"]".repeat(200_000));
    let objects = save(&folder, "objects", "{\"a\":".repeat(100_000) + "1" + &"}".repeat(100_000));
    for file in [&deep, &objects] {
        refused(&["sim", "run", "sim:generic-8g", "--job", file], &["recursion limit"]);
        refused(&["apply", file, "sim:none"], &["recursion limit"]);
        for args in [
            &["show", file][..],
            &["import", file],
            &["probe", "--from", file],
            &["trace", "analyse", file],
            &["trust", "--registers", file],
        ] {
            refused(args, &[file]);
        }
    }
}

#[test]
fn amounts_beyond_all_cards_are_refused() {
    let folder = scratch("unbounded_amounts");
    for (amount, limit) in
        [("1000000000000000000B", "1024 TiB"), ("1000000000GiB", "1024 TiB"), ("1000000001x", "1000000x")]
    {
        let text = format!(r#"{{"phases":[{{"kind":"random","amount":"{amount}"}}]}}"#);
        let job = save(&folder, "job.json", text);
        refused(&["sim", "run", "sim:generic-8g", "--job", &job], &["at most", limit]);
    }
    let rate = "1000000000GB/day";
    for args in [
        &["sim", "life", "generic-8g", "--rate", rate][..],
        &["sim", "what-if", "generic-8g", "--rate", rate, "--change", "cache=off"],
        &["advise", "part", "--rate", rate],
    ] {
        refused(args, &["1000 TB a day"]);
    }
    refused(&["bench", "sim:generic-8g", "--suite", "speed", "--size", "1000000000GiB"], &["do not fit", "7.3 GiB"]);
    refused(&["trim", "status", "/", "--test", "/", "--test-size", "1000000000GiB"], &["1 MiB to 1 GiB"]);
    refused(&["trust", "/", "--test", "/", "--test-size", "1000000000GiB"], &["4 KiB to 4 GiB"]);
}
