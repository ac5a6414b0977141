//! Capacity accounting as a section.

use emmc_analysis::capacity::{Alignment, AlignmentUnit, Amount, Area, Capacity, FilesystemLine, PartitionTable};

use crate::{Align, BarItem, Bars, Document, Section, Table, Tone};

/// Areas of the part, partitions and gaps in them, filesystems and what they keep for themselves.
pub fn capacity(capacity: &Capacity, document: &mut Document) {
    let section = document.section("capacity", "Capacity");
    if capacity.areas.is_empty() {
        section.paragraph("This source tells no size.");
        return;
    }
    if let Some(bars) = area_bars(&capacity.areas) {
        section.push(bars);
    }
    section.push(areas(&capacity.areas));
    if let Some(sum) = &capacity.accounted {
        section.paragraph(format!("Accounted for: {} ({}).", amount(sum), sum.source));
    }
    if !capacity.not_accounted.is_empty() {
        let names: Vec<String> = capacity.not_accounted.iter().map(ToString::to_string).collect();
        section.note(Tone::Muted, format!("Not in the sum, as this source does not tell: {}.", names.join(", ")));
    }
    for table in &capacity.tables {
        partitions(table, section);
    }
    if !capacity.filesystems.is_empty() {
        section.push(filesystems(&capacity.filesystems));
    }
}

fn amount(amount: &Amount) -> String {
    match (amount.bytes, amount.min_bytes, amount.max_bytes) {
        (Some(bytes), ..) => format!("{bytes} = {} bytes", bytes.0),
        (None, Some(min), Some(max)) => format!("{} to {}", min.rounded(), max.rounded()),
        _ => "unknown".into(),
    }
}

/// The share of each area; absent where fewer than two sizes are exact.
fn area_bars(areas: &[Area]) -> Option<Bars> {
    let mut bars = Bars::stacked("Areas of the part", "MiB");
    let mut at = 0.0;
    for area in areas {
        if let Some(bytes) = area.size.bytes.filter(|bytes| bytes.0 > 0) {
            let end = at + bytes.0 as f64 / f64::from(1 << 20);
            bars = bars.item(BarItem::range(area.name.to_string(), at, end).value(bytes.to_string()));
            at = end;
        }
    }
    (bars.items.len() > 1).then(|| bars.max(at))
}

fn areas(areas: &[Area]) -> Table {
    let mut table = Table::new([
        ("area", Align::Left),
        ("size", Align::Right),
        ("bytes", Align::Right),
        ("sectors", Align::Right),
        ("", Align::Left),
        ("source", Align::Left),
    ]);
    for area in areas {
        let size = match (area.size.bytes, area.size.min_bytes, area.size.max_bytes) {
            (Some(bytes), ..) => bytes.to_string(),
            (None, Some(min), Some(max)) => format!("{} to {}", min.rounded(), max.rounded()),
            _ => "unknown".into(),
        };
        let mut remark = match area.enhanced {
            Some(true) => "enhanced".to_owned(),
            _ => String::new(),
        };
        if let Some(part) = &area.enhanced_part {
            remark = format!("{} enhanced from byte {}", part.size_bytes, part.start_bytes.0);
        }
        table.row([
            area.name.to_string(),
            size,
            area.size.bytes.map_or("-".into(), |bytes| bytes.0.to_string()),
            area.size.sectors.map_or("-".into(), |sectors| sectors.0.to_string()),
            remark,
            area.size.source.clone(),
        ]);
    }
    table
}

fn partitions(disk: &PartitionTable, section: &mut Section) {
    let mut table = Table::new([
        ("partition", Align::Left),
        ("first sector", Align::Right),
        ("size", Align::Right),
        ("bytes", Align::Right),
        ("type", Align::Left),
        ("mounted", Align::Left),
        ("starts on", Align::Left),
    ]);
    for slot in &disk.slots {
        table.row([
            slot.name.clone().unwrap_or_else(|| "(gap)".into()),
            slot.start.map_or("-".into(), |start| start.0.to_string()),
            slot.bytes.map_or("-".into(), |bytes| bytes.to_string()),
            slot.bytes.map_or("-".into(), |bytes| bytes.0.to_string()),
            slot.kind.clone().unwrap_or_default(),
            slot.mount.clone().unwrap_or_default(),
            if slot.name.is_some() { alignment(&slot.alignment) } else { String::new() },
        ]);
    }
    let unused = disk.unpartitioned_bytes.map_or(String::new(), |bytes| format!(", {bytes} in no partition"));
    section.push(table.caption(format!("Partitions of {}{unused}", disk.disk)));
}

fn alignment(list: &[Alignment]) -> String {
    let largest = list.iter().filter(|one| one.is_aligned()).max_by_key(|one| one.unit_bytes.0);
    largest.map_or_else(String::new, |one| format!("{} {}", one.unit_bytes, unit_name(one.unit)))
}

fn unit_name(unit: AlignmentUnit) -> &'static str {
    match unit {
        AlignmentUnit::FourKib | AlignmentUnit::FourMib => "boundary",
        AlignmentUnit::EraseGroup => "erase group",
        AlignmentUnit::WriteProtectGroup => "write-protect group",
        AlignmentUnit::OptimalWrite => "optimal write unit",
        AlignmentUnit::AllocationUnit => "allocation unit",
    }
}

fn filesystems(list: &[FilesystemLine]) -> Table {
    let mut table = Table::new([
        ("mounted on", Align::Left),
        ("device", Align::Left),
        ("type", Align::Left),
        ("partition", Align::Right),
        ("for data", Align::Right),
        ("filesystem keeps", Align::Right),
        ("used", Align::Right),
        ("free", Align::Right),
    ]);
    for line in list {
        let overhead = match (line.overhead_bytes, line.overhead_percent) {
            (Some(bytes), Some(percent)) => format!("{} ({percent:.1} %)", bytes.rounded()),
            _ => "unknown".into(),
        };
        table.row([
            line.mount.clone(),
            line.device.clone(),
            line.fstype.clone().unwrap_or_default(),
            line.partition_bytes.map_or("unknown".into(), |bytes| bytes.rounded()),
            line.bytes.rounded(),
            overhead,
            line.used_bytes.rounded(),
            line.available_bytes.rounded(),
        ]);
    }
    table.caption("Filesystems")
}
