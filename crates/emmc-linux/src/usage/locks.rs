//! Locks of other programs on a file: `fcntl` locks of a process or of an open file (QEMU locks its images so).

use std::fs::File;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};

/// The reason against writing to a locked file.
///
/// The kernel is asked with the lock of an open file, so that locks of this process count too: it takes none.
pub(super) fn lock_of(path: &Path, called: &str) -> Option<String> {
    let file = File::open(path).ok()?;
    // A write lock of the whole file conflicts with every other one.
    let mut lock =
        libc::flock { l_type: libc::F_WRLCK as _, l_whence: libc::SEEK_SET as _, l_start: 0, l_len: 0, l_pid: 0 };
    match fcntl(&file, FcntlArg::F_OFD_GETLK(&mut lock)) {
        Ok(_) if i32::from(lock.l_type) == libc::F_UNLCK => None,
        Ok(_) if lock.l_pid > 0 => Some(format!("{called} is locked by {}", process(lock.l_pid))),
        Ok(_) => Some(format!("{called} is locked by another program")),
        // A lock beyond what this number holds (32 bits).
        Err(Errno::EOVERFLOW) => Some(format!("{called} is locked by another program")),
        // A filesystem without locks, or a kernel before 3.15.
        Err(_) => None,
    }
}

fn process(number: i32) -> String {
    match std::fs::read_to_string(format!("/proc/{number}/comm")) {
        Ok(name) => format!("process {number} ({})", name.trim_end()),
        Err(_) => format!("process {number}"),
    }
}
