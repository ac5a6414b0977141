//! Partition tables: partitions, gaps, and alignment to the part's boundaries.

use std::fmt;

use emmc_port::{CardData, Disk, Partition};
use emmc_regs::CardKind;
use emmc_regs::csd::Csd;
use emmc_regs::ssr::Ssr;
use emmc_units::{Bytes, Sectors};
use serde::Serialize;

use super::area::{card_disk, is_area_of};

/// Partitions and gaps of one disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartitionTable {
    /// Kernel name of the disk.
    pub disk: String,
    /// Size of the disk.
    pub bytes: Option<Bytes>,
    /// Partitions and the gaps around them, sorted by start; without starts, partitions only.
    pub slots: Vec<Slot>,
    /// Space outside all partitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unpartitioned_bytes: Option<Bytes>,
}

/// A partition, or a gap where `name` is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slot {
    /// Kernel name of the partition.
    pub name: Option<String>,
    /// First sector.
    #[serde(rename = "start_sectors")]
    pub start: Option<Sectors>,
    /// Size.
    pub bytes: Option<Bytes>,
    /// Size in sectors.
    pub sectors: Option<Sectors>,
    /// Type of the partition, as the source calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Where it is mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount: Option<String>,
    /// Alignment of its start to the part's boundaries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alignment: Vec<Alignment>,
}

/// A boundary to which partitions may be aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum AlignmentUnit {
    /// 4 KiB: with less, one page of a filesystem spans two pages of the part.
    FourKib,
    /// 4 MiB: the usual choice if the erase block size is unknown.
    FourMib,
    /// The erase group in force.
    EraseGroup,
    /// HC_WP_GRP_SIZE: only whole groups can be write protected or enhanced.
    WriteProtectGroup,
    /// OPTIMAL_WRITE_SIZE.
    OptimalWrite,
    /// The allocation unit of an SD card, the unit of its speed class.
    AllocationUnit,
}

impl fmt::Display for AlignmentUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::FourKib => "4 KiB",
            Self::FourMib => "4 MiB",
            Self::EraseGroup => "erase group",
            Self::WriteProtectGroup => "write-protect group",
            Self::OptimalWrite => "optimal write size",
            Self::AllocationUnit => "allocation unit",
        })
    }
}

/// Alignment of a start to one kind of boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Alignment {
    /// The boundary.
    pub unit: AlignmentUnit,
    /// Distance between its multiples.
    pub unit_bytes: Bytes,
    /// Distance of the start from the last one; 0 if aligned.
    pub past_bytes: Bytes,
}

impl Alignment {
    /// Whether the start is on the boundary.
    pub fn is_aligned(&self) -> bool {
        self.past_bytes.0 == 0
    }
}

/// A table for each of the card's disks that has partitions.
pub(super) fn tables(card: &CardData) -> Vec<PartitionTable> {
    let Some(name) = card_disk(card) else { return Vec::new() };
    let units = units(card);
    let disks = card.blocks.disks.iter().filter(|disk| is_area_of(name, disk) && !disk.partitions.is_empty());
    disks.map(|disk| table(disk, &units)).collect()
}

fn table(disk: &Disk, units: &[(AlignmentUnit, Bytes)]) -> PartitionTable {
    let mut partitions: Vec<&Partition> = disk.partitions.iter().collect();
    partitions.sort_by_key(|partition| partition.start);
    let placed = partitions.iter().all(|partition| partition.start.is_some() && partition.bytes.is_some());
    let mut slots = Vec::new();
    let mut free_from = Sectors(0);
    for partition in &partitions {
        let slot = slot(partition, units);
        if let (true, Some(start)) = (placed, slot.start) {
            slots.extend(gap(free_from, start));
            // An extended partition only contains the logical ones, whose starts lie inside it.
            let end = if is_extended(partition) { start } else { end_of(&slot) };
            free_from = free_from.max(end);
        }
        slots.push(slot);
    }
    if let (true, Some(end)) = (placed, disk.bytes.and_then(whole_sectors)) {
        slots.extend(gap(free_from, end));
    }
    PartitionTable {
        disk: disk.name.clone(),
        bytes: disk.bytes,
        unpartitioned_bytes: unpartitioned(disk, &partitions),
        slots,
    }
}

