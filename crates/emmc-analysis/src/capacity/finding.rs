//! Contradictions in the accounting.

use emmc_port::CardData;
use emmc_units::Sectors;

use super::area::{Area, card_disk};
use super::filesystem::FilesystemLine;
use super::table::{self, AlignmentUnit, PartitionTable, Slot};
use crate::finding::{Finding, Severity};

pub(super) fn findings(
    card: &CardData,
    areas: &[Area],
    tables: &[PartitionTable],
    filesystems: &[FilesystemLine],
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = areas.iter().filter_map(disagreement).collect();
    if card_disk(card).is_none() && card.blocks.disks.len() > 1 {
        findings.push(
            Finding::new(
                Severity::Notice,
                "which-disk",
                "The block devices belong to several cards: which of them is this card is unknown",
            )
            .evidence(card.blocks.disks.iter().map(|disk| disk.name.as_str()).collect::<Vec<_>>().join(", "))
            .advice("give the output for this card only"),
        );
    }
    for table in tables {
        findings.extend(past_the_end(table));
        findings.extend(larger_than_its_disk(table));
        findings.extend(overlap(table));
        findings.extend(off_the_page(table));
        findings.extend(off_the_group(table));
    }
    findings.extend(filesystems.iter().filter_map(larger_than_its_partition));
    crate::finding::sort(&mut findings);
    findings
}

fn disagreement(area: &Area) -> Option<Finding> {
    let others: Vec<_> = area.also.iter().filter(|other| !other.agrees_with(&area.size)).collect();
    if others.is_empty() {
        return None;
    }
    let mut finding = Finding::new(
        Severity::Warning,
        "capacity-disagreement",
        format!("The sources disagree about the size of the {}", area.name),
    );
    for amount in [&area.size].into_iter().chain(others) {
        let text = match (amount.bytes, amount.min_bytes, amount.max_bytes) {
            (Some(bytes), _, _) => format!("{} bytes", bytes.0),
            (None, Some(min), Some(max)) => format!("{} to {} bytes", min.0, max.0),
            _ => "unknown".into(),
        };
        finding = finding.evidence(format!("{}: {text}", amount.source));
    }
    Some(finding.advice(
        "check that all sources are from the same card and the same time: hardware partitioning changes the sizes at \
         the next power cycle",
    ))
}

fn partitions(table: &PartitionTable) -> impl Iterator<Item = (&str, &Slot)> {
    table.slots.iter().filter_map(|slot| Some((slot.name.as_deref()?, slot)))
}

fn past_the_end(table: &PartitionTable) -> Option<Finding> {
    let disk_end = Sectors(table.bytes?.0 / emmc_units::SECTOR_BYTES);
    let past: Vec<String> = partitions(table)
        .filter(|(_, slot)| slot.start.is_some() && table::end_of(slot) > disk_end)
        .map(|(name, slot)| {
            format!("{name} ends before sector {}, {} before {}", table::end_of(slot).0, table.disk, disk_end.0)
        })
        .collect();
    let what = "A partition reaches past the end of the card";
    with_evidence(Finding::new(Severity::Critical, "partition-past-end", what), past).map(|finding| {
        finding.advice("do not write to it; restore the table of this card, or shrink the partition from a backup")
    })
}

/// If no start sectors are known: a partition, or all of them together, larger than the disk.
fn larger_than_its_disk(table: &PartitionTable) -> Option<Finding> {
    let disk = table.bytes?;
    let counted: Vec<(&str, &Slot)> = partitions(table).filter(|(_, slot)| !table::frames_others(slot)).collect();
    let sum = counted.iter().fold(0u64, |sum, (_, slot)| sum.saturating_add(slot.bytes.map_or(0, |bytes| bytes.0)));
    if counted.iter().all(|(_, slot)| slot.start.is_some()) || sum <= disk.0 {
        return None;
    }
    let larger = counted.iter().filter_map(|(name, slot)| Some((name, slot.bytes.filter(|bytes| *bytes > disk)?)));
    let mut evidence: Vec<String> =
        larger.map(|(name, bytes)| format!("{name}: {} bytes, {}: {}", bytes.0, table.disk, disk.0)).collect();
    let what = if evidence.is_empty() {
        evidence.push(format!("{} partitions: {sum} bytes in all, {}: {}", counted.len(), table.disk, disk.0));
        "The partitions are larger than their disk"
    } else {
        "A partition is larger than its disk"
    };
    with_evidence(Finding::new(Severity::Warning, "partition-larger-than-disk", what), evidence).map(|finding| {
        finding.advice("check that both sizes are from the same card and time; if so, do not write past the disk's end")
    })
}

