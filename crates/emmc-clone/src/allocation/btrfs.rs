//! btrfs on one device: the extents of the extent tree, where the chunk tree puts them.
//!
//! Source: Linux `include/uapi/linux/btrfs_tree.h`; the offsets are those of its packed structures.

use super::Allocation;
use super::bytes::{Bytes, Reader, Unread};
use crate::Ranges;

const SUPERBLOCK_AT: u64 = 64 << 10;
const SUPERBLOCK_BYTES: u64 = 4096;
/// Copies of the superblock; the space before the first one is a boot loader's.
const MIRRORS: [u64; 2] = [64 << 20, 256 << 30];
const RESERVED_BYTES: u64 = 1 << 20;
const SYSTEM_CHUNKS_AT: usize = 811;
const SYSTEM_CHUNKS_MAX: usize = 2048;
const KEY_BYTES: usize = 17;
const HEADER_BYTES: usize = 101;
const ROOT_ITEM: u8 = 132;
const EXTENT_ITEM: u8 = 168;
const METADATA_ITEM: u8 = 169;
const CHUNK_ITEM: u8 = 228;
const EXTENT_TREE: u64 = 2;
/// Every profile but one copy and two on one device.
const PROFILES: u64 = 0x7f8 & !0x20;
const INCOMPAT_EXTENT_TREE_V2: u64 = 1 << 13;
const NODES_MAX: u32 = 1 << 18;
const LEVELS_MAX: u8 = 8;

/// A part of the logical addresses.
struct Chunk {
    logical: u64,
    bytes: u64,
    places: Vec<u64>,
}

struct Btrfs<'a, 'b> {
    reader: &'a mut Reader<'b>,
    base: u64,
    node_bytes: usize,
    chunks: Vec<Chunk>,
    nodes: u32,
}

pub(super) fn read(reader: &mut Reader<'_>, base: u64, size: u64) -> Result<Option<Allocation>, Unread> {
    if size < SUPERBLOCK_AT + SUPERBLOCK_BYTES {
        return Ok(None);
    }
    let superblock = reader.read(base + SUPERBLOCK_AT, SUPERBLOCK_BYTES as usize)?;
    if !superblock.has(64, b"_BHRfS_M") {
        return Ok(None);
    }
    let (total, node_bytes) = (superblock.u64(112), superblock.u32(148) as usize);
    let is_plain = superblock.u64(136) == 1 && superblock.u64(188) & INCOMPAT_EXTENT_TREE_V2 == 0;
    if !is_plain || total > size || !(4096..=65536).contains(&node_bytes) {
        return Err(Unread::odd("btrfs of several devices, of a new format, or whose sizes do not fit"));
    }
    if superblock.u64(96) != 0 {
        return Err(Unread::odd("btrfs with a log that has to be replayed"));
    }
    let mut tree = Btrfs { reader, base, node_bytes, chunks: Vec::new(), nodes: 0 };
    let system = superblock.part(SYSTEM_CHUNKS_AT, (superblock.u32(160) as usize).min(SYSTEM_CHUNKS_MAX));
    tree.system_chunks(&Bytes(system.to_vec()))?;
    let mut found = Vec::new();
    tree.walk(superblock.u64(88), superblock.u8(199), &mut |kind, key, data, _| {
        if kind == CHUNK_ITEM {
            found.push(chunk(key[1], data)?);
        }
        Ok(())
    })?;
    tree.chunks.extend(found);
    tree.chunks.sort_by_key(|chunk| chunk.logical);
    let mut extents = None;
    tree.walk(superblock.u64(80), superblock.u8(198), &mut |kind, key, data, _| {
        if kind == ROOT_ITEM && key[0] == EXTENT_TREE {
            extents = Some((data.u64(176), data.u8(238)));
        }
        Ok(())
    })?;
    let (root, level) = extents.ok_or_else(|| Unread::odd("btrfs without a tree of extents"))?;
    let mut logical = Ranges::default();
    tree.walk(root, level, &mut |kind, key, _, node_bytes| {
        let bytes = match kind {
            EXTENT_ITEM => key[1],
            METADATA_ITEM => node_bytes as u64,
            _ => return Ok(()),
        };
        let end = key[0].checked_add(bytes).ok_or_else(|| Unread::odd("btrfs with an endless extent"))?;
        logical.push(key[0], end);
        Ok(())
    })?;
    let mut used = vec![[0, RESERVED_BYTES.min(total)]];
    let mirrors = MIRRORS.into_iter().filter(|mirror| mirror + SUPERBLOCK_BYTES <= total);
    used.extend(mirrors.map(|mirror| [mirror, mirror + SUPERBLOCK_BYTES]));
    for [from, to] in logical.as_slice() {
        tree.places(*from, *to, &mut used)?;
    }
    if used.iter().any(|range| range[1] > total) {
        return Err(Unread::odd("btrfs with an extent outside"));
    }
    Ok(Some(Allocation { filesystem: "btrfs", used: Ranges::of(used), size_bytes: total }))
}

