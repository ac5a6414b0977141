//! Loop devices: a file as a block device, bypassing the page cache.
//!
//! Absent on purpose: automatic detach on last close (`LO_FLAGS_AUTOCLEAR`). The device would be gone after the first
//! `mkfs`; if this process kept it open to prevent that, its death would lose the dirty pages.

#![expect(unsafe_code, reason = "loop devices are attached with ioctls, which no maintained crate wraps")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use libc::{Ioctl, c_ulong};

// Source: linux/loop.h.
const CLR_FD: Ioctl = 0x4c01;
const CONFIGURE: Ioctl = 0x4c0a;
const GET_FREE: Ioctl = 0x4c82;
const READ_ONLY: u32 = 1;
const PARTSCAN: u32 = 8;
const DIRECT_IO: u32 = 16;

/// `struct loop_config`: descriptor, block size, `struct loop_info64`, reserved. Unit: bytes.
const CONFIG_BYTES: usize = 8 + INFO_BYTES + 64;
/// `struct loop_info64`. Unit: bytes.
const INFO_BYTES: usize = 232;
/// `lo_flags` and `lo_file_name` in it. Unit: bytes.
const FLAGS_AT: usize = 8 + 52;
const NAME_AT: usize = 8 + 56;
const NAME_BYTES: usize = 64;

/// Attempts, because another process may take a free device first.
const ATTEMPTS: u32 = 16;

/// An attached device. It stays attached until [`Self::detach`].
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
    file: PathBuf,
}

impl LoopDevice {
    /// Attaches a free device to a file, with direct I/O, 512-byte sectors, and a partition scan.
    ///
    /// Errors: no such file, no loop devices, no permission.
    pub fn attach(file: &Path, read_only: bool) -> io::Result<Self> {
        let open = |path: &Path| OpenOptions::new().read(true).write(!read_only).open(path);
        let backing = open(file)?;
        let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
        let mut config = config(&backing, file, read_only);
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for _ in 0..ATTEMPTS {
            let number = ioctl(&control, GET_FREE, 0)?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = open(&path)?;
            // SAFETY: the kernel reads as many bytes as `struct loop_config` has, which is the size of this array; it
            // lives until the call returns. The kernel keeps only its own reference to the descriptor.
            let result = unsafe { libc::ioctl(device.as_raw_fd(), CONFIGURE, config.as_mut_ptr()) };
            if result == 0 {
                return Ok(Self { path, file: file.to_owned() });
            }
            last = io::Error::last_os_error();
            // Another process took it between the two calls: try the next one.
            if last.raw_os_error() != Some(libc::EBUSY) {
                break;
            }
        }
        Err(last)
    }

    /// `/dev/loopN`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes back what the kernel still caches for it and detaches it; `false`: it is in use, and is detached when its
    /// last user ends.
    ///
    /// Errors: no permission, or the write-back failed.
    pub fn detach(&self) -> io::Result<bool> {
        if !self.is_attached() {
            return Ok(true);
        }
        let synced = File::open(&self.path).and_then(|device| device.sync_all());
        detach(&self.path)?;
        synced?;
        Ok(!self.is_attached())
    }

    /// Whether it is still attached, and to our file.
    fn is_attached(&self) -> bool {
        backing_file(&self.path).is_some_and(|file| file == self.file)
    }
}

/// Detaches every device whose file is in a folder.
///
/// Errors: no permission.
pub fn detach_all_below(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir("/sys/block")?.flatten() {
        let device = Path::new("/dev").join(entry.file_name());
        if backing_file(&device).is_some_and(|file| file.starts_with(folder)) {
            detach(&device)?;
        }
    }
    Ok(())
}

fn detach(path: &Path) -> io::Result<()> {
    match ioctl(&File::open(path)?, CLR_FD, 0) {
        // It was not attached.
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(()),
        result => result.map(drop),
    }
}

/// What the kernel says a device is attached to.
fn backing_file(device: &Path) -> Option<PathBuf> {
    let path = Path::new("/sys/block").join(device.file_name()?).join("loop/backing_file");
    let file = std::fs::read_to_string(path).ok()?;
    Some(file.trim_end_matches('\n').into())
}

fn config(backing: &File, file: &Path, read_only: bool) -> [u8; CONFIG_BYTES] {
    let mut config = [0; CONFIG_BYTES];
    config[..4].copy_from_slice(&backing.as_raw_fd().to_ne_bytes());
    config[4..8].copy_from_slice(&512u32.to_ne_bytes());
    let flags = DIRECT_IO | PARTSCAN | if read_only { READ_ONLY } else { 0 };
    config[FLAGS_AT..FLAGS_AT + 4].copy_from_slice(&flags.to_ne_bytes());
    // For display only; the last byte stays zero.
    let name = file.as_os_str().as_encoded_bytes();
    let length = name.len().min(NAME_BYTES - 1);
    config[NAME_AT..NAME_AT + length].copy_from_slice(&name[..length]);
    config
}

fn ioctl(file: &File, request: Ioctl, argument: c_ulong) -> io::Result<i32> {
    // SAFETY: these requests take a number or nothing; the kernel touches no memory of this process.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request, argument) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
