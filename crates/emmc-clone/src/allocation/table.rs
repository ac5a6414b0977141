//! Partition tables: GPT with its two copies, MBR with logical partitions.
//!
//! Source: UEFI 2.10, chapter 5; for MBR the layout that every kernel reads (`block/partitions/msdos.c`).

use super::bytes::{Bytes, Reader, Unread};
use crate::Ranges;

/// A partition. Unit: bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Partition {
    pub(super) number: u32,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// What is found at the start of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) kind: &'static str,
    pub(super) partitions: Vec<Partition>,
}

const GPT_ENTRIES_MAX: u32 = 4096;
const LOGICAL_MAX: u32 = 128;
const TYPE_PROTECTIVE: u8 = 0xee;
/// Extended partitions.
const TYPES_EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];

/// Reads the table of a disk with sectors of `sector` bytes; nothing if there is none.
pub(super) fn read(reader: &mut Reader<'_>, size: u64, sector: u64) -> Result<Option<Table>, Unread> {
    if size < 2 * sector {
        return Ok(None);
    }
    let boot = reader.read(0, 512)?;
    if !boot.has(510, &[0x55, 0xaa]) {
        return Ok(None);
    }
    let entries = (0..4).map(|index| 446 + index * 16);
    let is_plain = entries.clone().all(|at| boot.u8(at) & 0x7f == 0);
    // A filesystem without partitions ends its first sector in the same way.
    if !is_plain || entries.clone().all(|at| boot.u8(at + 4) == 0 || boot.u32(at + 12) == 0) {
        return Ok(None);
    }
    let table = if entries.clone().any(|at| boot.u8(at + 4) == TYPE_PROTECTIVE) {
        gpt(reader, size, sector)?
    } else {
        mbr(reader, &boot, sector)?
    };
    let mut order: Vec<&Partition> = table.partitions.iter().collect();
    order.sort_by_key(|partition| partition.from);
    let overlaps = order.windows(2).any(|pair| pair[0].to > pair[1].from);
    if overlaps || order.iter().any(|partition| partition.to > size) {
        return Err(Unread::odd(format_args!("{} whose partitions overlap or lie outside", table.kind)));
    }
    Ok(Some(table))
}

fn mbr(reader: &mut Reader<'_>, boot: &Bytes, sector: u64) -> Result<Table, Unread> {
    let mut partitions = Vec::new();
    let range = |table: &Bytes, at: usize, base: u64| {
        let from = base + u64::from(table.u32(at + 8));
        (from, from + u64::from(table.u32(at + 12)))
    };
    let mut number = 5;
    for (index, at) in (0..4).map(|index| (index, 446 + index as usize * 16)) {
        let (from, to) = range(boot, at, 0);
        match boot.u8(at + 4) {
            0 => {}
            _ if from == to => {}
            kind if TYPES_EXTENDED.contains(&kind) => {
                let mut next = Some(from);
                while let Some(place) = next.take() {
                    if number > LOGICAL_MAX {
                        return Err(Unread::odd("MBR with an endless list of logical partitions"));
                    }
                    let link = reader.read(place * sector, 512)?;
                    if !link.has(510, &[0x55, 0xaa]) {
                        return Err(Unread::odd("MBR with a broken list of logical partitions"));
                    }
                    let (first, end) = range(&link, 446, place);
                    if link.u8(450) != 0 && first < end {
                        partitions.push(Partition { number, from: first * sector, to: end * sector });
                    }
                    number += 1;
                    next = (link.u8(466) != 0).then(|| range(&link, 462, from).0);
                }
            }
            _ => partitions.push(Partition { number: index + 1, from: from * sector, to: to * sector }),
        }
    }
    Ok(Table { kind: "MBR", partitions })
}

/// The first copy, or the second one if the first is damaged.
fn gpt(reader: &mut Reader<'_>, size: u64, sector: u64) -> Result<Table, Unread> {
    match gpt_at(reader, sector, sector) {
        Err(Unread::Odd(_)) => gpt_at(reader, size / sector * sector - sector, sector),
        table => table,
    }
}

fn gpt_at(reader: &mut Reader<'_>, at: u64, sector: u64) -> Result<Table, Unread> {
    let mut header = reader.read(at, sector as usize)?;
    let bytes = header.u32(12) as usize;
    if !header.has(0, b"EFI PART") || !(92..=sector as usize).contains(&bytes) {
        return Err(Unread::odd("no GPT where the MBR says"));
    }
    let sum = header.u32(16);
    header.0[16..20].fill(0);
    let (count, entry_bytes) = (header.u32(80), header.u32(84) as usize);
    if crc32fast::hash(header.part(0, bytes)) != sum || count > GPT_ENTRIES_MAX || !(128..=4096).contains(&entry_bytes)
    {
        return Err(Unread::odd("GPT whose header is damaged"));
    }
    let entries = reader.read(header.u64(72).saturating_mul(sector), count as usize * entry_bytes)?;
    if crc32fast::hash(&entries.0) != header.u32(88) {
        return Err(Unread::odd("GPT whose entries are damaged"));
    }
    let mut partitions = Vec::new();
    for index in 0..count {
        let place = index as usize * entry_bytes;
        if entries.part(place, 16).iter().all(|byte| *byte == 0) {
            continue;
        }
        let (first, last) = (entries.u64(place + 32), entries.u64(place + 40));
        let end = last.checked_add(1).and_then(|end| end.checked_mul(sector)).filter(|_| first <= last);
        let to = end.ok_or_else(|| Unread::odd("GPT with a partition that ends before it begins"))?;
        partitions.push(Partition { number: index + 1, from: first * sector, to });
    }
    Ok(Table { kind: "GPT", partitions })
}

impl Table {
    /// What no partition has: boot loaders, the tables themselves, unused space.
    pub(super) fn outside(&self, size: u64) -> Ranges {
        Ranges::of(self.partitions.iter().map(|partition| [partition.from, partition.to]).collect()).gaps(0, size)
    }
}
