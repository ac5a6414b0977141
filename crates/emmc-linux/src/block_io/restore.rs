//! Puts back what a bench has written over.
//!
//! The content is read before the first write, into memory or a file, and written back and compared afterwards. What the
//! card did not hold before (trimmed) it holds afterwards as zeros. A process that is killed (`kill -9`, power) puts nothing
//! back; with a file the content can still be written back by hand.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use emmc_port::{BlockTarget, TargetError};
use memmap2::MmapMut;

use super::{BlockIo, data};

/// What is read and written at a time. Unit: bytes.
const CHUNK_BYTES: u64 = 1 << 20;

/// Saved content of a range.
pub struct Saved {
    from_bytes: u64,
    to_bytes: u64,
    kept: Kept,
}

enum Kept {
    Memory(MmapMut),
    File(File, PathBuf),
}

impl Saved {
    /// Reads a range of a target into memory, or into a new file.
    ///
    /// Errors: something of it cannot be read; there is not so much memory or room; the file is there already.
    pub fn take(target: &BlockIo, from_bytes: u64, to_bytes: u64, file: Option<&Path>) -> Result<Self, TargetError> {
        let name = &target.shape().name;
        let failed = |what: &str, error: io::Error| TargetError::Failed {
            name: name.clone(),
            reason: format!("saving its content: {what}{error}"),
        };
        let bytes = (to_bytes - from_bytes) as usize;
        let mut kept = match file {
            None => Kept::Memory(data::zeros(bytes).map_err(|error| failed("", error))?),
            Some(path) => {
                let opened = OpenOptions::new().read(true).write(true).create_new(true).open(path);
                Kept::File(opened.map_err(|error| failed(&format!("{}: ", path.display()), error))?, path.to_owned())
            }
        };
        let mut chunk = data::zeros(CHUNK_BYTES as usize).map_err(|error| failed("", error))?;
        for (at, length) in chunks(from_bytes, to_bytes) {
            let part = &mut chunk[..length];
            target.file().read_exact_at(part, at).map_err(|error| failed(&format!("byte {at}: "), error))?;
            kept.put(at - from_bytes, part).map_err(|error| failed("", error))?;
        }
        if let Kept::File(file, _) = &kept {
            file.sync_all().map_err(|error| failed("", error))?;
        }
        Ok(Self { from_bytes, to_bytes, kept })
    }

    /// Writes it back, reads it again and compares; the file is removed then.
    ///
    /// Errors: something cannot be written or is not what was written.
    pub fn put_back(self, target: &BlockIo) -> Result<(), TargetError> {
        let place = match &self.kept {
            Kept::Memory(_) => String::new(),
            Kept::File(_, path) => format!("; the content is in {}", path.display()),
        };
        let name = &target.shape().name;
        let failed = |what: String| TargetError::Failed {
            name: name.clone(),
            reason: format!("putting its content back: {what}{place}"),
        };
        let wrong = |at: u64, error: io::Error| failed(format!("byte {at}: {error}"));
        let memory = || data::zeros(CHUNK_BYTES as usize).map_err(|error| failed(error.to_string()));
        let (mut chunk, mut again) = (memory()?, memory()?);
        let file = target.file();
        for (at, length) in chunks(self.from_bytes, self.to_bytes) {
            self.kept.get(at - self.from_bytes, &mut chunk[..length]).map_err(|error| wrong(at, error))?;
            file.write_all_at(&chunk[..length], at).map_err(|error| wrong(at, error))?;
        }
        file.sync_all().map_err(|error| failed(error.to_string()))?;
        for (at, length) in chunks(self.from_bytes, self.to_bytes) {
            self.kept.get(at - self.from_bytes, &mut chunk[..length]).map_err(|error| wrong(at, error))?;
            file.read_exact_at(&mut again[..length], at).map_err(|error| wrong(at, error))?;
            if chunk[..length] != again[..length] {
                return Err(failed(format!("bytes {at} to {} read back differently", at + length as u64)));
            }
        }
        if let Kept::File(_, path) = &self.kept {
            std::fs::remove_file(path).map_err(|error| failed(error.to_string()))?;
        }
        Ok(())
    }
}

impl Kept {
    fn put(&mut self, at: u64, part: &[u8]) -> io::Result<()> {
        match self {
            Self::Memory(memory) => {
                memory[at as usize..][..part.len()].copy_from_slice(part);
                Ok(())
            }
            Self::File(file, _) => file.write_all_at(part, at),
        }
    }

    fn get(&self, at: u64, part: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Memory(memory) => {
                part.copy_from_slice(&memory[at as usize..][..part.len()]);
                Ok(())
            }
            Self::File(file, _) => file.read_exact_at(part, at),
        }
    }
}

/// Beginnings and lengths.
fn chunks(from_bytes: u64, to_bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    let starts = (from_bytes..to_bytes).step_by(CHUNK_BYTES as usize);
    starts.map(move |at| (at, (to_bytes - at).min(CHUNK_BYTES) as usize))
}
