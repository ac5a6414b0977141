//! `bench` on filesystems: created on a loop device, or that of a folder; the report, and that no files remain.

use crate::support;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::hold::{Hold, with_default_signals};
use crate::support::loops::{Loop, succeeds};
use crate::support::{Run, command, emmclab, names_in, scratch, skip};
use serde_json::Value;

const MADE_BYTES: u64 = 160 << 20;
const WORK: [&str; 6] = ["write", "read", "random write", "random read", "create and sync", "delete"];

/// The suite fs with full consent; its temporary files in a folder of the test.
fn fs_command(device: &Loop, temporary: &Path, rows: &str) -> Command {
    let mut command = with_default_signals(command().get_program());
    command.env("TMPDIR", temporary).args(["bench", &device.path, "--suite", "fs", "--destroy", "--yes-i-mean"]);
    command.args([device.name(), "--size", "160MiB", "--rows", rows, "--json"]);
    command
}

fn grid<'a>(document: &'a Value, name: &str) -> &'a Value {
    let grids = document["grids"].as_array().unwrap();
    grids.iter().find(|grid| grid["name"] == name).unwrap_or_else(|| panic!("no {name}: {document}"))
}

/// The values of a grid under a column, by row.
fn column<'a>(grid: &'a Value, name: &str) -> Vec<(&'a str, Option<f64>)> {
    let columns = grid["columns"].as_array().unwrap();
    let index = columns.iter().position(|column| column["name"] == name).unwrap_or_else(|| panic!("{name}: {grid}"));
    let lines = grid["lines"].as_array().unwrap();
    lines.iter().map(|line| (line["row"].as_str().unwrap(), line["values"][index].as_f64())).collect()
}

#[test]
fn filesystems_are_created_mounted_as_requested_and_measured() {
    let Some(device) = Loop::new("fs_made", MADE_BYTES + (32 << 20)) else { return };
    if !succeeds("mkfs.ext4", &["-V"]) {
        return skip("no mkfs.ext4");
    }
    let image = std::fs::File::options().read(true).write(true).open(&device.file).unwrap();
    let behind = vec![0xa5; 32 << 20];
    image.write_all_at(&behind, MADE_BYTES).unwrap();
    let temporary = scratch("fs_made_temporary");
    let run = support::run(fs_command(&device, &temporary, "default,discard+commit=30"));
    assert!(run.code < 2, "{}", run.stderr);
    let document = run.json();
    let told = grid(&document, "fs");
    for name in ["ext4", "ext4 discard+commit=30"] {
        let found = column(told, name);
        assert_eq!(found.iter().map(|(row, _)| *row).collect::<Vec<_>>(), WORK);
        assert!(found.iter().all(|(_, value)| value.is_some_and(|value| value > 0.0)), "{name}: {found:?}");
    }
    // As the kernel reported it while they were mounted.
    let made = document["context"]["made_filesystems"].as_array().unwrap();
    let of = |fstype: &str| made.iter().filter(|made| made["fstype"] == fstype).collect::<Vec<_>>();
    let options: Vec<Vec<&str>> =
        of("ext4").iter().map(|made| made["options"].as_str().unwrap().split(',').collect()).collect();
    assert_eq!(options.len(), 2);
    for option in ["discard", "commit=30"] {
        assert_eq!(
            options.iter().map(|options| options.contains(&option)).collect::<Vec<_>>(),
            [false, true],
            "{option}"
        );
    }
    assert!(made.iter().all(|made| (1..MADE_BYTES).contains(&made["size_bytes"].as_u64().unwrap())), "{made:?}");
    let remarks = document["remarks"].to_string();
    if of("f2fs").is_empty() {
        assert!(remarks.contains("f2fs is not measured: "), "{remarks}");
    } else {
        assert!(column(told, "f2fs").iter().all(|(_, value)| value.is_some()));
    }
    // The journal and the tables are not zero, and little was rewritten.
    let figures = document["figures"].as_array().unwrap();
    let on_device =
        figures.iter().find(|figure| figure["name"] == "written on the device").unwrap()["value"].as_f64().unwrap();
    let in_files = document["written_bytes"].as_u64().unwrap() as f64 / f64::from(1 << 20);
    assert!(on_device > in_files && on_device < 4.0 * in_files, "{on_device} MiB of {in_files} MiB");
    assert!(device.is_free());
    assert_eq!(names_in(&temporary), [""; 0]);
    let mut after = vec![0; behind.len()];
    image.read_exact_at(&mut after, MADE_BYTES).unwrap();
    assert!(after == behind, "something was written behind what was asked for");
}

