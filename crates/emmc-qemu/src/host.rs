//! The mailbox's host: a socket on which the rig answers.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

use emmc_serve::pci::LineHost;

/// The rig at an open descriptor, which is this process's own from now on.
///
/// Errors: no such descriptor.
#[expect(unsafe_code, reason = "a descriptor that the command line gives to this process")]
pub(crate) fn at(descriptor: i32) -> io::Result<LineHost<File>> {
    // SAFETY: fcntl only reads the descriptor's flags.
    if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and the command line says that it is for this purpose only.
    Ok(LineHost::new(unsafe { File::from_raw_fd(descriptor) }))
}
