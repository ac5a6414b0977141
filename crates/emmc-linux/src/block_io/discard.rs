//! Discards: `BLKDISCARD` on a block device, a punched hole in a file, `FITRIM` on a filesystem; secure discards and
//! zeros; and where a file is.
#![allow(unsafe_code)]
#![warn(clippy::undocumented_unsafe_blocks)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::fs::FallocateFlags;

use super::calls::Files;

/// `_IO(0x12, number)`.
///
/// Source: Linux `include/uapi/linux/fs.h`. MIPS, PowerPC and SPARC encode the direction differently.
const fn block_request(number: u32) -> libc::Ioctl {
    let is_other = cfg!(any(
        target_arch = "mips",
        target_arch = "mips64",
        target_arch = "powerpc",
        target_arch = "powerpc64",
        target_arch = "sparc64"
    ));
    (if is_other { 0x2000_1200 | number } else { 0x1200 | number }) as libc::Ioctl
}

const BLKRRPART: libc::Ioctl = block_request(95);
const BLKFLSBUF: libc::Ioctl = block_request(97);
const BLKDISCARD: libc::Ioctl = block_request(119);
const BLKSECDISCARD: libc::Ioctl = block_request(125);
const BLKZEROOUT: libc::Ioctl = block_request(127);

/// `_IOWR('X', 121, struct fstrim_range)`: the same number on every architecture.
///
/// Source: Linux `include/uapi/linux/fs.h`.
const FITRIM: libc::Ioctl = 0xc018_5879_u32 as libc::Ioctl;
/// `_IOWR('f', 11, struct fiemap)`.
///
/// Source: Linux `include/uapi/linux/fiemap.h`.
const FS_IOC_FIEMAP: libc::Ioctl = 0xc020_660b_u32 as libc::Ioctl;
/// Extents that one call returns.
const EXTENTS: usize = 64;
/// `FIEMAP_FLAG_SYNC`.
const FLAG_SYNC: u32 = 1;
/// UNKNOWN, DELALLOC, ENCODED, DATA_ENCRYPTED, NOT_ALIGNED, DATA_INLINE, DATA_TAIL, UNWRITTEN: its bytes are not at
/// its place, or not as they are read.
const NOT_THERE: u32 = 0x0ffe;
/// LAST.
const LAST: u32 = 1;

/// `struct fiemap` with its extents.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [FiemapExtent; EXTENTS],
}

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved_too: [u32; 3],
}

/// A part of a file on its device. Unit: bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) logical: u64,
    pub(crate) physical: u64,
    pub(crate) length: u64,
}

/// Trims the free space of a filesystem between two of its bytes; how much of it was discarded. Unit: bytes.
///
/// Errors: the kernel's; EOPNOTSUPP if the filesystem or the device below it does not discard.
pub(crate) fn fitrim(point: &File, start: u64, length: u64) -> io::Result<u64> {
    let mut range = [start, length, 0];
    // SAFETY: the request reads and writes the three numbers of 64 bits of struct fstrim_range, which `range` holds.
    let result = unsafe { libc::ioctl(point.as_raw_fd(), FITRIM, range.as_mut_ptr()) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(range[1]) }
}

/// Where the content of a file is; `None` if that is not on a device as it is.
///
/// Errors: the kernel's.
pub(crate) fn extents(file: &File) -> io::Result<Option<Vec<Extent>>> {
    let mut all: Vec<Extent> = Vec::new();
    loop {
        let start = all.last().map_or(0, |last| last.logical.saturating_add(last.length));
        let mut map = Fiemap {
            start,
            length: u64::MAX - start,
            flags: FLAG_SYNC,
            mapped: 0,
            count: EXTENTS as u32,
            reserved: 0,
            extents: [FiemapExtent::default(); EXTENTS],
        };
        // SAFETY: the request reads struct fiemap and writes at most `count` extents behind it, and `map` has room for
        // those.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, std::ptr::from_mut(&mut map)) };
        if result == -1 {
            return Err(io::Error::last_os_error());
        }
        let found = map.extents.iter().take(map.mapped as usize);
        if found.clone().any(|extent| extent.flags & NOT_THERE != 0) {
            return Ok(None);
        }
        let of = |extent: &FiemapExtent| Extent {
            logical: extent.logical,
            physical: extent.physical,
            length: extent.length,
        };
        all.extend(found.clone().map(of));
        if found.clone().next_back().is_none_or(|extent| extent.flags & LAST != 0) {
            return Ok(Some(all));
        }
    }
}

/// Discards a range.
///
/// Errors: the kernel's; EOPNOTSUPP if the device or the filesystem does not support it.
pub(super) fn discard(files: &Files, offset_bytes: u64, bytes: u64) -> io::Result<()> {
    if files.is_device {
        return on_range(&files.file, BLKDISCARD, [offset_bytes, bytes]);
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(rustix::fs::fallocate(&*files.file, flags, offset_bytes, bytes)?)
}

/// Discards a range with all copies.
///
/// Errors: the kernel's; EOPNOTSUPP if it is a file, or the device does not support it.
pub(super) fn secure_discard(files: &Files, offset_bytes: u64, bytes: u64) -> io::Result<()> {
    match files.is_device {
        true => on_range(&files.file, BLKSECDISCARD, [offset_bytes, bytes]),
        false => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
    }
}

/// Makes a range read as zeros.
///
/// Errors: the kernel's.
pub(super) fn zero(files: &Files, offset_bytes: u64, bytes: u64) -> io::Result<()> {
    if files.is_device {
        return on_range(&files.file, BLKZEROOUT, [offset_bytes, bytes]);
    }
    let flags = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(&*files.file, flags, offset_bytes, bytes) {
        // A hole reads as zeros too.
        Err(rustix::io::Errno::OPNOTSUPP) => discard(files, offset_bytes, bytes),
        result => Ok(result?),
    }
}

/// Drops what the kernel has in memory of a device that changed below it, and has it read the partition table again;
/// neither can be done while another process uses it, which is no error.
pub(super) fn forget_cached(file: &File) {
    for request in [BLKFLSBUF, BLKRRPART] {
        // SAFETY: no memory is passed; the file is open until the call returns.
        unsafe { libc::ioctl(file.as_raw_fd(), request, 0) };
    }
}

fn on_range(file: &File, request: libc::Ioctl, range: [u64; 2]) -> io::Result<()> {
    // SAFETY: the request reads two numbers of 64 bits, which `range` holds until the call returns; the device was
    // opened for writing by who has made sure that it may be written.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request, range.as_ptr()) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
