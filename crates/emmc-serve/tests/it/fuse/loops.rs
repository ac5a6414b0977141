//! Loop devices on areas: real block devices, with a filesystem, trim and fio.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use emmc_card::device::Area;
use emmc_serve::fuse;
use emmc_units::Rng;
use sha2::{Digest, Sha256};

use crate::fuse::{Folder, is_root, run};
use crate::memory::Memory;

/// The user area of a card as a loop device; `None`, with a message, if that is impossible.
fn user(name: &str, memory: std::sync::Arc<Memory>) -> Option<(Folder, PathBuf)> {
    if !is_root() || !Path::new("/dev/loop-control").exists() {
        eprintln!("SKIPPED: loop devices need root and /dev/loop-control");
        return None;
    }
    let mut folder = Folder::mount(name, memory)?;
    let device = folder.mounted().attach("user").unwrap();
    Some((folder, device))
}

fn setting(device: &Path, name: &str) -> String {
    let path = Path::new("/sys/block").join(device.file_name().unwrap()).join(name);
    std::fs::read_to_string(&path).map(|text| text.trim().to_owned()).unwrap_or_default()
}

/// A file system that is unmounted at the end.
struct FileSystem(PathBuf);

impl FileSystem {
    fn mount(device: &Path, name: &str) -> Self {
        let at = Folder::empty(name).path.clone();
        std::fs::create_dir_all(&at).unwrap();
        run("mount", &[device.to_str().unwrap(), at.to_str().unwrap()]).unwrap();
        Self(at)
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Bytes that do not repeat.
fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    std::iter::repeat_with(|| rng.next_u64() as u8).take(bytes).collect()
}

#[test]
fn ext4_works_on_a_loop_device() {
    let memory = Memory::new(256 << 20).shared();
    let Some((mut folder, device)) = user("ext4", memory.clone()) else { return };
    assert_eq!(setting(&device, "loop/dio"), "1");
    assert_eq!(setting(&device, "size"), ((256 << 20) / 512).to_string());
    let path = device.to_str().unwrap();
    let Some(_) = run("mkfs.ext4", &["-q", path]) else { return };
    let hashes: Vec<_> = {
        let system = FileSystem::mount(&device, "ext4-on");
        let hashes = (0..20).map(|number| {
            let data = content(number, (1 << 20) + number as usize * 777);
            std::fs::write(system.0.join(format!("{number}")), &data).unwrap();
            Sha256::digest(&data)
        });
        let hashes = hashes.collect();
        std::fs::write(system.0.join("gone"), content(99, 100 << 20)).unwrap();
        run("sync", &["-f", system.0.to_str().unwrap()]).unwrap();
        std::fs::remove_file(system.0.join("gone")).unwrap();
        run("sync", &["-f", system.0.to_str().unwrap()]).unwrap();
        let before = memory.count("trim");
        let Some(told) = run("fstrim", &["-v", system.0.to_str().unwrap()]) else { return };
        let bytes: u64 = told.split(['(', ' ']).filter_map(|word| word.parse().ok()).max().unwrap_or(0);
        assert!(bytes > 100 << 20, "{told}");
        assert!(memory.count("trim") > before);
        hashes
    };
    assert!(memory.count("flush") > 0);
    run("e2fsck", &["-f", "-n", path]).unwrap();
    let kept = memory.content(Area::User);
    let gone = content(99, 100 << 20);
    let piece = &gone[50 << 20..][..4096];
    assert!(!kept.chunks(4096).any(|unit| unit == piece), "what was deleted and trimmed is gone from the card");
    {
        let system = FileSystem::mount(&device, "ext4-again");
        for (number, hash) in hashes.iter().enumerate() {
            let data = std::fs::read(system.0.join(format!("{number}"))).unwrap();
            assert!(Sha256::digest(&data) == *hash, "file {number}");
        }
        let error = folder.mounted().stop().unwrap_err().to_string();
        assert!(error.contains("in use") && error.contains(path), "{error}");
        std::fs::write(system.0.join("still"), "works").unwrap();
    }
    folder.mounted().stop().unwrap();
    assert!(!Path::new("/sys/block").join(device.file_name().unwrap()).join("loop").exists());
}

#[test]
fn fio_verifies_its_writes() {
    let memory = Memory::new(64 << 20).shared();
    let Some((_folder, device)) = user("fio", memory) else { return };
    let filename = format!("--filename={}", device.display());
    let verify =
        ["--verify=sha256", "--verify_state_save=0", "--do_verify=1", "--verify_fatal=1", "--direct=1", "--size=32M"];
    for engine in ["--ioengine=psync", "--ioengine=libaio"] {
        let load = ["--name=loop", "--rw=randwrite", "--bs=4k", "--iodepth=16", engine, &filename];
        let args: Vec<&str> = load.into_iter().chain(verify).collect();
        if run("fio", &args).is_none() {
            return;
        }
    }
}

#[test]
fn all_areas_have_loop_devices_and_protection() {
    if !is_root() {
        eprintln!("SKIPPED: loop devices need root");
        return;
    }
    let memory = Memory::new(1 << 20).shared();
    let Some(mut folder) = Folder::mount("all", memory) else { return };
    let devices = folder.mounted().attach_all().unwrap();
    let read_only: Vec<_> = devices.iter().map(|(name, device)| (name.as_str(), setting(device, "ro"))).collect();
    assert_eq!(read_only, [("user", "0".into()), ("boot0", "0".into()), ("boot1", "1".into())]);
    std::fs::write(&devices[2].1, [1; 512]).unwrap_err();
    assert_eq!(folder.mounted().attach("gp1").unwrap_err().to_string(), "there is no area \"gp1\"");
    folder.mounted().stop().unwrap();
}

/// Serves until it is killed; not a test in itself.
#[test]
#[ignore = "started by leftovers_of_a_killed_server_are_removed"]
fn child_that_is_killed() {
    let path = PathBuf::from(std::env::var_os("EMMCLAB_TEST_FOLDER").expect("started by another test"));
    let mut mounted = fuse::mount(Memory::new(1 << 20).shared(), &path).unwrap();
    println!("attached {}", mounted.attach("user").unwrap().display());
    let _ = std::io::stdin().lines().next();
}

/// A process that serves a folder, and its loop device; `None`, with a message, if that is impossible.
fn server(folder: &Path) -> Option<(Child, PathBuf)> {
    if !is_root() || !Path::new("/dev/loop-control").exists() || !Path::new("/dev/fuse").exists() {
        eprintln!("SKIPPED: needs root, FUSE and loop devices");
        return None;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "fuse::loops::child_that_is_killed"])
        .env("EMMCLAB_TEST_FOLDER", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let device = lines.filter_map(|line| line.split_once("attached ").map(|(_, path)| PathBuf::from(path))).next();
    Some((child, device.expect("the child names its device")))
}

#[test]
fn leftovers_of_a_killed_server_are_removed() {
    let mut folder = Folder::empty("killed");
    let Some((mut child, device)) = server(&folder.path) else { return };
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(rustix::fs::statvfs(&folder.path).err(), Some(rustix::io::Errno::NOTCONN));
    let link = folder.path.with_extension("link");
    std::os::unix::fs::symlink(&folder.path, &link).unwrap();
    folder.mounted = Some(fuse::mount(Memory::new(2 << 20).shared(), &link).unwrap());
    std::fs::remove_file(&link).unwrap();
    assert_eq!(folder.path.join("user").metadata().unwrap().len(), 2 << 20);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let at = format!(" {} ", folder.path.display());
    assert_eq!(mounts.matches(&at).count(), 1, "the dead mount is gone, not covered");
    let again = folder.mounted().attach("user").unwrap();
    assert_eq!(setting(&again, "size"), "4096");
    assert_ne!(setting(&device, "size"), "2048", "the killed server's device is detached");
}

#[test]
fn a_server_that_is_stopped_is_named_and_not_waited_for() {
    let mut folder = Folder::empty("stopped");
    let Some((mut child, _)) = server(&folder.path) else { return };
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
    let error = fuse::mount(Memory::new(1 << 20).shared(), &folder.path).unwrap_err().to_string();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(error.contains("does not reply") && error.contains("umount --force"), "{error}");
    // Mounted again, to remove what the killed one left.
    folder.mounted = Some(fuse::mount(Memory::new(1 << 20).shared(), &folder.path).unwrap());
}
