//! `trace record` with the kernel's tracefs, and `trace analyse` of what it recorded.

use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{command, emmclab, is_root, scratch, skip};

const INSTANCES: &str = "/sys/kernel/tracing/instances";

fn can_record() -> bool {
    let can = is_root() && Path::new(INSTANCES).is_dir();
    if !can {
        skip("recording needs root and tracefs at /sys/kernel/tracing");
    }
    can
}

fn instance(child: &Child) -> std::path::PathBuf {
    Path::new(INSTANCES).join(format!("emmclab-{}", child.id()))
}

#[test]
fn writes_of_a_command_are_recorded_and_paired() {
    if !can_record() {
        return;
    }
    let folder = scratch("trace_record");
    let (file, data) = (folder.join("t.dat"), folder.join("data"));
    let (name, data) = (file.display().to_string(), format!("of={}", data.display()));
    let dd = ["dd", "if=/dev/zero", &data, "bs=4k", "count=50", "oflag=sync", "status=none"];
    let all = ["trace", "record", "-o", &name, "--json", "--"].into_iter().chain(dd);
    let recorded = emmclab(all).exits(0).json();
    assert_eq!((recorded["lost_events"].as_u64(), recorded["command_exit"].as_i64()), (Some(0), Some(0)));
    assert!(recorded["event_ns"].as_f64().unwrap() > 0.0);
    let run = emmclab(["trace", "analyse", &name, "--json"]);
    let found = run.json();
    assert_eq!((found["lost_events"].as_u64(), found["damaged"].as_u64()), (Some(0), Some(0)));
    assert!(found["events"].as_u64().unwrap() >= 100, "50 calls have 100 events: {}", found["events"]);
    // The folder may be on a file system without a block device.
    let writer = found["waiters"].as_array().unwrap().iter().find(|waiter| waiter["name"] == "dd");
    match writer {
        Some(writer) => assert!(writer["written_bytes"].as_u64().unwrap() >= 50 * 4096, "{writer}"),
        None => skip("the test's folder is not on a block device: dd made no request"),
    }
    let again = emmclab(["trace", "record", "-o", &name, "--for", "1ms"]);
    let again = again.exits(2).stderr;
    assert!(again.contains("exists already; --force replaces it"), "{again}");
}

#[test]
fn a_signal_ends_the_recording_and_leaves_nothing_behind() {
    if !can_record() {
        return;
    }
    let file = scratch("trace_signal").join("t.dat");
    let mut recording = command();
    recording.args(["trace", "record", "--for", "60min", "-o"]).arg(&file).stdout(Stdio::null());
    let mut child = recording.spawn().unwrap();
    // It is on until the signal comes.
    let is_on = |child: &Child| std::fs::read_to_string(instance(child).join("tracing_on")).is_ok_and(|on| on == "1\n");
    let has_events = |child: &Child| {
        let event = instance(child).join("events/syscalls/sys_exit_io_uring_enter/enable");
        std::fs::read_to_string(event).is_ok_and(|on| on.starts_with('1'))
    };
    while !(has_events(&child) && is_on(&child)) {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().code().is_some());
    assert!(!instance(&child).exists());
    emmclab(["trace", "analyse", &file.display().to_string(), "--json"]).json()["events"].as_u64().unwrap();
}

#[test]
fn an_abandoned_instance_is_removed() {
    if !can_record() {
        return;
    }
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let abandoned = instance(&ended);
    std::fs::create_dir(&abandoned).unwrap();
    let file = scratch("trace_abandoned").join("t.dat");
    emmclab(["trace", "record", "--for", "1ms", "-o", &file.display().to_string()]);
    assert!(!abandoned.exists());
}

#[test]
fn a_recording_is_no_device_and_no_folder() {
    for (file, code, says) in [("/dev/null", 4, "is no plain file"), ("/", 4, "is no plain file")] {
        let refused = emmclab(["trace", "record", "--for", "1ms", "-o", file]).exits(code).stderr;
        assert!(refused.contains(says), "{refused}");
    }
    let refused = emmclab(["trace", "record", "--for", "5"]).exits(2).stderr;
    assert!(refused.contains("expected a time with its unit"), "{refused}");
    emmclab(["trace", "analyse", "/dev/null"]).exits(2);
}
