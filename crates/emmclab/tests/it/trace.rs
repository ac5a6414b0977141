//! `trace record` with the kernel's tracefs, and `trace analyse` of what it recorded.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::loops::{Loop, succeeds};
use crate::support::{command, emmclab, is_root, scratch, skip};

/// A recording has the whole machine in it: tests that look for their own dd take turns.
static ONE_DD: Mutex<()> = Mutex::new(());

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
    let _turn = ONE_DD.lock().unwrap_or_else(PoisonError::into_inner);
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
fn a_recording_that_cannot_be_written_is_refused_before_the_command() {
    let folder = scratch("trace_unwritable");
    let [name, ran] = ["no/such/t.dat", "ran"].map(|name| folder.join(name).display().to_string());
    let refused = emmclab(["trace", "record", "-o", &name, "--", "touch", &ran]).exits(2).stderr;
    assert!(refused.contains(&format!("{name}: cannot write")), "{refused}");
    assert!(!Path::new(&ran).exists());
}

/// As `time` and `timeout` have it.
#[test]
fn the_exit_code_is_the_one_of_the_command() {
    let folder = scratch("trace_exit");
    let name = folder.join("t.dat").display().to_string();
    let record =
        |command: &[&str]| emmclab(["trace", "record", "--force", "-o", &name, "--json", "--"].iter().chain(command));
    if !can_record() {
        return;
    }
    for (script, code, exit, signal) in [
        ("exit 0", 0, Some(0), None),
        ("exit 1", 1, Some(1), None),
        ("exit 77", 77, Some(77), None),
        ("kill -KILL $$", 137, None, Some(9)),
        ("kill -TERM $$", 143, None, Some(15)),
    ] {
        let recorded = record(&["sh", "-c", script]).exits(code).json();
        let found = (recorded["command_exit"].as_i64(), recorded["ended_by_signal"].as_i64());
        assert_eq!(found, (exit, signal), "{script}");
        std::fs::remove_file(&name).unwrap();
    }
    let folder = folder.display().to_string();
    for (program, code) in [("/nonexistent/program", 127), (folder.as_str(), 126)] {
        let refused = record(&[program]).exits(code).stderr;
        assert!(refused.contains("cannot run") && refused.lines().count() == 1, "{refused}");
        assert!(!Path::new(&name).exists(), "a recording of nothing");
    }
    // The time that was asked for is over: that is no failure, and the command is asked to end.
    let recorded = record_for(&name, "100ms", &["sleep", "3600"]).exits(0).json();
    assert!(recorded["command_exit"].is_null() && recorded["ended_by_signal"].is_null(), "{recorded}");
}

fn record_for(name: &str, time: &str, command: &[&str]) -> crate::support::Run {
    emmclab(["trace", "record", "--force", "-o", name, "--json", "--for", time, "--"].iter().chain(command))
}

