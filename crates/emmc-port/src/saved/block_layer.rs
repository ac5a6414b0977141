//! `lsblk -b` or `-J`, `fdisk -l` and `df`: disks, partitions and filesystems. One text may hold several, prompts and
//! all.
//!
//! Absent on purpose: disks that are no card, filesystems without a device, and sizes that were printed rounded.

mod df;
mod fdisk;
mod lsblk;
mod lsblk_json;

use super::text::Text;
use crate::{CardData, Disk, Format, Partition, SourceError};

/// Whether the text has lsblk's JSON or the heading of one of the three tables.
pub(super) fn recognises(text: &Text) -> bool {
    lsblk_json::recognises(text)
        || text.lines().any(|line| {
            lsblk::Columns::new(line.text).is_some()
                || fdisk::disk(line.text).is_some()
                || df::Columns::new(line.text).is_some()
        })
}

/// Reads the disks, partitions and filesystems of all three tables.
///
/// Errors: a number that is none, or two sizes for one disk.
pub(super) fn import(text: &Text) -> Result<CardData, SourceError> {
    let mut data = CardData::new(text.name, Format::BlockLayerText);
    let mut disks = lsblk::disks(text)?;
    lsblk_json::add_disks(text, &mut disks)?;
    fdisk::add_disks(text, &mut disks)?;
    let (filesystems, left_out) = df::filesystems(text)?;
    if left_out > 0 {
        data.note(format!("{left_out} lines of df are left out: their sizes are rounded"));
    }
    if disks.iter().any(|disk| disk.bytes.is_none()) {
        data.note("lsblk was run without -b: its sizes are rounded and left out");
    }
    if disks.is_empty() && filesystems.is_empty() {
        let expected = "a disk mmcblkN or a filesystem on /dev in the output of lsblk -b, fdisk -l or df";
        return Err(text.malformed(1, expected, "none"));
    }
    data.blocks.disks = disks;
    data.blocks.filesystems = filesystems;
    Ok(data)
}

/// Whether a kernel name is a card's: `mmcblk0`, `mmcblk0boot0`, `mmcblk0gp3`, `mmcblk0rpmb`, `mmcblk0p1`.
fn is_card(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_digit());
    let Some(rest) = name.strip_prefix("mmcblk") else { return false };
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let area = rest.get(end..).unwrap_or_default();
    let area = ["boot", "gp"].iter().find_map(|kind| area.strip_prefix(kind)).map_or(area, |number| {
        let (area, partition) = number.split_once('p').unwrap_or((number, "1"));
        if digits(area) && digits(partition) { "" } else { number }
    });
    // The kernel's numbers have no leading zero: mmcblk01 is mmcblk0p1 that lost its letter.
    let number = rest.get(..end).unwrap_or_default();
    let plain = end == 1 || !number.starts_with('0');
    end > 0 && plain && (area.is_empty() || area == "rpmb" || area.strip_prefix('p').is_some_and(digits))
}

/// The disk of a partition.
fn disk_of(partition: &str) -> Option<&str> {
    let (disk, number) = partition.rsplit_once('p')?;
    (is_card(disk) && !number.is_empty() && number.bytes().all(|letter| letter.is_ascii_digit())).then_some(disk)
}

/// Disks of one text at most, and partitions of one disk: more is no listing of a machine's cards.
const LISTED_MAX: usize = 256;

/// Adds a disk, or its values from a second table.
fn merge_disk(text: &Text, line: u64, disks: &mut Vec<Disk>, new: Disk) -> Result<(), SourceError> {
    let Some(known) = disks.iter_mut().find(|known| known.name == new.name) else {
        if disks.len() >= LISTED_MAX {
            return Err(text.malformed(line, format!("at most {LISTED_MAX} disks"), "more"));
        }
        disks.push(new);
        return Ok(());
    };
    if let (Some(known_bytes), Some(bytes)) = (known.bytes, new.bytes) {
        if known_bytes != bytes {
            let expected = format!("one size for {}, which had {} bytes before", known.name, known_bytes.0);
            return Err(text.malformed(line, expected, format!("{} bytes", bytes.0)));
        }
    }
    known.bytes = known.bytes.or(new.bytes);
    known.read_only = known.read_only.or(new.read_only);
    Ok(())
}

/// Adds a partition, or its values from a second table.
fn merge_partition(text: &Text, line: u64, partitions: &mut Vec<Partition>, new: Partition) -> Result<(), SourceError> {
    let full = partitions.len() >= LISTED_MAX;
    match partitions.iter_mut().find(|known| known.name == new.name) {
        Some(known) => {
            known.start = known.start.or(new.start);
            known.bytes = known.bytes.or(new.bytes);
            known.kind = known.kind.take().or(new.kind);
            known.mount = known.mount.take().or(new.mount);
        }
        None if !full => partitions.push(new),
        None => return Err(text.malformed(line, format!("at most {LISTED_MAX} partitions of a disk"), "more")),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
