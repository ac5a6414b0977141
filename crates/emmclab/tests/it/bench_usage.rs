//! Targets in use that names do not show: each was once overwritten with `--destroy`. Nothing is written to them now.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::hold::Hold;
use crate::support::loops::{Loop, succeeds};
use crate::support::{self, Run, command, scratch, skip};

const BYTES: usize = 4 << 20;

fn content() -> Vec<u8> {
    (0..BYTES).map(|at| (at >> 12) as u8 ^ (at as u8).wrapping_mul(37)).collect()
}

/// A file with content in a folder of the test.
fn file(name: &str) -> (PathBuf, PathBuf) {
    let folder = scratch(name);
    let file = folder.join("image");
    std::fs::write(&file, content()).unwrap();
    (folder, file)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A writing bench with full consent, perhaps started by another program.
fn bench_by(program: &[&str], target: &str) -> Command {
    let name = Path::new(target).file_name().unwrap().to_str().unwrap();
    let args = ["bench", target, "--suite", "iozone", "--rows", "128", "--size", "2MiB", "--destroy"];
    let binary = command().get_program().to_owned();
    let mut bench = match program {
        [] => command(),
        [program, before @ ..] => {
            let mut command = Command::new(program);
            command.args(before).arg(binary).stdin(Stdio::null());
            command
        }
    };
    bench.args(args).args(["--yes-i-mean", name]);
    bench
}

fn bench(target: &str) -> Run {
    support::run(bench_by(&[], target))
}

/// Refused with these words, and the content is as before.
#[track_caller]
fn is_refused(run: Run, says: &str, file: &Path) {
    let run = run.exits(4);
    assert!(run.stderr.contains(says), "{}\n{}", run.args, run.stderr);
    assert!(std::fs::read(file).unwrap() == content(), "{}: was written to", file.display());
}

/// A loop device over a file that keeps it.
fn over(file: &Path) -> Option<Attached> {
    let device = Loop::over(file)?;
    Some(Attached { path: device.path.clone() }).inspect(|_| std::mem::forget(device))
}

/// Detached in the end; the file stays.
struct Attached {
    path: String,
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.path]).status();
    }
}

/// Unmounted in the end.
struct Mounted(PathBuf);

impl Mounted {
    fn new(args: &[&str], point: PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&point).unwrap();
        let is_mounted = succeeds("mount", &[args, &[text(&point)]].concat());
        is_mounted.then_some(Self(point))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_file_behind_a_loop_is_found_by_another_hard_link() {
    let (folder, file) = file("hard_link");
    let Some(device) = over(&file) else { return };
    let other = folder.join("other");
    std::fs::hard_link(&file, &other).unwrap();
    is_refused(bench(text(&other)), "is the file behind", &file);
    std::fs::remove_file(&file).unwrap();
    is_refused(bench(text(&other)), "is the file behind", &other);
    // Another file now has the name that the kernel reports.
    std::fs::write(&file, [0; 4096]).unwrap();
    is_refused(bench(text(&other)), &device.path["/dev/".len()..], &other);
}

#[test]
fn a_device_behind_a_loop_is_found_without_its_node() {
    let (folder, file) = file("no_node");
    let Some(below) = over(&file) else { return };
    let number = &below.path["/dev/loop".len()..];
    let node = folder.join("node");
    if !succeeds("mknod", &[text(&node), "b", "7", number]) || std::fs::File::open(&node).is_err() {
        return skip("no device nodes here");
    }
    let Some(above) = over(&node) else { return };
    std::fs::remove_file(&node).unwrap();
    is_refused(bench(&below.path), &format!("is the file behind {}", &above.path["/dev/".len()..]), &file);
}

#[test]
fn without_proc_or_sys_nothing_is_written() {
    let (_folder, file) = file("blind");
    for hide in ["umount -l /proc", "umount -R -l /sys", "mount -t tmpfs none /proc", "mount -t tmpfs none /sys"] {
        let script = format!("{hide} && exec \"$@\"");
        let by = ["unshare", "--mount", "sh", "-c", &script, "sh"];
        if !succeeds(by[0], &[&by[1..], &["true"]].concat()) {
            skip("mount namespaces need root");
            continue;
        }
        is_refused(support::run(bench_by(&by, text(&file))), "cannot be found out", &file);
    }
}

#[test]
fn a_loop_attached_after_the_confirmation_is_found() {
    for point in ["confirmed", "saved"] {
        let (folder, file) = file(point);
        let mut bench = bench_by(&[], text(&file));
        let kept = folder.join("kept");
        bench.arg("--save-restore").arg("--save-to").arg(&kept).stdout(Stdio::piped()).stderr(Stdio::piped());
        let hold = Hold::at(&mut bench, point, 1, &folder);
        let mut child = bench.spawn().unwrap();
        hold.wait(&mut child);
        let device = over(&file);
        drop(hold);
        let output = child.wait_with_output().unwrap();
        let Some(_device) = device else { return };
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(4) && told.contains("is the file behind"), "{point}: {told}");
        assert!(std::fs::read(&file).unwrap() == content(), "{point}");
        assert!(!kept.exists(), "{point}: nothing was overwritten, so nothing stays saved");
    }
}

