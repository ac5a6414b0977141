//! Options that a bench does not support are refused in one message before any I/O.

use crate::support::{emmclab, scratch};

#[test]
fn options_that_a_suite_lacks_are_refused() {
    let refused = |args: &str, message: &str| {
        let run = emmclab(args.split(' ')).exits(2);
        assert_eq!((run.stdout.as_str(), run.stderr.trim_end()), ("", message), "{args}");
    };
    let can = |suite: &str, option: &str, suites: &str| {
        format!("emmclab: suite {suite} cannot follow {option}; suites that can: {suites}")
    };
    let depth = "tiotest, class, steady, replay";
    refused("bench sim:generic-8g --suite dd --queue-depth 4", &can("dd", "--queue-depth", depth));
    refused("bench sim:generic-8g --queue-depth 4", &can("speed", "--queue-depth", depth));
    refused("bench sim:generic-8g --suite dd --write-budget 1GiB", &can("dd", "--write-budget", "steady, trim"));
    refused("bench sim:generic-8g --suite speed --trace x", &can("speed", "--trace", "boot, replay"));
    let start = can("steady", "--rows", "");
    let run = emmclab("bench sim:generic-8g --suite steady --rows 4".split(' ')).exits(2);
    assert!(run.stderr.starts_with(&start), "{}", run.stderr);
}

#[test]
fn options_that_a_target_lacks_are_refused() {
    let folder = scratch("bench_options");
    let file = folder.join("file");
    std::fs::write(&file, vec![1; 8 << 20]).unwrap();
    let real = "supported only for block devices, files and folders; not for sim:generic-8g";
    for option in ["--engine pread", "--save-restore"] {
        let name = option.split(' ').next().unwrap();
        let run = emmclab(format!("bench sim:generic-8g --suite iozone --rows 128 {option}").split(' ')).exits(2);
        assert_eq!(run.stderr.trim_end(), format!("emmclab: {name}: {real}"));
    }
    let file = file.display().to_string();
    for option in ["--board zynq-zed", "--no-queueing"] {
        let args = format!("bench {file} --suite hdparm {option}");
        let name = option.split(' ').next().unwrap();
        let run = emmclab(args.split(' ')).exits(2);
        let only = "supported only for virtual cards (sim:PROFILE, sim:FOLDER)";
        assert_eq!(run.stderr.trim_end(), format!("emmclab: {name}: {only}; not for {file}"));
    }
    assert_eq!(std::fs::read(&file).unwrap(), vec![1; 8 << 20]);
}

/// The list has the supported options of each suite, as text and as JSON.
#[test]
fn the_list_has_the_options_of_each_suite() {
    let text = emmclab(["bench", "--list"]).exits(0);
    let list = emmclab(["bench", "--list", "--json"]).exits(0).json();
    let suites = list["suites"].as_array().unwrap();
    assert!(suites.len() > 15);
    for suite in suites {
        let follows: Vec<&str> = suite["follows"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
        assert!(text.stdout.contains(suite["about"].as_str().unwrap()), "{suite}");
        assert!(text.stdout.contains(&format!("supports {}\n", follows.join(" "))), "{suite}");
        let is_steady = suite["name"] == "steady";
        assert_eq!(follows.contains(&"--write-budget"), is_steady || suite["name"] == "trim", "{suite}");
    }
}

/// A partial sector is refused before any I/O, with the option's name.
#[test]
fn positions_and_sizes_are_whole_sectors() {
    for (args, says) in [
        ("fs --size 134217729B", "--size 128.0 MiB (134217729 bytes): expected a multiple of its sectors of 512 B"),
        ("fs --from 1B", "--from 1 B: expected a multiple of its sectors of 512 B"),
        ("dd --size 16777217B", "--size 16.0 MiB (16777217 bytes): expected a multiple of its sectors of 512 B"),
        ("iozone --size 134217729B", "--size 128.0 MiB (134217729 bytes): expected a multiple of its sectors of 512 B"),
        ("hdparm --from 1B", "--from 1 B: expected a multiple of its sectors of 512 B"),
        ("flashbench-open-au --from 513B", "--from 513 B: expected a multiple of its sectors of 512 B"),
        ("trim --from 1B", "--from 1 B: expected a multiple of its sectors of 512 B"),
    ] {
        let run = emmclab(format!("bench sim:generic-8g --suite {args}").split(' ')).exits(2);
        assert!(run.stderr.contains(says) && run.stdout.is_empty(), "{args}: {}", run.stderr);
    }
}

/// For every request that is too small the minimum is the same.
#[test]
fn every_suite_has_one_minimum_size() {
    for suite in ["trim", "steady"] {
        for size in ["512B", "4MiB", "8MiB"] {
            let run = emmclab(["bench", "sim:generic-8g", "--suite", suite, "--size", size]).exits(2);
            assert!(run.stderr.contains("at least 16 MiB are needed"), "{suite} {size}: {}", run.stderr);
        }
    }
    // The message has the available size, not an unrequested part of it.
    let small = scratch("bench_options_small").join("small");
    std::fs::write(&small, [1; 512]).unwrap();
    let run = emmclab(["bench", &small.display().to_string(), "--suite", "speed", "--read-only"]).exits(2);
    assert!(run.stderr.contains("512 KiB from the start on do not fit") && run.stderr.contains("has 512"), "{run:?}");
}

#[test]
fn list_excludes_other_arguments() {
    for args in ["bench --list sim:generic-8g", "bench --list --suite fs", "bench --list --rows 4"] {
        let run = emmclab(args.split(' ')).exits(2);
        assert!(run.stderr.contains("--list") && run.stdout.is_empty(), "{args}: {}", run.stderr);
    }
}

/// The coming writes are printed before: bytes, time, share of life. A suite that only reads prints none.
#[test]
fn a_bench_without_a_suite_is_speed_and_prints_its_writes() {
    let run = emmclab(["bench", "sim:generic-8g", "--size", "16MiB"]);
    assert!(run.stdout.contains("512 KiB") && run.code < 2, "{run:?}");
    for says in ["suite speed: writes up to 48.0 MiB, reads up to 48.0 MiB", "MB/s", "% of the card's rated life"] {
        assert!(run.stderr.contains(says), "{says}: {}", run.stderr);
    }
    let quiet = emmclab(["bench", "sim:generic-8g", "--size", "16MiB", "--read-only"]);
    assert_eq!(quiet.stderr, "");
    let quiet = emmclab(["bench", "sim:generic-8g", "--size", "16MiB", "--json"]);
    assert_eq!((quiet.stderr.as_str(), &quiet.json()["suite"]), ("", &"speed".into()));
}

/// A new file is filled before: those bytes are counted as written, in the result and in its wear.
#[test]
fn written_bytes_include_the_fill() {
    let folder = scratch("bench_whole_count");
    let run = emmclab(["bench", &folder.display().to_string(), "--size", "4MiB", "--json"]).json();
    let measured = |column: &str| -> u64 {
        let all = run["measurements"].as_array().unwrap().iter();
        all.filter(|one| one["column"] == column).map(|one| one["bytes"].as_u64().unwrap()).sum()
    };
    assert_eq!(run["written_bytes"].as_u64().unwrap(), measured("write") + (4 << 20), "{run}");
}
