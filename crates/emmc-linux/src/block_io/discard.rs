//! Discards: `BLKDISCARD` on a block device, a punched hole in a file.
#![allow(unsafe_code)]
#![warn(clippy::undocumented_unsafe_blocks)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::fs::FallocateFlags;

use super::calls::Files;

/// `_IO(0x12, 119)`.
///
/// Source: Linux `include/uapi/linux/fs.h`. MIPS, PowerPC and SPARC encode the direction differently.
const BLKDISCARD: libc::Ioctl = if cfg!(any(
    target_arch = "mips",
    target_arch = "mips64",
    target_arch = "powerpc",
    target_arch = "powerpc64",
    target_arch = "sparc64"
)) {
    0x2000_1277
} else {
    0x1277
};

/// Discards a range.
///
/// Errors: the kernel's; EOPNOTSUPP if the device or the filesystem does not support it.
pub(super) fn discard(files: &Files, offset_bytes: u64, bytes: u64) -> io::Result<()> {
    if files.is_device {
        return blkdiscard(&files.file, [offset_bytes, bytes]);
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(rustix::fs::fallocate(&*files.file, flags, offset_bytes, bytes)?)
}

fn blkdiscard(file: &File, range: [u64; 2]) -> io::Result<()> {
    // SAFETY: the request reads two numbers of 64 bits, which `range` holds until the call returns; the device was
    // opened for writing by who has made sure that it may be written.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), BLKDISCARD, range.as_ptr()) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
