//! `lsblk -b`: sizes in bytes, a tree of disks and partitions.

use emmc_units::{Bytes, SECTOR_BYTES};

use super::{disk_of, is_card, merge_disk, merge_partition};
use crate::saved::text::{Line, Text, excerpt};
use crate::{Disk, Partition, SourceError};

/// Where the columns are that are never empty and stand before the first that may be.
#[derive(Debug, PartialEq)]
pub(super) struct Columns {
    size: usize,
    read_only: Option<usize>,
    kind: Option<usize>,
    /// Only when it is the last column.
    mount: Option<usize>,
}

const NEVER_EMPTY: [&str; 9] = ["NAME", "KNAME", "MAJ:MIN", "RM", "SIZE", "RO", "TYPE", "HOTPLUG", "PATH"];

impl Columns {
    /// The columns of a heading that begins with NAME and has SIZE.
    pub(super) fn new(line: &str) -> Option<Self> {
        let names: Vec<&str> = line.split_whitespace().take(32).collect();
        if names.first() != Some(&"NAME") {
            return None;
        }
        let filled = names.iter().position(|name| !NEVER_EMPTY.contains(name)).unwrap_or(names.len());
        let at = |wanted: &str| names.iter().take(filled).position(|name| *name == wanted);
        let last = names.len().checked_sub(1)?;
        let is_mount = names.last().is_some_and(|name| matches!(*name, "MOUNTPOINT" | "MOUNTPOINTS"));
        let mount = (is_mount && filled == last).then_some(last);
        Some(Self { size: at("SIZE")?, read_only: at("RO"), kind: at("TYPE"), mount })
    }
}

/// The cards' disks with their partitions.
///
/// Errors: a size that is no number of bytes nor rounded.
pub(super) fn disks(text: &Text) -> Result<Vec<Disk>, SourceError> {
    let mut disks = Vec::new();
    let mut columns = None;
    for line in text.lines() {
        if let Some(new) = Columns::new(line.text) {
            columns = Some(new);
            continue;
        }
        let Some(columns) = &columns else { continue };
        let mut cells: Vec<&str> = line.text.split_whitespace().take(32).collect();
        // The tree is drawn before the name, glued to it or not.
        while cells.first().is_some_and(|cell| name(cell).is_empty()) {
            cells.remove(0);
        }
        let name = cells.first().map_or("", |cell| name(cell));
        if !is_card(name) {
            continue;
        }
        if text.is_cut(line.number) {
            // Its size may go on in the source.
            continue;
        }
        let bytes = size(text, line, cells.get(columns.size).copied())?;
        let kind = columns.kind.map(|at| cells.get(at).copied().unwrap_or_default());
        let of_disk = disk_of(name).filter(|_| kind.is_none_or(|kind| kind != "disk"));
        let expected = if of_disk.is_some() { "part" } else { "disk" };
        if let Some(kind) = kind.filter(|kind| *kind != expected) {
            // A blank was lost or doubled before it: the size may be another column's.
            return Err(text.malformed(line.number, format!("{expected} in column TYPE of {name}"), excerpt(kind)));
        }
        let mount = columns.mount.and_then(|at| cells.get(at..)).filter(|cells| !cells.is_empty());
        let mount = mount.map(|cells| cells.join(" ")).filter(|mount| mount.starts_with(['/', '[']));
        let flag = columns.read_only.and_then(|at| cells.get(at));
        let read_only = flag.map(|flag| *flag == "1");
        match of_disk {
            Some(disk) => {
                let partition = Partition { name: name.into(), bytes, mount, ..Partition::default() };
                add_partition(text, line.number, &mut disks, disk, partition)?;
            }
            None => {
                let disk = Disk { name: name.into(), bytes, read_only, partitions: Vec::new() };
                merge_disk(text, line.number, &mut disks, disk)?;
            }
        }
    }
    Ok(disks)
}

fn add_partition(
    text: &Text,
    line: u64,
    disks: &mut Vec<Disk>,
    disk: &str,
    partition: Partition,
) -> Result<(), SourceError> {
    match disks.iter_mut().find(|known| known.name == disk) {
        Some(known) => merge_partition(text, line, &mut known.partitions, partition),
        None => {
            let disk = Disk { name: disk.into(), partitions: vec![partition], ..Disk::default() };
            merge_disk(text, line, disks, disk)
        }
    }
}

fn name(cell: &str) -> &str {
    cell.trim_start_matches(['├', '└', '│', '─', '|', '`', '-', '\u{fffd}'])
}

fn size(text: &Text, line: Line, cell: Option<&str>) -> Result<Option<Bytes>, SourceError> {
    let Some(cell) = cell else { return Err(text.malformed(line.number, "a size in bytes", "the end of the line")) };
    if let Ok(bytes) = cell.parse::<u64>() {
        let whole = bytes > 0 && bytes % SECTOR_BYTES == 0;
        let error = || text.malformed(line.number, "a size in bytes that is a multiple of 512", cell);
        return if whole { Ok(Some(Bytes(bytes))) } else { Err(error()) };
    }
    let number = cell.trim_end_matches(['K', 'M', 'G', 'T', 'P', 'B', 'i']);
    let rounded = number.len() < cell.len() && number.replace(',', ".").parse::<f64>().is_ok();
    if rounded { Ok(None) } else { Err(text.malformed(line.number, "a size in bytes", excerpt(cell))) }
}
