//! The kernel's log.
//!
//! Source: Linux `Documentation/ABI/testing/dev-kmsg`: one record a read; EPIPE: one was overwritten; EAGAIN: the end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// A log is read up to this size. Unit: bytes.
const BYTES_MAX: usize = 64 << 20;
/// Longest record. Unit: bytes.
const RECORD_BYTES: usize = 8192;

/// The kernel's log of this machine.
#[derive(Debug)]
pub struct KernelLog(File);

impl KernelLog {
    /// From the oldest message that the kernel still has.
    ///
    /// Errors: no permission, no such device.
    pub fn from_begin() -> io::Result<Self> {
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        Ok(Self(OpenOptions::new().read(true).custom_flags(flags).open("/dev/kmsg")?))
    }

    /// From now on.
    ///
    /// Errors: as [`Self::from_begin`].
    pub fn from_now() -> io::Result<Self> {
        let mut log = Self::from_begin()?;
        log.0.seek(SeekFrom::End(0))?;
        Ok(log)
    }

    /// The messages since the last call, a line each.
    ///
    /// Errors: the system's.
    pub fn read_new(&mut self) -> io::Result<Vec<u8>> {
        let (mut all, mut record) = (Vec::new(), vec![0; RECORD_BYTES]);
        while all.len() < BYTES_MAX {
            match self.0.read(&mut record) {
                Ok(0) => break,
                Ok(length) => {
                    // PREFIX;TEXT, then lines of keys that begin with a blank.
                    let line = record[..length].split(|byte| *byte == b'\n').next().unwrap_or_default();
                    let text = line.iter().position(|byte| *byte == b';').map_or(line, |at| &line[at + 1..]);
                    all.extend_from_slice(text);
                    all.push(b'\n');
                }
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }
}
