//! A filesystem mounted for this process alone.
//!
//! A thread of its own takes a copy of all mounts (a mount namespace), mounts the filesystem there and takes hold of
//! its root; then thread and copy are gone, and the filesystem is mounted as long as somebody holds something of it.
//! Nobody else ever sees it, no folder is made for it, and wherever this process is killed nothing stays.

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
/// A path at which nothing can be: what it would be in is no folder.
const NO_DEVICE: &str = "/proc/self/status/none";

/// A mount that is named nowhere: it is gone when the last file of it is closed.
pub(super) struct Mounted {
    pub(super) root: OwnedFd,
    /// What the kernel tells of it.
    pub(super) facts: FilesystemFacts,
}

/// Mounts a filesystem for who holds what this answers.
///
/// Errors: the kernel's: ENODEV where it has no such filesystem, EPERM without CAP_SYS_ADMIN.
pub(super) fn mount_alone(held: &TargetHandle, fstype: &str, options: &str) -> io::Result<Mounted> {
    let options = (!options.is_empty()).then(|| CString::new(options)).transpose()?;
    std::thread::scope(|scope| {
        let mounting = scope.spawn(|| {
            ioctl::own_mounts()?;
            // What is mounted here is not to be mounted where this is a copy of.
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
            let flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC;
            mount(held.path(), PLACE, fstype, flags, options.as_deref())?;
            let root = open_folder(PLACE.as_ref())?;
            let mount = held.called().display().to_string();
            let facts = FilesystemFacts { mount, ..facts(PLACE.as_ref()) };
            // Not left to the end of the copy, which comes a little after that of the thread.
            unmount(PLACE, UnmountFlags::DETACH)?;
            Ok(Mounted { root, facts })
        });
        mounting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Whether this process may mount a filesystem and the kernel has it; nothing is mounted, and no device is touched.
///
/// Errors: the kernel's: ENODEV where it has no such filesystem, EPERM where this process may not.
pub(super) fn probe(fstype: &str) -> io::Result<()> {
    // The filesystem and the right to mount it are looked for before the device, and none is there.
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

/// What this thread's mounts tell of the last one at a place.
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