#[test]
fn a_device_mounted_after_the_confirmation_is_found() {
    let Some(device) = Loop::new("late_mount", 32 << 20) else { return };
    if !succeeds("mkfs.ext4", &["-q", "-F", &device.path]) {
        return skip("no mkfs.ext4");
    }
    let before = std::fs::read(&device.file).unwrap();
    let folder = scratch("late_mount_point");
    let mut bench = bench_by(&[], &device.path);
    bench.stdout(Stdio::piped()).stderr(Stdio::piped());
    let hold = Hold::at(&mut bench, "confirmed", 1, &folder);
    let mut child = bench.spawn().unwrap();
    hold.wait(&mut child);
    let mounted = Mounted::new(&["-o", "ro,noload", &device.path], folder.join("point"));
    drop(hold);
    let output = child.wait_with_output().unwrap();
    let Some(_mounted) = mounted else { return skip("mount is not allowed") };
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(4) && told.contains("is mounted at"), "{told}");
    assert!(std::fs::read(&device.file).unwrap() == before);
}

#[test]
fn a_file_locked_by_another_process_is_refused() {
    let (_folder, file) = file("locked");
    let held = std::fs::File::options().read(true).write(true).open(&file).unwrap();
    for operation in
        [rustix::fs::FlockOperation::NonBlockingLockShared, rustix::fs::FlockOperation::NonBlockingLockExclusive]
    {
        rustix::fs::fcntl_lock(&held, operation).unwrap();
        is_refused(bench(text(&file)), &format!("is locked by process {}", std::process::id()), &file);
    }
    drop(held);
    assert!(bench(text(&file)).code < 2);
}

#[test]
fn an_image_that_qemu_has_open_is_refused() {
    use std::io::{Read, Write};
    let (_folder, file) = file("qemu");
    let mut qemu = Command::new("qemu-io");
    qemu.args(["-f", "raw", text(&file)]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = qemu.spawn() else { return skip("no qemu-io") };
    // Its answer shows that the image is open.
    let mut answer = [0; 64];
    child.stdin.as_mut().unwrap().write_all(b"length\n").unwrap();
    assert!(child.stdout.as_mut().unwrap().read(&mut answer).unwrap() > 0);
    let run = bench(text(&file));
    drop(child.stdin.take());
    child.wait().unwrap();
    is_refused(run, "is locked by", &file);
}

/// An overlay in a folder: its upper folder and its merged one.
fn overlay(folder: &Path) -> Option<(PathBuf, Mounted)> {
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| folder.join(name));
    for name in [&lower, &upper, &work] {
        std::fs::create_dir(name).unwrap();
    }
    let options = format!("lowerdir={},upperdir={},workdir={}", text(&lower), text(&upper), text(&work));
    let mounted = Mounted::new(&["-t", "overlay", "-o", &options, "none"], folder.join("merged"));
    if mounted.is_none() {
        skip("no overlay here");
    }
    Some((upper, mounted?))
}

