//! A temporary file for a bench, which disappears even if the process is killed.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A new unnamed file in a folder, if the filesystem and the kernel support that; else a named one.
#[derive(Debug)]
pub struct ScratchFile {
    /// The path for opening it again.
    path: PathBuf,
    has_name: bool,
    /// An unnamed file exists while it is open.
    _held: File,
}

impl ScratchFile {
    /// Creates a file of `bytes` bytes without content.
    ///
    /// Errors: the kernel's.
    pub fn new(folder: &Path, bytes: u64) -> io::Result<Self> {
        let opening = |flags: i32| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).mode(0o600).custom_flags(flags);
            options
        };
        let (file, named) = match opening(libc::O_TMPFILE).open(folder) {
            Ok(file) => (file, None),
            // A filesystem or a kernel without such files; any other error occurs here again.
            Err(_) => {
                let path = folder.join(format!(".emmclab-bench-{}", std::process::id()));
                (opening(0).create_new(true).open(&path)?, Some(path))
            }
        };
        let by_number = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let made = match named {
            None => Self { path: by_number, has_name: false, _held: file },
            // The open descriptor keeps it; without /proc it could not be opened again.
            Some(path) if by_number.exists() && std::fs::remove_file(&path).is_ok() => {
                Self { path: by_number, has_name: false, _held: file }
            }
            Some(path) => Self { path, has_name: true, _held: file },
        };
        made._held.set_len(bytes)?;
        Ok(made)
    }

    /// The path for opening it.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        if self.has_name {
            // It may be gone already.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_file_can_be_opened_and_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let made = ScratchFile::new(folder.path(), 8192).unwrap();
        let again = OpenOptions::new().write(true).open(made.path()).unwrap();
        assert_eq!(again.metadata().unwrap().len(), 8192);
        let names = || std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names(), usize::from(made.has_name));
        drop(made);
        assert_eq!(names(), 0);
        assert!(ScratchFile::new(&folder.path().join("nothing"), 1).is_err());
    }
}
