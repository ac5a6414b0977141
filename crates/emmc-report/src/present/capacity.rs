//! Capacity accounting as a section.

use emmc_analysis::capacity::{
    Alignment, AlignmentUnit, Amount, Area, AreaName, Capacity, FilesystemLine, PartitionTable,
};

use crate::{Align, BarItem, Bars, Document, Section, Table, Tone};

/// Areas of the part, partitions and gaps in them, filesystems and their overhead.
pub fn capacity(capacity: &Capacity, document: &mut Document) {
    let section = document.section("capacity", "Capacity");
    if capacity.areas.is_empty() {
        section.paragraph("This source has no size.");
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
        section.note(Tone::Muted, format!("Not in the sum, because their size is unknown: {}.", names.join(", ")));
    }
    for table in &capacity.tables {
        partitions(table, section);
    }
    if !capacity.filesystems.is_empty() {
        section.push(filesystems(&capacity.filesystems));
    }
}

fn amount(amount: &Amount) -> String {
    amount.bytes.map_or_else(|| range(amount), |bytes| format!("{bytes} = {} bytes", bytes.0))
}

/// A size that was printed rounded, as the full interval.
fn range(amount: &Amount) -> String {
    match (amount.min_bytes, amount.max_bytes) {
        (Some(min), Some(max)) => format!("{} to {}", min.rounded_down(), max.rounded_up()),
        _ => "unknown".into(),
    }
}

/// The share of each area; absent if one is not known exactly, because then every share would be wrong.
pub(super) fn area_bars(areas: &[Area]) -> Option<Bars> {
    let mut bars = Bars::stacked("Areas of the part", "MiB");
    let mut at = 0.0;
    for area in areas {
        let bytes = area.size.bytes?;
        let end = at + bytes.0 as f64 / f64::from(1 << 20);
        bars = bars.item(BarItem::range(area.name.to_string(), at, end).value(bytes.to_string()));
        at = end;
    }
    let has_user = areas.iter().any(|area| area.name == AreaName::User);
    (has_user && areas.len() > 1).then(|| bars.max(at))
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
        let size = area.size.bytes.map_or_else(|| range(&area.size), |bytes| bytes.to_string());
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
    table.optional(&["bytes", "sectors", "source"])
}

fn partitions(disk: &PartitionTable, section: &mut Section) {
    let mut table = Table::new([
        ("partition", Align::Left),
        ("first sector", Align::Right),
        ("size", Align::Right),
        ("bytes", Align::Right),
        ("type", Align::Left),
        ("mounted", Align::Left),
        ("aligned to", Align::Left),
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
    let unused = disk.unpartitioned_bytes.map_or(String::new(), |bytes| format!(", {bytes} unpartitioned"));
    let table = table.optional(&["first sector", "bytes", "aligned to"]);
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
        ("overhead", Align::Right),
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
    table.optional(&["device", "overhead"]).caption("Filesystems")
}

#[cfg(test)]
mod tests {
    use emmc_units::Bytes;

    use super::*;

    fn area(name: AreaName, size: Amount) -> Area {
        Area { name, size, also: Vec::new(), enhanced: None, enhanced_part: None }
    }

    #[test]
    fn a_printed_range_contains_all_its_sizes() {
        // U-Boot prints 7.3 GiB for a part of 7512 MiB, which is 7.336.
        let size = Amount::between(Bytes(7_784_628_224), Bytes(7_892_002_406), "text");
        assert_eq!(range(&size), "7.25 GiB to 7.35 GiB");
        assert_eq!(areas(&[area(AreaName::User, size)]).rows[0][1].text, "7.25 GiB to 7.35 GiB");
    }

    #[test]
    fn shares_are_drawn_only_if_every_size_is_exact() {
        let exact = |name, mib: u64| area(name, Amount::exact(Bytes(mib << 20), "register"));
        let rounded = area(AreaName::User, Amount::between(Bytes(1 << 30), Bytes(2 << 30), "text"));
        let (boot, rpmb) = (exact(AreaName::Boot1, 32), exact(AreaName::Rpmb, 4));
        let drawn = |areas: &[Area]| area_bars(areas).map(|bars| bars.items.len());
        assert_eq!(drawn(&[exact(AreaName::User, 7512), boot.clone(), rpmb.clone()]), Some(3));
        assert_eq!(drawn(&[rounded, boot.clone(), rpmb.clone()]), None);
        assert_eq!(drawn(&[boot, rpmb]), None);
        assert_eq!(drawn(&[exact(AreaName::User, 7512)]), None);
    }
}
