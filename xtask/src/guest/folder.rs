//! A folder for one run.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context, bail};

/// A folder that is removed when this is dropped.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
}

impl Folder {
    /// A new one, with a short name: sockets in it may have only 108 bytes.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let above = std::env::temp_dir();
        for number in 0..1000 {
            let path = above.join(format!("emmclab-guest-{}-{number}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| path.display().to_string()),
            }
        }
        bail!("{} is full of folders of earlier runs", above.display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            eprintln!("guest: {}: {error}", self.path.display());
        }
    }
}
