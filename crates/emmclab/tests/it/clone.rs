//! `clone` and `restore`: what is allocated is copied, a kill is continued, damage is refused, targets are asked about.

#[cfg(feature = "serve")]
mod cuts;
mod places;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::cards::noise;
use crate::support::hold::Hold;
use crate::support::loops::{Loop, succeeds};
use crate::support::{Run, command, emmclab, names_in, save, scratch, skip};

const MIB: u64 = 1 << 20;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn clone(source: &str, file: &Path, more: &[&str]) -> Run {
    emmclab(["clone", source, "-o", text(file)].iter().chain(more))
}

/// An image all of whose bytes are old content, with a filesystem that a program made in it, and files in that.
fn image(folder: &Path, name: &str, mib: u64, program: &str, args: &[&str]) -> Option<PathBuf> {
    let path = folder.join(name);
    let file = std::fs::File::create(&path).unwrap();
    for at in 0..mib {
        file.write_all_at(&noise(at + 1, MIB as usize), at * MIB).unwrap();
    }
    let words: Vec<&str> = args.iter().copied().chain([text(&path)]).collect();
    succeeds(program, &words).then_some(path)
}

fn tree(folder: &Path) -> String {
    let root = folder.join("root");
    std::fs::create_dir_all(root.join("sub")).unwrap();
    std::fs::write(root.join("large"), noise(77, 3 << 20)).unwrap();
    std::fs::write(root.join("sub/small"), "a small file\n".repeat(99)).unwrap();
    text(&root).to_owned()
}

#[test]
fn filesystems_are_copied_by_their_bitmaps_and_restored_whole() {
    let folder = scratch("filesystems");
    let root = tree(&folder);
    let cases: [(&str, &str, Vec<&str>, &[&str]); 5] = [
        ("ext4", "mkfs.ext4", vec!["-q", "-F", "-E", "nodiscard", "-d", &root], &["e2fsck", "-fn"]),
        ("ext2", "mkfs.ext2", vec!["-q", "-F", "-b", "1024", "-E", "nodiscard", "-d", &root], &["e2fsck", "-fn"]),
        ("FAT32", "mkfs.vfat", vec!["-F", "32"], &["fsck.vfat", "-n"]),
        ("f2fs", "mkfs.f2fs", vec!["-q", "-t", "0"], &["fsck.f2fs", "--dry-run"]),
        ("btrfs", "mkfs.btrfs", vec!["-q", "-f", "-K", "--rootdir", &root], &["btrfs", "check", "--readonly"]),
    ];
    for (content, program, args, check) in cases {
        let Some(path) = image(&folder, content, 128, program, &args) else {
            skip(&format!("{content}: no {program}"));
            continue;
        };
        let file = folder.join(format!("{content}.clone"));
        let run = emmclab(["clone", text(&path), "-o", text(&file), "--verify", "--json"]).exits(0);
        let document = run.json();
        assert_eq!(document["areas"][0]["parts"][0]["content"], content, "{}", run.stdout);
        let allocated = document["allocated_bytes"].as_u64().unwrap();
        assert!(allocated < 90 * MIB && document["stored_bytes"].as_u64().unwrap() < allocated, "{}", run.stdout);
        let restored = folder.join(format!("{content}.restored"));
        emmclab(["restore", text(&file), text(&restored)]).exits(0);
        emmclab(["restore", text(&file), text(&restored), "--verify"]).exits(0).says(&["equal"]);
        // The filesystem's own program finds nothing wrong, and all that is not allocated reads as zeros.
        let words: Vec<&str> = check[1..].iter().copied().chain([text(&restored)]).collect();
        assert!(succeeds(check[0], &words), "{content}: {check:?}");
        let [old, new] = [&path, &restored].map(|path| std::fs::read(path).unwrap());
        assert_eq!(old.len(), new.len());
        let blocks = old.chunks(512).zip(new.chunks(512));
        assert!(blocks.clone().all(|(old, new)| old == new || new.iter().all(|byte| *byte == 0)), "{content}");
        assert!(blocks.filter(|(old, new)| old != new).count() > 64_000, "{content}: nothing was left out");
    }
}

