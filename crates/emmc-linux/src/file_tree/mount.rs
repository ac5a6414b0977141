//! A filesystem mounted for this process alone.
//!
//! A thread takes a private copy of all mounts (a mount namespace), mounts the filesystem there and opens its root;
//! then the thread and the copy end, and the filesystem stays mounted while something of it is open. No other process
//! sees it, it needs no folder, and nothing remains if this process is killed.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use emmc_workload::context::FilesystemFacts;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};

use super::folder::open_folder;
use crate::block_io::TargetHandle;
use crate::tree::Tree;
use crate::{ioctl, mounts};

/// Where the thread mounts it: a folder that every machine with block devices has, and that the thread does not need.
const PLACE: &str = "/dev";
/// A path that cannot exist: its parent is not a folder.
const NO_DEVICE: &str = "/proc/self/status/none";

/// A mount without a path: it ends when its last file is closed.
pub(super) struct Mounted {
    pub(super) root: OwnedFd,
    /// The kernel's facts about it.
    pub(super) facts: FilesystemFacts,
}

/// Mounts a filesystem; it stays mounted while the result exists.
///
/// Errors: the kernel's: ENODEV without such a filesystem, EPERM without CAP_SYS_ADMIN.
pub(super) fn mount_alone(held: &TargetHandle, fstype: &str, options: &str) -> io::Result<Mounted> {
    let options = (!options.is_empty()).then(|| CString::new(options)).transpose()?;
    std::thread::scope(|scope| {
        let mounting = scope.spawn(|| {
            ioctl::own_mounts()?;
            // The mount must not propagate to the original namespace.
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
            let flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC;
            mount(held.path(), PLACE, fstype, flags, options.as_deref())?;
            let root = open_folder(PLACE.as_ref())?;
            let mount = held.called().display().to_string();
            let facts = FilesystemFacts { mount, ..facts(PLACE.as_ref()) };
            // Not left to the end of the copy, which comes slightly after that of the thread.
            unmount(PLACE, UnmountFlags::DETACH)?;
            Ok(Mounted { root, facts })
        });
        mounting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Whether the kernel has a filesystem and this process may mount it; nothing is mounted, and no device is touched.
///
/// Errors: the kernel's: ENODEV without such a filesystem, EPERM without permission.
pub(super) fn probe(fstype: &str) -> io::Result<()> {
    // The kernel checks filesystem and permission before the device, and there is none.
    let tried: io::Result<()> = std::thread::scope(|scope| {
        let trying = scope.spawn(|| {
            ioctl::own_mounts()?;
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
            Ok(mount(NO_DEVICE, PLACE, fstype, MountFlags::RDONLY, None)?)
        });
        trying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    match tried {
        Err(error) if [libc::ENOENT, libc::ENOTBLK, libc::ENOTDIR].contains(&error.raw_os_error().unwrap_or(0)) => {
            Ok(())
        }
        tried => tried,
    }
}

/// The facts of the last mount at a path, from this thread's mounts.
fn facts(path: &Path) -> FilesystemFacts {
    let mounts = mounts::of_this_thread(&Tree::live());
    let Some(mount) = mounts::around(&mounts, path) else { return FilesystemFacts::default() };
    let space = ioctl::space(path).ok();
    FilesystemFacts {
        fstype: mount.fstype.clone(),
        options: mount.options.clone(),
        size_bytes: space.map_or(0, |space| space.total.0),
        available_bytes: space.map_or(0, |space| space.available.0),
        ..FilesystemFacts::default()
    }
}
