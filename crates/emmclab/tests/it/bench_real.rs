//! `bench` on files, folders and loop devices of this machine: refusals, messages, leftovers.

use crate::support;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::hold::{Hold, with_default_signals};
use crate::support::loops::{Loop, succeeds};
use crate::support::{command, emmclab, names_in, save, scratch, skip};

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at >> 12) as u8 ^ (at as u8).wrapping_mul(31)).collect()
}

#[test]
fn a_file_is_written_only_on_request() {
    let folder = scratch("asked");
    let before = content(4 << 20);
    let file = save(&folder, "file", &before);
    let refused = emmclab(["bench", &file, "--suite", "iozone", "--rows", "64", "--size", "2MiB"]).exits(4);
    assert!(refused.stderr.contains("is lost") && refused.stderr.contains("--destroy"), "{}", refused.stderr);
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let refused = emmclab(["bench", &file, "--suite", "iozone", "--rows", "64", "--size", "2MiB", "--json"]).exits(4);
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);

    let other =
        ["bench", &file, "--suite", "iozone", "--rows", "64", "--size", "2MiB", "--destroy", "--yes-i-mean", "another"];
    assert!(emmclab(other).exits(4).stderr.contains("its name is file"));
    assert_eq!(std::fs::read(&file).unwrap(), before);

    let read =
        emmclab(["bench", &file, "--suite", "iozone", "--rows", "64", "--size", "4MiB", "--read-only", "--json"]);
    assert!(read.code < 2, "{}", read.stderr);
    assert_eq!((&read.json()["written_bytes"], &read.json()["read_bytes"]), (&0.into(), &(3 * (4u64 << 20)).into()));
    assert_eq!(std::fs::read(&file).unwrap(), before);

    let written =
        emmclab(["bench", &file, "--suite", "iozone", "--rows", "64", "--size", "2MiB", "--destroy", "--json"]);
    assert!(written.code < 2, "{}", written.stderr);
    let document = written.json();
    assert_eq!(document["written_bytes"], 3 * (2u64 << 20));
    assert_eq!(document["context"]["filesystem"]["hole_bytes"], 0);
    assert!(document["context"]["host"]["kernel"].is_string() && document["context"]["effort"]["time_s"].is_f64());
    let after = std::fs::read(&file).unwrap();
    assert!(after[..2 << 20] != before[..2 << 20] && after[2 << 20..] == before[2 << 20..]);
}

#[test]
fn previous_content_is_restored() {
    let folder = scratch("put_back");
    let before = content(4 << 20);
    let file = save(&folder, "file", &before);
    let kept = folder.join("kept").display().to_string();
    for more in [&[][..], &["--save-to", &kept]] {
        for engine in ["auto", "pread"] {
            let args = [
                "bench",
                &file,
                "--suite",
                "iozone",
                "--rows",
                "16",
                "--size",
                "3MiB",
                "--destroy",
                "--save-restore",
                "--engine",
                engine,
            ];
            let run = emmclab(args.iter().chain(more));
            assert!(
                run.code < 2 && run.stdout.contains("restored afterwards and compared"),
                "{}{}",
                run.stdout,
                run.stderr
            );
            assert_eq!(std::fs::read(&file).unwrap(), before);
        }
    }
    assert_eq!(names_in(&folder), ["file"]);
}

#[test]
fn a_created_file_is_removed() {
    let folder = scratch("made");
    let name = folder.to_str().unwrap();
    let new = folder.join("new").display().to_string();
    for target in [name, &new] {
        let run = emmclab(["bench", target, "--suite", "iozone", "--rows", "128", "--size", "4MiB", "--json"]);
        assert!(run.code < 2, "{}", run.stderr);
        let document = run.json();
        assert_eq!((&document["size_bytes"], &document["target_kind"]), (&(4u64 << 20).into(), &"file".into()));
        // Its own writes and those that filled the file.
        let wear = &document["context"]["wear"]["written_bytes"];
        assert!(wear.is_null() || *wear == 4 * (4u64 << 20), "{wear}");
        assert_eq!(names_in(&folder), [""; 0]);
    }
    emmclab(["bench", &new]).exits(2);
}

