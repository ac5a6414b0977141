//! `trace who`, `trace record --live`, `--measure-overhead`, `--at-boot`, and `study --trace`.

use std::path::Path;

use crate::support::loops::Loop;
use crate::support::{emmclab, is_root, save, scratch, skip, testdata};

/// A thread writes 300 bytes into a file by the page cache and waits 2.1 ms for its fsync; in ftrace's text.
pub(crate) const TEXT: &str = "\
    sqlite-7 [000] ..... 1.000000: sys_enter_write: (fd: 3)\n\
    sqlite-7 [000] ..... 1.000010: ext4_da_write_end: dev 179,2 ino 12 pos 0 len 300 copied 300\n\
    sqlite-7 [000] ..... 1.000020: sys_exit_write: 0x12c\n\
    sqlite-7 [000] ..... 2.000000: sys_enter_fsync: (fd: 3)\n\
    sqlite-7 [000] ..... 2.000100: block_bio_queue: 179,0 WS 800 + 8 [sqlite]\n\
    sqlite-7 [000] ..... 2.000200: block_rq_issue: 179,0 WS 4096 () 800 + 8 [sqlite]\n\
    sqlite-7 [000] ..... 2.002000: block_rq_complete: 179,0 WS () 800 + 8 [0]\n\
    sqlite-7 [000] ..... 2.002100: sys_exit_fsync: 0x0\n";

fn can_record() -> bool {
    let can = is_root() && Path::new("/sys/kernel/tracing/instances").is_dir();
    if !can {
        skip("recording needs root and tracefs at /sys/kernel/tracing");
    }
    can
}

#[test]
fn threads_and_files_of_a_recording_are_reported() {
    let file = save(&scratch("who"), "t.txt", TEXT);
    let found = emmclab(["trace", "who", &file, "--json"]).exits(0).json();
    assert_eq!(found["source"], "recording");
    let (thread, written) = (&found["threads"][0], &found["files"][0]);
    assert_eq!((thread["name"].as_str(), thread["file_written_bytes"].as_u64()), (Some("sqlite"), Some(300)));
    assert!((thread["waited_ms"].as_f64().unwrap() - 2.1).abs() < 1e-9, "{thread}");
    assert_eq!((written["inode"].as_u64(), written["device"].as_str()), (Some(12), Some("179:2")));
    emmclab(["trace", "who", &file])
        .exits(0)
        .says(&["sqlite 7 300 B 4.0 KiB 0 B 1 2.1 ms", "inode 12 of 179:2 sqlite"]);
    // Its own recordings have no writes into files: that is said.
    let direct = testdata("traces/mmc_dwrite_4096.dat");
    emmclab(["trace", "who", &direct]).exits(0).says(&["no write into a file is recorded", "python3"]);
}

#[test]
fn a_log_is_summed_up_over_days() {
    let folder = scratch("who_log");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let line = |ended: u64, bytes: u64| {
        let row = format!(
            r#"{{"device":"179:2","inode":12,"path":"/var/log/x","written_bytes":{bytes},"is_exact":true,"writers":["a"]}}"#
        );
        let thread = format!(
            r#"{{"pid":7,"name":"a","file_written_bytes":{bytes},"written_bytes":0,"read_bytes":0,"requests":0,"waited_ms":0.0}}"#
        );
        format!(
            r#"{{"duration_s":600.0,"events":1,"lost_events":0,"has_file_writes":true,"threads":[{thread}],"files":[{row}],"left_out":0,"source":"light","ended_unix_s":{ended},"event_ns":200.0,"cost_percent":0.5,"parts":1}}"#
        ) + "\n"
    };
    let text = line(now - 900_000, 1) + &line(now - 600, 1000) + &line(now, 24);
    let log = save(&folder, "who.ndjson", text);
    let found = emmclab(["trace", "who", "--log", &log, "--since", "7", "--json"]).exits(0).json();
    assert_eq!((found["parts"].as_u64(), found["files"][0]["written_bytes"].as_u64()), (Some(2), Some(1024)));
    assert_eq!((found["cost_percent"].as_f64(), found["duration_s"].as_f64()), (Some(0.5), Some(1200.0)));
    let all = emmclab(["trace", "who", "--log", &log, "--since", "30"]).exits(0);
    all.says(&["1800.0 s", "/var/log/x", "cost 0.5000 % of one processor"]);
    let bad = save(&folder, "bad.ndjson", "{}\n\nx\n");
    let refused = |args: &[&str], code: i32, says: &str| {
        let run = emmclab(["trace", "who"].iter().chain(args)).exits(code);
        assert!(run.stderr.contains(says), "{args:?}: {}", run.stderr);
    };
    refused(&["--log", &bad, "--since", "7"], 2, "bad.ndjson, line 1: ");
    refused(&["--log", &log, "--since", "0"], 2, "expected a number of days");
    let old = save(&folder, "old.ndjson", line(now - 900_000, 1));
    refused(&["--log", &old, "--since", "7"], 2, "nothing of the last 7 days is in it");
    refused(&["--since", "7"], 2, "--log");
    refused(&["--light", &log], 2, "cannot be used with");
    refused(&["/dev/null"], 2, "/dev/null");
    if is_root() {
        refused(&["--light", "--log", "/dev/null"], 4, "is no plain file");
    }
}

