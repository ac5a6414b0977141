//! Clones of disks and filesystems in other cases: a GPT and a smaller disk, FAT with files, a place that cannot be
//! written or read.

use super::*;
use crate::support::{is_root, run};

#[test]
fn a_gpt_on_a_smaller_disk_is_refused_for_its_second_copy() {
    let folder = scratch("gpt");
    let (disk, file) = (folder.join("disk"), folder.join("clone"));
    std::fs::File::create(&disk).unwrap().set_len(64 * MIB).unwrap();
    let table = save(&folder, "table", "label: gpt\nstart=2048, size=32768\n");
    if !succeeds("sh", &["-c", &format!("sfdisk -q {} < {table}", text(&disk))]) {
        return skip("no sfdisk");
    }
    clone(text(&disk), &file, &[]).exits(0);
    let small = folder.join("small");
    std::fs::write(&small, vec![7; 63 << 20]).unwrap();
    for more in [&["--destroy"][..], &["--destroy", "--shrink"]] {
        let refused = emmclab(["restore", text(&file), text(&small)].iter().chain(more)).exits(4);
        let words = format!("too small: {} bytes, and the clone has content up to byte {}", 63 * MIB, 64 * MIB);
        assert!(refused.stderr.contains(&words), "{}", refused.stderr);
        assert!(refused.stderr.contains("second copy of a GPT"), "{}", refused.stderr);
    }
    assert!(std::fs::read(&small).unwrap().iter().all(|byte| *byte == 7));
    // On a larger one it is where it was, which programs notice.
    let large = folder.join("large");
    std::fs::File::create(&large).unwrap().set_len(80 * MIB).unwrap();
    emmclab(["restore", text(&file), text(&large), "--destroy"]).exits(0);
    let [old, new] = [&disk, &large].map(|path| std::fs::read(path).unwrap());
    assert!(old == new[..64 << 20]);
}

#[test]
fn inodes_that_were_never_in_use_are_not_copied() {
    let folder = scratch("inodes");
    let root = tree(&folder);
    let mut allocated = Vec::new();
    // Without checksums a group does not say which inodes were never in use.
    for (lazy, features) in [("0", "^metadata_csum,^uninit_bg"), ("0", "metadata_csum"), ("1", "metadata_csum")] {
        let options = format!("nodiscard,lazy_itable_init={lazy}");
        let words = ["-q", "-F", "-N", "131072", "-O", features, "-E", &options, "-d", &root];
        let Some(path) = image(&folder, "ext4", 256, "mkfs.ext4", &words) else {
            return skip("no mkfs.ext4");
        };
        let (file, restored) = (folder.join("clone"), folder.join("restored"));
        let document = clone(text(&path), &file, &["--verify", "--force", "--json"]).exits(0).json();
        allocated.push(document["allocated_bytes"].as_u64().unwrap());
        // What is not copied may hold anything.
        std::fs::write(&restored, noise(3, 256 << 20)).unwrap();
        emmclab(["restore", text(&file), text(&restored), "--destroy", "--unallocated", "keep"]).exits(0);
        assert!(succeeds("e2fsck", &["-fn", text(&restored)]), "{features}, {lazy}");
        let found = Command::new("debugfs").args(["-R", "cat /large", text(&restored)]).output().unwrap().stdout;
        assert!(found == noise(77, 3 << 20), "{features}, {lazy}");
    }
    assert!(allocated[1] == allocated[2] && allocated[1] + 28 * MIB < allocated[0], "{allocated:?}");
}