fn slot(partition: &Partition, units: &[(AlignmentUnit, Bytes)]) -> Slot {
    let start_bytes = partition.start.and_then(Sectors::bytes);
    let alignment = start_bytes.map(|start| {
        let past = |unit: Bytes| start.0.checked_rem(unit.0).map(Bytes);
        let of = |&(unit, unit_bytes)| Some(Alignment { unit, unit_bytes, past_bytes: past(unit_bytes)? });
        units.iter().filter_map(of).collect()
    });
    Slot {
        name: Some(partition.name.clone()),
        start: partition.start,
        bytes: partition.bytes,
        sectors: partition.bytes.and_then(Bytes::whole_sectors),
        kind: partition.kind.clone(),
        mount: partition.mount.clone(),
        alignment: alignment.unwrap_or_default(),
    }
}

fn gap(from: Sectors, to: Sectors) -> Option<Slot> {
    let sectors = Sectors(to.0.checked_sub(from.0).filter(|sectors| *sectors > 0)?);
    Some(Slot {
        name: None,
        start: Some(from),
        bytes: sectors.bytes(),
        sectors: Some(sectors),
        kind: None,
        mount: None,
        alignment: Vec::new(),
    })
}

fn whole_sectors(bytes: Bytes) -> Option<Sectors> {
    Some(Sectors(bytes.0 / emmc_units::SECTOR_BYTES))
}

/// The first sector after a partition.
pub(super) fn end_of(slot: &Slot) -> Sectors {
    let sectors = slot.bytes.and_then(whole_sectors).map_or(0, |sectors| sectors.0);
    Sectors(slot.start.map_or(0, |start| start.0).saturating_add(sectors))
}

fn is_extended(partition: &Partition) -> bool {
    let kind = partition.kind.as_deref().unwrap_or_default().to_ascii_lowercase();
    kind.contains("extended") || matches!(kind.trim(), "5" | "f" | "0x5" | "0xf" | "85")
}

/// Whether a slot only contains others.
pub(super) fn frames_others(slot: &Slot) -> bool {
    let kind = slot.kind.clone();
    is_extended(&Partition { kind, ..Partition::default() })
}

/// The disk without its partitions, which needs no starts.
fn unpartitioned(disk: &Disk, partitions: &[&Partition]) -> Option<Bytes> {
    let counted = partitions.iter().filter(|partition| !is_extended(partition));
    let used = counted.map(|partition| partition.bytes).try_fold(Bytes(0), |sum, bytes| sum.checked_add(bytes?))?;
    disk.bytes?.checked_sub(used)
}

/// The boundaries that the part reports.
fn units(card: &CardData) -> Vec<(AlignmentUnit, Bytes)> {
    let info = card.ext_csd.as_ref().map(|csd| csd.decode().0).unwrap_or_default();
    let csd_group = || {
        let csd = Csd::new(card.kind.filter(|kind| *kind == CardKind::Emmc)?, card.csd?);
        Sectors(csd.erase_group_sectors()?).bytes()
    };
    let erase_group = match info.erase_group_def {
        Some(true) => info.hc_erase_group,
        Some(false) => csd_group(),
        None => None,
    };
    let [_, optimal_write, _] = info.optimal_read_write_trim;
    let allocation_unit = card.ssr.and_then(|ssr| Ssr(ssr).au_size_bytes()).map(Bytes);
    [
        (AlignmentUnit::FourKib, Some(Bytes(4096))),
        (AlignmentUnit::OptimalWrite, optimal_write),
        (AlignmentUnit::EraseGroup, erase_group.or(card.stated.erase_group)),
        (AlignmentUnit::FourMib, Some(Bytes(4 << 20))),
        (AlignmentUnit::WriteProtectGroup, info.hc_wp_group.or(card.stated.hc_wp_group)),
        (AlignmentUnit::AllocationUnit, allocation_unit),
    ]
    .into_iter()
    .filter_map(|(unit, bytes)| Some((unit, bytes.filter(|bytes| bytes.0 > 0)?)))
    .collect()
}
