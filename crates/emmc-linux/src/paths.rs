//! Paths of files by device and inode: those that a process has open, then a bounded walk of the mounted filesystems.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::mounts;
use crate::tree::Tree;

/// Entries of all filesystems together that are looked at.
const ENTRIES_MAX: usize = 300_000;

/// A file: `(major, minor)` of its filesystem and its inode. With only the disk's numbers, the inode alone decides
/// among open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Inode {
    /// Of the filesystem, or of its disk.
    pub device: (u32, u32),
    /// Whether `device` is the filesystem's.
    pub is_filesystem: bool,
    /// The inode.
    pub inode: u64,
}

/// Where paths are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Files that a process has open: cheap.
    OpenFiles,
    /// These first, then the mounted filesystems, up to 300 000 entries.
    Filesystems,
}

/// The paths of these files, as far as they are found.
pub fn paths(wanted: &[Inode], search: Search) -> HashMap<Inode, PathBuf> {
    let mut found = HashMap::new();
    let mut by_inode: HashMap<u64, Vec<Inode>> = HashMap::new();
    wanted.iter().for_each(|file| by_inode.entry(file.inode).or_default().push(*file));
    if by_inode.is_empty() {
        return found;
    }
    for process in entries(Path::new("/proc")) {
        for descriptor in entries(&process.join("fd")) {
            let Ok(metadata) = fs::metadata(&descriptor) else { continue };
            for file in by_inode.get(&metadata.ino()).into_iter().flatten() {
                let device = numbers(metadata.dev());
                let is_same = if file.is_filesystem { device == file.device } else { device.0 == file.device.0 };
                if is_same && !found.contains_key(file) {
                    if let Ok(path) = fs::read_link(&descriptor) {
                        found.insert(*file, path);
                    }
                }
            }
        }
    }
    if search == Search::OpenFiles {
        return found;
    }
    let mut left = ENTRIES_MAX;
    for mount in mounts::read(&Tree::live()) {
        let is_left = |file: &&Inode| file.is_filesystem && !found.contains_key(file);
        let missing: Vec<Inode> = wanted.iter().filter(is_left).copied().collect();
        let Ok(root) = fs::symlink_metadata(&mount.path) else { continue };
        if missing.iter().any(|file| file.device == numbers(root.dev())) {
            walk(&mount.path, root.dev(), &missing, &mut found, &mut left);
        }
    }
    found
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn numbers(device: u64) -> (u32, u32) {
    (libc::major(device), libc::minor(device))
}

/// Breadth first, within one filesystem.
fn walk(root: &Path, device: u64, missing: &[Inode], found: &mut HashMap<Inode, PathBuf>, left: &mut usize) {
    let mut folders = std::collections::VecDeque::from([root.to_path_buf()]);
    let mut open: Vec<Inode> = missing.iter().filter(|file| file.device == numbers(device)).copied().collect();
    while let Some(folder) = folders.pop_front() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if *left == 0 || open.is_empty() {
                return;
            }
            *left -= 1;
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.dev() != device {
                continue;
            }
            if let Some(place) = open.iter().position(|file| file.inode == metadata.ino()) {
                found.insert(open.swap_remove(place), entry.path());
            }
            if metadata.is_dir() {
                folders.push_back(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_file_is_found_by_its_inode() {
        let path = std::env::current_exe().unwrap();
        let metadata = fs::metadata(&path).unwrap();
        let _open = fs::File::open(&path).unwrap();
        let device = numbers(metadata.dev());
        let [exact, by_disk] =
            [true, false].map(|is_filesystem| Inode { device, is_filesystem, inode: metadata.ino() });
        let absent = Inode { device, is_filesystem: false, inode: u64::MAX };
        let found = paths(&[exact, by_disk, absent], Search::OpenFiles);
        assert_eq!((found.get(&exact), found.get(&by_disk), found.get(&absent)), (Some(&path), Some(&path), None));
    }
}
