//! A duty: what a device writes day after day, as requests with times, without end.
//!
//! The requests come from a rate (bytes a day, a share of them random), in place or as files of a modelled filesystem,
//! or from a recording that is repeated. They run at their times, with the card idle in between, or as fast as the card
//! takes them. Absent on purpose: the end (the caller asks for a number of bytes), wear, and the clock, which the
//! target owns.

mod files;
mod rate;
mod recorded;
mod run;
mod source;

use std::sync::Arc;

use crate::trace::Trace;
pub use run::{Duty, DutyPart};

/// Seconds of a day.
pub const DAY_S: f64 = 86_400.0;

/// What a device writes.
#[derive(Clone, Debug, PartialEq)]
pub struct DutyLoad {
    /// Where the requests come from.
    pub requests: Requests,
    /// How often the host flushes the card's cache; with a filesystem its commit interval. `None`: never.
    ///
    /// Unit: seconds.
    pub flush_s: Option<f64>,
    /// Requests outstanding.
    pub depth: u32,
    /// Seed of everything random.
    pub seed: u64,
}

/// Where the requests come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Requests {
    /// A rate.
    Rate(Rate),
    /// A recording, repeated.
    Recorded {
        /// The recording.
        trace: Arc<Trace>,
        /// What is written each day; `None`: as recorded, without a pause between two repetitions. Unit: bytes.
        bytes_per_day: Option<f64>,
        /// Requests beyond the end of the partition continue at its start.
        wrap: bool,
    },
}

/// A number of bytes each day.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// What the programs write. Unit: bytes.
    pub bytes_per_day: f64,
    /// The share of them that are random overwrites; the others are written sequentially, as logs are. 0 to 1.
    pub random_share: f64,
    /// Size of a random overwrite. Unit: bytes, a multiple of 512.
    pub block_bytes: u32,
    /// The data that is overwritten, from the start of the partition. Unit: bytes.
    pub data_bytes: u64,
    /// The sequential part stays in memory, and what of it is younger than this is written once a day. Unit: bytes.
    pub log_in_memory: Option<u64>,
    /// Updates of the system, to one of two places in turn.
    pub update: Option<Update>,
    /// The filesystem; `None`: overwrites in place.
    pub filesystem: Option<Files>,
}

/// An A/B update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    /// How often. Unit: weeks.
    pub weeks: f64,
    /// Size of an image. Unit: bytes.
    pub bytes: u64,
}

/// A modelled filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Files {
    /// Which.
    pub kind: FilesystemKind,
    /// When deleted blocks are trimmed.
    pub discard: Discard,
}

/// A filesystem that is modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesystemKind {
    /// ext4.
    Ext4,
    /// f2fs.
    F2fs,
}

impl FilesystemKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::F2fs => "f2fs",
        }
    }
}

/// When the card learns that data is no longer needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discard {
    /// Never.
    #[default]
    Never,
    /// Once a week: `fstrim`.
    Weekly,
    /// At once: mount option `discard`.
    Online,
}

/// The part of the user area that the duty may use. Unit: bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its start.
    pub from_bytes: u64,
    /// Its end.
    pub to_bytes: u64,
}

impl Partition {
    /// Its size. Unit: bytes.
    pub fn bytes(&self) -> u64 {
        self.to_bytes.saturating_sub(self.from_bytes)
    }
}
