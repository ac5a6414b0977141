//! Leftovers of `bench` after errors, and messages about names that are not plain text.

use crate::support;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::hold::Hold;
use crate::support::loops::{Loop, succeeds};
use crate::support::{command, emmclab, names_in, save, scratch, skip};

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at >> 12) as u8 ^ (at as u8).wrapping_mul(31)).collect()
}

#[test]
fn a_killed_bench_leaves_no_file_in_a_folder() {
    let folder = scratch("killed");
    let args = ["bench", folder.to_str().unwrap(), "--size", "64MiB", "--suite", "iozone", "--rows", "4"];
    let mut command = command();
    command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
    let hold = Hold::at(&mut command, "filled", 1, &folder);
    let mut child = command.spawn().unwrap();
    hold.wait(&mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(names_in(&folder), [""; 0]);
}

#[test]
fn measurements_are_reported_if_the_restore_fails() {
    let folder = scratch("not_put_back");
    let before = content(48 << 20);
    let (file, kept) = (save(&folder, "file", &before), folder.join("kept"));
    let size = ["--size", "48MiB", "--suite", "iozone", "--rows", "64", "--destroy"];
    let args = ["bench", &file].into_iter().chain(size).chain(["--save-restore", "--save-to", kept.to_str().unwrap()]);
    let mut command = command();
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let hold = Hold::at(&mut command, "saved", 1, Path::new(&file));
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    hold.wait(&mut child);
    // During the measurement the copy is truncated: 4096 bytes of header and 32 MiB of content remain.
    std::fs::File::options().write(true).open(&kept).unwrap().set_len(4096 + (32 << 20)).unwrap();
    drop(hold);
    let mut told = String::new();
    child.stdout.take().unwrap().read_to_string(&mut told).unwrap();
    let errors: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{errors:?}");
    assert!(told.contains("iozone") && told.contains("could not be restored completely"), "{told}");
    let error = errors.last().unwrap();
    assert!(error.contains("bytes 33554432 to 50331648: ") && error.contains("the content is in"), "{error}");
    assert!(std::fs::read(&file).unwrap()[..32 << 20] == before[..32 << 20]);
}

#[test]
fn a_sparse_file_stays_sparse() {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let folder = scratch("sparse");
    let path = folder.join("file");
    let file = std::fs::File::options().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
    file.set_len(8 << 20).unwrap();
    file.write_all_at(&content(1 << 20), 3 << 20).unwrap();
    file.sync_all().unwrap();
    let (before, blocks) = (std::fs::read(&path).unwrap(), file.metadata().unwrap().blocks());
    let args = [
        "bench",
        path.to_str().unwrap(),
        "--suite",
        "iozone",
        "--rows",
        "64",
        "--size",
        "8MiB",
        "--destroy",
        "--save-restore",
    ];
    let run = emmclab(args);
    assert!(run.code < 2 && run.stderr.contains("1.0 MiB saved in memory"), "{}", run.stderr);
    assert!(std::fs::read(&path).unwrap() == before);
    assert_eq!(file.metadata().unwrap().blocks(), blocks);
}

#[test]
fn an_unusual_name_is_escaped() {
    let folder = scratch("odd_name");
    let path = folder.join(OsStr::from_bytes(b"a\xff\nemmclab: it is safe\x1b[2J"));
    let before = content(1 << 20);
    std::fs::write(&path, &before).unwrap();
    let run = |more: &[&str]| {
        let mut command = command();
        command.args(["bench", "--suite", "iozone", "--rows", "64", "--size", "1MiB"]).arg(&path).args(more);
        support::run(command)
    };
    for refused in [run(&[]).exits(4), run(&["--destroy", "--yes-i-mean", "another"]).exits(4)] {
        assert!(!refused.stderr.contains('\x1b'), "{}", refused.stderr);
        assert!(refused.stderr.lines().all(|line| line.starts_with("emmclab: ")), "{}", refused.stderr);
        assert!(!refused.stderr.lines().any(|line| line.starts_with("emmclab: it is safe")), "{}", refused.stderr);
        assert!(refused.stderr.contains("\\nemmclab: it is safe"), "{}", refused.stderr);
    }
    assert!(std::fs::read(&path).unwrap() == before);
    let written = run(&["--destroy", "--save-restore"]);
    assert!(written.code < 2 && !written.stdout.contains('\x1b'), "{}", written.stderr);
    assert!(std::fs::read(&path).unwrap() == before);

    let Some(device) = Loop::over(&path) else { return };
    let refused = run(&["--destroy"]).exits(4);
    assert!(refused.stderr.contains(&format!("is the file behind {}", device.name())), "{}", refused.stderr);
}

#[test]
fn a_mount_with_an_unusual_name_is_found() {
    let Some(device) = Loop::new("odd_mount", 16 << 20) else { return };
    let outer = scratch("odd_mount_point");
    let point = outer.join(OsStr::from_bytes(b"a\xfe b\n"));
    std::fs::create_dir(&point).unwrap();
    let mount =
        |program: &str, args: &[&OsStr]| Command::new(program).args(args).status().is_ok_and(|status| status.success());
    if !succeeds("mkfs.ext4", &["-q", &device.path]) || !mount("mount", &[device.path.as_ref(), point.as_ref()]) {
        return skip("no mkfs.ext4, or mount is not allowed");
    }
    let mut bench = command();
    bench.args(["bench", "--suite", "iozone", "--rows", "64", "--size", "1MiB", "--json"]).arg(&point);
    let run = support::run(bench);
    assert!(mount("umount", &[point.as_ref()]));
    assert!(run.code < 2, "{}", run.stderr);
    assert_eq!(run.json()["context"]["filesystem"]["fstype"], "ext4");
}

#[test]
fn dangling_links_and_ranges_beyond_the_end_are_reported() {
    let folder = scratch("told");
    let link = folder.join("link");
    std::os::unix::fs::symlink("/no such/file", &link).unwrap();
    let link = link.to_str().unwrap();
    let file = save(&folder, "file", content(1 << 20));
    let cases: [(&[&str], &str); 5] = [
        (&[link], "a symbolic link to /no such/file, which does not exist"),
        (&[link, "--size", "1MiB"], "a symbolic link to /no such/file, which does not exist"),
        (&[&file, "--from", "1MiB", "--size", "4KiB", "--destroy"], "--from 1 MiB: the target has 1 MiB"),
        (&[&file, "--suite", "bonnie", "--size", "64KiB", "--destroy"], "at least 1 MiB are needed; 64 KiB from"),
        (&[&file, "--suite", "fs", "--destroy"], "it takes 2 GiB from the start on; "),
    ];
    for (args, says) in cases {
        let run = emmclab(["bench"].iter().chain(args)).exits(2);
        assert!(run.stderr.contains(says), "{args:?}: {}", run.stderr);
    }
    assert!(Path::new(&file).is_file() && !folder.join("no such").exists());
}
