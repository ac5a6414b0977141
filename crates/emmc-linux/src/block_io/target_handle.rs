//! A device or a file that is identified once and cannot be exchanged afterwards.
//!
//! A bench opens its target several times: to inspect it, to write, to restore saved content. The name may now lead to
//! something else (a renamed file, a moved link, another card in the slot), and writes would hit a target without
//! consent. So it is opened once, kept open, and reopened through that descriptor only. A device that was removed and
//! came back, or another one with the same number, is detected by a sequence number of the kernel.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use emmc_port::TargetError;

use super::{BlockIo, OpenError, Opening, open};

/// A block device or a regular file that is kept open for reading.
#[derive(Debug)]
pub struct TargetHandle {
    file: File,
    /// The path for opening it again.
    path: PathBuf,
    /// The path for child processes.
    path_for_others: PathBuf,
    /// Its original path.
    called: PathBuf,
    identity: Identity,
}

/// What identifies a device or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Identity {
    File {
        dev: u64,
        ino: u64,
    },
    Device {
        rdev: u64,
        /// Incremented at every appearance of a disk and every media change.
        ///
        /// Source: Linux `Documentation/ABI/stable/sysfs-block`, `diskseq`; absent in kernels before 5.15.
        sequence: Option<u64>,
    },
}

impl Identity {
    /// Nothing for other kinds of files.
    fn of(found: &Metadata) -> Option<Self> {
        if found.file_type().is_block_device() {
            return Some(Self::Device { rdev: found.rdev(), sequence: sequence(found.rdev()) });
        }
        found.is_file().then(|| Self::File { dev: found.dev(), ino: found.ino() })
    }
}

fn sequence(rdev: u64) -> Option<u64> {
    let folder = format!("/sys/dev/block/{}:{}", rustix::fs::major(rdev), rustix::fs::minor(rdev));
    // A partition has its disk's.
    ["diskseq", "../diskseq"].iter().find_map(|name| {
        let text = std::fs::read_to_string(format!("{folder}/{name}")).ok()?;
        text.trim().parse().ok()
    })
}

impl TargetHandle {
    /// Opens what is at a path; nothing if that is neither a block device nor a regular file.
    ///
    /// Errors: the kernel's.
    pub fn new(path: &Path) -> io::Result<Option<Self>> {
        let Some(identity) = Identity::of(&std::fs::metadata(path)?) else { return Ok(None) };
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        if Identity::of(&file.metadata()?) != Some(identity) {
            return Err(changed());
        }
        let number = file.as_raw_fd();
        let by_number = PathBuf::from(format!("/proc/self/fd/{number}"));
        let for_others = PathBuf::from(format!("/proc/{}/fd/{number}", std::process::id()));
        // Without /proc the name must do; it is checked before and after.
        let path_or = |by_number: PathBuf| if by_number.exists() { by_number } else { path.to_owned() };
        let called = path.canonicalize()?;
        Ok(Some(Self { file, path: path_or(by_number), path_for_others: path_or(for_others), called, identity }))
    }

    /// The path for opening it in this process, while the handle exists.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path for opening it in a child process.
    pub(crate) fn path_for_others(&self) -> &Path {
        &self.path_for_others
    }

    /// Its original path, for messages only.
    pub(crate) fn called(&self) -> &Path {
        &self.called
    }

    /// Checks that it still exists and is the same.
    ///
    /// Errors: it is not; the kernel's.
    pub fn check(&self) -> io::Result<()> {
        if self.is_same()? { Ok(()) } else { Err(changed()) }
    }

    fn is_same(&self) -> io::Result<bool> {
        let own = Identity::of(&self.file.metadata()?);
        let by_path = Identity::of(&std::fs::metadata(&self.path)?);
        Ok(own == Some(self.identity) && by_path == Some(self.identity))
    }

    /// Opens it as a target.
    ///
    /// Errors: as [`open`]; it is no longer the same.
    pub fn open(&self, name: &str, opening: &Opening) -> Result<BlockIo, OpenError> {
        let failed = |error: io::Error| TargetError::Failed { name: name.into(), reason: error.to_string() };
        let changed = || OpenError::Changed { name: name.into() };
        if !self.is_same().map_err(failed)? {
            return Err(changed());
        }
        let target = open(&self.path, name, opening)?;
        let opened = target.file().metadata().map_err(failed)?;
        if Identity::of(&opened) != Some(self.identity) {
            return Err(changed());
        }
        Ok(target)
    }
}

fn changed() -> io::Error {
    io::Error::other("it is not the same device or file any more; nothing is written to it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_io::EngineChoice;

    fn opening(write: bool) -> Opening {
        Opening { engine: EngineChoice::Pread, write, flush_all: false, seed: 1, stop: Default::default() }
    }

    #[test]
    fn a_target_is_reopened_after_its_name_changed() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        std::fs::write(&a, [1; 8192]).unwrap();
        let held = TargetHandle::new(&a).unwrap().unwrap();
        std::fs::rename(&a, &b).unwrap();
        std::fs::write(&a, [2; 4096]).unwrap();
        let target = held.open("it", &opening(true)).unwrap();
        assert_eq!(target.file().metadata().unwrap().ino(), std::fs::metadata(&b).unwrap().ino());
        // If only the name leads to it, a change is detected.
        let by_name = TargetHandle { path: a, ..held };
        let told = by_name.open("it", &opening(true)).err().unwrap().to_string();
        assert!(told.starts_with("it: it is not the same"), "{told}");
        assert!(
            TargetHandle::new(folder.path()).unwrap().is_none()
                && TargetHandle::new(Path::new("/dev/null")).unwrap().is_none()
        );
    }

    #[test]
    fn a_device_that_reappears_is_another_device() {
        let Ok(mut disks) = std::fs::read_dir("/sys/block") else { return eprintln!("SKIPPED: no /sys") };
        let found = disks.find_map(|disk| {
            let node = Path::new("/dev").join(disk.ok()?.file_name());
            TargetHandle::new(&node)
                .ok()?
                .filter(|held| matches!(held.identity, Identity::Device { sequence: Some(_), .. }))
        });
        let Some(mut held) = found else { return eprintln!("SKIPPED: no block device that may be read and tells") };
        held.check().unwrap();
        if let Identity::Device { sequence: Some(number), .. } = &mut held.identity {
            *number += 1;
        }
        assert!(held.check().is_err());
        let told = held.open("it", &opening(false)).err().unwrap().to_string();
        assert!(told.contains("not the same device"), "{told}");
    }
}
