//! Options that a bench cannot follow are refused in one message, and nothing is done.
#![cfg(all(feature = "bench", feature = "sim"))]

mod support;

use support::{emmclab, scratch};

#[test]
fn what_a_suite_cannot_follow_is_refused() {
    let refused = |args: &str, message: &str| {
        let run = emmclab(args.split(' ')).exits(2);
        assert_eq!((run.stdout.as_str(), run.stderr.trim_end()), ("", message), "{args}");
    };
    let can = |suite: &str, option: &str, suites: &str| {
        format!("emmclab: suite {suite} cannot follow {option}; suites that can: {suites}")
    };
    let depth = "tiotest, class, steady, replay";
    refused("bench sim:generic-8g --suite dd --queue-depth 4", &can("dd", "--queue-depth", depth));
    refused("bench sim:generic-8g --queue-depth 4", &can("iozone", "--queue-depth", depth));
    refused("bench sim:generic-8g --suite dd --write-budget 1GiB", &can("dd", "--write-budget", "steady, trim"));
    refused("bench sim:generic-8g --suite speed --trace x", &can("speed", "--trace", "replay"));
    let start = can("steady", "--rows", "");
    let run = emmclab("bench sim:generic-8g --suite steady --rows 4".split(' ')).exits(2);
    assert!(run.stderr.starts_with(&start), "{}", run.stderr);
}

#[test]
fn what_a_target_cannot_follow_is_refused() {
    let folder = scratch("bench_options");
    let file = folder.join("file");
    std::fs::write(&file, vec![1; 8 << 20]).unwrap();
    let real = "only block devices, files and folders can follow it, sim:generic-8g cannot";
    for option in ["--engine pread", "--save-restore"] {
        let name = option.split(' ').next().unwrap();
        let run = emmclab(format!("bench sim:generic-8g --rows 128 {option}").split(' ')).exits(2);
        assert_eq!(run.stderr.trim_end(), format!("emmclab: {name}: {real}"));
    }
    let file = file.display().to_string();
    for option in ["--host zynq-zed", "--no-queueing"] {
        let args = format!("bench {file} --suite hdparm {option}");
        let name = option.split(' ').next().unwrap();
        let run = emmclab(args.split(' ')).exits(2);
        let only = "only virtual cards, sim:PROFILE and sim:FOLDER, can follow it";
        assert_eq!(run.stderr.trim_end(), format!("emmclab: {name}: {only}, {file} cannot"));
    }
    assert_eq!(std::fs::read(&file).unwrap(), vec![1; 8 << 20]);
}

/// The list says of each suite what it follows, for people and for scripts.
#[test]
fn the_list_says_what_each_suite_follows() {
    let text = emmclab(["bench", "--list"]).exits(0);
    let list = emmclab(["bench", "--list", "--json"]).exits(0).json();
    let suites = list["suites"].as_array().unwrap();
    assert!(suites.len() > 15);
    for suite in suites {
        let follows: Vec<&str> = suite["follows"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
        assert!(text.stdout.contains(suite["about"].as_str().unwrap()), "{suite}");
        assert!(text.stdout.contains(&format!("follows {}\n", follows.join(" "))), "{suite}");
        let is_steady = suite["name"] == "steady";
        assert_eq!(follows.contains(&"--write-budget"), is_steady || suite["name"] == "trim", "{suite}");
    }
}