fn chunk(logical: u64, item: &Bytes) -> Result<Chunk, Unread> {
    let (bytes, kind, stripes) = (item.u64(0), item.u64(24), usize::from(item.u16(44)));
    if kind & PROFILES != 0 || !(1..=2).contains(&stripes) || logical.checked_add(bytes).is_none() {
        return Err(Unread::odd("btrfs with a profile of several devices"));
    }
    let places = (0..stripes).map(|stripe| item.u64(48 + stripe * 32 + 8)).collect();
    Ok(Chunk { logical, bytes, places })
}

/// Calls with the item's type, its key without the type, its data, and the size of a node.
type Visit<'v> = dyn FnMut(u8, [u64; 2], &Bytes, usize) -> Result<(), Unread> + 'v;

impl Btrfs<'_, '_> {
    /// The chunks that the superblock itself has, which hold the chunk tree.
    fn system_chunks(&mut self, array: &Bytes) -> Result<(), Unread> {
        let mut at = 0;
        while at + KEY_BYTES + 80 <= array.0.len() {
            let item = Bytes(array.0[at + KEY_BYTES..].to_vec());
            let found = chunk(array.u64(at + 9), &item)?;
            at += KEY_BYTES + 48 + 32 * found.places.len();
            self.chunks.push(found);
        }
        Ok(())
    }

    /// The physical ranges of a logical one. Unit: bytes from the start of the filesystem.
    fn places(&self, from: u64, to: u64, used: &mut Vec<[u64; 2]>) -> Result<(), Unread> {
        let mut at = from;
        while at < to {
            let inside = |chunk: &&Chunk| (chunk.logical..chunk.logical + chunk.bytes).contains(&at);
            let chunk = self.chunks.iter().find(inside).ok_or_else(|| Unread::odd("btrfs with an extent nowhere"))?;
            let end = to.min(chunk.logical + chunk.bytes);
            for place in &chunk.places {
                let begin = place.checked_add(at - chunk.logical);
                let range = begin.and_then(|begin| Some([begin, begin.checked_add(end - at)?]));
                used.push(range.ok_or_else(|| Unread::odd("btrfs with an extent outside"))?);
            }
            at = end;
        }
        Ok(())
    }

    fn walk(&mut self, root: u64, level: u8, visit: &mut Visit<'_>) -> Result<(), Unread> {
        self.nodes += 1;
        if self.nodes > NODES_MAX || level >= LEVELS_MAX {
            return Err(Unread::odd("btrfs with too large a tree"));
        }
        let mut places = Vec::new();
        self.places(root, root.saturating_add(1), &mut places)?;
        let at = places.first().map_or(0, |place| place[0]);
        let node = self.reader.read(self.base + at, self.node_bytes)?;
        if node.u64(48) != root || node.u8(100) != level {
            return Err(Unread::odd(format_args!("btrfs whose node at byte {at} is another one")));
        }
        for item in 0..node.u32(96) as usize {
            let step = if level == 0 { 25 } else { 33 };
            let place = HEADER_BYTES + item * step;
            if place + step > self.node_bytes {
                return Err(Unread::odd("btrfs with an overfull node"));
            }
            if level > 0 {
                self.walk(node.u64(place + KEY_BYTES), level - 1, visit)?;
                continue;
            }
            let (offset, bytes) = (node.u32(place + 17) as usize, node.u32(place + 21) as usize);
            let data = Bytes(node.part(HEADER_BYTES.saturating_add(offset), bytes).to_vec());
            visit(node.u8(place + 8), [node.u64(place), node.u64(place + 9)], &data, self.node_bytes)?;
        }
        Ok(())
    }
}