#[test]
fn a_signal_ends_the_bench_cleanly() {
    let folder = scratch("signal");
    let before = content(48 << 20);
    let file = save(&folder, "file", &before);
    let args = ["bench", &file, "--size", "48MiB", "--suite", "iozone", "--rows", "1", "--destroy", "--save-restore"];
    let mut command = with_default_signals(command().get_program());
    command.args(args).stdout(Stdio::null()).stderr(Stdio::piped());
    let hold = Hold::at(&mut command, "saved", 1, Path::new(&file));
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    hold.wait(&mut child);
    assert!(succeeds("kill", &["-INT", &child.id().to_string()]));
    drop(hold);
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let code = child.wait().unwrap().code();
    assert_eq!(std::fs::read(&file).unwrap(), before);
    assert!(code == Some(2) && rest.iter().any(|line| line.contains("stopped")), "{code:?} {rest:?}");
    assert_eq!(names_in(&folder), ["file"]);
}

#[test]
fn invalid_targets_are_reported_in_one_line() {
    let folder = scratch("bad");
    let odd = save(&folder, "odd", [1; 1000]);
    let short = save(&folder, "short", content(1 << 20));
    let pipe = folder.join("pipe").display().to_string();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let folder = folder.display().to_string();
    let cases: [(&[&str], i32, &str); 10] = [
        (&["/dev/null"], 2, "a character device"),
        (&[&pipe], 2, "a pipe"),
        (&["/no such folder/file", "--size", "1MiB"], 2, "No such file"),
        (&["/dev/no-such-device", "--size", "1MiB"], 2, "no such device"),
        (&["no-such-file"], 2, "--size SIZE creates"),
        (&[&odd], 2, "multiple of its sectors"),
        (&[&short, "--destroy", "--suite", "iozone"], 2, "the target has 1 MiB"),
        (&[&folder, "--size", "900TiB"], 2, "not enough space"),
        (&[&short, "--size", "0B", "--destroy"], 2, "more than 0"),
        (&[&short, "--yes-i-mean", "x"], 2, "--destroy"),
    ];
    for (args, code, says) in cases {
        let run = emmclab(["bench"].iter().chain(args)).exits(code);
        assert!(run.stdout.is_empty() && run.stderr.contains(says), "{args:?}: {}", run.stderr);
    }
}

/// A writing bench with full consent.
fn bench(device: &Loop) -> support::Run {
    let name = device.name();
    emmclab([
        "bench",
        &device.path,
        "--suite",
        "iozone",
        "--rows",
        "128",
        "--size",
        "4MiB",
        "--destroy",
        "--yes-i-mean",
        name,
    ])
}

#[test]
fn a_device_must_be_named_and_unused() {
    let Some(device) = Loop::new("device", 32 << 20) else { return };
    let refused = emmclab(["bench", &device.path, "--size", "4MiB", "--destroy"]).exits(4);
    assert!(refused.stderr.contains(&format!("--yes-i-mean {}", device.name())), "{}", refused.stderr);
    emmclab(["bench", &device.path, "--size", "4MiB", "--destroy", "--yes-i-mean", "sda"]).exits(4);
    assert!(bench(&device).code < 2);
    // Its backing file is in use too.
    let file = device.file.to_str().unwrap();
    let refused = emmclab(["bench", file, "--size", "4MiB", "--destroy"]).exits(4);
    assert!(refused.stderr.contains("is the file behind"), "{}", refused.stderr);

    if succeeds("mkfs.ext4", &["-q", "-F", "-L", "precious", &device.path]) {
        let refused = emmclab(["bench", &device.path, "--size", "4MiB"]).exits(4);
        assert!(refused.stderr.contains("ext2/3/4 \"precious\""), "{}", refused.stderr);
        let point = scratch("device_mount");
        if succeeds("mount", &[&device.path, point.to_str().unwrap()]) {
            let refused = bench(&device);
            assert!(succeeds("umount", &[point.to_str().unwrap()]));
            assert!(refused.exits(4).stderr.contains("is mounted at"));
        } else {
            skip("mount is not allowed");
        }
    } else {
        skip("no mkfs.ext4");
    }
}