#[test]
fn partitions_are_read_one_by_one_and_boot_loaders_are_kept() {
    let folder = scratch("partitions");
    let path = folder.join("disk");
    let file = std::fs::File::create(&path).unwrap();
    for at in 0..96 {
        file.write_all_at(&noise(at + 1, MIB as usize), at * MIB).unwrap();
    }
    for label in ["dos", "gpt"] {
        let script = format!("label: {label}\nstart=2048, size=65536\nstart=67584, size=65536\n");
        let table = save(&folder, "table", script);
        let shell = format!("sfdisk -q --wipe never {} < {table}", text(&path));
        if !succeeds("sh", &["-c", &shell]) {
            return skip("no sfdisk");
        }
        let part = image(&folder, "part", 32, "mkfs.ext4", &["-q", "-F", "-E", "nodiscard"]);
        let Some(part) = part else { return skip("no mkfs.ext4") };
        file.write_all_at(&std::fs::read(part).unwrap(), MIB).unwrap();
        let clone_file = folder.join(label);
        let document = emmclab(["clone", text(&path), "-o", text(&clone_file), "--json"]).exits(0).json();
        let parts = document["areas"][0]["parts"].as_array().unwrap().clone();
        let found: Vec<_> = parts.iter().map(|part| (part["partition"].as_u64(), part["content"].as_str())).collect();
        assert_eq!(found, [(None, None), (Some(1), Some("ext4")), (Some(2), None), (None, None)], "{label}");
        let restored = folder.join(format!("{label}.restored"));
        emmclab(["restore", text(&clone_file), text(&restored)]).exits(0);
        let [old, new] = [&path, &restored].map(|path| std::fs::read(path).unwrap());
        // Before, between and behind partitions, and a partition without a filesystem.
        assert!(old[..MIB as usize] == new[..MIB as usize] && old[33 * MIB as usize..] == new[33 * MIB as usize..]);
        assert!(old != new, "{label}: nothing was left out");
    }
}

#[test]
fn what_is_not_consistent_is_copied_whole() {
    let folder = scratch("inconsistent");
    let Some(path) = image(&folder, "ext4", 32, "mkfs.ext4", &["-q", "-F", "-E", "nodiscard"]) else {
        return skip("no mkfs.ext4");
    };
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut incompat = [0; 4];
    file.read_exact_at(&mut incompat, 1024 + 96).unwrap();
    // needs_recovery: the journal has to be replayed.
    incompat[0] |= 4;
    file.write_all_at(&incompat, 1024 + 96).unwrap();
    let document = clone(text(&path), &folder.join("whole"), &["--json"]).exits(0).json();
    assert_eq!(document["allocated_bytes"], 32 * MIB);
    let part = &document["areas"][0]["parts"][0];
    assert_eq!(part["whole_because"], "ext with a journal that has to be replayed");
}

/// A file whose holes and content are known.
fn sparse(folder: &Path) -> PathBuf {
    let path = folder.join("source");
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(64 * MIB).unwrap();
    for at in [0, 5, 6, 7, 30, 31, 40, 63] {
        file.write_all_at(&noise(at + 9, MIB as usize), at * MIB).unwrap();
    }
    path
}

