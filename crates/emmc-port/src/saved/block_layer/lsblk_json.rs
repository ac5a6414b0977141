//! `lsblk -J`, with or without `-b`: the same tree as JSON.

use emmc_units::{Bytes, Sectors};
use serde::Deserialize;
use serde_json::Value;

use super::{disk_of, is_card, merge_disk, merge_partition};
use crate::saved::text::{Text, excerpt};
use crate::{Disk, Partition, SourceError};

/// The largest depth of a tree of devices: a disk, a partition, and mapped devices.
const DEPTH_MAX: usize = 8;

#[derive(Deserialize)]
struct Listing {
    blockdevices: Vec<Node>,
}

/// One device; older versions print every value as text.
#[derive(Deserialize)]
struct Node {
    name: String,
    #[serde(default)]
    size: Value,
    #[serde(default)]
    start: Value,
    #[serde(default)]
    ro: Value,
    #[serde(default)]
    parttypename: Option<String>,
    #[serde(default)]
    mountpoint: Option<String>,
    #[serde(default)]
    mountpoints: Vec<Option<String>>,
    #[serde(default)]
    children: Vec<Node>,
}

/// Whether the text has lsblk's JSON.
pub(super) fn recognises(text: &Text) -> bool {
    object(text).is_some()
}

/// The object, from its brace on, and the line of it; a prompt may stand before and after.
fn object<'t>(text: &'t Text) -> Option<(&'t str, u64)> {
    let all = text.as_str();
    let at = all.find("\"blockdevices\"")?;
    let start = all
        .get(..at)?
        .rfind('{')
        .filter(|&start| all.get(start + 1..at).is_some_and(|between| between.chars().all(char::is_whitespace)))?;
    let line = all.get(..start)?.matches('\n').count() as u64 + 1;
    Some((all.get(start..)?, line))
}

/// Adds the cards' disks with their partitions.
///
/// Errors: JSON that is cut or of another shape, a size that is none.
pub(super) fn add_disks(text: &Text, disks: &mut Vec<Disk>) -> Result<(), SourceError> {
    let Some((json, line)) = object(text) else { return Ok(()) };
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<Listing>();
    let listing = match values.next() {
        Some(Ok(listing)) => listing,
        Some(Err(error)) => {
            let at = line + (error.line() as u64).saturating_sub(1);
            return Err(text.malformed(at, "the whole output of lsblk -J", error.to_string()));
        }
        None => return Ok(()),
    };
    listing.blockdevices.into_iter().try_for_each(|node| add(text, line, disks, node, 0))
}

fn add(text: &Text, line: u64, disks: &mut Vec<Disk>, node: Node, depth: usize) -> Result<(), SourceError> {
    let name = node.name.strip_prefix("/dev/").unwrap_or(&node.name);
    if is_card(name) {
        let bytes = size(text, line, name, &node.size)?;
        let read_only = match &node.ro {
            Value::Bool(ro) => Some(*ro),
            Value::String(ro) => Some(ro == "1"),
            _ => None,
        };
        match disk_of(name) {
            Some(disk) => {
                let mount = node.mountpoint.into_iter().chain(node.mountpoints.into_iter().flatten());
                let mount: Vec<String> = mount.filter(|mount| mount.starts_with(['/', '['])).collect();
                let partition = Partition {
                    name: name.into(),
                    start: number(&node.start).map(Sectors),
                    bytes,
                    kind: node.parttypename,
                    mount: (!mount.is_empty()).then(|| mount.join(" ")),
                };
                if disks.iter().all(|known| known.name != disk) {
                    merge_disk(text, line, disks, Disk { name: disk.into(), ..Disk::default() })?;
                }
                if let Some(known) = disks.iter_mut().find(|known| known.name == disk) {
                    merge_partition(text, line, &mut known.partitions, partition)?;
                }
            }
            None => {
                let disk = Disk { name: name.into(), bytes, read_only, partitions: Vec::new() };
                merge_disk(text, line, disks, disk)?;
            }
        }
    }
    if depth >= DEPTH_MAX {
        return Err(text.malformed(line, format!("a tree of at most {DEPTH_MAX} levels"), "a deeper one"));
    }
    node.children.into_iter().try_for_each(|child| add(text, line, disks, child, depth + 1))
}

/// A number of bytes; `None` where it was printed rounded, without `-b`.
fn size(text: &Text, line: u64, name: &str, value: &Value) -> Result<Option<Bytes>, SourceError> {
    if let Some(bytes) = number(value) {
        return Ok(Some(Bytes(bytes)));
    }
    let rounded = |size: &str| {
        let digits = size.trim_end_matches(['K', 'M', 'G', 'T', 'P', 'B', 'i']);
        digits.len() < size.len() && digits.replace(',', ".").parse::<f64>().is_ok()
    };
    match value {
        Value::Null => Ok(None),
        Value::String(size) if rounded(size) => Ok(None),
        _ => Err(text.malformed(line, format!("a size in bytes for {name}"), excerpt(&value.to_string()))),
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
