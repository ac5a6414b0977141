//! What a file or a block device is, whatever its name.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{major, minor};

/// Major and minor number of a device.
pub(super) type Number = (u32, u32);

/// The identity of a file or a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// A file: the number of its filesystem, its inode.
    File(Number, u64),
    /// A block device, by any of its nodes.
    Device(Number),
}

impl Node {
    /// What a path leads to now; `None` if it leads nowhere.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let found = path.metadata().ok()?;
        if found.file_type().is_block_device() {
            return Some(Self::Device(Self::number(found.rdev())));
        }
        Some(Self::File(Self::number(found.dev()), found.ino()))
    }

    /// The two numbers in a `dev_t`.
    pub(super) fn number(device: u64) -> Number {
        (major(device), minor(device))
    }
}
