//! Input with places: a file or bytes in memory, of which several parts are read at the same time.

use std::io::{self, Read};
use std::sync::Arc;

/// Input that can be read at any place.
pub trait Storage: Send + Sync {
    /// Reads at an offset; fewer bytes than asked for are no error, none are the end.
    ///
    /// Errors: those of the system.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
    /// Unit: bytes.
    fn size_bytes(&self) -> u64;
}

impl Storage for Vec<u8> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        let count = into.len().min(self.len() - from);
        into[..count].copy_from_slice(&self[from..from + count]);
        Ok(count)
    }

    fn size_bytes(&self) -> u64 {
        self.len() as u64
    }
}

/// A part of the input, as a stream.
#[derive(Clone)]
pub struct Part {
    storage: Arc<dyn Storage>,
    next: u64,
    end: u64,
}

impl Part {
    /// From an offset; a part past the end is empty.
    pub fn new(storage: Arc<dyn Storage>, offset: u64, bytes: u64) -> Self {
        let end = offset.saturating_add(bytes).min(storage.size_bytes());
        Self { storage, next: offset.min(end), end }
    }

    /// All of it.
    pub fn whole(storage: Arc<dyn Storage>) -> Self {
        Self::new(storage, 0, u64::MAX)
    }

    /// Exactly this many bytes, unless the input ends.
    pub(crate) fn take_bytes(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let left = usize::try_from(self.end - self.next).unwrap_or(usize::MAX);
        let mut bytes = vec![0; count.min(left)];
        let mut done = 0;
        while done < bytes.len() {
            match self.read(&mut bytes[done..])? {
                0 => break,
                count => done += count,
            }
        }
        bytes.truncate(done);
        Ok(bytes)
    }

    /// Whether this many bytes were there to be left out.
    pub(crate) fn skip(&mut self, count: u64) -> bool {
        let left = self.end - self.next;
        self.next += count.min(left);
        count <= left
    }

    pub(crate) fn offset(&self) -> u64 {
        self.next
    }
}

impl Read for Part {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.next).unwrap_or(usize::MAX);
        let wanted = into.len().min(left);
        if wanted == 0 {
            return Ok(0);
        }
        let count = self.storage.read_at(self.next, &mut into[..wanted])?;
        self.next += count as u64;
        Ok(count)
    }
}