#[test]
fn a_file_behind_a_loop_is_found_through_an_overlay() {
    let folder = scratch("overlay");
    let Some((upper, merged)) = overlay(&folder) else { return };
    let [upper, merged_file] = [&upper, &merged.0].map(|folder| folder.join("image"));
    std::fs::write(&merged_file, content()).unwrap();
    for (loop_on, target) in [(&merged_file, &upper), (&upper, &merged_file)] {
        let Some(_device) = over(loop_on) else { return };
        is_refused(bench(text(target)), "is the file behind", &merged_file);
    }
    let held = std::fs::File::options().read(true).write(true).open(&merged_file).unwrap();
    rustix::fs::fcntl_lock(&held, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    is_refused(bench(text(&upper)), "on an overlay the same file", &merged_file);
}

#[test]
fn a_file_behind_a_loop_of_an_overlay_elsewhere_is_found() {
    let folder = scratch("overlay_away");
    for name in ["lower", "upper", "work", "merged"] {
        std::fs::create_dir(folder.join(name)).unwrap();
    }
    let image = folder.join("upper/image");
    std::fs::write(&image, content()).unwrap();
    // Outside of that namespace the path of the loop's file leads nowhere.
    let script = "cd \"$0\" && mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work none merged && losetup --find \
--show merged/image";
    let attached = Command::new("unshare").args(["--mount", "sh", "-c", script, text(&folder)]).output().unwrap();
    if !attached.status.success() {
        return skip("no overlay, loop devices or mount namespaces here");
    }
    let device = Attached { path: String::from_utf8(attached.stdout).unwrap().trim().into() };
    is_refused(bench(text(&image)), &format!("may be the file behind {}", &device.path["/dev/".len()..]), &image);
}

/// Swap that ends with the test.
struct Swap(String);

impl Swap {
    fn on(path: &str) -> Option<Self> {
        let is_on = succeeds("mkswap", &[path]) && succeeds("swapon", &[path]);
        if !is_on {
            skip("no swap here");
        }
        is_on.then(|| Self(path.into()))
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let _ = Command::new("swapoff").arg(&self.0).status();
    }
}

#[test]
fn swap_is_refused_by_every_name() {
    let folder = scratch("swap");
    let Some(device) = Loop::new("swap_device", 4 << 20) else { return };
    let Some(_swap) = Swap::on(&device.path) else { return };
    let node = folder.join("node");
    let number = &device.path["/dev/loop".len()..];
    let before = std::fs::read(&device.file).unwrap();
    if succeeds("mknod", &[text(&node), "b", "7", number]) && std::fs::File::open(&node).is_ok() {
        let run = support::run(bench_by(&[], text(&node)));
        assert!(run.exits(4).stderr.contains("is in use as swap"));
    }
    assert!(bench(&device.path).exits(4).stderr.contains("is in use as swap"));
    assert!(bench(text(&device.file)).exits(4).stderr.contains("is the file behind"));
    assert!(std::fs::read(&device.file).unwrap() == before);
}

#[test]
fn zram_in_use_is_refused() {
    let Ok(number) = std::fs::read_to_string("/sys/class/zram-control/hot_add") else {
        return skip("no zram, or not root");
    };
    let name = format!("zram{}", number.trim());
    let path = format!("/dev/{name}");
    std::fs::write(format!("/sys/block/{name}/disksize"), "16M").unwrap();
    let swap = Swap::on(&path);
    let run = swap.as_ref().map(|_| bench(&path));
    drop(swap);
    std::fs::write("/sys/class/zram-control/hot_remove", number.trim()).unwrap();
    if let Some(run) = run {
        assert!(run.exits(4).stderr.contains("is in use as swap"));
    }
}

#[test]
fn every_member_of_a_mounted_btrfs_is_refused() {
    let [Some(one), Some(other)] = ["btrfs_one", "btrfs_other"].map(|name| Loop::new(name, 128 << 20)) else { return };
    if !succeeds("mkfs.btrfs", &["-q", "-d", "single", "-m", "single", &one.path, &other.path]) {
        return skip("no mkfs.btrfs");
    }
    let point = scratch("btrfs_mount").join("point");
    let device = format!("device={}", other.path);
    let Some(_mounted) = Mounted::new(&["-t", "btrfs", "-o", &device, &one.path], point) else {
        return skip("the kernel has no btrfs");
    };
    for member in [&one, &other] {
        let refused = bench(&member.path).exits(4);
        assert!(refused.stderr.contains("btrfs"), "{}", refused.stderr);
    }
}

#[test]
fn a_mount_in_another_namespace_is_refused_before_the_prompt() {
    use std::io::{BufRead, BufReader};
    let Some(device) = Loop::new("away", 16 << 20) else { return };
    if !succeeds("mkfs.ext4", &["-q", "-F", &device.path]) {
        return skip("no mkfs.ext4");
    }
    let point = scratch("away_mount");
    let script = "mount \"$0\" \"$1\" && echo mounted && read line";
    let child = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, &device.path, text(&point)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else { return skip("no unshare") };
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let run = bench(&device.path);
    drop(child.stdin.take());
    child.wait().unwrap();
    if line.trim() != "mounted" {
        return skip("no mount namespaces here");
    }
    let told = run.exits(4).stderr;
    assert!(told.contains("is held: the kernel refuses exclusive access"), "{told}");
}

#[cfg(feature = "serve")]
#[test]
fn a_server_writes_no_output_to_a_device() {
    let Some(device) = Loop::new("outputs", 1 << 20) else { return };
    let folder = scratch("outputs_card");
    let card = folder.join("card");
    crate::support::emmclab(["sim", "create", text(&card), "--profile", "generic-8g"]).exits(0);
    let log = format!("log:file={}", device.path);
    let socket = folder.join("uml");
    for output in [&["--nbd", "127.0.0.1:0", "--layer", &log][..], &["--uml", text(&socket), "--record", &device.path]]
    {
        let run = crate::support::emmclab(["serve", text(&card)].iter().chain(output)).exits(4);
        assert!(run.stderr.contains("is a block device"), "{}", run.stderr);
    }
    assert!(std::fs::read(&device.file).unwrap().iter().all(|byte| *byte == 0));
}
