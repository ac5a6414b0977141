//! A block device on which filesystems are created, one at a time.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use emmc_port::{BlockOp, BlockRequest, BlockTarget, FilePlace, FilesystemError, NewFilesystem, TargetError, TreeWork};
use emmc_units::Instant;
use emmc_workload::context::FilesystemFacts;
use rustix::fs::{FlockOperation, flock};

use super::Tree;
use super::make::{Unmade, make, programs};
use super::mount::{Mounted, mount_alone, probe};
use crate::block_io::clock::Clock;
use crate::block_io::{EngineChoice, Opening, TargetHandle};
use crate::hold;

/// Largest trim. Unit: bytes.
const TRIM_BYTES: u64 = 1 << 30;

/// A device whose start may be overwritten; the caller has made sure of that.
pub struct Scratch<'a> {
    /// The same device for every filesystem, even if its name changes.
    held: &'a TargetHandle,
    name: String,
    size_bytes: u64,
    seed: u64,
    clock: Clock,
    stop: Arc<AtomicBool>,
    made: Vec<FilesystemFacts>,
    /// Keeps udev from probing new filesystems, and rules from mounting them.
    _lock: Option<File>,
}

impl<'a> Scratch<'a> {
    /// Filesystems of this size at the start of the device.
    pub fn new(held: &'a TargetHandle, name: &str, size_bytes: u64, seed: u64, stop: &Arc<AtomicBool>) -> Self {
        Self {
            held,
            name: name.into(),
            size_bytes,
            seed,
            clock: Clock::default(),
            stop: Arc::clone(stop),
            made: Vec::new(),
            _lock: locked(held.path()),
        }
    }

    /// The created filesystems, as mounted.
    pub fn made(&self) -> &[FilesystemFacts] {
        &self.made
    }

    fn failed(&self, reason: impl Into<String>) -> TargetError {
        TargetError::Failed { name: self.name.clone(), reason: reason.into() }
    }

    /// Discards the old content, if the device supports it; returns its sector size.
    fn trim(&self) -> Result<u32, TargetError> {
        let opening = Opening {
            engine: EngineChoice::Pread,
            write: true,
            flush_all: false,
            seed: self.seed,
            stop: Arc::clone(&self.stop),
        };
        let mut target = self.held.open(&self.name, &opening).map_err(|error| self.unnamed(&error.to_string()))?;
        let end = if target.shape().can_trim { self.size_bytes } else { 0 };
        for at in (0..end).step_by(TRIM_BYTES as usize) {
            let bytes = TRIM_BYTES.min(self.size_bytes - at);
            target.submit(BlockRequest { op: BlockOp::Trim, offset_bytes: at, bytes, through: false, tag: at })?;
            target.wait()?;
        }
        Ok(target.shape().sector_bytes)
    }

    /// An error with the target's name in front.
    fn unnamed(&self, said: &str) -> TargetError {
        self.failed(said.strip_prefix(&format!("{}: ", self.name)).unwrap_or(said))
    }

    fn mounted(&self, new: &NewFilesystem<'_>) -> Result<Mounted, FilesystemError> {
        // Everything that can be checked in advance.
        probe(new.fstype).map_err(|error| self.unmounted(new, &error))?;
        programs(new.fstype)?;
        let sector_bytes = self.trim()?;
        self.is_same()?;
        make(self.held, new.fstype, self.size_bytes, sector_bytes).map_err(|unmade| match unmade {
            Unmade::Missing(missing) => missing,
            Unmade::Failed(said) => self.failed(said).into(),
        })?;
        self.is_same()?;
        mount_alone(self.held, new.fstype, new.options).map_err(|error| self.unmounted(new, &error))
    }

    fn unmounted(&self, new: &NewFilesystem<'_>, error: &io::Error) -> FilesystemError {
        if error.raw_os_error() == Some(libc::ENODEV) {
            return FilesystemError::Missing { what: format!("the kernel has no {}", new.fstype) };
        }
        let with = if new.options.is_empty() { String::new() } else { format!(" with {}", new.options) };
        self.failed(format!("mounting {}{with}: {error}", new.fstype)).into()
    }

    /// Checked before everything that writes.
    fn is_same(&self) -> Result<(), TargetError> {
        self.held.check().map_err(|error| self.failed(error.to_string()))
    }

    /// No process has the device open any more.
    fn is_free(&self) -> Result<(), TargetError> {
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(self.held.path());
        let told = |error: io::Error| {
            let what = "after its filesystem was unmounted it is in use: has somebody else mounted it?";
            self.failed(format!("{what} {error}"))
        };
        opened.map(drop).map_err(told)
    }
}

/// The lock that programs take before they write to a whole disk; absent if it cannot be taken, as it is only advisory.
///
/// Source: systemd, "Locking Block Device Access": an exclusive BSD lock on the whole disk, also for a partition.
fn locked(device: &Path) -> Option<File> {
    let number = std::fs::metadata(device).ok()?.rdev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let folder = Path::new("/sys/dev/block").join(format!("{major}:{minor}")).canonicalize().ok()?;
    let disk = if folder.join("partition").exists() { folder.parent()? } else { &folder };
    let file = File::open(Path::new("/dev").join(disk.file_name()?)).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok().map(|()| file)
}

impl FilePlace for Scratch<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn now(&mut self) -> Instant {
        self.clock.now()
    }

    fn with(&mut self, new: Option<NewFilesystem<'_>>, work: TreeWork<'_>) -> Result<(), FilesystemError> {
        let Some(new) = new else {
            return Err(FilesystemError::Missing { what: "a device has no files of its own".into() });
        };
        if self.stop.load(Ordering::Relaxed) {
            return Err(self.failed("stopped").into());
        }
        let Mounted { root, facts } = self.mounted(&new)?;
        self.made.push(facts);
        hold::reached(hold::Point::Mounted, &self.stop);
        let tree = Tree::new(root, &self.name, self.seed, self.clock, Arc::clone(&self.stop));
        // Dropping the tree closes the last file, which unmounts the filesystem.
        let worked = tree.map_err(|error| self.failed(error.to_string())).and_then(|mut tree| work(&mut tree));
        let freed = self.is_free();
        worked?;
        Ok(freed?)
    }
}
