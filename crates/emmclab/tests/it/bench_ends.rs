//! The end of `bench` by a signal or an error, and refusals before any data is lost.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::hold::{Hold, with_default_signals};
use crate::support::loops::{Loop, succeeds};
use crate::support::{command, emmclab, names_in, rounds, save, scratch, skip};

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at >> 12) as u8 ^ (at as u8).wrapping_mul(41)).collect()
}

/// A bench started by a shell that does something before.
fn after(before: &str, args: &[&str]) -> Command {
    let mut shell = with_default_signals("sh");
    shell.args(["-c", &format!("{before}; exec \"$@\""), "sh"]).arg(command().get_program()).args(args);
    shell.stdout(Stdio::null()).stderr(Stdio::piped());
    shell
}

/// Sends a signal at a point; returns the exit code, standard output and the messages.
fn signalled(before: &str, file: &str, (point, count): (&str, u32), signal: &str) -> (Option<i32>, String, String) {
    let args = ["bench", file, "--size", "2MiB", "--suite", "iozone", "--rows", "64", "--destroy", "--save-restore"];
    let mut command = after(before, &args);
    command.stdout(Stdio::piped());
    let hold = Hold::at(&mut command, point, count, Path::new(file));
    let mut child = command.spawn().unwrap();
    hold.wait(&mut child);
    assert!(point == "saved" || std::fs::read(file).unwrap()[..4096] != content(4096), "{point}");
    assert!(succeeds("kill", &["-s", signal, &child.id().to_string()]), "{signal}");
    drop(hold);
    let output = child.wait_with_output().unwrap();
    let [told, errors] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    // Without line breaks of the layout.
    (output.status.code(), told.split_whitespace().collect::<Vec<_>>().join(" "), errors)
}

/// Every signal that can be sent and caught, and that is no fault of the program.
const SIGNALS: [&str; 17] = [
    "INT", "TERM", "HUP", "QUIT", "ALRM", "USR1", "USR2", "XCPU", "VTALRM", "PROF", "IO", "ABRT", "PWR", "STKFLT",
    "RTMIN", "RTMIN+15", "RTMIN+30",
];

/// Content is restored, whichever signal comes at this point.
fn content_is_restored(point: (&str, u32), is_as_expected: impl Fn(Option<i32>, &str, &str) -> bool) {
    let folder = scratch(&format!("signals_{}", point.0));
    let before = content(2 << 20);
    let file = save(&folder, "file", &before);
    // While it writes, each round at a later request.
    for round in 0..rounds(1) {
        let point = if point.0 == "written" { (point.0, point.1 + round as u32) } else { point };
        for signal in SIGNALS {
            let (code, told, errors) = signalled(":", &file, point, signal);
            assert!(is_as_expected(code, &told, &errors), "{signal}: {code:?} {told} {errors}");
            assert!(std::fs::read(&file).unwrap() == before, "{signal}");
        }
    }
}

#[test]
fn every_signal_before_the_first_write_leaves_the_content() {
    content_is_restored(("saved", 1), |code, _, errors| {
        code == Some(2) && errors.ends_with(": stopped by a signal; nothing was written\n")
    });
}

#[test]
fn content_is_restored_after_every_signal_during_the_writes() {
    content_is_restored(("written", 7), |code, told, _| code == Some(1) && told.contains("stopped by a signal"));
}

#[test]
fn no_signal_stops_a_restore() {
    content_is_restored(("worked", 1), |code, told, _| {
        code.is_some_and(|code| code < 2) && !told.contains("stopped by a signal")
    });
}

#[test]
fn signals_ignored_at_the_start_stay_ignored() {
    let folder = scratch("ignored");
    let before = content(2 << 20);
    let file = save(&folder, "file", &before);
    for signal in ["HUP", "INT", "QUIT"] {
        let (code, told, errors) = signalled(&format!("trap '' {signal}"), &file, ("written", 7), signal);
        assert!(
            code.is_some_and(|code| code < 2) && !told.contains("stopped by a signal"),
            "{signal}: {told} {errors}"
        );
    }
    assert!(std::fs::read(&file).unwrap() == before);
}

