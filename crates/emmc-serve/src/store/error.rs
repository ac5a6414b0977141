//! Why a card's folder cannot be used.

use std::path::{Path, PathBuf};

use emmc_card::device::ImageError;
use emmc_card::profile::ProfileError;

use super::STATE_FILE;

/// Why a path is not the folder of a card.
fn why_no_card(path: &Path) -> String {
    let create = "`emmclab sim create` makes a card; sim:PROFILE is a new one";
    match path.is_dir() {
        true => format!("expected {STATE_FILE} in the folder; {create}"),
        false => format!("there is no such folder; {create}"),
    }
}

/// Why a card's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system's error.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// No card is in it.
    #[error("{}: no virtual card: {}", .0.display(), why_no_card(.0))]
    NoCard(PathBuf),
    /// Another process works on the card.
    #[error("{}: the card is in use by another process", .0.display())]
    InUse(PathBuf),
    /// The profile breaks a rule.
    #[error("{}: {source}", path.display())]
    Profile {
        /// Its file.
        path: PathBuf,
        /// Which rule.
        source: ProfileError,
    },
    /// State or records are damaged, or belong to another card.
    #[error("{}: {source}", path.display())]
    Image {
        /// The state's file.
        path: PathBuf,
        /// What is wrong.
        source: ImageError,
    },
    /// The state file is not as expected.
    #[error("{}: expected {expected}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was expected.
        expected: String,
    },
    /// Contents cannot be stored.
    #[error("{}: {what}", path.display())]
    Contents {
        /// The file.
        path: PathBuf,
        /// The system's error.
        what: String,
    },
}

impl StoreError {
    /// Whether the disk, or this user's quota, is full.
    pub(super) fn is_full_disk(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        match self {
            Self::Io { source, .. } => matches!(source.kind(), StorageFull | QuotaExceeded),
            // The system's error is only text here; so the disk is queried.
            Self::Contents { path, .. } => rustix::fs::statvfs(path).is_ok_and(|found| found.f_bavail == 0),
            _ => false,
        }
    }
}