#[test]
fn writers_are_seen_live() {
    if !can_record() {
        return;
    }
    let folder = scratch("who_live");
    let log = folder.join("who.ndjson").display().to_string();
    let data = folder.join("data").display().to_string();
    let mut writer = std::process::Command::new("sh")
        .args(["-c", "while :; do echo 0123456789; sleep 0.05; done >>\"$0\"", &data])
        .spawn()
        .unwrap();
    let light = emmclab(["trace", "who", "--light", "--for", "2s", "--every", "500ms", "--log", &log, "--json"]);
    let live = emmclab(["trace", "who", "--for", "1s", "--json"]);
    let shown = emmclab(["trace", "record", "--live", "--for", "1s", "--every", "500ms"]);
    writer.kill().unwrap();
    writer.wait().unwrap();
    for run in [&light, &live] {
        let found = run.json();
        let file = found["files"].as_array().unwrap().iter().find(|file| file["path"] == data.as_str());
        let Some(file) = file else {
            skip("this folder's file system has no event for writes");
            continue;
        };
        assert!(file["written_bytes"].as_u64().unwrap() >= 11 * 10, "{file}");
        assert_eq!(file["writers"][0], "sh");
        assert!(found["cost_percent"].as_f64().is_some_and(|cost| cost < 100.0), "{found}");
    }
    assert!(std::fs::read_to_string(&log).unwrap().lines().count() >= 2, "a line for every interval");
    assert!(shown.stdout.matches("The last ").count() >= 2, "one for every interval: {}", shown.stdout);
}

#[test]
fn the_overhead_is_measured_in_turns() {
    if !can_record() {
        return;
    }
    let folder = scratch("overhead");
    let file = folder.join("t.dat").display().to_string();
    let data = format!("of={}", folder.join("data").display());
    let dd = ["dd", "if=/dev/zero", &data, "bs=4k", "count=20", "oflag=dsync", "status=none"];
    let args = ["trace", "record", "--measure-overhead", "-o", &file, "--json", "--"];
    let found = emmclab(args.into_iter().chain(dd)).exits(0).json();
    assert_eq!((found["rounds"].as_u64(), found["interval"].is_object()), (Some(10), true));
    assert!(found["events"].as_f64().unwrap() >= 40.0, "20 writes have 40 events: {found}");
    assert!(found["requests"].is_null(), "20 requests have no rate: {found}");
    assert!(found["spread"]["low"].as_f64().unwrap() <= found["overhead_percent"].as_f64().unwrap(), "{found}");
    emmclab(["trace", "analyse", &file, "--json"]).json()["events"].as_u64().unwrap();
    let failed = emmclab(["trace", "record", "--measure-overhead", "--force", "-o", &file, "--", "false"]).exits(2);
    assert!(failed.stderr.contains("a command that fails has no time to compare"), "{}", failed.stderr);
    let quick = emmclab(["trace", "record", "--measure-overhead", "--force", "-o", &file, "--", "true"]);
    // Another program may make a request just then: then the whole command's time is compared.
    assert!(quick.stderr.contains("there is nothing to measure") || quick.stdout.contains("of the command's time"));
    let missing = emmclab(["trace", "record", "--measure-overhead", "--force", "-o", &file, "--", "/none"]).exits(127);
    assert!(missing.stderr.contains("/none: cannot run"), "{}", missing.stderr);
}

