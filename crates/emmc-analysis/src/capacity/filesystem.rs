//! Mounted filesystems: space for data and overhead.

use emmc_port::{CardData, Filesystem, Partition};
use emmc_units::Bytes;
use serde::Serialize;

use super::area::{card_disk, is_area_of};

/// A mounted filesystem and its partition.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesystemLine {
    /// Where it is mounted.
    pub mount: String,
    /// Device as `df` prints it.
    pub device: String,
    /// Kernel name of its partition.
    pub partition: String,
    /// Type, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fstype: Option<String>,
    /// Size of the partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_bytes: Option<Bytes>,
    /// Blocks for data: what `df` calls the size.
    pub bytes: Bytes,
    /// Overhead for inodes, journal and tables: the partition without its blocks for data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead_bytes: Option<Bytes>,
    /// The same as a share of the partition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overhead_percent: Option<f64>,
    /// In use.
    pub used_bytes: Bytes,
    /// Free to ordinary users.
    pub available_bytes: Bytes,
    /// Free, but reserved for root (ext4: 5 % by default).
    pub reserved_bytes: Bytes,
}

/// Every filesystem on the card, in the sequence of the source.
pub(super) fn filesystems(card: &CardData) -> Vec<FilesystemLine> {
    card.blocks.filesystems.iter().filter_map(|filesystem| line(card, filesystem)).collect()
}

fn line(card: &CardData, filesystem: &Filesystem) -> Option<FilesystemLine> {
    let (partition, partition_bytes) = partition_of(card, filesystem)?;
    let overhead_bytes = partition_bytes.and_then(|size| size.checked_sub(filesystem.bytes));
    let percent = |overhead: Bytes, whole: Bytes| 100.0 * overhead.0 as f64 / whole.0 as f64;
    let spoken_for = filesystem.used.0.saturating_add(filesystem.available.0);
    Some(FilesystemLine {
        mount: filesystem.mount.clone(),
        device: filesystem.device.clone(),
        partition,
        fstype: filesystem.fstype.clone(),
        partition_bytes,
        bytes: filesystem.bytes,
        overhead_bytes,
        overhead_percent: overhead_bytes.zip(partition_bytes).map(|(overhead, whole)| percent(overhead, whole)),
        used_bytes: filesystem.used,
        available_bytes: filesystem.available,
        reserved_bytes: Bytes(filesystem.bytes.0.saturating_sub(spoken_for)),
    })
}

/// The partition or disk of the card that holds a filesystem: by name, and for `/dev/root` by mount point.
fn partition_of(card: &CardData, filesystem: &Filesystem) -> Option<(String, Option<Bytes>)> {
    let card_name = card_disk(card)?;
    let disks = || card.blocks.disks.iter().filter(|disk| is_area_of(card_name, disk));
    let partitions = || disks().flat_map(|disk| &disk.partitions);
    let name = filesystem.device.strip_prefix("/dev/").unwrap_or(&filesystem.device);
    if let Some(partition) = partitions().find(|partition| partition.name == name) {
        return Some((partition.name.clone(), partition.bytes));
    }
    if let Some(disk) = disks().find(|disk| disk.name == name) {
        return Some((disk.name.clone(), disk.bytes));
    }
    // The kernel names the filesystem that it mounted itself /dev/root, on any partition.
    let same_mount = |partition: &&Partition| partition.mount.as_deref() == Some(filesystem.mount.as_str());
    let root = if name == "root" { partitions().find(same_mount) } else { None };
    root.map(|partition| (partition.name.clone(), partition.bytes))
}