#[test]
fn device_content_is_restored_after_the_filesystems() {
    let Some(device) = Loop::new("fs_restore", 128 << 20) else { return };
    if !succeeds("mkfs.ext4", &["-q", "-L", "precious", &device.path]) {
        return skip("no mkfs.ext4");
    }
    let before = std::fs::read(&device.file).unwrap();
    let kept = scratch("fs_restore_kept").join("kept");
    let mut command = command();
    command.args(["bench", &device.path, "--suite", "fs", "--destroy", "--yes-i-mean", device.name(), "--json"]);
    command.args(["--save-restore", "--save-to"]).arg(&kept);
    let run = support::run(command);
    assert!(run.code < 2, "{}", run.stderr);
    assert!(column(grid(&run.json(), "fs"), "ext4").iter().all(|(_, value)| value.is_some()));
    assert!(std::fs::read(&device.file).unwrap() == before && !kept.exists() && device.is_free());
}

/// Kills the bench while the kernel has the device mounted with these options.
fn killed_while_mounted(child: &mut Child, hold: Hold, device: &Loop, options: &[&str], signal: &str) {
    hold.wait(child);
    let text = std::fs::read_to_string(format!("/proc/fs/ext4/{}/options", device.name())).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(options.iter().all(|option| lines.contains(option)), "{text}");
    assert!(succeeds("kill", &[signal, &child.id().to_string()]));
}

#[test]
fn no_mount_remains_after_a_signal() {
    let Some(device) = Loop::new("fs_signal", MADE_BYTES) else { return };
    if !Path::new("/proc/fs/ext4").is_dir() || !succeeds("mkfs.ext4", &["-V"]) {
        return skip("no ext4 in the kernel, or no mkfs.ext4");
    }
    for signal in ["-TERM", "-INT", "-HUP", "-KILL"] {
        let temporary = scratch("fs_signal_temporary");
        let mut command = fs_command(&device, &temporary, "discard+commit=30");
        let hold = Hold::at(&mut command, "mounted", 1, &temporary);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        killed_while_mounted(&mut child, hold, &device, &["discard", "commit=30"], signal);
        let output = child.wait_with_output().unwrap();
        let told = [output.stdout, output.stderr].map(|told| String::from_utf8_lossy(&told).into_owned()).concat();
        if signal != "-KILL" {
            assert!(output.status.code().is_some() && told.contains("stopped"), "{signal}: {told}");
        }
        assert!(device.is_free(), "{signal}: still in use");
        assert!(!Path::new(&format!("/proc/fs/ext4/{}", device.name())).exists(), "{signal}: still mounted");
        assert_eq!(names_in(&temporary), [""; 0], "{signal}");
    }
}

#[test]
fn a_filesystem_is_created_only_with_consent_and_enough_space() {
    let Some(device) = Loop::new("fs_refused", 64 << 20) else { return };
    let before = std::fs::read(&device.file).unwrap();
    let name = device.name();
    let fully = ["--destroy", "--yes-i-mean", name];
    let small = emmclab(["bench", &device.path, "--suite", "fs"].into_iter().chain(fully)).exits(2);
    assert!(small.stderr.contains("needs 128 MiB") && small.stderr.contains("has 64 MiB"), "{}", small.stderr);
    let row = emmclab(["bench", &device.path, "--suite", "fs", "--rows", "sync"].into_iter().chain(fully)).exits(2);
    assert!(row.stderr.contains("expected mount options"), "{}", row.stderr);
    assert!(std::fs::read(&device.file).unwrap() == before);

    let Some(device) = Loop::new("fs_mounted", MADE_BYTES) else { return };
    let refused = emmclab(["bench", &device.path, "--suite", "fs"]).exits(4);
    assert!(refused.stderr.contains("bytes 0 to 167772160 of") && refused.stderr.contains("--destroy"));
    let point = scratch("fs_mounted_point");
    let point = point.to_str().unwrap();
    if !succeeds("mkfs.ext4", &["-q", &device.path]) || !succeeds("mount", &[&device.path, point]) {
        return skip("no mkfs.ext4, or mount is not allowed");
    }
    let refused = support::run(fs_command(&device, &scratch("fs_mounted_temporary"), "default"));
    assert!(succeeds("umount", &[point]));
    assert!(refused.exits(4).stderr.contains("is mounted at"));
}

fn in_folder(folder: &Path, suite: &str, size: &str) -> Run {
    emmclab(["bench", folder.to_str().unwrap(), "--suite", suite, "--size", size, "--json"])
}

