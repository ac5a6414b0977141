//! The ports: where registers come from, with every saved form as an implementation, and what a benchmark works on.
//!
//! A card, a dump, another tool's text and a snapshot all end as one [`CardData`], in which whatever the source could
//! not tell is absent. Absent on purpose: system calls (`emmc-linux`), and what the registers mean (`emmc-analysis`).

mod block_target;
mod card_data;
mod error;
mod file_tree;
mod merge;
pub mod saved;
mod snapshot;

pub use block_target::{
    BlockDone, BlockOp, BlockRequest, BlockTarget, SimulatedTarget, TargetError, TargetFill, TargetKind, TargetShape,
};
pub use card_data::{
    BlockLayer, CardData, Disk, Filesystem, Format, Host, Origin, Partition, SavedReport, Stated, StatedSize,
    VendorFormat,
};
pub use error::{Place, SourceError};
pub use file_tree::{FileNumber, FileOp, FilePlace, FileTree, FilesystemError, NewFilesystem, TreeWork};
pub use snapshot::{SNAPSHOT_SCHEMA, Snapshot, SnapshotError, SnapshotReport};
