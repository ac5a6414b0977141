//! `fdisk -l`: util-linux old and new, in sectors or cylinders, and busybox.

use emmc_units::{Bytes, SECTOR_BYTES, Sectors};

use super::{is_card, merge_disk, merge_partition};
use crate::saved::text::{Text, decimal_number};
use crate::{Disk, Partition, SourceError};

/// What the rows of a partition table count in.
#[derive(Clone, Copy, Debug)]
struct Units {
    bytes: u64,
    /// Whether positions are sectors, which no geometry rounds.
    sectors: bool,
}

/// The columns of a partition table, from the device on; the boot flag may be missing in any row.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Table {
    /// `Start End Blocks Id System`.
    Blocks,
    /// `Start End Sectors Size Id Type`, or without Id for GPT.
    Sectors,
    /// Busybox: `StartCHS EndCHS StartLBA EndLBA Sectors Size Id Type`.
    Chs,
}

/// `Disk /dev/mmcblk0: 3850 MB, 3850371072 bytes`: the name and the size.
pub(super) fn disk(line: &str) -> Option<(&str, Bytes)> {
    let (device, sizes) = line.trim().strip_prefix("Disk /dev/")?.split_once(": ")?;
    let bytes: u64 = sizes.split(", ").find_map(|size| size.strip_suffix(" bytes"))?.parse().ok()?;
    let others_agree = sizes.split(", ").all(|size| agrees(size, bytes));
    (bytes % SECTOR_BYTES == 0 && others_agree).then_some((device, Bytes(bytes)))
}

/// Whether another way to print the size is of these bytes: where one of the two lost a digit, neither is believed.
fn agrees(size: &str, bytes: u64) -> bool {
    // Busybox and some versions of util-linux print binary units under decimal names.
    const UNITS: [(&str, [f64; 2]); 6] = [
        ("MB", [1e6, 1_048_576.0]),
        ("GB", [1e9, 1_073_741_824.0]),
        ("TB", [1e12, 1_099_511_627_776.0]),
        ("MiB", [1_048_576.0; 2]),
        ("GiB", [1_073_741_824.0; 2]),
        ("TiB", [1_099_511_627_776.0; 2]),
    ];
    let Some((number, unit)) = size.split_once(' ') else { return true };
    if unit == "sectors" {
        return number.parse::<u64>().ok().and_then(|sectors| sectors.checked_mul(SECTOR_BYTES)) == Some(bytes);
    }
    let Some((_, units)) = UNITS.iter().find(|(name, _)| *name == unit) else { return true };
    let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len()).min(6) as i32;
    // Rounded or cut off, depending on the version.
    let near = |number: f64| units.iter().any(|unit| (number - bytes as f64 / unit).abs() <= 10f64.powi(-decimals));
    number.parse::<f64>().is_ok_and(near)
}

/// Adds the cards' disks with their partitions.
///
/// Errors: two sizes for one disk.
pub(super) fn add_disks(text: &Text, disks: &mut Vec<Disk>) -> Result<(), SourceError> {
    let mut units = Units { bytes: SECTOR_BYTES, sectors: true };
    let mut table = None;
    for line in text.lines() {
        let said = line.text.trim();
        if let Some((name, bytes)) = disk(said) {
            (units, table) = (Units { bytes: SECTOR_BYTES, sectors: true }, None);
            if is_card(name) {
                let disk = Disk { name: name.into(), bytes: Some(bytes), ..Disk::default() };
                merge_disk(text, line.number, disks, disk)?;
            }
        } else if let Some(rest) =
            said.strip_prefix("Units").and_then(|rest| rest.trim_start().strip_prefix(['=', ':']))
        {
            units = parse_units(rest).unwrap_or(units);
        } else if let Some(new) = heading(said) {
            table = Some(new);
        } else if let (Some(table), Some(row)) = (table, said.strip_prefix("/dev/")) {
            if let Some((partition, disk)) = row_of(row, table, units) {
                if let Some(disk) = disks.iter_mut().find(|known| known.name == disk) {
                    merge_partition(text, line.number, &mut disk.partitions, partition)?;
                }
            }
        } else if said.contains(['#', '$']) {
            table = None;
        }
    }
    Ok(())
}

/// `cylinders of 64 * 512 = 32768 bytes`, `sectors of 1 * 512 = 512 bytes`.
fn parse_units(text: &str) -> Option<Units> {
    let bytes = text.rsplit_once('=').map_or(text, |(_, bytes)| bytes).trim();
    let sectors = text.trim_start().starts_with("sector");
    decimal_number(bytes).filter(|&bytes| bytes > 0).map(|bytes| Units { bytes, sectors })
}

fn heading(said: &str) -> Option<Table> {
    let names: Vec<&str> = said.split_whitespace().take(16).collect();
    let names = match names.as_slice() {
        ["Device", "Boot", rest @ ..] | ["Device", rest @ ..] => rest,
        _ => return None,
    };
    match names {
        ["Start", "End", "Blocks", ..] => Some(Table::Blocks),
        ["Start", "End", "Sectors", "Size", ..] => Some(Table::Sectors),
        ["StartCHS", "EndCHS", ..] => Some(Table::Chs),
        _ => None,
    }
}

/// A row after `/dev/`: the partition, and its disk's name.
fn row_of(row: &str, table: Table, units: Units) -> Option<(Partition, &str)> {
    let mut cells = row.split_whitespace();
    let name = cells.next()?;
    let disk = super::disk_of(name)?;
    let cells: Vec<&str> = cells.filter(|cell| *cell != "*").take(64).collect();
    let number = |at: usize| cells.get(at).and_then(|cell| cell.trim_end_matches(['+', '-']).parse::<u64>().ok());
    let (start, bytes, kind_at) = match table {
        Table::Blocks => {
            let (first, last, blocks) = (number(0)?, number(1)?, number(2)?);
            // A plus means that it also has the last half of a 1024-byte block.
            let half = if cells.get(2)?.ends_with('+') { SECTOR_BYTES } else { 0 };
            let bytes = blocks.checked_mul(1024)?.checked_add(half)?;
            (start(first, last, bytes, units), Some(bytes), 3)
        }
        Table::Sectors => {
            let (first, sectors) = (number(0)?, number(2)?);
            (first.checked_mul(units.bytes / SECTOR_BYTES), sectors.checked_mul(units.bytes), 4)
        }
        Table::Chs => {
            let sectors = number(4)?;
            (number(2), sectors.checked_mul(SECTOR_BYTES), 6)
        }
    };
    let kind = cells.get(kind_at..).map(|words| words.join(" ")).filter(|kind| !kind.is_empty());
    let partition =
        Partition { name: name.into(), start: start.map(Sectors), bytes: bytes.map(Bytes), kind, mount: None };
    Some((partition, disk))
}

/// The first sector, unless it is lost in the rounding to cylinders.
fn start(first: u64, last: u64, bytes: u64, units: Units) -> Option<u64> {
    if units.sectors {
        return Some(first);
    }
    let whole = last.checked_sub(first)?.checked_add(1)?.checked_mul(units.bytes)? == bytes;
    first.checked_sub(1)?.checked_mul(units.bytes / SECTOR_BYTES).filter(|_| whole)
}