#[test]
fn files_of_fat_are_whole_and_deleted_ones_are_not_copied() {
    let folder = scratch("fat");
    for (bits, mib) in [("12", 8), ("16", 64), ("32", 128)] {
        let Some(path) = image(&folder, "fat", mib, "mkfs.vfat", &["-F", bits]) else { return skip("no mkfs.vfat") };
        let (big, gone) = (noise(5, 3 << 20), noise(6, 2 << 20));
        let names = [("BIG.BIN", &big), ("GONE.BIN", &gone)];
        for (name, content) in names {
            let from = save(&folder, name, content);
            if !succeeds("mcopy", &["-i", text(&path), &from, &format!("::{name}")]) {
                return skip("no mcopy (package mtools)");
            }
        }
        assert!(succeeds("mdel", &["-i", text(&path), "::GONE.BIN"]));
        let (file, restored) = (folder.join("clone"), folder.join("restored"));
        clone(text(&path), &file, &["--verify", "--force"]).exits(0);
        let _ = std::fs::remove_file(&restored);
        emmclab(["restore", text(&file), text(&restored)]).exits(0);
        assert!(succeeds("fsck.vfat", &["-n", text(&restored)]), "FAT{bits}");
        let found = Command::new("mtype").args(["-i", text(&restored), "::BIG.BIN"]).output().unwrap().stdout;
        assert!(found == big, "FAT{bits}: {} bytes", found.len());
        let content = std::fs::read(&restored).unwrap();
        let is_there = |part: &[u8]| content.chunks(512).any(|sector| sector == part);
        assert!(is_there(&big[1 << 20..][..512]) && !is_there(&gone[1 << 20..][..512]), "FAT{bits}");
    }
}

/// Runs the binary as a user who may do nothing here.
fn without_rights(args: &[&str]) -> Run {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", env!("CARGO_BIN_EXE_emmclab")]).args(args);
    run(command)
}

#[test]
fn a_place_without_permission_or_read_only_is_one_error_and_nothing_changes() {
    use std::os::unix::fs::PermissionsExt;
    if !is_root() || !succeeds("setpriv", &["--version"]) {
        return skip("not root, or no setpriv");
    }
    let folder = scratch("rights");
    let (source, file) = (sparse(&folder), folder.join("clone"));
    clone(text(&source), &file, &[]).exits(0);
    let closed = folder.join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o700)).unwrap();
    let one_line = |run: Run, what: &str| {
        let run = run.exits(3);
        assert!(run.stderr.contains(what) && run.stderr.lines().count() == 1, "{what}: {}", run.stderr);
    };
    let open = |path: &Path, mode: u32| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    open(&file, 0o644);
    open(&source, 0o644);
    one_line(without_rights(&["clone", text(&source), "-o", text(&folder.join("mine"))]), "Permission denied");
    one_line(without_rights(&["restore", text(&file), text(&closed.join("x"))]), "Permission denied");
    // Behind what would be lost, which a dialogue shows first.
    let refused = without_rights(&["restore", text(&file), text(&source), "--destroy"]).exits(3);
    let last = refused.stderr.lines().last().unwrap();
    assert!(last.contains("Permission denied") && last.ends_with("nothing was written"), "{}", refused.stderr);
    open(&source, 0o600);
    one_line(without_rights(&["clone", text(&source), "-o", "/dev/null/x"]), "Permission denied");
    if let Some(disk) = Loop::new("rights_disk", 64 * MIB) {
        one_line(without_rights(&["clone", &disk.path, "-o", "/tmp/never"]), "Permission denied");
    }
    let before = std::fs::read(&source).unwrap();
    // A filesystem that is read-only.
    let sealed = folder.join("sealed");
    std::fs::create_dir(&sealed).unwrap();
    let words = ["-t", "tmpfs", "-o", "ro", "tmpfs", text(&sealed)];
    assert!(succeeds("mount", &words));
    let runs =
        [clone(text(&source), &sealed.join("x"), &[]), emmclab(["restore", text(&file), text(&sealed.join("image"))])];
    assert!(succeeds("umount", &[text(&sealed)]));
    for run in runs {
        one_line(run, "Read-only file system");
    }
    assert_eq!(names_in(&folder), ["clone", "closed", "sealed", "source"]);
    assert!(std::fs::read(&source).unwrap() == before);
}
