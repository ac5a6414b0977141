//! What saved content belongs to, so that it is never written to another target, after a restart too.
//!
//! Numbers of devices change with a restart, names with a rename: a file is recognised by its inode and one of both, a
//! disk by what its hardware says of itself, and by its name only where it says nothing.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::super::BlockIo;
use crate::ioctl;
use emmc_port::BlockTarget;

/// What a disk says of itself, in /sys. Source: Linux `Documentation/ABI/testing/sysfs-bus-mmc`, `sysfs-block`.
const OF_HARDWARE: [&str; 4] = ["cid", "serial", "wwid", "nguid"];

/// All of a header must fit into its page.
const VALUE_CHARS_MAX: usize = 256;

/// The marks of a target, in order: each a name and a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity(pub(super) Vec<(String, String)>);

impl Identity {
    /// Errors: the kernel's.
    pub(super) fn of(target: &BlockIo) -> io::Result<Self> {
        let file = target.file();
        let found = file.metadata()?;
        let mut own = Self::default();
        own.mark("size_bytes", target.shape().size_bytes);
        if found.file_type().is_block_device() {
            own.mark("kind", "device");
            own.device(file, found.rdev());
        } else {
            own.mark("kind", "file");
            own.file((found.dev(), found.ino()), path_of(file));
        }
        Ok(own)
    }

    fn mark(&mut self, name: &str, value: impl ToString) {
        self.0.push((name.into(), line(value.to_string().trim())));
    }

    fn file(&mut self, (device, inode): (u64, u64), path: Option<PathBuf>) {
        self.mark("inode", inode);
        self.mark("filesystem", device);
        if let Some(path) = path {
            self.mark("path", path.display());
        }
    }

    fn device(&mut self, file: &File, number: u64) {
        let numbers = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
        let Ok(folder) = Path::new("/sys/dev/block").join(&numbers).canonicalize() else {
            return self.mark("number", numbers);
        };
        let read = |path: &Path| std::fs::read_to_string(path).ok().filter(|text| !text.trim().is_empty());
        self.mark("name", folder.file_name().unwrap_or_default().to_string_lossy());
        let is_partition = folder.join("partition").exists();
        if let Some(start) = read(&folder.join("start")).filter(|_| is_partition) {
            self.mark("start", start);
        }
        let disk = if is_partition { folder.parent().unwrap_or(&folder) } else { &folder };
        for mark in OF_HARDWARE {
            let places = [disk.join("device").join(mark), disk.join(mark)];
            if let Some(value) = places.iter().find_map(|place| read(place)) {
                self.mark(mark, value);
            }
        }
        // A loop device is the file behind it.
        if let Ok(backing) = ioctl::loop_backing(file) {
            let device = rustix::fs::makedev(backing.device.0, backing.device.1);
            self.file((device, backing.inode), read(&disk.join("loop/backing_file")).map(PathBuf::from));
        }
    }

    /// The value of a mark.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The mark by which `now` is another target: its name, the value saved and the value found.
    pub(super) fn differs(&self, now: &Self) -> Option<[String; 3]> {
        let differs = |name: &str| self.get(name) != now.get(name);
        let told = |name: &str| {
            let value = |of: &Self| of.get(name).unwrap_or("none").to_owned();
            [name.to_owned(), value(self), value(now)]
        };
        for name in ["kind", "size_bytes", "start", "inode"].into_iter().chain(OF_HARDWARE) {
            if differs(name) {
                return Some(told(name));
            }
        }
        if self.get("inode").is_some() {
            // The path of a file that was moved, the number of a filesystem that was mounted again: one may change.
            return (differs("path") && differs("filesystem")).then(|| told("path"));
        }
        let is_known = OF_HARDWARE.iter().any(|name| self.get(name).is_some());
        ["name", "number"].into_iter().find(|name| !is_known && differs(name)).map(told)
    }
}

/// Text as part of one line of bounded length, whatever a name contains.
pub(super) fn line(text: &str) -> String {
    text.chars().take(VALUE_CHARS_MAX).flat_map(char::escape_default).take(VALUE_CHARS_MAX).collect()
}

fn path_of(file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(marks: &[(&str, &str)]) -> Identity {
        Identity(marks.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_file_may_be_moved_or_mounted_again_and_not_both() {
        let file = |path, filesystem, inode| {
            with(&[("kind", "file"), ("size_bytes", "8"), ("inode", inode), ("path", path), ("filesystem", filesystem)])
        };
        let own = file("/a", "1", "12");
        for same in [file("/a", "1", "12"), file("/b", "1", "12"), file("/a", "2", "12")] {
            assert_eq!(own.differs(&same), None);
        }
        for other in [file("/b", "2", "12"), file("/a", "1", "13")] {
            assert!(own.differs(&other).is_some(), "{other:?}");
        }
    }

    #[test]
    fn a_disk_is_its_hardware_and_without_that_its_name() {
        let disk = |name, cid: Option<&str>, size| {
            let mut disk = with(&[("kind", "device"), ("size_bytes", size), ("name", name)]);
            disk.0.extend(cid.map(|cid| ("cid".to_owned(), cid.to_owned())));
            disk
        };
        let card = disk("mmcblk0", Some("150100"), "8");
        assert_eq!(card.differs(&disk("mmcblk1", Some("150100"), "8")), None, "found in another order");
        for other in
            [disk("mmcblk0", Some("150101"), "8"), disk("mmcblk0", None, "8"), disk("mmcblk0", Some("150100"), "9")]
        {
            assert!(card.differs(&other).is_some(), "{other:?}");
        }
        let plain = disk("vda", None, "8");
        assert_eq!(plain.differs(&plain.clone()), None);
        assert_eq!(plain.differs(&disk("vdb", None, "8")), Some(["name", "vda", "vdb"].map(str::to_owned)));
    }
}
