//! `bench` writes to and restores the target with consent, even if its name changes during the run.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use crate::support::loops::{Loop, succeeds};
use crate::support::{command, save, scratch, skip};

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at >> 12) as u8 ^ (at as u8).wrapping_mul(37)).collect()
}

/// Runs a bench with --save-restore, and an action as soon as the content is saved; returns the messages.
fn once_saved(args: &[&str], then: impl FnOnce()) -> Vec<String> {
    let mut command = command();
    command.arg("bench").args(args).args(["--destroy", "--save-restore"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut told: Vec<String> = lines.by_ref().take_while(|line| !line.contains("saved in memory")).collect();
    then();
    told.extend(lines);
    let code = child.wait().unwrap().code();
    assert!(code == Some(0) || code == Some(1), "{code:?} {told:?}");
    told
}

#[test]
fn a_file_renamed_during_the_run_is_restored_and_a_new_one_unchanged() {
    let folder = scratch("renamed");
    let before = content(16 << 20);
    let (a, b) = (save(&folder, "a", &before), folder.join("b"));
    once_saved(&[&a, "--size", "16MiB", "--suite", "iozone", "--rows", "4"], || {
        std::fs::rename(&a, &b).unwrap();
        std::fs::write(&a, vec![7; 16 << 20]).unwrap();
    });
    assert!(std::fs::read(&b).unwrap() == before, "the right one is as it was");
    assert!(std::fs::read(&a).unwrap() == vec![7; 16 << 20], "the other one was not touched");
}

/// A bench of a link to a loop device, which leads to another one as soon as the content is saved.
fn of_a_moved_link(test: &str, bytes: u64, args: &[&str]) {
    let folder = scratch(test);
    let [one, other] = ["one", "other"].map(|name| Loop::new(&format!("{test}_{name}"), bytes));
    let (Some(one), Some(other)) = (one, other) else { return };
    let images = [&one, &other].map(|device| {
        std::fs::write(&device.path, content(1 << 20)).unwrap();
        std::fs::File::open(&device.path).unwrap().sync_all().unwrap();
        std::fs::read(&device.file).unwrap()
    });
    let link = folder.join("link");
    symlink(&one.path, &link).unwrap();
    let name = link.to_str().unwrap().to_owned();
    once_saved(&[&[name.as_str(), "--yes-i-mean", one.name()], args].concat(), || {
        let new = folder.join("new");
        symlink(&other.path, &new).unwrap();
        std::fs::rename(&new, &link).unwrap();
    });
    for (device, image) in [&one, &other].into_iter().zip(images) {
        std::fs::File::open(&device.path).unwrap().sync_all().unwrap();
        assert!(std::fs::read(&device.file).unwrap() == image, "{} is as it was", device.path);
    }
}

#[test]
fn a_link_changed_during_the_run_does_not_change_the_target() {
    of_a_moved_link("moved", 16 << 20, &["--size", "16MiB", "--suite", "iozone", "--rows", "4"]);
}

#[test]
fn filesystems_are_created_on_the_confirmed_device_only() {
    if !Path::new("/proc/filesystems").exists() || !succeeds("mkfs.ext4", &["-V"]) {
        return skip("no mkfs.ext4");
    }
    of_a_moved_link("fs_moved", 160 << 20, &["--suite", "fs", "--size", "128MiB"]);
}
