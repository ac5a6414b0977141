//! A filesystem mounted for this process alone.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use emmc_workload::context::FilesystemFacts;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::folder::open_folder;
use crate::tree::Tree;
use crate::{ioctl, mounts};

/// A mount that is named nowhere: it is gone when the last file of it is closed.
pub(super) struct Mounted {
    pub(super) root: OwnedFd,
    /// What the kernel tells of it.
    pub(super) facts: FilesystemFacts,
}

/// A mount at its place; it is taken off whatever happens.
struct AtPlace<'a>(&'a Path);

impl Drop for AtPlace<'_> {
    fn drop(&mut self) {
        // Nothing else is there to be taken off; who holds the root keeps the filesystem.
        let _ = unmount(self.0, UnmountFlags::DETACH);
    }
}

/// Mounts a filesystem in a new folder, takes hold of it, and takes the mount off the folder and the folder away.
///
/// Errors: the kernel's: ENODEV where it has no such filesystem, EPERM without CAP_SYS_ADMIN.
pub(super) fn mount_alone(device: &Path, fstype: &str, options: &str) -> io::Result<Mounted> {
    let place = tempfile::Builder::new().prefix("emmclab-mount-").tempdir()?;
    let path = place.path().canonicalize()?;
    let options = (!options.is_empty()).then(|| CString::new(options)).transpose()?;
    mount(device, &path, fstype, MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC, options.as_deref())?;
    let mounted = AtPlace(&path);
    let root = open_folder(&path)?;
    let facts = facts(&path);
    drop(mounted);
    place.close()?;
    Ok(Mounted { root, facts })
}

fn facts(path: &Path) -> FilesystemFacts {
    let tree = Tree::live();
    let mounts = mounts::read(&tree);
    let Some(mount) = mounts::around(&mounts, path) else { return FilesystemFacts::default() };
    let space = ioctl::space(path).ok();
    FilesystemFacts {
        fstype: mount.fstype.clone(),
        mount: mount.source.clone(),
        options: mount.options.clone(),
        size_bytes: space.map_or(0, |space| space.total.0),
        available_bytes: space.map_or(0, |space| space.available.0),
        ..FilesystemFacts::default()
    }
}