#[test]
fn a_clone_that_is_killed_five_times_is_continued() {
    let folder = scratch("killed");
    let (source, file) = (sparse(&folder), folder.join("clone"));
    let whole = folder.join("whole");
    clone(text(&source), &whole, &[]).exits(0);
    let part = folder.join("clone.part");
    let mut before = 0;
    for round in 0..5 {
        let mut killed = command();
        killed.args(["clone", text(&source), "-o", text(&file)]).args((round > 0).then_some("--resume"));
        killed.stdout(Stdio::null()).stderr(Stdio::null());
        let hold = Hold::at(&mut killed, "step", 3, &folder);
        let mut child = killed.spawn().unwrap();
        hold.wait(&mut child);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(part.is_file() && !file.exists());
        let now = std::fs::metadata(&part).unwrap().len();
        assert!(now >= before, "{now} bytes, {before} before");
        before = now;
        // A torn record, as a power cut leaves it.
        if round == 3 {
            let torn = std::fs::OpenOptions::new().append(true).open(&part).unwrap();
            torn.write_all_at(&noise(1, 700), now).unwrap();
        }
        clone(text(&source), &file, &[]).exits(4);
        emmclab(["restore", text(&part), text(&folder.join("none"))]).exits(2);
    }
    let document = clone(text(&source), &file, &["--resume", "--json"]).exits(0).json();
    assert!(document["resumed_bytes"].as_u64().unwrap() > MIB, "{document}");
    assert_eq!(std::fs::read(&file).unwrap(), std::fs::read(&whole).unwrap());
    assert!(!part.exists());
    // Cut in its header.
    for length in [0, 5, 100] {
        std::fs::write(&part, &std::fs::read(&whole).unwrap()[..length]).unwrap();
        std::fs::remove_file(&file).unwrap();
        clone(text(&source), &file, &["--resume"]).exits(0);
        assert!(std::fs::read(&file).unwrap() == std::fs::read(&whole).unwrap(), "{length} bytes");
    }
    // A link that another user put there.
    let other = save(&folder, "other", "theirs");
    std::os::unix::fs::symlink(&other, &part).unwrap();
    std::fs::remove_file(&file).unwrap();
    for more in ["--resume", "--force"] {
        clone(text(&source), &file, &[more]).exits(3);
    }
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "theirs");
}

#[test]
fn another_source_is_not_continued() {
    let folder = scratch("other");
    let (source, file) = (sparse(&folder), folder.join("clone"));
    let mut stopped = command();
    stopped.args(["clone", text(&source), "-o", text(&file)]).stdout(Stdio::null()).stderr(Stdio::null());
    let hold = Hold::at(&mut stopped, "step", 4, &folder);
    let mut child = stopped.spawn().unwrap();
    hold.wait(&mut child);
    // A second one while the first runs.
    let second = clone(text(&source), &file, &["--resume"]).exits(4);
    assert!(second.stderr.contains("another emmclab writes it"), "{}", second.stderr);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(hold);
    std::fs::OpenOptions::new().write(true).open(&source).unwrap().write_all_at(b"new", 5 * MIB).unwrap();
    let run = clone(text(&source), &file, &["--resume"]).exits(4);
    assert!(run.stderr.contains("the source changed since"), "{}", run.stderr);
    clone(text(&source), &file, &["--force"]).exits(0);
    assert!(!folder.join("clone.part").exists());
}

#[test]
fn a_damaged_or_cut_file_is_refused_with_the_place_and_nothing_is_written() {
    let folder = scratch("damaged");
    let (source, file) = (sparse(&folder), folder.join("clone"));
    clone(text(&source), &file, &[]).exits(0);
    emmclab(["restore", text(&file), "--check"]).exits(0);
    let good = std::fs::read(&file).unwrap();
    let target = folder.join("target");
    std::fs::write(&target, vec![7; 64 << 20]).unwrap();
    let damaged = folder.join("damaged");
    let refused = |bytes: &[u8], what: &str| {
        std::fs::write(&damaged, bytes).unwrap();
        let run = emmclab(["restore", text(&damaged), text(&target), "--destroy"]).exits(2);
        assert!(run.stderr.contains(what) && run.stderr.lines().count() == 1, "{what}: {}", run.stderr);
    };
    for at in [0, 9, 13, 20, 60, good.len() / 3, good.len() / 2, good.len() - 70, good.len() - 1] {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        let what = if at < 8 {
            "no clone"
        } else if at < 12 {
            "version"
        } else {
            "at byte"
        };
        refused(&bytes, what);
    }
    for length in [1, 30, 100, good.len() / 2, good.len() - 1] {
        refused(&good[..length], "cut off: it ends at byte");
    }
    refused(&[&good[..], b"x"].concat(), "more bytes behind the end");
    refused(b"", "no clone");
    assert!(std::fs::read(&target).unwrap().iter().all(|byte| *byte == 7));
}

