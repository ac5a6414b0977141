//! `udevadm info`: the walk of attributes (`-a`), and properties (`-q property`, `--export`, the plain form).

use super::Attribute;
use super::path::{self, Ids, Place};
use crate::saved::text::{Line, Text};

/// Every attribute of a card that udev prints.
pub(super) fn attributes<'t>(text: &'t Text) -> Vec<Attribute<'t>> {
    let mut found = Vec::new();
    let mut looked_at = None;
    let mut record: Vec<(u64, &str, &str)> = Vec::new();
    for line in text.lines() {
        if let Some(path) = device_path(line.text) {
            looked_at = path::owner(path);
        } else if let (Some((ids, place)), Some((name, value))) = (looked_at, walked(line.text)) {
            found.push(Attribute { line: line.number, ids, place, name, value });
        }
        match property(line) {
            Some(property) => record.push(property),
            None if line.text.trim().is_empty() => take_record(&mut record, &mut found),
            // Other lines of a record: its path, its links, its priority.
            None => {}
        }
    }
    take_record(&mut record, &mut found);
    found
}

/// `looking at parent device '/devices/.../mmc0:0001':`
fn device_path(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("looking at ")?;
    let rest = rest.strip_prefix("parent ").unwrap_or(rest).strip_prefix("device '")?;
    rest.strip_suffix("':")
}

/// `ATTRS{life_time}=="0x01 0x02"`
fn walked(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let rest = line.strip_prefix("ATTRS{").or_else(|| line.strip_prefix("ATTR{"))?;
    let (name, value) = rest.split_once("}==\"")?;
    let value = value.strip_suffix('"')?.trim();
    (!name.contains('/') && !value.is_empty() && name != "uevent").then_some((name, value))
}

/// `E: ID_NAME=DG4008`, `ID_NAME='DG4008'` or `ID_NAME=DG4008`.
fn property(line: Line<'_>) -> Option<(u64, &str, &str)> {
    let text = line.text.trim();
    let (key, value) = text.strip_prefix("E: ").unwrap_or(text).split_once('=')?;
    let value = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\'')).unwrap_or(value);
    let named =
        !key.is_empty() && key.bytes().all(|letter| letter.is_ascii_uppercase() || b"_0123456789".contains(&letter));
    named.then_some((line.number, key, value))
}

/// What the properties of one device say.
fn take_record<'t>(record: &mut Vec<(u64, &'t str, &'t str)>, found: &mut Vec<Attribute<'t>>) {
    let get = |wanted: &str| record.iter().find(|(_, key, _)| *key == wanted).copied();
    let path = get("DEVPATH").and_then(|(_, _, path)| path::owner(path));
    let node = get("DEVNAME").and_then(|(_, _, node)| path::owner(node.strip_prefix("/dev/").unwrap_or(node)));
    let Some((ids, place)) = path.or(node) else { return record.clear() };
    for &(line, key, value) in record.iter().filter(|(_, _, value)| !value.is_empty()) {
        let of_card = |name| Attribute { line, ids, place: Place::Card, name, value };
        let of_partition = |name| Attribute { line, ids, place: partition(place, ids), name, value };
        match key {
            "ID_NAME" | "MMC_NAME" => found.push(of_card("name")),
            "ID_SERIAL" if value.starts_with("0x") => found.push(of_card("serial")),
            "MMC_TYPE" => found.push(of_card("type")),
            "ID_PART_ENTRY_SIZE" => found.push(of_partition("size")),
            "ID_PART_ENTRY_OFFSET" => found.push(of_partition("start")),
            _ => {}
        }
    }
    record.clear();
}

/// The partition that a node without its disk's path names.
fn partition<'t>(place: Place<'t>, ids: Ids<'t>) -> Place<'t> {
    match (place, ids.disk) {
        (Place::Disk(name), Some(disk)) if name != disk => Place::Partition(disk, name),
        _ => place,
    }
}