fn overlap(table: &PartitionTable) -> Option<Finding> {
    let mut reached: Option<(&str, Sectors)> = None;
    let mut pairs = Vec::new();
    for (name, slot) in partitions(table).filter(|(_, slot)| slot.start.is_some() && !table::frames_others(slot)) {
        let (start, end) = (slot.start.unwrap_or_default(), table::end_of(slot));
        if let Some((before, _)) = reached.filter(|(_, end)| start < *end) {
            pairs.push(format!("{name} starts at sector {} inside {before}", start.0));
        }
        if reached.is_none_or(|(_, known)| end > known) {
            reached = Some((name, end));
        }
    }
    let what = "Partitions overlap";
    with_evidence(Finding::new(Severity::Critical, "partition-overlap", what), pairs)
        .map(|finding| finding.advice("do not write to either before the table is repaired"))
}

fn off_the_page(table: &PartitionTable) -> Option<Finding> {
    let off = partitions(table).filter_map(|(name, slot)| {
        let page = slot.alignment.iter().find(|alignment| alignment.unit == AlignmentUnit::FourKib)?;
        (!page.is_aligned()).then(|| format!("{name} starts at sector {}", slot.start.unwrap_or_default().0))
    });
    let what = "A partition is not aligned to 4 KiB: every written page touches two pages of the part";
    with_evidence(Finding::new(Severity::Warning, "partition-off-page", what), off.collect()).map(|finding| {
        finding.advice("start partitions at multiples of the erase group, or of 4 MiB where it is unknown")
    })
}

fn off_the_group(table: &PartitionTable) -> Option<Finding> {
    const GROUPS: [AlignmentUnit; 3] =
        [AlignmentUnit::EraseGroup, AlignmentUnit::WriteProtectGroup, AlignmentUnit::AllocationUnit];
    let off = partitions(table).filter_map(|(name, slot)| {
        let off: Vec<String> = slot
            .alignment
            .iter()
            .filter(|alignment| GROUPS.contains(&alignment.unit) && !alignment.is_aligned())
            .map(|alignment| {
                format!(
                    "{} past a multiple of the {} of {}",
                    alignment.past_bytes, alignment.unit, alignment.unit_bytes
                )
            })
            .collect();
        (!off.is_empty())
            .then(|| format!("{name} starts at sector {}: {}", slot.start.unwrap_or_default().0, off.join(", ")))
    });
    let what = "Partitions are not aligned to the part's groups";
    with_evidence(Finding::new(Severity::Notice, "partition-off-group", what), off.collect()).map(|finding| {
        finding
            .advice("a partition to be write protected or enhanced must start and end on write-protect groups")
            .advice(
                "for a new partition table, start on erase groups, so that a discarded partition frees whole groups",
            )
    })
}

fn larger_than_its_partition(line: &FilesystemLine) -> Option<Finding> {
    let partition = line.partition_bytes.filter(|partition| line.bytes > *partition)?;
    let what = format!("The filesystem on {} is larger than its partition", line.mount);
    Some(
        Finding::new(Severity::Critical, "filesystem-past-end", what)
            .evidence(format!("filesystem {} bytes, {} {} bytes", line.bytes.0, line.partition, partition.0))
            .advice("check that both outputs are from the same time; if so, back up and check the filesystem"),
    )
}

fn with_evidence(finding: Finding, evidence: Vec<String>) -> Option<Finding> {
    (!evidence.is_empty()).then(|| evidence.into_iter().fold(finding, Finding::evidence))
}
