//! An existing folder, with a folder for the files of a bench in it.

use std::fs::{DirEntry, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use emmc_port::{FilePlace, FilesystemError, NewFilesystem, TargetError, TreeWork};
use emmc_units::Instant;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use tempfile::TempDir;

use super::Tree;
use crate::block_io::clock::Clock;

/// Prefix of the folder's name.
const PREFIX: &str = ".emmclab-bench-";

/// A folder of an existing filesystem.
///
/// Files are created in a new folder in it, which is removed at the end; `kill -9` leaves it.
pub struct Folder {
    name: String,
    seed: u64,
    clock: Clock,
    stop: Arc<AtomicBool>,
    own: TempDir,
    /// A locked folder is in use, not left over.
    _lock: File,
    is_direct: bool,
}

impl Folder {
    /// Creates the folder for the files.
    ///
    /// Errors: the kernel's.
    pub fn new(folder: &Path, name: &str, seed: u64, stop: &Arc<AtomicBool>) -> io::Result<Self> {
        let own = tempfile::Builder::new().prefix(PREFIX).tempdir_in(folder)?;
        let lock = File::open(own.path())?;
        // On a filesystem without locks this folder may be reported as left over, nothing worse.
        let _ = flock(&lock, FlockOperation::NonBlockingLockExclusive);
        let stop = Arc::clone(stop);
        Ok(Self { name: name.into(), seed, clock: Clock::default(), stop, own, _lock: lock, is_direct: true })
    }

    /// Folders of [`Folder::new`] that no process uses any more.
    pub fn left_over(folder: &Path) -> Vec<PathBuf> {
        let Ok(found) = std::fs::read_dir(folder) else { return Vec::new() };
        let is_ours = |entry: &DirEntry| {
            entry.file_name().as_bytes().starts_with(PREFIX.as_bytes())
                && entry.file_type().is_ok_and(|kind| kind.is_dir())
        };
        let is_free = |path: &PathBuf| {
            File::open(path).is_ok_and(|folder| flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok())
        };
        found.flatten().filter(is_ours).map(|entry| entry.path()).filter(is_free).collect()
    }

    /// Whether direct I/O worked whenever it was requested.
    pub fn is_direct(&self) -> bool {
        self.is_direct
    }

    /// Removes everything that was created; dropping it does so too, without reporting errors.
    ///
    /// Errors: the kernel's.
    pub fn remove(self) -> io::Result<()> {
        self.own.close()
    }
}

impl FilePlace for Folder {
    fn name(&self) -> &str {
        &self.name
    }

    fn now(&mut self) -> Instant {
        self.clock.now()
    }

    fn with(&mut self, new: Option<NewFilesystem<'_>>, work: TreeWork<'_>) -> Result<(), FilesystemError> {
        if new.is_some() {
            return Err(FilesystemError::Missing { what: "filesystems can only be created on block devices".into() });
        }
        let failed = |error: io::Error| TargetError::Failed { name: self.name.clone(), reason: error.to_string() };
        let root = open_folder(self.own.path()).map_err(failed)?;
        let mut tree = Tree::new(root, &self.name, self.seed, self.clock, Arc::clone(&self.stop)).map_err(failed)?;
        let worked = work(&mut tree);
        self.is_direct &= tree.is_direct();
        Ok(worked?)
    }
}

/// Errors: the kernel's.
pub(super) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}