#[test]
fn bonnie_creates_finds_and_deletes_files_in_a_folder() {
    let folder = scratch("bonnie");
    let run = in_folder(&folder, "bonnie", "8MiB");
    assert!(run.code < 2, "{}", run.stderr);
    let document = run.json();
    assert_eq!(column(grid(&document, "bonnie++"), "block out").len(), 1);
    let files = grid(&document, "bonnie++, files");
    for order in ["sequential", "random"] {
        for work in ["create", "stat", "delete"] {
            let phase = format!("{order} {work}");
            let rates = column(files, &phase);
            let [("as bonnie++", Some(as_bonnie)), ("on the card", on_card)] = rates[..] else { panic!("{rates:?}") };
            // Only root can have looked up files that are not cached.
            assert!(
                as_bonnie > 0.0 && (on_card.is_some() || work == "stat" && !support::is_root()),
                "{phase}: {rates:?}"
            );
            assert!(work == "stat" || on_card.unwrap() <= as_bonnie, "{phase}: a sync takes time: {rates:?}");
            let figures = document["figures"].as_array().unwrap();
            let figure = figures.iter().find(|figure| figure["name"] == phase.as_str()).unwrap();
            assert_eq!((figure["value"].as_f64(), figure["unit"].as_str()), (Some(as_bonnie), Some("/s")));
        }
    }
    assert_eq!(names_in(&folder), [""; 0]);

    let file = folder.join("file").display().to_string();
    let run = emmclab(["bench", &file, "--suite", "bonnie", "--size", "8MiB", "--json"]);
    assert!(run.code < 2 && !run.stdout.contains("bonnie++, files"), "{}", run.stderr);
    let simulated = emmclab(["bench", "sim:generic-8g", "--suite", "bonnie", "--size", "8MiB", "--json"]).json();
    assert!(simulated["remarks"].to_string().contains("only in a folder"), "{}", simulated["remarks"]);
}

#[test]
fn a_boot_reads_the_files_that_it_created() {
    let folder = scratch("boot");
    let run = in_folder(&folder, "boot", "192MiB");
    assert!(run.code < 2, "{}", run.stderr);
    let document = run.json();
    let [written, read] = ["written_bytes", "read_bytes"].map(|key| document[key].as_u64().unwrap());
    // The last file exceeds the requested size by less than its own 512 KiB.
    assert!((192 << 20..(194 << 20)).contains(&written), "{written}");
    assert!((121_217 << 10..(121_217 << 10) + (512 << 10)).contains(&read), "{read}");
    assert_eq!(names_in(&folder), [""; 0]);
    let small = in_folder(&folder, "boot", "100MiB").exits(2);
    assert!(small.stderr.contains("at least 128 MiB"), "{}", small.stderr);
}

/// The names in the folders of an installation in progress.
fn installed(folder: &Path) -> Vec<String> {
    let below = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).map_or(Vec::new(), |names| names.filter_map(|name| Some(name.ok()?.path())).collect())
    };
    let folders = below(folder).iter().flat_map(|own| below(own)).collect::<Vec<_>>();
    folders.iter().flat_map(|folder| names_in_any(folder)).collect()
}

fn names_in_any(folder: &Path) -> Vec<String> {
    let Ok(found) = std::fs::read_dir(folder) else { return Vec::new() };
    found.filter_map(|name| name.ok()?.file_name().into_string().ok()).collect()
}

#[test]
fn an_installation_renames_synced_files_and_leaves_none() {
    let folder = scratch("install");
    let args = ["bench", folder.to_str().unwrap(), "--suite", "install"];
    let mut command = command();
    command.args(args).stdout(Stdio::null()).stderr(Stdio::piped());
    // At that time several packages are unpacked.
    let hold = Hold::at(&mut command, "rename", 40, &folder);
    let mut child = command.spawn().unwrap();
    hold.wait(&mut child);
    let names = installed(&folder);
    assert!(names.iter().any(|name| name.ends_with(".dpkg-new")), "{names:?}");
    assert!(names.iter().any(|name| name.parse::<u32>().is_ok_and(|number| number > 1)), "{names:?}");
    assert!(succeeds("kill", &["-TERM", &child.id().to_string()]));
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && told.contains("stopped"), "{told}");
    assert_eq!(names_in(&folder), [""; 0]);
}

#[test]
fn the_filesystem_of_a_folder_is_measured_alone() {
    let folder = scratch("fs_there");
    let left = folder.join(".emmclab-bench-left");
    std::fs::create_dir(&left).unwrap();
    let run = in_folder(&folder, "fs", "128MiB");
    assert!(run.code < 2, "{}", run.stderr);
    let document = run.json();
    let found = column(grid(&document, "fs"), "here");
    assert!(
        found.len() == WORK.len() && found.iter().all(|(_, value)| value.is_some_and(|value| value > 0.0)),
        "{found:?}"
    );
    // Leftovers of another bench are reported and not removed.
    let notes = document["context"]["notes"].to_string();
    assert!(notes.contains("emmclab-bench-left: left over from a bench that was killed"), "{notes}");
    assert_eq!(names_in(&folder), [".emmclab-bench-left"]);
    let row = emmclab(["bench", folder.to_str().unwrap(), "--suite", "fs", "--rows", "discard"]).exits(2);
    assert!(row.stderr.contains("mounted already"), "{}", row.stderr);
    let engine = emmclab(["bench", folder.to_str().unwrap(), "--suite", "fs", "--engine", "pread"]).exits(2);
    assert!(engine.stderr.contains("works on files here"), "{}", engine.stderr);
    let full = emmclab(["bench", folder.to_str().unwrap(), "--suite", "boot", "--size", "900TiB"]).exits(2);
    assert!(full.stderr.contains("has room for"), "{}", full.stderr);
}
