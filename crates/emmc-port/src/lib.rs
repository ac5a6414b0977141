//! The ports: sources of registers, with an importer for every saved form, and the targets of benchmarks.
//!
//! A card, a dump, another tool's text and a snapshot all become one [`CardData`], in which unknown values are absent.
//! Absent on purpose: system calls (`emmc-linux`), and the meaning of registers (`emmc-analysis`).

mod activity;
mod block_target;
mod bus_link;
mod card_data;
mod card_target;
mod command_port;
mod error;
pub mod ffu;
mod file_tree;
pub mod lock;
mod merge;
pub mod rpmb;
pub mod saved;
mod snapshot;
mod stack;
mod system_use;

pub use activity::{Activity, HostTotals, Machine};
pub use block_target::{
    BlockContent, BlockDone, BlockOp, BlockRequest, BlockTarget, SimulatedTarget, TargetError, TargetFill, TargetKind,
    TargetShape,
};
pub use bus_link::{BusInUse, BusLink, BusRound};
pub use card_data::{
    BlockLayer, CardData, Disk, Filesystem, Format, Host, Origin, Partition, SavedReport, Stated, StatedSize,
    TrimSetup, VendorFormat,
};
pub use card_target::{Access, CardCounters, CardTarget};
pub use command_port::{Approved, ApprovedErase, CommandPort, Consent, NotAgreed, OtherSerial, PortError, serial_text};
pub use error::{Place, SourceError};
pub use file_tree::{FileNumber, FileOp, FilePlace, FileTree, FilesystemError, NewFilesystem, TreeWork};
pub use snapshot::{SNAPSHOT_SCHEMA, Snapshot, SnapshotError, SnapshotReport};
pub use stack::{Layer, LayerKind, MountedOn, Stack, TrimServices};
pub use system_use::{Containers, Journald, SwapSpace, SystemUse, WatchedWrites, Writer, WrittenFolder};
