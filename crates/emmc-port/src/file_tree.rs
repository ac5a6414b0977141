//! File trees for benchmarks: a tree performs filesystem operations and owns the clock.
//!
//! So the same work runs on a folder of this machine in real time and on a model of a filesystem above a virtual card.
//! Files are numbers that the caller chooses; their names matter only where a folder sorts by name. Absent on purpose:
//! content (a tree writes its own, which cannot be compressed), owners, modes and links.

use emmc_units::{Instant, Nanos};

use crate::TargetError;

/// A file, by a number of the caller's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileNumber(pub u32);

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOp<'a> {
    /// A new, empty file in a folder, open from then on; the folder is made when it is first named.
    Create {
        /// The file.
        file: FileNumber,
        /// Its folder, by a number of the caller's choice.
        folder: u32,
        /// Its name there.
        name: &'a str,
    },
    /// Write; returns the number of bytes.
    Write {
        /// The file.
        file: FileNumber,
        /// Unit: bytes.
        offset_bytes: u64,
        /// Unit: bytes.
        bytes: u64,
        /// Direct I/O; requires whole blocks of 4 KiB.
        direct: bool,
    },
    /// Read; returns the number of bytes.
    Read {
        /// The file.
        file: FileNumber,
        /// Unit: bytes.
        offset_bytes: u64,
        /// Unit: bytes.
        bytes: u64,
        /// Direct I/O; requires whole blocks of 4 KiB.
        direct: bool,
    },
    /// Write from the start, byte by byte through a buffer of 4 KiB, as by `putc`; returns the number of bytes.
    WriteCharacters {
        /// The file.
        file: FileNumber,
        /// Unit: bytes.
        bytes: u64,
    },
    /// Read from the start, byte by byte through a buffer of 4 KiB, as by `getc`; returns the number of bytes.
    ReadCharacters {
        /// The file.
        file: FileNumber,
        /// Unit: bytes.
        bytes: u64,
    },
    /// Begin to write the file's data back, without its metadata and without a flush (`sync_file_range`).
    WriteBack(FileNumber),
    /// Make the data of the file survive a power cut (`fsync`).
    Sync(FileNumber),
    /// Close the file; the next operation opens it again.
    Close(FileNumber),
    /// Rename within the folder; a file that had the new name is deleted.
    Rename {
        /// The file.
        file: FileNumber,
        /// Its new name.
        name: &'a str,
    },
    /// Read size and times (`stat`).
    Stat(FileNumber),
    /// Delete.
    Unlink(FileNumber),
    /// List a folder and `stat` each file in the order of the list; returns the number of files.
    StatFolder(u32),
    /// List a folder and delete each file in the order of the list; returns the number of files.
    UnlinkFolder(u32),
    /// Make everything survive a power cut (`syncfs`).
    SyncAll,
    /// Between two measurements: write everything to the device and empty the page cache; returns 1 if directory
    /// entries and inodes were dropped too.
    Settle,
}

/// A folder of files on which operations are run and timed.
pub trait FileTree {
    /// The tree's time.
    fn now(&mut self) -> Instant;

    /// Stays idle for a duration.
    ///
    /// Errors: the tree cannot continue.
    fn idle(&mut self, time: Nanos) -> Result<(), TargetError>;

    /// Runs an operation and returns its count, see [`FileOp`]; 0 for operations without one.
    ///
    /// Errors: no space; a file that was not created; the tree cannot continue.
    fn call(&mut self, op: FileOp<'_>) -> Result<u64, TargetError>;

    /// The time that processors have spent on this program so far; absent if the tree has none.
    fn processor(&mut self) -> Option<Nanos> {
        None
    }

    /// Announces the next operations to an observer of the tree.
    fn step(&mut self, _step: &str) {}
}

/// A filesystem to create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewFilesystem<'a> {
    /// Its type, e.g. `ext4`.
    pub fstype: &'a str,
    /// Mount options, e.g. `discard,commit=30`; empty: the defaults.
    pub options: &'a str,
}

/// Why there is no filesystem to work on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilesystemError {
    /// This machine cannot create or mount it; others can still be measured.
    #[error("{what}")]
    Missing {
        /// What is missing.
        what: String,
    },
    /// The place, or the work on it, failed.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Work on a tree.
pub type TreeWork<'a> = &'a mut dyn FnMut(&mut dyn FileTree) -> Result<(), TargetError>;

/// A place for trees: a folder, or a device on which filesystems are created.
pub trait FilePlace {
    /// The name that the user gave.
    fn name(&self) -> &str;

    /// The place's time.
    fn now(&mut self) -> Instant;

    /// Runs work on the existing tree, or on a filesystem that is created for it and removed afterwards in every case.
    ///
    /// Errors: those of the work; the place does not exist, or no filesystem can be created.
    fn with(&mut self, new: Option<NewFilesystem<'_>>, work: TreeWork<'_>) -> Result<(), FilesystemError>;
}
