//! Which bytes of an area are allocated: partition table, then the filesystem of each partition.
//!
//! What is not recognised, not consistent, or recognised twice is allocated as a whole, and the reason is given. So is
//! what no partition has: boot loaders are there. Absent on purpose: anything inside encrypted or mapped devices.

mod btrfs;
mod bytes;
mod ext;
mod f2fs;
mod fat;
mod swap;
mod table;

use bytes::{Reader, Unread};
use serde::{Deserialize, Serialize};

pub use bytes::ReadAt;

use crate::Ranges;

/// The start of a filesystem that is searched for signatures. Unit: bytes.
const PROBE_BYTES: usize = 64 << 10;

/// A part of an area and what of it is allocated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Part {
    /// The number of the partition; none: the whole area, or what no partition has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<u32>,
    /// Where it begins in its area. Unit: bytes.
    pub from_bytes: u64,
    /// Where it ends. Unit: bytes.
    pub to_bytes: u64,
    /// What it holds, e.g. `ext4`; none if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// How much of it is allocated. Unit: bytes.
    pub used_bytes: u64,
    /// Why all of it counts as allocated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_because: Option<String>,
}

/// What of an area is allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Its parts, in order.
    pub parts: Vec<Part>,
    /// The allocated bytes of all parts.
    pub used: Ranges,
    /// SHA-256 of everything that was read for it: tables, superblocks, bitmaps.
    pub fingerprint: [u8; 32],
}

/// A filesystem's allocation, from its own start on.
struct Allocation {
    filesystem: &'static str,
    used: Ranges,
    size_bytes: u64,
}

/// Reads what of an area is allocated. `sector_bytes`: the unit of its partition table.
///
/// Errors: it cannot be read.
pub fn map(area: &mut dyn ReadAt, size_bytes: u64, sector_bytes: u64) -> Result<Map, String> {
    let mut reader = Reader::new(area, size_bytes);
    let mut parts = Vec::new();
    let mut used = Vec::new();
    match table::read(&mut reader, size_bytes, sector_bytes) {
        Ok(Some(table)) => {
            let gaps = table.outside(size_bytes);
            for [from, to] in gaps.as_slice() {
                let why = format!("outside of the partitions of the {}", table.kind);
                parts.push(whole(None, [*from, *to], Some(why), &mut used));
            }
            for partition in &table.partitions {
                let range = [partition.from, partition.to];
                parts.push(part(&mut reader, Some(partition.number), range, &mut used)?);
            }
            parts.sort_by_key(|part| part.from_bytes);
        }
        Ok(None) => parts.push(part(&mut reader, None, [0, size_bytes], &mut used)?),
        Err(Unread::Odd(why)) => parts.push(whole(None, [0, size_bytes], Some(why), &mut used)),
        Err(Unread::Failed(why)) => return Err(why),
    }
    Ok(Map { parts, used: Ranges::of(used), fingerprint: reader.fingerprint() })
}

/// A map that takes everything, for an area of which nothing is to be left out.
pub fn everything(size_bytes: u64, why: &str) -> Map {
    let mut used = Vec::new();
    let parts = vec![whole(None, [0, size_bytes], Some(why.into()), &mut used)];
    Map { parts, used: Ranges::of(used), fingerprint: [0; 32] }
}

fn whole(partition: Option<u32>, [from, to]: [u64; 2], why: Option<String>, used: &mut Vec<[u64; 2]>) -> Part {
    used.push([from, to]);
    Part { partition, from_bytes: from, to_bytes: to, content: None, used_bytes: to - from, whole_because: why }
}

fn part(
    reader: &mut Reader<'_>,
    partition: Option<u32>,
    [from, to]: [u64; 2],
    used: &mut Vec<[u64; 2]>,
) -> Result<Part, String> {
    let size = to - from;
    let mut found = Vec::new();
    let mut odd = None;
    for read in [ext::read, fat::read, f2fs::read, btrfs::read, swap::read] {
        match if size >= 4096 { read(reader, from, size) } else { Ok(None) } {
            Ok(allocation) => found.extend(allocation),
            Err(Unread::Odd(why)) => odd = Some(why),
            Err(Unread::Failed(why)) => return Err(why),
        }
    }
    let why = match (odd, found.len()) {
        (Some(why), _) => why,
        (None, 0) => "no filesystem that this reads".into(),
        (None, 1) => {
            let Allocation { filesystem, used: own, size_bytes } = found.remove(0);
            // What is behind the filesystem is not its own.
            let own = own.union(Ranges::one(size_bytes, size)).intersection(&Ranges::one(0, size));
            let used_bytes = own.bytes();
            used.extend_from_slice(own.shifted(from).as_slice());
            let content = Some(filesystem.to_owned());
            return Ok(Part { partition, from_bytes: from, to_bytes: to, content, used_bytes, whole_because: None });
        }
        _ => {
            let names: Vec<&str> = found.iter().map(|allocation| allocation.filesystem).collect();
            format!("signatures of more than one filesystem: {}", names.join(", "))
        }
    };
    Ok(whole(partition, [from, to], Some(why), used))
}
