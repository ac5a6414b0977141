//! `bench --restore-from`: content that a bench killed by `kill -9` left in the file of `--save-to`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::hold::{Hold, with_default_signals};
use crate::support::loops::{Loop, Mounted, succeeds};
use crate::support::served::{ServedCard, small_card};
use crate::support::{Run, command, emmclab, names_in, save, scratch, skip};

const BYTES: usize = 4 << 20;

fn content() -> Vec<u8> {
    (0..BYTES).map(|at| (at >> 12) as u8 ^ (at as u8).wrapping_mul(29)).collect()
}

/// A bench with saved content, killed at a point.
fn killed(target: &str, kept: &Path, point: &str) {
    let name = Path::new(target).file_name().unwrap().to_str().unwrap();
    let mut command = command();
    command.args(["bench", target, "--suite", "iozone", "--rows", "64", "--size", "4MiB", "--destroy"]);
    command.args(["--yes-i-mean", name, "--save-restore", "--save-to"]).arg(kept);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let hold = Hold::at(&mut command, point, 1, kept);
    let mut child = command.spawn().unwrap();
    hold.wait(&mut child);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A file whose content is in another file, because the bench was killed.
fn lost(test: &str) -> (PathBuf, String, PathBuf) {
    let folder = scratch(test);
    let (file, kept) = (save(&folder, "file", content()), folder.join("kept"));
    killed(&file, &kept, "worked");
    assert!(std::fs::read(&file).unwrap() != content() && kept.is_file());
    (folder, file, kept)
}

fn restore(target: &str, kept: &Path, more: &[&str]) -> Run {
    emmclab(["bench", target, "--restore-from", kept.to_str().unwrap()].iter().chain(more))
}

/// One line of error, and the target is as before.
#[track_caller]
fn is_refused(run: Run, code: i32, says: &str, target: &str, before: &[u8]) {
    let run = run.exits(code);
    assert!(run.stderr.lines().last().unwrap().contains(says) && run.stdout.is_empty(), "{}\n{}", run.args, run.stderr);
    assert!(std::fs::read(target).unwrap() == before, "{}: written to", run.args);
}

#[test]
fn content_is_restored_after_kill_9() {
    for point in ["saved", "worked"] {
        let folder = scratch(&format!("killed_{point}"));
        let (file, kept) = (save(&folder, "file", content()), folder.join("kept"));
        killed(&file, &kept, point);
        let now = std::fs::read(&file).unwrap();
        assert_eq!(now == content(), point == "saved", "{point}");
        is_refused(restore(&file, &kept, &[]), 4, "would be overwritten: --destroy allows that", &file, &now);
        let run = restore(&file, &kept, &["--destroy"]).exits(0);
        assert!(
            run.stdout.contains("bytes 0 to 4194304 are restored and compared (4.0 MiB of content)"),
            "{}",
            run.stdout
        );
        assert!(
            run.stderr.contains("of file is overwritten") && run.stderr.contains("were saved from"),
            "{}",
            run.stderr
        );
        assert!(std::fs::read(&file).unwrap() == content(), "{point}");
        // The file stays, and can be used again.
        std::fs::write(&file, vec![0; BYTES]).unwrap();
        restore(&file, &kept, &["--destroy"]).exits(0);
        assert!(std::fs::read(&file).unwrap() == content(), "{point}");
    }
}

/// The disk below the file of `--save-to` loses its power while the target is overwritten: what the kernel had not
/// written to it is gone, and what the disk had in its cache.
#[test]
fn content_is_restored_after_a_power_cut_of_the_disk_that_has_it() {
    let folder = scratch("cut_disk");
    let Some(disk) = ServedCard::start(&small_card(&folder, "disk", 64, &[]), &["--loop"]) else { return };
    let device = disk.device.as_deref().expect("a loop device");
    let point = folder.join("point");
    let Some(mut mounted) = Mounted::new(device, &point, &[]) else { return };
    for hold in ["saved", "worked"] {
        let (file, kept) = (save(&folder, hold, content()), point.join(hold));
        // What is not synced is not on the disk after the cut.
        let unsynced = save(&point, &format!("unsynced-{hold}"), content());
        killed(&file, &kept, hold);
        disk.ctl(&["cut"]);
        drop(mounted);
        disk.ctl(&["on"]);
        mounted = Mounted::again(device, &point).expect("it was mounted before");
        assert_ne!(std::fs::read(unsynced).unwrap_or_default(), content(), "nothing was cut");
        restore(&file, &kept, &["--destroy"]).exits(0);
        assert!(std::fs::read(&file).unwrap() == content(), "{hold}");
    }
}

#[test]
fn kill_9_while_content_is_saved_leaves_the_target() {
    let folder = scratch("killed_partial");
    let (file, kept) = (save(&folder, "file", content()), folder.join("kept"));
    killed(&file, &kept, "rename");
    assert!(std::fs::read(&file).unwrap() == content() && !kept.exists());
    let names = names_in(&folder);
    let is_partial = |name: &String| name.starts_with(".kept.") && name.ends_with(".partial");
    assert!(names.len() == 2 && names.iter().any(is_partial), "{names:?}");
}

#[test]
fn the_message_of_a_bench_names_the_command_that_restores() {
    let (folder, file, _) = lost("named");
    let kept = folder.join("other");
    let size = ["--suite", "iozone", "--rows", "64", "--size", "4MiB"];
    let run = emmclab(["bench", &file].iter().chain(&size).chain(&[
        "--destroy",
        "--save-restore",
        "--save-to",
        kept.to_str().unwrap(),
    ]));
    let says = format!("emmclab bench {file} --restore-from {} --destroy", kept.display());
    assert!(run.code < 2 && run.stderr.contains(&says) && !kept.exists(), "{}", run.stderr);
}

#[test]
fn holes_are_restored_after_kill_9() {
    let folder = scratch("killed_sparse");
    let (path, kept) = (folder.join("file"), folder.join("kept"));
    let file = File::create(&path).unwrap();
    file.set_len(BYTES as u64).unwrap();
    file.write_all_at(&content()[..1 << 20], 1 << 20).unwrap();
    file.sync_all().unwrap();
    let (before, blocks) = (std::fs::read(&path).unwrap(), file.metadata().unwrap().blocks());
    let name = path.to_str().unwrap();
    killed(name, &kept, "worked");
    assert!(std::fs::read(&path).unwrap() != before);
    restore(name, &kept, &["--destroy"]).exits(0);
    assert!(std::fs::read(&path).unwrap() == before);
    assert_eq!(file.metadata().unwrap().blocks(), blocks);
}

#[test]
fn another_target_is_refused() {
    let (folder, file, kept) = lost("another");
    let now = std::fs::read(&file).unwrap();
    let copy = folder.join("copy").display().to_string();
    std::fs::copy(&file, &copy).unwrap();
    is_refused(restore(&copy, &kept, &["--destroy"]), 4, "was saved from another target", &copy, &now);
    let whole = std::fs::read(&kept).unwrap();
    let itself = kept.to_str().unwrap().to_owned();
    is_refused(restore(&itself, &kept, &["--destroy"]), 2, "expected a multiple of its sectors", &itself, &whole);
    let longer = [now, vec![1; 4096]].concat();
    std::fs::write(&file, &longer).unwrap();
    is_refused(restore(&file, &kept, &["--destroy"]), 4, "size_bytes 4194304, here 4198400", &file, &longer);
}

#[test]
fn a_partial_or_damaged_file_is_refused() {
    let (folder, file, kept) = lost("damaged");
    let (now, whole) = (std::fs::read(&file).unwrap(), std::fs::read(&kept).unwrap());
    let refused = |bytes: &[u8], says: &str| {
        std::fs::write(&kept, bytes).unwrap();
        is_refused(restore(&file, &kept, &["--destroy"]), 2, says, &file, &now);
    };
    refused(&whole[..whole.len() - 1], "is partial: it has ");
    refused(&[&[0; 4096], &whole[4096..]].concat(), "is partial: it has no header");
    refused(b"text", "is no saved content of emmclab");
    refused(b"", "is partial");
    let flipped = |at: usize| {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        flipped
    };
    refused(&flipped(40), "is damaged: the checksum of its header");
    refused(&flipped(4096 + (1 << 20)), "bytes 1048576 to 2097152: its saved copy is damaged (checksum)");
    refused(&flipped(whole.len() - 1), "is damaged: the checksum of its table");
    is_refused(restore(&file, &folder.join("none"), &["--destroy"]), 2, "none: No such file", &file, &now);
    is_refused(restore(&file, &folder, &["--destroy"]), 2, "is no file; expected one of --save-to", &file, &now);
    is_refused(restore(&file, Path::new("/dev/zero"), &["--destroy"]), 2, "is no file", &file, &now);
}

#[test]
fn a_file_in_use_is_refused() {
    let (_folder, file, kept) = lost("restored_in_use");
    let now = std::fs::read(&file).unwrap();
    let lock = File::open(&file).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    is_refused(restore(&file, &kept, &["--destroy"]), 4, "in use", &file, &now);
    drop(lock);
    restore(&file, &kept, &["--destroy"]).exits(0);
}

#[test]
fn a_device_must_be_named() {
    let folder = scratch("restored_device");
    let image = save(&folder, "image", content());
    let Some(device) = Loop::over(Path::new(&image)) else { return };
    let (path, kept) = (device.path.clone(), folder.join("kept"));
    killed(&path, &kept, "worked");
    let now = std::fs::read(&path).unwrap();
    assert!(now != content());
    is_refused(restore(&path, &kept, &[]), 4, "--destroy allows that", &path, &now);
    let no_terminal = "no terminal to confirm the device's name at";
    is_refused(restore(&path, &kept, &["--destroy"]), 4, no_terminal, &path, &now);
    is_refused(restore(&path, &kept, &["--destroy", "--yes-i-mean", "sda"]), 4, "its name is loop", &path, &now);
    // The file behind the device is in use by it.
    is_refused(restore(&image, &kept, &["--destroy"]), 4, "was saved from another target", &path, &now);
    restore(&path, &kept, &["--destroy", "--yes-i-mean", device.name()]).exits(0);
    assert!(std::fs::read(&path).unwrap() == content());
}

#[test]
fn options_of_a_measurement_are_refused() {
    let folder = scratch("restore_options");
    let kept = folder.join("kept");
    for option in
        [&["--suite", "iozone"][..], &["--size", "1MiB"], &["--read-only"], &["--save-restore"], &["--seed", "2"]]
    {
        let run = restore("file", &kept, option).exits(2);
        assert!(run.stderr.contains("cannot be used with"), "{option:?}: {}", run.stderr);
    }
    for target in ["sim:generic-8g", folder.to_str().unwrap()] {
        let run = restore(target, &kept, &["--destroy"]).exits(2);
        assert!(run.stderr.contains("expected a block device or a file"), "{target}: {}", run.stderr);
    }
}

#[test]
fn the_document_keeps_its_keys() {
    let (_folder, file, kept) = lost("restore_document");
    let args = ["bench", &file, "--restore-from", kept.to_str().unwrap(), "--destroy"].map(str::to_owned);
    crate::keys::documents("restore", &[args.to_vec()]);
}

/// A device that ends after its first megabyte: every access behind that is an error.
fn resize(device: &Loop, image: &str, bytes: usize) {
    File::options().write(true).open(image).unwrap().set_len(bytes as u64).unwrap();
    assert!(succeeds("losetup", &["--set-capacity", &device.path]));
}

#[test]
fn a_device_that_fails_midway_does_not_cost_the_content() {
    for is_in_memory in [true, false] {
        let folder = scratch(&format!("failing_{is_in_memory}"));
        let image = save(&folder, "image", content());
        let Some(device) = Loop::over(Path::new(&image)) else { return };
        let mut bench = command();
        bench.args(["bench", &device.path, "--suite", "iozone", "--rows", "64", "--size", "4MiB", "--destroy"]);
        bench.args(["--yes-i-mean", device.name(), "--save-restore"]).env("TMPDIR", &folder);
        if !is_in_memory {
            bench.arg("--save-to").arg(folder.join("kept"));
        }
        bench.stdout(Stdio::piped()).stderr(Stdio::piped());
        let hold = Hold::at(&mut bench, "written", 7, &folder);
        let mut child = bench.spawn().unwrap();
        hold.wait(&mut child);
        resize(&device, &image, 1 << 20);
        drop(hold);
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        let error = errors.lines().last().unwrap();
        assert!(error.contains("bytes 1048576 to 4194304: "), "{error}");
        let says = if is_in_memory { "the content from byte 0 on is in " } else { "the content is in " };
        let (_, kept) = error.split_once(says).unwrap_or_else(|| panic!("{error}"));
        let kept = Path::new(kept.split(';').next().unwrap());
        assert!(kept.starts_with(&folder), "{error}");
        assert!(std::fs::read(kept).unwrap()[4096..][..BYTES] == content());
        let named = ["--destroy", "--yes-i-mean", device.name()];
        let refused = restore(&device.path, kept, &named).exits(4);
        assert!(refused.stderr.contains("size_bytes 4194304, here 1048576"), "{}", refused.stderr);
        // The device is whole again.
        resize(&device, &image, BYTES);
        restore(&device.path, kept, &named).exits(0);
        assert!(std::fs::read(&device.path).unwrap() == content());
    }
}

#[test]
fn content_without_a_home_waits_for_a_place_or_a_signal() {
    // No folder for it: /run and the working directory cannot be written, $TMPDIR does not exist.
    let script = "mount -t tmpfs -o ro none /run && cd /proc && exec \"$@\"";
    if !succeeds("unshare", &["--mount", "sh", "-c", script, "sh", "true"]) {
        return skip("mount namespaces need root");
    }
    for gets_a_place in [true, false] {
        let folder = scratch(&format!("homeless_{gets_a_place}"));
        let (image, temporary) = (save(&folder, "image", content()), folder.join("temporary"));
        let Some(device) = Loop::over(Path::new(&image)) else { return };
        let mut bench = with_default_signals("unshare");
        bench.args(["--mount", "sh", "-c", script, "sh"]).arg(command().get_program());
        bench.args(["bench", &device.path, "--suite", "iozone", "--rows", "64", "--size", "4MiB", "--destroy"]);
        bench.args(["--yes-i-mean", device.name(), "--save-restore"]).env("TMPDIR", &temporary);
        bench.stdout(Stdio::null()).stderr(Stdio::piped());
        let hold = Hold::at(&mut bench, "written", 7, &folder);
        let mut child = bench.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        hold.wait(&mut child);
        resize(&device, &image, 1 << 20);
        drop(hold);
        let told: Vec<String> = lines.by_ref().take_while(|line| !line.contains("which waits")).collect();
        assert!(told.last().unwrap().contains("/run: Read-only file system"), "{told:?}");
        assert!(child.try_wait().unwrap().is_none());
        if gets_a_place {
            std::fs::create_dir(&temporary).unwrap();
        } else {
            assert!(succeeds("kill", &["-s", "INT", &child.id().to_string()]));
        }
        let error = lines.last().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2), "{error}");
        if gets_a_place {
            let (_, kept) = error.split_once("the content from byte 0 on is in ").unwrap_or_else(|| panic!("{error}"));
            assert!(Path::new(kept).starts_with(&temporary), "{error}");
            assert!(std::fs::read(kept).unwrap()[4096..][..BYTES] == content());
        } else {
            assert!(error.contains("the content cannot be saved either: "), "{error}");
        }
    }
}