#[test]
fn the_backing_file_of_a_loop_device_must_be_unused() {
    let folder = scratch("below");
    let file = save(&folder, "file", content(4 << 20));
    let attach =
        || Command::new("losetup").args(["-f", "--show", &file]).output().ok().filter(|out| out.status.success());
    let (Some(one), Some(other)) = (attach(), attach()) else {
        return skip("loop devices need root and losetup");
    };
    let [one, other] = [one, other].map(|out| String::from_utf8(out.stdout).unwrap().trim().to_owned());
    let name = one.trim_start_matches("/dev/");
    let refused = emmclab([
        "bench",
        &one,
        "--suite",
        "iozone",
        "--rows",
        "64",
        "--size",
        "2MiB",
        "--destroy",
        "--yes-i-mean",
        name,
    ]);
    for device in [&one, &other] {
        assert!(succeeds("losetup", &["-d", device]));
    }
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    assert!(refused.stderr.contains("is the file behind"), "{}", refused.stderr);
}

#[test]
fn a_device_opened_exclusively_elsewhere_is_refused() {
    let Some(device) = Loop::new("held", 32 << 20) else { return };
    let name = format!("emmclab-test-{}", std::process::id());
    let table = format!("0 65536 linear {} 0", device.path);
    if !succeeds("dmsetup", &["create", &name, "--table", &table]) {
        skip("no device mapper");
        return;
    }
    let refused = bench(&device);
    assert!(succeeds("dmsetup", &["remove", "--retry", &name]));
    let refused = refused.exits(4);
    assert!(refused.stderr.contains("is held by dm-") && refused.stderr.contains(&name), "{}", refused.stderr);
}

#[test]
fn a_disk_is_in_use_with_its_partition_and_the_reverse() {
    let Some(device) = Loop::new("partition", 32 << 20) else { return };
    let script = "label: dos\nstart=2048, size=20480, type=83\n";
    let mut table = Command::new("sfdisk").args(["--quiet", &device.path]).stdin(Stdio::piped()).spawn().ok();
    let made = table.as_mut().is_some_and(|child| {
        use std::io::Write;
        child.stdin.take().unwrap().write_all(script.as_bytes()).is_ok() && child.wait().unwrap().success()
    });
    let part = format!("{}p1", device.path);
    if !made || !Path::new(&part).exists() || !succeeds("mkfs.ext4", &["-q", "-F", &part]) {
        skip("no partitions on loop devices here");
        return;
    }
    let point = scratch("partition_mount");
    if !succeeds("mount", &[&part, point.to_str().unwrap()]) {
        skip("mount is not allowed");
        return;
    }
    let whole = bench(&device);
    assert!(succeeds("umount", &[point.to_str().unwrap()]));
    assert!(whole.exits(4).stderr.contains("p1 is mounted at"));
    let listed = emmclab(["bench", &device.path, "--size", "4MiB"]).exits(4);
    assert!(
        listed.stderr.contains("MBR partition table") && listed.stderr.contains("p1: 10.0 MiB, ext2/3/4"),
        "{}",
        listed.stderr
    );
}

#[test]
fn a_probe_writes_only_on_request_and_restores() {
    let folder = scratch("probed");
    let before = content(16 << 20);
    let (file, kept) = (save(&folder, "file", &before), folder.join("kept").display().to_string());
    let only = ["probe", &file, "--write", "--only", "capacity"];
    let refused = emmclab(only).exits(4);
    assert!(refused.stderr.contains("--destroy"), "{}", refused.stderr);
    assert!(std::fs::read(&file).unwrap() == before);
    let run = emmclab(only.iter().chain(&["--destroy"]));
    assert!(run.code < 2 && run.stdout.contains("capacity"), "{}{}", run.stdout, run.stderr);
    assert!(std::fs::read(&file).unwrap() == before);
    let all = ["probe", &file, "--write", "--write-budget", "16MiB"];
    emmclab(all).exits(4);
    let run = emmclab(all.iter().chain(&["--destroy", "--save-restore", "--save-to", &kept]));
    // The file is too small for the others, which is found out when the content is saved.
    assert!(run.code == 2 && run.stderr.contains("saved in ") && run.stderr.contains("expected at least"), "{run:?}");
    assert!(std::fs::read(&file).unwrap() == before);
    assert_eq!(names_in(&folder), ["file"]);
}
