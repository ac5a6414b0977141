//! A test's own loop devices.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{is_root, scratch, skip};

/// A loop device over a file.
pub(crate) struct Loop {
    pub(crate) path: String,
    pub(crate) file: PathBuf,
}

impl Loop {
    /// On a new sparse file of this size; `None`, with a message, if the machine does not support it.
    pub(crate) fn new(test: &str, bytes: u64) -> Option<Self> {
        let file = scratch(test).join("image");
        std::fs::File::create(&file).unwrap().set_len(bytes).unwrap();
        Self::over(&file)
    }

    /// Over a file that is there, which is removed in the end.
    pub(crate) fn over(file: &Path) -> Option<Self> {
        if !is_root() {
            skip("not root: no loop device");
            return None;
        }
        let attached = Command::new("losetup").args(["--find", "--show", "--partscan"]).arg(file).output();
        match attached {
            Ok(output) if output.status.success() => {
                Some(Self { path: String::from_utf8(output.stdout).unwrap().trim().into(), file: file.into() })
            }
            _ => {
                skip("no loop devices");
                None
            }
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.path["/dev/".len()..]
    }

    /// Whether it is unused: neither mounted nor open.
    pub(crate) fn is_free(&self) -> bool {
        use std::os::unix::fs::OpenOptionsExt;
        /// `O_EXCL`.
        const ALONE: i32 = 0o200;
        // Another test may have a mount point whose name is not UTF-8.
        let mounted = std::fs::read("/proc/self/mounts").unwrap();
        let device = format!("{} ", self.path);
        let is_mounted = mounted.split(|byte| *byte == b'\n').any(|line| line.starts_with(device.as_bytes()));
        !is_mounted && std::fs::File::options().read(true).custom_flags(ALONE).open(&self.path).is_ok()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.path]).status();
        let _ = std::fs::remove_file(&self.file);
    }
}

/// A mount that ends with the test.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    /// A new ext4 with these options of mkfs on a device; `None`, with a message, if the machine does not support it.
    pub(crate) fn new(device: &str, point: &Path, options: &[&str]) -> Option<Self> {
        let words = ["-q", "-F", "-E", "nodiscard,lazy_itable_init=0"];
        if !succeeds("mkfs.ext4", &[&words[..], options, &[device]].concat()) {
            skip("no mkfs.ext4");
            return None;
        }
        Self::again(device, point)
    }

    /// The filesystem that is there.
    pub(crate) fn again(device: &str, point: &Path) -> Option<Self> {
        std::fs::create_dir_all(point).unwrap();
        if !succeeds("mount", &["-t", "ext4", "-o", "nodiscard", device, point.to_str().unwrap()]) {
            skip("no ext4 in this kernel, or no permission to mount");
            return None;
        }
        Some(Self(point.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Whether a program is installed and succeeds.
pub(crate) fn succeeds(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
}
