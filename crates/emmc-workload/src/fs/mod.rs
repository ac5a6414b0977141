//! Modelled filesystems: the requests that a file's operations cause.
//!
//! A [`Filesystem`] turns creations, writes, syncs and deletions into requests to a target, with the layout, the
//! journal or log, and the flushes of the real one. Absent on purpose: content, names and folders (a folder is one
//! metadata block), processor time (`emmc-host`), and quotas, snapshots, inline data and other features that are off by
//! default.

mod disk;
mod ext4;
mod f2fs;
mod page_cache;
mod ranges;
mod tree;

pub use disk::Disk;
pub use ext4::Ext4;
pub use f2fs::F2fs;
pub use tree::ModelTree;

use emmc_units::Nanos;

use crate::drive::stream::BenchError;

/// Unit: bytes.
pub const BLOCK_BYTES: u64 = 4096;

/// A file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(u32);

/// How a filesystem is mounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountOptions {
    /// Deleted blocks are trimmed immediately (`-o discard`).
    pub discard: bool,
    /// Commit interval of metadata (`-o commit=`). Unit: seconds; 0: the default, 5.
    pub commit_s: u32,
}

/// A filesystem on a disk.
pub trait Filesystem {
    /// Its name, e.g. `ext4`.
    fn name(&self) -> &'static str;

    /// A new, empty file in a folder, by the folder's number: ext4 keeps a folder's files together.
    ///
    /// Errors: as the target.
    fn create(&mut self, disk: &mut Disk<'_>, folder: u32) -> Result<FileId, BenchError>;

    /// Writes into the page cache; the disk is written later.
    ///
    /// Errors: as the target, if something had to be written back.
    fn write(&mut self, disk: &mut Disk<'_>, file: FileId, offset: u64, bytes: u64) -> Result<(), BenchError>;

    /// Writes with direct I/O.
    ///
    /// Errors: as the target; the filesystem is full.
    fn write_direct(&mut self, disk: &mut Disk<'_>, file: FileId, offset: u64, bytes: u64) -> Result<(), BenchError>;

    /// Reads with direct I/O.
    ///
    /// Errors: as the target.
    fn read(&mut self, disk: &mut Disk<'_>, file: FileId, offset: u64, bytes: u64) -> Result<(), BenchError>;

    /// Writes back the file's data, without its metadata and without a flush (`sync_file_range`).
    ///
    /// Errors: as the target; the filesystem is full.
    fn write_back(&mut self, disk: &mut Disk<'_>, file: FileId) -> Result<(), BenchError>;

    /// Makes the file's writes durable.
    ///
    /// Errors: as the target; the filesystem is full.
    fn fsync(&mut self, disk: &mut Disk<'_>, file: FileId) -> Result<(), BenchError>;

    /// Gives a file another name in its folder, which had no file of that name.
    ///
    /// Errors: as the target.
    fn rename(&mut self, _disk: &mut Disk<'_>, _file: FileId) -> Result<(), BenchError> {
        Ok(())
    }

    /// Deletes a file.
    ///
    /// Errors: as the target.
    fn unlink(&mut self, disk: &mut Disk<'_>, file: FileId) -> Result<(), BenchError>;

    /// The programs compute; the kernel writes back what is due meanwhile.
    ///
    /// Errors: as the target; the filesystem is full.
    fn idle(&mut self, disk: &mut Disk<'_>, time: Nanos) -> Result<(), BenchError> {
        disk.think(time)
    }

    /// Makes everything durable.
    ///
    /// Errors: as the target; the filesystem is full.
    fn sync(&mut self, disk: &mut Disk<'_>) -> Result<(), BenchError>;

    /// Trims free space (`fstrim`); returns the number of bytes.
    ///
    /// Errors: as the target.
    fn trim(&mut self, disk: &mut Disk<'_>) -> Result<u64, BenchError>;

    /// Bytes available to files.
    fn free_bytes(&self) -> u64;
}

/// The error of a full filesystem.
fn full(name: &'static str) -> BenchError {
    BenchError::Misfit { suite: name, what: "no space is left on the filesystem".into() }
}

#[cfg(test)]
mod tests;