#[test]
fn a_target_is_asked_about_measured_and_continued() {
    let folder = scratch("target");
    let (source, file) = (sparse(&folder), folder.join("clone"));
    clone(text(&source), &file, &[]).exits(0);
    let restore = |target: &Path, more: &[&str]| emmclab(["restore", text(&file), text(target)].iter().chain(more));
    let fresh = |name: &str, mib: u64| {
        let path = folder.join(name);
        std::fs::write(&path, vec![7; (mib * MIB) as usize]).unwrap();
        path
    };
    let target = fresh("same", 64);
    assert!(restore(&target, &[]).exits(4).stderr.contains("--destroy"));
    assert!(std::fs::read(&target).unwrap().iter().all(|byte| *byte == 7));
    // Killed in the middle: it is no clone, and says so; then continued.
    let mut killed = command();
    killed.args(["restore", text(&file), text(&target), "--destroy"]).stdout(Stdio::null()).stderr(Stdio::null());
    let hold = Hold::at(&mut killed, "step", 5, &folder);
    let mut child = killed.spawn().unwrap();
    hold.wait(&mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(hold);
    assert!(std::fs::read(&target).unwrap()[..4096].iter().all(|byte| *byte == 0), "its first sectors come last");
    assert!(restore(&target, &["--verify"]).exits(1).stderr.contains("differs from the clone"));
    let document = restore(&target, &["--destroy", "--resume", "--json"]).exits(0).json();
    assert!(document["counts"]["present_bytes"].as_u64().unwrap() >= 2 * MIB, "{document}");
    restore(&target, &["--verify"]).exits(0);
    assert!(std::fs::read(&target).unwrap() == std::fs::read(&source).unwrap());
    // A larger one; a smaller one that has no room for the content.
    let large = fresh("large", 70);
    restore(&large, &["--destroy"]).exits(0);
    assert!(std::fs::read(&large).unwrap()[..64 << 20] == std::fs::read(&source).unwrap());
    let small = fresh("small", 63);
    let run = restore(&small, &["--destroy", "--shrink"]).exits(4);
    assert!(run.stderr.contains("too small"), "{}", run.stderr);
    assert!(std::fs::read(&small).unwrap().iter().all(|byte| *byte == 7));
    for (target, code) in [("/dev/no-such-disk", 3), (text(&folder), 3), ("/dev/null", 3), ("/dev/mmcblk7p1", 4)] {
        let run = emmclab(["restore", text(&file), target, "--destroy"]).exits(code);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
}

#[test]
fn a_card_is_cloned_with_its_boot_areas_and_restored_to_another() {
    let folder = scratch("cards");
    let card = |name: &str| {
        let card = folder.join(name);
        emmclab(["sim", "create", text(&card), "sim:generic-8g"]).exits(0);
        format!("sim:{}", text(&card))
    };
    let [a, b] = ["a", "b"].map(card);
    let (source, image) = (sparse(&folder), folder.join("image.clone"));
    clone(text(&source), &image, &[]).exits(0);
    // Content for the first card; its size is another one.
    emmclab(["restore", text(&image), &a, "--destroy"]).exits(0);
    let file = folder.join("a.clone");
    let run = clone(&a, &file, &["--verify", "--json"]).exits(0);
    let document = run.json();
    let names: Vec<_> =
        document["areas"].as_array().unwrap().iter().map(|area| area["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["user", "boot0", "boot1"]);
    assert!(document["read_bytes"].as_u64().unwrap() <= 8 * MIB, "{}", run.stdout);
    assert!(document["not_carried"].to_string().contains("RPMB"), "{}", run.stdout);
    for source in [text(&file), &a] {
        let words = if source == a {
            vec!["clone", &a, "-o", &b, "--destroy"]
        } else {
            vec!["restore", source, &b, "--destroy"]
        };
        emmclab(words.iter().chain(&["--areas", "user,boot0,boot1"])).exits(0);
        emmclab(["restore", text(&file), &b, "--verify", "--areas", "user,boot0"]).exits(0);
    }
    emmclab(["restore", text(&image), &b, "--verify"]).exits(0);
}

#[test]
fn errors_of_the_system_are_one_line_and_change_nothing() {
    let folder = scratch("system");
    let source = sparse(&folder);
    let one_line = |run: Run, code: i32, what: &str| {
        let run = run.exits(code);
        assert!(run.stderr.contains(what) && run.stderr.lines().count() == 1, "{what}: {}", run.stderr);
    };
    one_line(clone("/dev/no-such-disk", &folder.join("x"), &[]), 3, "No such file");
    one_line(clone(text(&folder), &folder.join("x"), &[]), 3, "expected a block device");
    one_line(clone(text(&source), &source, &[]), 4, "is the source itself");
    one_line(clone(text(&source), Path::new("/proc/x"), &[]), 3, "cannot write");
    assert_eq!(names_in(&folder), ["source"]);
    // A full disk: a limit of file sizes acts in the same way.
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 2048; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_emmclab"), "clone", text(&source)]);
    limited.args(["-o", text(&folder.join("full"))]);
    let output = limited.output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), message.lines().count()), (Some(3), 1), "{message}");
    assert!(message.contains("--resume") && !folder.join("full").exists(), "{message}");
    clone(text(&source), &folder.join("full"), &["--resume", "--verify"]).exits(0);
}

#[test]
fn a_disk_is_restored_in_a_session_and_other_sectors_are_refused() {
    let folder = scratch("disk");
    let (source, file) = (sparse(&folder), folder.join("clone"));
    clone(text(&source), &file, &[]).exits(0);
    let backing = folder.join("backing");
    std::fs::write(&backing, vec![7; 64 << 20]).unwrap();
    let Some(disk) = Loop::over(&backing) else { return };
    let (name, node) = (disk.name().to_owned(), disk.path.clone());
    let restore = |more: &[&str]| emmclab(["restore", text(&file), &node, "--destroy"].iter().chain(more));
    restore(&[]).exits(4);
    restore(&["--yes-i-mean", "sda"]).exits(4);
    assert!(std::fs::read(&backing).unwrap().iter().all(|byte| *byte == 7));
    restore(&["--yes-i-mean", &name]).exits(0);
    emmclab(["restore", text(&file), &node, "--verify"]).exits(0);
    let again = folder.join("again");
    clone(&node, &again, &["--verify"]).exits(0);
    emmclab(["restore", text(&again), text(&folder.join("image"))]).exits(0);
    assert!(std::fs::read(folder.join("image")).unwrap() == std::fs::read(&source).unwrap());
    if succeeds("losetup", &["--sector-size", "4096", &node]) {
        let run = restore(&["--yes-i-mean", &name]).exits(4);
        assert!(run.stderr.contains("sectors of 4096 bytes"), "{}", run.stderr);
        // The other way: nothing is left beside the image that was not made.
        clone(&node, &folder.join("sectors"), &[]).exits(0);
        emmclab(["restore", text(&folder.join("sectors")), text(&folder.join("no"))]).exits(4);
        assert!(!folder.join("no").exists() && !folder.join("no.part").exists());
    }
}