/// Of a command that also does nothing for some time, the requests' rate counts.
#[test]
fn the_overhead_is_the_one_of_the_requests() {
    if !can_record() {
        return;
    }
    let Some(disk) = Loop::new("overhead_disk", 32 << 20) else { return };
    let file = scratch("overhead_requests").join("t.dat").display().to_string();
    let script = format!("sleep 0.1; dd if={} of=/dev/null bs=4k iflag=direct status=none; sleep 0.1", disk.path);
    let args = ["trace", "record", "--measure-overhead", "--force", "-o", &file, "--rounds"];
    let run = |more: &[&str]| emmclab(args.iter().chain(more).chain(&["--", "sh", "-c", &script])).exits(0);
    let found = run(&["3", "--json"]).json();
    let requests = &found["requests"];
    let number = |key: &str| requests[key].as_f64().unwrap_or_else(|| panic!("{key}: {found}"));
    assert_eq!(requests["disk"], disk.name());
    assert!(number("count") >= 8192.0, "{requests}");
    // The pauses are in the time of the command, and not in the rate.
    let all = number("count") / found["without_s"].as_f64().unwrap();
    assert!(number("without_per_s") > all, "{found}");
    assert!(number("fewer_percent") <= requests["spread"]["high"].as_f64().unwrap(), "{requests}");
    assert!(requests["interval"].is_null(), "3 rounds have no interval: {requests}");
    run(&["1"]).says(&["fewer IOPS (single rounds", "requests/s without"]);
}

#[test]
fn a_boot_is_recorded_after_consent_only() {
    let root = scratch("boot_root");
    let path = root.display().to_string();
    let unit = root.join("etc/systemd/system/emmclab-boot.service");
    let base = ["trace", "record", "--at-boot", "--root", &path];
    let with = |more: &[&str]| emmclab(base.iter().chain(more));
    with(&["--kernel", "6.12.1"]).exits(0).says(&["trace_instance=emmclab-boot,block:block_bio_queue", "[Install]"]);
    with(&["--kernel", "5.10.0"]).exits(0).says(&["trace_event=block:block_bio_queue"]);
    let refused = with(&["--install"]).exits(4);
    assert!(refused.stderr.contains("no terminal to confirm it at: use --yes"), "{}", refused.stderr);
    assert!(!unit.exists());
    for _ in 0..2 {
        assert_eq!(with(&["--install", "--yes", "--json"]).exits(0).json()["installed"], true);
        assert!(std::fs::read_to_string(&unit).unwrap().contains("trace record --from-boot --force -o"));
    }
    let link = root.join("etc/systemd/system/multi-user.target.wants/emmclab-boot.service");
    assert_eq!(std::fs::read_to_string(link).unwrap(), std::fs::read_to_string(&unit).unwrap());
    with(&["--remove"]).exits(0).says(&["removed"]);
    assert!(!unit.exists());
    with(&["--remove"]).exits(0).says(&["nothing to remove"]);
    let file = root.join("boot.dat").display().to_string();
    let none = emmclab(["trace", "record", "--from-boot", "-o", &file]).exits(2);
    assert!(none.stderr.lines().count() <= 2 && !Path::new(&file).exists(), "{}", none.stderr);
}

#[test]
fn a_recorded_boot_is_a_suite() {
    let boot = testdata("traces/mmc_dwrite_4096.dat");
    let args = ["bench", "sim:generic-8g", "--suite", "boot", "--trace", &boot, "--timed", "--wrap", "--json"];
    let found = emmclab(args).exits(0).json();
    assert_eq!(found["suite"], "boot");
    assert_eq!(found["measurements"][0]["requests"].as_u64(), Some(8), "{}", found["measurements"]);
}

#[test]
fn a_study_shows_the_limit_of_a_recording() {
    let recording = testdata("traces/mmc_dwrite_4096.dat");
    let found = emmclab(["study", "sim:generic-8g", "--trace", &recording, "--json"]).json();
    assert_eq!(found["trace"]["requests"].as_u64(), Some(8));
    let text = emmclab(["study", "sim:generic-8g", "--trace", &recording]);
    let words = text.words();
    assert!(words.contains("with no card time; longest: hardware"), "{words}");
    let empty = save(&scratch("study_trace"), "empty.txt", "8,0 0 1 0.000000000 1 P N [a]\n");
    let refused = emmclab(["study", "sim:generic-8g", "--trace", &empty]).exits(2).stderr;
    assert!(refused.contains("no complete request is in it"), "{refused}");
}
