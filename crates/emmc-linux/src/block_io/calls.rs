//! Requests as plain system calls: pread, pwrite, fdatasync, discard.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use emmc_port::{BlockOp, BlockRequest};
use memmap2::MmapMut;

use super::data::{self, Stamp};
use super::discard;

/// The target's files, shared by threads.
#[derive(Clone, Debug)]
pub(super) struct Files {
    /// For every request without FUA.
    pub(super) file: Arc<File>,
    /// The same, opened `O_DSYNC`.
    pub(super) through: Arc<File>,
    /// A block device rather than a regular file.
    pub(super) is_device: bool,
    /// A flush also writes a file's times: `fsync` rather than `fdatasync`.
    pub(super) flush_all: bool,
}

/// One thread's requests.
pub(super) struct Calls {
    files: Files,
    memory: MmapMut,
    stamp: Stamp,
    seed: u64,
}

impl Calls {
    /// Errors: no memory.
    pub(super) fn new(files: Files, bytes: usize, seed: u64) -> io::Result<Self> {
        Ok(Self { files, memory: data::random(bytes, seed)?, stamp: Stamp::new(seed), seed })
    }

    /// Performs a request; returns the number of bytes.
    ///
    /// Errors: the kernel's.
    pub(super) fn call(&mut self, request: &BlockRequest) -> io::Result<usize> {
        repeated(|| self.once(request))
    }

    fn once(&mut self, request: &BlockRequest) -> io::Result<usize> {
        let Files { file, through, .. } = &self.files;
        let bytes = request.bytes as usize;
        match request.op {
            BlockOp::Flush => flush(&self.files).map(|()| 0),
            BlockOp::Trim => discard::discard(&self.files, request.offset_bytes, request.bytes).map(|()| 0),
            BlockOp::Read => file.read_at(&mut self.memory[..bytes], request.offset_bytes),
            BlockOp::Write => {
                let data = &mut self.memory[..bytes];
                self.stamp.mark(data);
                let file = if request.through { through } else { file };
                file.write_at(data, request.offset_bytes)
            }
        }
    }

    /// Writes given data.
    ///
    /// Errors: the kernel's.
    pub(super) fn write_from(&self, request: &BlockRequest, data: &[u8]) -> io::Result<usize> {
        let file = if request.through { &self.files.through } else { &self.files.file };
        repeated(|| file.write_at(data, request.offset_bytes))
    }

    /// Reads into given memory.
    ///
    /// Errors: the kernel's.
    pub(super) fn read_into(&self, request: &BlockRequest, into: &mut [u8]) -> io::Result<usize> {
        repeated(|| self.files.file.read_at(into, request.offset_bytes))
    }

    /// Allocates memory for a request of this size; call it outside the timed part.
    ///
    /// Errors: not enough memory.
    pub(super) fn make_room(&mut self, request: &BlockRequest) -> io::Result<()> {
        let bytes = request.bytes as usize;
        if matches!(request.op, BlockOp::Read | BlockOp::Write) && bytes > self.memory.len() {
            self.memory = data::random(bytes, self.seed ^ bytes as u64)?;
        }
        Ok(())
    }
}

/// The call's result; a signal that interrupts it begins it again.
fn repeated(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

fn flush(files: &Files) -> io::Result<()> {
    if files.flush_all { files.file.sync_all() } else { files.file.sync_data() }
}
