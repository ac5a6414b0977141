//! Trees of files: operations in a folder, and filesystems that are created on a loop device and removed.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use emmc_linux::block_io::TargetHandle;
use emmc_linux::file_tree::{Folder, Scratch};
use emmc_port::{FileNumber, FileOp, FilePlace, FilesystemError, NewFilesystem, TargetError};

const A: FileNumber = FileNumber(1);
const B: FileNumber = FileNumber(2);

/// A folder of a test's own, gone afterwards.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// The one folder in a folder.
fn own(folder: &Path) -> PathBuf {
    let found: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

#[test]
fn operations_act_on_real_files() {
    let outer = scratch();
    let mut folder = Folder::new(outer.path(), "it", 1, &Arc::default()).unwrap();
    let place = own(outer.path());
    folder
        .with(None, &mut |tree| {
            tree.call(FileOp::Create { file: A, folder: 3, name: "a.new" })?;
            assert_eq!(tree.call(FileOp::Write { file: A, offset_bytes: 0, bytes: 3 << 20, direct: false })?, 3 << 20);
            tree.call(FileOp::WriteBack(A))?;
            tree.call(FileOp::Sync(A))?;
            tree.call(FileOp::Close(A))?;
            tree.call(FileOp::Create { file: B, folder: 3, name: "a" })?;
            tree.call(FileOp::Rename { file: A, name: "a" })?;
            let content = std::fs::read(place.join("d3/a")).unwrap();
            assert_eq!((content.len(), place.join("d3/a.new").exists()), (3 << 20, false));
            let pages: std::collections::HashSet<&[u8]> = content.chunks(4096).collect();
            assert_eq!(pages.len(), content.len() / 4096, "no two pages are the same");
            // Direct and cached I/O use the same file.
            tree.call(FileOp::Write { file: A, offset_bytes: 8192, bytes: 4096, direct: true })?;
            let again = std::fs::read(place.join("d3/a")).unwrap();
            assert!(again[8192..12288] != content[8192..12288] && again[12288..] == content[12288..]);
            assert_eq!(tree.call(FileOp::Read { file: A, offset_bytes: 0, bytes: 3 << 20, direct: true })?, 3 << 20);
            tree.call(FileOp::Settle)?;
            tree.call(FileOp::Stat(A))?;
            assert_eq!(tree.call(FileOp::StatFolder(3))?, 1);
            let behind = tree.call(FileOp::Read { file: A, offset_bytes: 3 << 20, bytes: 4096, direct: false });
            let told = behind.unwrap_err().to_string();
            assert!(told.starts_with("it: read 4096 bytes at byte 3145728 of file 1: "), "{told}");
            assert_eq!(tree.call(FileOp::UnlinkFolder(3))?, 1);
            assert!(!place.join("d3/a").exists());
            assert!(tree.call(FileOp::Stat(A)).unwrap_err().to_string().contains("never created"));
            Ok(())
        })
        .unwrap();
    folder.remove().unwrap();
    assert_eq!(std::fs::read_dir(outer.path()).unwrap().count(), 0);
}

/// A loop device of a test's own.
struct Loop {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Loop {
    fn new(bytes: u64) -> Option<Self> {
        let folder = scratch();
        let image = folder.path().join("image");
        std::fs::File::create(&image).unwrap().set_len(bytes).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(image).output();
        let output = output.ok().filter(|output| output.status.success());
        if output.is_none() {
            eprintln!("SKIPPED: loop devices need root and losetup");
        }
        let path = String::from_utf8(output?.stdout).unwrap().trim().into();
        Some(Self { path, _folder: folder })
    }

    fn is_free(&self) -> bool {
        std::fs::File::options().read(true).custom_flags(libc::O_EXCL).open(&self.path).is_ok()
    }

    fn options(&self) -> Option<Vec<String>> {
        let name = self.path.file_name().unwrap().to_str().unwrap();
        let text = std::fs::read_to_string(format!("/proc/fs/ext4/{name}/options")).ok()?;
        Some(text.lines().map(str::to_owned).collect())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        assert!(Command::new("losetup").arg("-d").arg(&self.path).status().unwrap().success());
    }
}

#[test]
fn a_created_filesystem_is_mounted_as_requested_and_always_removed() {
    let Some(device) = Loop::new(64 << 20) else { return };
    let held = TargetHandle::new(&device.path).unwrap().unwrap();
    let mut place = Scratch::new(&held, "it", 48 << 20, 1, &Arc::default());
    for (options, is_error) in [("", false), ("discard,commit=30", false), ("commit=7", true)] {
        let new = NewFilesystem { fstype: "ext4", options };
        let worked = place.with(Some(new), &mut |tree| {
            tree.call(FileOp::Create { file: A, folder: 0, name: "a" })?;
            tree.call(FileOp::Write { file: A, offset_bytes: 0, bytes: 4096, direct: false })?;
            assert!(!device.is_free());
            let mounts = String::from_utf8_lossy(&std::fs::read("/proc/self/mounts").unwrap()).into_owned();
            assert!(!mounts.contains(device.path.to_str().unwrap()), "its mount has no place");
            let again = std::fs::File::open(&device.path).unwrap();
            let locked = rustix::fs::flock(&again, rustix::fs::FlockOperation::NonBlockingLockExclusive);
            assert_eq!(locked, Err(rustix::io::Errno::WOULDBLOCK), "udev would look at it");
            if let Some(found) = device.options() {
                assert!(
                    options.split(',').all(|option| option.is_empty() || found.iter().any(|told| told == option)),
                    "{found:?}"
                );
                assert_eq!(found.iter().any(|told| told == "discard"), options.contains("discard"));
            }
            if is_error { Err(TargetError::WornOut { name: "it".into() }) } else { Ok(()) }
        });
        match worked {
            Err(FilesystemError::Missing { what }) => return eprintln!("SKIPPED: {what}"),
            worked => assert_eq!(worked.is_err(), is_error, "{worked:?}"),
        }
        assert!(device.is_free() && device.options().is_none());
    }
    let made: Vec<_> =
        place.made().iter().map(|made| (made.fstype.as_str(), made.options.contains("commit=30"))).collect();
    assert_eq!(made, [("ext4", false), ("ext4", true), ("ext4", false)]);
    assert!(place.made().iter().all(|made| (1..48 << 20).contains(&made.size_bytes)));
    // The filesystem refuses a bad option, and no mount remains.
    let bad = NewFilesystem { fstype: "ext4", options: "commit=never" };
    let refused = place.with(Some(bad), &mut |_| Ok(())).unwrap_err().to_string();
    assert!(refused.starts_with("it: mounting ext4 with commit=never: ") && device.is_free(), "{refused}");
    let unknown = NewFilesystem { fstype: "nosuchfs", options: "" };
    let before = std::fs::read(&device.path).unwrap();
    let missing = place.with(Some(unknown), &mut |_| Ok(())).unwrap_err();
    assert_eq!(missing, FilesystemError::Missing { what: "the kernel has no nosuchfs".into() });
    // The kernel has this one, and there is no program that creates it.
    let unmade = NewFilesystem { fstype: "proc", options: "" };
    assert!(place.with(Some(unmade), &mut |_| Ok(())).is_err());
    assert!(std::fs::read(&device.path).unwrap() == before, "nothing was trimmed or written");
}
