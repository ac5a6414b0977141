//! Loop devices: a file as a block device, bypassing the page cache.
//!
//! Absent on purpose: automatic detach on last close (`LO_FLAGS_AUTOCLEAR`). The device would be gone after the first
//! `mkfs`; if this process kept it open to prevent that, its death would lose the dirty pages.

#![expect(unsafe_code, reason = "loop devices are attached with ioctls, which no maintained crate wraps")]

use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use libc::Ioctl;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::child;

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
///
/// The file may be one that this process serves: what can wait for it is done by a child (`crate::child`).
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
        let control = OpenOptions::new().read(true).write(true).open("/dev/loop-control")?;
        let backing = c_path(file)?;
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for _ in 0..ATTEMPTS {
            let path = PathBuf::from(format!("/dev/loop{}", free_number(&control)?));
            let (device, mut config) = (c_path(&path)?, config(file, read_only));
            // SAFETY: system calls only.
            let attached =
                unsafe { child::system_calls(None, || configure(&device, &backing, &mut config, read_only)) };
            match attached {
                Ok(()) => return Ok(Self { path, file: file.to_owned() }),
                // Another process took it between the two calls: try the next one.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => last = error,
                Err(error) => return Err(error),
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
        clear(&self.path, true)?;
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
            clear(&device, false)?;
        }
    }
    Ok(())
}

/// Detaches a device. With `sync`, first writes back what the kernel caches for it; if that fails, detaches it all the
/// same and returns the error.
fn clear(path: &Path, sync: bool) -> io::Result<()> {
    let path = c_path(path)?;
    let work = || {
        let device = rustix::fs::open(&*path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let synced = if sync { rustix::fs::fsync(&device) } else { Ok(()) };
        // SAFETY: this request takes nothing.
        match unsafe { libc::ioctl(device.as_raw_fd(), CLR_FD, 0) } {
            0 => synced,
            _ => match errno() {
                // It was not attached.
                Errno::NXIO => synced,
                error => Err(error),
            },
        }
    };
    // SAFETY: system calls only.
    unsafe { child::system_calls(None, work) }
}

/// Attaches a device to a file. Makes system calls only.
fn configure(
    device: &CStr,
    backing: &CStr,
    config: &mut [u8; CONFIG_BYTES],
    read_only: bool,
) -> rustix::io::Result<()> {
    let access = if read_only { OFlags::RDONLY } else { OFlags::RDWR };
    let open = |path| rustix::fs::open(path, access | OFlags::CLOEXEC, Mode::empty());
    let (backing, device) = (open(backing)?, open(device)?);
    config[..4].copy_from_slice(&backing.as_raw_fd().to_ne_bytes());
    // SAFETY: the kernel reads as many bytes as `struct loop_config` has, which is the size of this array; it lives
    // until the call returns. The kernel keeps only its own reference to the descriptor.
    match unsafe { libc::ioctl(device.as_raw_fd(), CONFIGURE, config.as_mut_ptr()) } {
        0 => Ok(()),
        _ => Err(errno()),
    }
}

/// The error of the last call to libc. Never of an unknown kind: libc has set it.
fn errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_encoded_bytes())?)
}

/// What the kernel says a device is attached to.
fn backing_file(device: &Path) -> Option<PathBuf> {
    let path = Path::new("/sys/block").join(device.file_name()?).join("loop/backing_file");
    let file = std::fs::read_to_string(path).ok()?;
    Some(file.trim_end_matches('\n').into())
}

/// What `LOOP_CONFIGURE` takes; the descriptor is filled in by [`configure`].
fn config(file: &Path, read_only: bool) -> [u8; CONFIG_BYTES] {
    let mut config = [0; CONFIG_BYTES];
    config[4..8].copy_from_slice(&512u32.to_ne_bytes());
    let flags = DIRECT_IO | PARTSCAN | if read_only { READ_ONLY } else { 0 };
    config[FLAGS_AT..FLAGS_AT + 4].copy_from_slice(&flags.to_ne_bytes());
    // For display only; the last byte stays zero.
    let name = file.as_os_str().as_encoded_bytes();
    let length = name.len().min(NAME_BYTES - 1);
    config[NAME_AT..NAME_AT + length].copy_from_slice(&name[..length]);
    config
}

fn free_number(control: &File) -> io::Result<i32> {
    // SAFETY: this request takes nothing.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), GET_FREE, 0) };
    if number < 0 { Err(io::Error::last_os_error()) } else { Ok(number) }
}
