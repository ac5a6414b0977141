//! Files that a benchmark works on: operations on a filesystem go in, and the tree owns the clock.
//!
//! The same work so runs on a folder of this machine in real time and on a model of a filesystem above a virtual card. Files
//! are numbers that the caller chooses; what they are called counts only where a folder sorts by it. Absent on purpose:
//! content (a tree writes some of its own that does not compress), owners, modes and links.

use emmc_units::{Instant, Nanos};

use crate::TargetError;

/// A file, by a number of the caller's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileNumber(pub u32);

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOp<'a> {
    /// A new, empty file in a folder, open from then on; the folder is made when it is first named.
    Create {
        /// The file.
        file: FileNumber,
        /// Its folder, by a number of the caller's choice.
        folder: u32,
        /// What it is called there.
        name: &'a str,
    },
    /// Write; answers the bytes.
    Write {
        /// The file.
        file: FileNumber,
        /// Unit: bytes.
        offset_bytes: u64,
        /// Unit: bytes.
        bytes: u64,
        /// Past the page cache; whole blocks of 4 KiB then.
        direct: bool,
    },
    /// Read; answers the bytes.
    Read {
        /// The file.
        file: FileNumber,
        /// Unit: bytes.
        offset_bytes: u64,
        /// Unit: bytes.
        bytes: u64,
        /// Past the page cache; whole blocks of 4 KiB then.
        direct: bool,
    },
    /// Begin to write the file's data back, without its metadata and without a flush (`sync_file_range`).
    WriteBack(FileNumber),
    /// What was written to the file survives a power cut when this is done (`fsync`).
    Sync(FileNumber),
    /// The file is not needed for now; what comes next opens it again.
    Close(FileNumber),
    /// Another name in the same folder; who had it before is gone.
    Rename {
        /// The file.
        file: FileNumber,
        /// What it is called from now on.
        name: &'a str,
    },
    /// Ask for size and times.
    Stat(FileNumber),
    /// Delete.
    Unlink(FileNumber),
    /// List a folder and ask for size and times of each file, in the order of the list; answers how many there were.
    StatFolder(u32),
    /// List a folder and delete each file, in the order of the list; answers how many there were.
    UnlinkFolder(u32),
    /// Everything survives a power cut when this is done (`syncfs`).
    SyncAll,
    /// Between two measurements: everything is on the device and the page cache is empty; answers 1 where directory entries and
    /// inodes have left memory too.
    Settle,
}

/// A folder full of files that can be worked on and timed.
pub trait FileTree {
    /// The tree's time.
    fn now(&mut self) -> Instant;

    /// Does nothing for a while.
    ///
    /// Errors: the tree cannot go on.
    fn idle(&mut self, time: Nanos) -> Result<(), TargetError>;

    /// Does something and answers how much it was: see [`FileOp`]; 0 where nothing is said there.
    ///
    /// Errors: no room; a file that was not created; the tree cannot go on.
    fn call(&mut self, op: FileOp<'_>) -> Result<u64, TargetError>;

    /// What is done next, for whoever watches the tree itself.
    fn step(&mut self, _step: &str) {}
}

/// A filesystem that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewFilesystem<'a> {
    /// Its type, e.g. `ext4`.
    pub fstype: &'a str,
    /// How it is mounted, e.g. `discard,commit=30`; empty: the defaults.
    pub options: &'a str,
}

/// Why there is no filesystem to work on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilesystemError {
    /// This machine cannot make or mount it; others may still be measured.
    #[error("{what}")]
    Missing {
        /// What is missing.
        what: String,
    },
    /// The place, or the work on it, cannot go on.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Work on a tree.
pub type TreeWork<'a> = &'a mut dyn FnMut(&mut dyn FileTree) -> Result<(), TargetError>;

/// Where trees are: a folder, or a device on which filesystems are made.
pub trait FilePlace {
    /// What the user called it.
    fn name(&self) -> &str;

    /// The place's time.
    fn now(&mut self) -> Instant;

    /// Lets work be done on the tree that is there, or on a filesystem that is made for it and taken away afterwards, whatever
    /// came of it.
    ///
    /// Errors: as of the work; nothing is there, or nothing can be made there.
    fn with(&mut self, new: Option<NewFilesystem<'_>>, work: TreeWork<'_>) -> Result<(), FilesystemError>;
}
