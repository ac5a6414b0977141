//! What the kernel itself holds, and whether it can be asked at all.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::tree::Tree;

// Source: Linux `include/uapi/linux/magic.h`.
const PROC_SUPER_MAGIC: u64 = 0x9fa0;
const SYSFS_MAGIC: u64 = 0x6265_6572;

/// Why nobody can find out what is in use: /proc or /sys is absent or is something else.
pub(super) fn blind(tree: &Tree) -> Vec<String> {
    let mut reasons = Vec::new();
    let needs = [("/proc", tree.proc("self/mountinfo"), PROC_SUPER_MAGIC), ("/sys", tree.sys("block"), SYSFS_MAGIC)];
    for (name, path, magic) in needs {
        let is_real = || {
            let kind = path.parent().and_then(|folder| rustix::fs::statfs(folder).ok());
            kind.is_some_and(|kind| kind.f_type as u64 & 0xffff_ffff == magic)
        };
        let is_read = if path.is_dir() { path.read_dir().is_ok() } else { std::fs::read(&path).is_ok() };
        if !is_read || (tree.is_live() && !is_real()) {
            reasons.push(format!("{name} is not mounted, so whether it is in use cannot be found out"));
        }
    }
    reasons
}

/// Whether somebody holds a block device exclusively: a mount in any namespace, swap, a member of btrfs, LVM, RAID.
///
/// The claim of the test ends with it.
pub(super) fn is_claimed(node: &Path) -> bool {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_EXCL | libc::O_NONBLOCK).open(node);
    opened.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
}

/// The reason for [`is_claimed`].
pub(super) fn claimed(name: &str) -> String {
    format!("{name} is held: the kernel refuses exclusive access (mounted, held or opened exclusively elsewhere)")
}

/// The pool that a device is a member of although another member is mounted: btrfs; the device that zram writes to.
pub(super) fn pool(tree: &Tree, name: &str) -> Option<String> {
    let pools = tree.sys("fs/btrfs");
    let is_member = |pool: &String| {
        tree.names(&pools.join(pool).join("devices")).is_ok_and(|names| names.iter().any(|member| member == name))
    };
    if let Some(pool) = tree.names(&pools).unwrap_or_default().into_iter().find(is_member) {
        return Some(format!("{name} is a member of the mounted btrfs {pool}"));
    }
    let disks = tree.names(&tree.sys("block")).unwrap_or_default();
    let writes = |disk: &String| {
        let path = tree.attribute(&tree.block(disk), "backing_dev");
        path.is_some_and(|path| path.strip_prefix("/dev/") == Some(name))
    };
    disks.into_iter().find(writes).map(|disk| format!("{name} is the backing device of {disk}"))
}
