//! A loop device over a file in memory; dropping it removes both.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Unit: bytes.
pub(crate) const SIZE_BYTES: u64 = 256 << 20;

pub(crate) struct Device {
    path: PathBuf,
    file: PathBuf,
}

impl Device {
    /// Errors: what is missing, as a sentence.
    pub(crate) fn new() -> Result<Self, String> {
        if !Path::new("/dev/shm").is_dir() {
            return Err("no memory filesystem at /dev/shm".into());
        }
        if Command::new("fio").arg("--version").output().is_err() {
            return Err("fio is not installed".into());
        }
        let file = PathBuf::from(format!("/dev/shm/emmclab-fio-{}", std::process::id()));
        // Written once, so that reads find data.
        let data = vec![0xa5; 1 << 20];
        let filled = (0..SIZE_BYTES >> 20).try_for_each(|at| {
            use std::os::unix::fs::FileExt;
            let opened = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(&file)?;
            opened.write_all_at(&data, at << 20)
        });
        filled.map_err(|error| format!("{}: {error}", file.display()))?;
        let attached = Command::new("losetup").args(["--find", "--show"]).arg(&file).output();
        let attached = attached.map_err(|error| format!("losetup: {error}"))?;
        if !attached.status.success() {
            let _ = std::fs::remove_file(&file);
            return Err(format!("losetup: {}", String::from_utf8_lossy(&attached.stderr).trim()));
        }
        let path = PathBuf::from(String::from_utf8_lossy(&attached.stdout).trim());
        Ok(Self { path, file })
    }

    /// A folder in memory for the files of a round.
    pub(crate) fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("/dev/shm"))
    }

    /// The file behind the device.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.path).status();
        let _ = std::fs::remove_file(&self.file);
    }
}