#[test]
fn a_file_size_limit_is_an_ordinary_error() {
    let folder = scratch("limited");
    let before = content(16 << 20);
    let file = save(&folder, "file", &before);
    let args = ["bench", &file, "--size", "16MiB", "--suite", "iozone", "--rows", "64", "--destroy", "--save-restore"];
    let run = after("ulimit -f 8192", &args).output().unwrap();
    let told = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.code().is_some() && told.contains("`ulimit -f` allows 4194304"), "{:?} {told}", run.status);
    assert!(std::fs::read(&file).unwrap() == before);
    for suite in ["install", "bonnie", "iozone"] {
        let inside = scratch("limited_folder");
        let args = ["bench", inside.to_str().unwrap(), "--suite", suite, "--size", "128MiB"];
        let run = after("ulimit -f 4", &args).output().unwrap();
        assert!(run.status.code().is_some(), "{suite}: {:?}", run.status);
        assert_eq!(names_in(&inside), [""; 0], "{suite}");
    }
}

#[test]
fn filesystems_that_cannot_be_mounted_are_not_created() {
    let Some(device) = Loop::new("unmountable", 160 << 20) else { return };
    let image = content(1 << 20);
    std::fs::write(&device.path, &image).unwrap();
    let args = ["bench", &device.path, "--suite", "fs", "--size", "128MiB", "--destroy", "--yes-i-mean", device.name()];
    let begins = || std::fs::read(&device.path).unwrap()[..1 << 20] == image;
    for without in [&["setpriv", "--bounding-set", "-sys_admin"][..], &["unshare", "-Ur"]] {
        if !succeeds(without[0], &[&without[1..], &["true"]].concat()) {
            skip(&format!("{without:?} is not to be had"));
            continue;
        }
        let program = command().get_program().to_owned();
        let run = Command::new(without[0]).args(&without[1..]).arg(program).args(args).output().unwrap();
        let told = String::from_utf8_lossy(&run.stderr);
        assert!(!run.status.success() && begins(), "{without:?}: {told}");
        assert!(told.contains("nothing was written") || told.contains("Permission denied"), "{without:?}: {told}");
    }
    for rows in ["commit=4294967295", "commit=86401", "default,default", "discard+commit=5,commit=5+discard"] {
        let run = emmclab(args.iter().chain(&["--rows", rows])).exits(2);
        assert!(begins() && run.stderr.contains("expected"), "{rows}: {}", run.stderr);
    }
}

#[test]
fn a_filesystem_without_kernel_support_is_not_created() {
    let Some(device) = Loop::new("no_f2fs", 160 << 20) else { return };
    let args = ["bench", &device.path, "--suite", "fs", "--size", "128MiB", "--destroy", "--yes-i-mean", device.name()];
    let run = emmclab(args.iter().chain(&["--json"]));
    if !run.stdout.contains("the kernel has no f2fs") {
        return skip("this kernel has f2fs, or no ext4 can be made");
    }
    // After ext4, whose magic number is still there, no other filesystem was started.
    let begin = &std::fs::read(&device.path).unwrap()[..4096];
    assert_eq!(begin[1024 + 56..1024 + 58], [0x53, 0xef], "the ext4 that was measured is what is there");
}

#[test]
fn measurements_on_a_file_are_reported_if_later_files_fail() {
    let folder = scratch("half");
    // Its first part needs no name in the folder, its second does: in one that is removed there can be none.
    let args = ["bench", folder.to_str().unwrap(), "--suite", "bonnie", "--size", "64MiB"];
    let mut command = command();
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let hold = Hold::at(&mut command, "filled", 1, &folder);
    let mut child = command.spawn().unwrap();
    hold.wait(&mut child);
    if std::fs::remove_dir(&folder).is_err() {
        child.kill().unwrap();
        child.wait().unwrap();
        return skip("files here have names");
    }
    drop(hold);
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("before anything was measured on files"), "{told} {output:?}");
    assert!(output.status.code() == Some(1) && told.contains("bonnie"), "{:?} {told}", output.status);
}

#[test]
fn save_restore_of_a_folder_saves_nothing() {
    let folder = scratch("nothing_saved");
    let name = folder.to_str().unwrap();
    let new = folder.join("new").display().to_string();
    for target in [&[name][..], &[name, "--suite", "fs"], &[name, "--suite", "bonnie"], &[&new]] {
        let args = ["bench", "--size", "16MiB", "--save-restore", "--destroy"];
        let run = emmclab(args.iter().chain(target)).exits(2);
        assert!(run.stderr.contains("--save-restore: ") && run.stderr.lines().count() == 1, "{}", run.stderr);
    }
    assert_eq!(names_in(&folder), [""; 0]);
}
