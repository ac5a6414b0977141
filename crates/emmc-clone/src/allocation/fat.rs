//! FAT12, FAT16 and FAT32: a cluster is allocated if any of the tables has an entry for it.
//!
//! Source: Microsoft "FAT: General Overview of On-Disk Format" 1.03.

use super::Allocation;
use super::bytes::{Reader, Unread};
use crate::Ranges;

/// Clusters below these numbers decide the width of an entry.
const CLUSTERS_OF_FAT12: u64 = 4085;
const CLUSTERS_OF_FAT16: u64 = 65525;
/// Tables are read in parts of this size, a multiple of 3 entries of 12 bits. Unit: bytes.
const PART_BYTES: u64 = 3 << 20;

pub(super) fn read(reader: &mut Reader<'_>, base: u64, size: u64) -> Result<Option<Allocation>, Unread> {
    let boot = reader.read(base, 512)?;
    let (sector, cluster_sectors) = (u64::from(boot.u16(11)), u64::from(boot.u8(13)));
    let is_jump = boot.u8(0) == 0xeb || boot.u8(0) == 0xe9;
    let (reserved, tables) = (u64::from(boot.u16(14)), u64::from(boot.u8(16)));
    let is_plain = [512, 1024, 2048, 4096].contains(&sector) && cluster_sectors.is_power_of_two();
    let is_media = boot.u8(21) == 0xf0 || boot.u8(21) >= 0xf8;
    if !(is_jump && is_plain && is_media && boot.has(510, &[0x55, 0xaa]) && reserved > 0 && (1..=4).contains(&tables)) {
        return Ok(None);
    }
    let or = |short: u16, long: u32| if short != 0 { u64::from(short) } else { u64::from(long) };
    let (total, table_sectors) = (or(boot.u16(19), boot.u32(32)), or(boot.u16(22), boot.u32(36)));
    let roots = (u64::from(boot.u16(17)) * 32).div_ceil(sector);
    let data = reserved + tables * table_sectors + roots;
    if table_sectors == 0 || total <= data || total * sector > size {
        return Err(Unread::odd("FAT whose sizes do not fit"));
    }
    let clusters = (total - data) / cluster_sectors;
    let (name, bits) = match clusters {
        0..CLUSTERS_OF_FAT12 => ("FAT12", 12),
        CLUSTERS_OF_FAT12..CLUSTERS_OF_FAT16 => ("FAT16", 16),
        _ => ("FAT32", 32),
    };
    // Two entries have no cluster.
    let entries = clusters + 2;
    if table_sectors * sector * 8 / bits < entries {
        return Err(Unread::odd(format_args!("{name} whose table is too short")));
    }
    let mut used = vec![[0, data * sector]];
    for table in 0..tables {
        let from = (reserved + table * table_sectors) * sector;
        let bytes = (entries * bits).div_ceil(8);
        let mut found = Ranges::default();
        for at in (0..bytes).step_by(PART_BYTES as usize) {
            let part = reader.read(base + from + at, PART_BYTES.min(bytes - at) as usize)?;
            let first = at * 8 / bits;
            for index in 0..(part.0.len() as u64 * 8 / bits).min(entries - first) {
                let entry = match bits {
                    12 => part.u16((index * 3 / 2) as usize) >> (index % 2 * 4) & 0xfff,
                    16 => part.u16(index as usize * 2),
                    // The four highest bits are reserved.
                    _ => u16::from(part.u32(index as usize * 4) & 0x0fff_ffff != 0),
                };
                if let Some(cluster) = (first + index).checked_sub(2).filter(|_| entry != 0) {
                    let start = data + cluster * cluster_sectors;
                    found.push(start * sector, (start + cluster_sectors) * sector);
                }
            }
        }
        used.extend_from_slice(found.as_slice());
    }
    // What is behind the last cluster is no cluster's.
    used.push([(data + clusters * cluster_sectors) * sector, total * sector]);
    Ok(Some(Allocation { filesystem: name, used: Ranges::of(used), size_bytes: total * sector }))
}