/// Ctrl-C and SIGTERM: the command ends before the recorder does, the recording is kept, and the code says which.
#[test]
fn a_signal_ends_the_command_too() {
    if !can_record() {
        return;
    }
    let folder = scratch("trace_signal_command");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (file, ready) = (folder.join(format!("{code}.dat")), folder.join(format!("{code}.ready")));
        let mut recording = command();
        // The shell's number stays the one of `sleep`.
        let script = "echo $$ >\"$0.part\" && mv \"$0.part\" \"$0\" && exec sleep 3600";
        recording.args(["trace", "record", "-o"]).arg(&file).args(["--", "sh", "-c", script]).arg(&ready);
        let mut child = recording.stdout(Stdio::null()).spawn().unwrap();
        while !ready.exists() {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::yield_now();
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert!(!instance(&child).exists());
        let sleep = std::fs::read_to_string(&ready).unwrap();
        assert!(!Path::new("/proc").join(sleep.trim()).exists(), "the command goes on");
        emmclab(["trace", "analyse", &file.display().to_string(), "--json"]).json()["events"].as_u64().unwrap();
    }
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

/// In a mount namespace without tracefs: it is mounted for the recording only, and what a killed recorder leaves is
/// removed at the next start.
#[test]
fn tracefs_is_mounted_for_a_recording_only() {
    let folder = scratch("trace_unmounted");
    let script = "
        umount /sys/kernel/debug/tracing /sys/kernel/debug /sys/kernel/tracing 2>/dev/null
        for place in /sys/kernel/tracing /sys/kernel/debug/tracing; do [ ! -d $place/instances ] || exit 99; done
        mkdir probe && mount -t tracefs tracefs probe || exit 99
        umount probe && rmdir probe || exit 1
        emmclab trace record --for 1ms -o a.dat >/dev/null || exit 2
        ! grep tracefs /proc/mounts || exit 3
        emmclab trace record --for 60min -o b.dat & recorder=$!
        place=emmclab-tracefs-$recorder
        until [ \"$(cat $place/instances/emmclab-$recorder/tracing_on 2>/dev/null)\" = 1 ]; do kill -0 $recorder || exit 4; done
        kill -9 $recorder; wait $recorder
        [ -d $place/instances/emmclab-$recorder ] || exit 5
        emmclab trace record --for 1ms -o c.dat >/dev/null || exit 6
        ! grep tracefs /proc/mounts || exit 7
        set -- emmclab-tracefs-*
        [ ! -e \"$1\" ] || exit 8
        mkdir probe && mount -t tracefs tracefs probe || exit 9
        [ ! -e probe/instances/emmclab-$recorder ]";
    let program = Path::new(command().get_program()).parent().unwrap().display().to_string();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap_or_default());
    let run = Command::new("unshare")
        .args(["-m", "sh", "-c", script])
        .current_dir(&folder)
        .env("TMPDIR", &folder)
        .env("PATH", path)
        .output();
    match run {
        Ok(run) if run.status.code() != Some(99) && is_root() => {
            assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
        }
        _ => skip("needs unshare, root, and a namespace without tracefs"),
    }
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

/// ext4 on a loop device: the kernel counts as many reads and writes as the recording has, all requests have their bio,
/// and trace-cmd lists every event of the file.
#[test]
fn requests_of_a_filesystem_are_those_that_the_kernel_counts() {
    if !can_record() {
        return;
    }
    let _turn = ONE_DD.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = scratch("trace_filesystem");
    let Some(disk) = Loop::new("trace_filesystem_disk", 64 << 20) else { return };
    let point = folder.join("mounted").display().to_string();
    std::fs::create_dir(&point).unwrap();
    if !succeeds("mkfs.ext4", &["-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", &disk.path])
        || !succeeds("mount", &[&disk.path, &point])
    {
        return skip("needs mkfs.ext4 and a mount of ext4 on a loop device");
    }
    let name = folder.join("t.dat").display().to_string();
    let stat = format!("/sys/block/{}/stat", disk.name());
    // Counted within the recording: other programs read the device too.
    let counted = |at: &str| {
        let text = std::fs::read_to_string(folder.join(at)).unwrap();
        let number = |at: usize| text.split_whitespace().nth(at).unwrap().parse::<u64>().unwrap();
        (number(0), number(4))
    };
    assert!(succeeds("sync", &["-f", &point]));
    let counts = |at: &str| format!("cat {stat} >{}", folder.join(at).display());
    let script = format!(
        "{}; dd if=/dev/zero of={point}/a bs=4k count=64 oflag=dsync status=none; \
         dd if=/dev/zero of={point}/b bs=64k count=32 conv=fsync status=none; \
         dd if={point}/a of=/dev/null bs=4k iflag=direct status=none; umount {point} && {}",
        counts("before"),
        counts("after")
    );
    let recorded = emmclab(["trace", "record", "-o", &name, "--json", "--", "sh", "-c", &script]).exits(0).json();
    let (before, after) = (counted("before"), counted("after"));
    assert_eq!((recorded["lost_events"].as_u64(), recorded["command_exit"].as_i64()), (Some(0), Some(0)));
    let number = std::fs::read_to_string(format!("/sys/block/{}/dev", disk.name())).unwrap();
    let found = emmclab(["trace", "analyse", &name, "--device", number.trim(), "--json"]).json();
    let rows = found["spans"].as_array().unwrap();
    let of = |op: &str| {
        let own = rows.iter().filter(|row| row["op"] == op && row["size_bytes"] != 0);
        own.map(|row| row["count"].as_u64().unwrap()).sum::<u64>()
    };
    // The kernel counts a bio that only asks for a flush as a write.
    let flushes: u64 = rows.iter().filter(|row| row["op"] == "flush").map(|row| row["count"].as_u64().unwrap()).sum();
    let (reads, writes) = (after.0 - before.0, after.1 - before.1);
    assert_eq!(of("read"), reads, "{rows:?}");
    assert!((of("write")..=of("write") + flushes).contains(&writes), "{writes} writes in the kernel, {rows:?}");
    assert!(of("read") >= 64 && of("write") >= 64 + 2, "{rows:?}");
    for row in rows {
        assert!(!row["block_us"].is_null(), "a request without its bio: {row}");
    }
    // A kernel may have no events of journals.
    if found["commits"].as_u64() > Some(0) {
        let is_journal = |row: &&serde_json::Value| row["why"] == "journal";
        let journal = found["reasons"].as_array().unwrap().iter().find(is_journal).expect("a journal");
        let threads = journal["threads"].to_string();
        assert!(threads.contains("jbd2/") && threads.contains(" for dd "), "{threads}");
    }

    let Ok(report) = Command::new("trace-cmd").args(["report", "-t", &name]).output() else {
        return skip("trace-cmd is not installed: its list of events is not compared");
    };
    let report = String::from_utf8_lossy(&report.stdout);
    // `  dd-7   [001]  12.345678901: block_bio_queue: ...`
    let is_event = |line: &&str| line.starts_with(' ') && line.contains("] ") && line.contains(": ");
    let listed = report.lines().filter(is_event).count() as u64;
    assert_eq!(found["events"].as_u64(), Some(listed), "trace-cmd lists another number of events");
}
