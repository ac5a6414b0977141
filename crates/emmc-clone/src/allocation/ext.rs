//! ext2, ext3 and ext4: the block bitmaps of all groups.
//!
//! Source: Linux `fs/ext4/ext4.h`, `super.c` (`descriptor_loc`, `ext4_bg_has_super`), `balloc.c`
//! (`ext4_init_block_bitmap`: what a group without a written bitmap holds), `inode.c` (`__ext4_get_inode_loc`: a block
//! of inodes none of which is in use is not read).

use super::Allocation;
use super::bytes::{Bytes, Reader, Unread};
use crate::Ranges;

/// Unit: bytes from the start.
const SUPERBLOCK_AT: u64 = 1024;
const COMPAT_SPARSE_SUPER2: u32 = 0x200;
const INCOMPAT_RECOVER: u32 = 0x4;
const INCOMPAT_JOURNAL_DEV: u32 = 0x8;
const INCOMPAT_META_BG: u32 = 0x10;
const INCOMPAT_64BIT: u32 = 0x80;
const RO_COMPAT_SPARSE_SUPER: u32 = 0x1;
const RO_COMPAT_GDT_CSUM: u32 = 0x10;
const RO_COMPAT_BIGALLOC: u32 = 0x200;
const RO_COMPAT_METADATA_CSUM: u32 = 0x400;
/// No inode of it is in use.
const GROUP_INODE_UNINIT: u16 = 0x1;
/// Its bitmap was never written.
const GROUP_BLOCK_UNINIT: u16 = 0x2;
const STATE_ERRORS: u16 = 0x2;
const GROUPS_MAX: u64 = 1 << 24;

struct Layout {
    block_bytes: u64,
    /// A bit of a bitmap is a cluster; without bigalloc that is a block.
    cluster_blocks: u64,
    first_block: u64,
    blocks: u64,
    group_blocks: u64,
    groups: u64,
    descriptor_bytes: usize,
    inode_table_blocks: u64,
    group_inodes: u64,
    inode_bytes: u64,
    /// Groups have flags and the number of inodes that were never in use.
    has_group_flags: bool,
    reserved_descriptors: u64,
    first_meta_group: Option<u64>,
    is_sparse: bool,
    backups: Option<[u64; 2]>,
}

pub(super) fn read(reader: &mut Reader<'_>, base: u64, size: u64) -> Result<Option<Allocation>, Unread> {
    if size < SUPERBLOCK_AT + 1024 {
        return Ok(None);
    }
    let superblock = reader.read(base + SUPERBLOCK_AT, 1024)?;
    if superblock.u16(56) != 0xef53 {
        return Ok(None);
    }
    let (compat, incompat) = (superblock.u32(92), superblock.u32(96));
    if incompat & INCOMPAT_RECOVER != 0 {
        return Err(Unread::odd("ext with a journal that has to be replayed"));
    }
    if incompat & INCOMPAT_JOURNAL_DEV != 0 || superblock.u16(58) & STATE_ERRORS != 0 {
        return Err(Unread::odd("ext that is a journal, or has errors"));
    }
    let layout = Layout::of(&superblock, compat, incompat, size)?;
    let filesystem = match () {
        // Extents, flexible groups, 64 bits, checksums.
        () if incompat & 0x2c0 != 0 => "ext4",
        // A journal.
        () if compat & 0x4 != 0 => "ext3",
        () => "ext2",
    };
    let mut used = vec![[0, (layout.first_block + 1) * layout.block_bytes]];
    let mut never_in_use = Vec::new();
    for group in 0..layout.groups {
        never_in_use.push(layout.group(reader, base, group, &mut used)?);
    }
    let size_bytes = layout.blocks * layout.block_bytes;
    // They are in some group's bitmap.
    let used = Ranges::of(used).intersection(&Ranges::of(never_in_use).gaps(0, size_bytes));
    Ok(Some(Allocation { filesystem, used, size_bytes }))
}

impl Layout {
    fn of(superblock: &Bytes, compat: u32, incompat: u32, size: u64) -> Result<Self, Unread> {
        let odd = |what: &str| Unread::odd(format_args!("ext whose {what} does not fit"));
        let (shift, cluster_shift) = (superblock.u32(24), superblock.u32(28));
        if shift > 6 || cluster_shift < shift || cluster_shift > 20 {
            return Err(odd("block size"));
        }
        let block_bytes = 1024u64 << shift;
        let is_64 = incompat & INCOMPAT_64BIT != 0;
        let high = if is_64 { u64::from(superblock.u32(336)) << 32 } else { 0 };
        let ro_compat = superblock.u32(100);
        let (group_inodes, inode_bytes) = (u64::from(superblock.u32(40)), u64::from(superblock.u16(88)).max(128));
        let is_big = ro_compat & RO_COMPAT_BIGALLOC != 0;
        let layout = Self {
            block_bytes,
            cluster_blocks: if is_big { 1 << (cluster_shift - shift) } else { 1 },
            first_block: superblock.u32(20).into(),
            blocks: u64::from(superblock.u32(4)) | high,
            group_blocks: superblock.u32(32).into(),
            groups: 0,
            descriptor_bytes: if is_64 { superblock.u16(254).into() } else { 32 },
            inode_table_blocks: (group_inodes * inode_bytes).div_ceil(block_bytes),
            group_inodes,
            inode_bytes,
            has_group_flags: ro_compat & (RO_COMPAT_GDT_CSUM | RO_COMPAT_METADATA_CSUM) != 0,
            reserved_descriptors: superblock.u16(206).into(),
            first_meta_group: (incompat & INCOMPAT_META_BG != 0).then(|| superblock.u32(260).into()),
            is_sparse: ro_compat & RO_COMPAT_SPARSE_SUPER != 0,
            backups: (compat & COMPAT_SPARSE_SUPER2 != 0)
                .then(|| [superblock.u32(588).into(), superblock.u32(592).into()]),
        };
        let fits = layout.blocks.checked_mul(block_bytes).is_some_and(|bytes| bytes <= size);
        if !fits || layout.blocks <= layout.first_block {
            return Err(odd("number of blocks"));
        }
        let is_bitmap = (1..=block_bytes * 8 * layout.cluster_blocks).contains(&layout.group_blocks);
        let is_descriptor = (32..=1024).contains(&layout.descriptor_bytes) && layout.descriptor_bytes % 4 == 0;
        if !is_bitmap || !is_descriptor || layout.group_blocks % layout.cluster_blocks != 0 {
            return Err(odd("size of a group"));
        }
        let groups = (layout.blocks - layout.first_block).div_ceil(layout.group_blocks);
        if groups > GROUPS_MAX {
            return Err(odd("number of groups"));
        }
        Ok(Self { groups, ..layout })
    }

    fn per_block(&self) -> u64 {
        self.block_bytes / self.descriptor_bytes as u64
    }

    fn start(&self, group: u64) -> u64 {
        self.first_block + group * self.group_blocks
    }

    fn has_superblock(&self, group: u64) -> bool {
        let is_power = |base: u64| {
            let mut power = base;
            while power < group {
                power *= base;
            }
            power == group
        };
        match self.backups {
            Some(backups) => group == 0 || backups.contains(&group),
            None => !self.is_sparse || group <= 1 || is_power(3) || is_power(5) || is_power(7),
        }
    }

    /// The block of the descriptor of a group.
    fn descriptor_block(&self, group: u64) -> u64 {
        let index = group / self.per_block();
        if self.first_meta_group.is_none_or(|first| index < first) {
            // With blocks of 1 KiB the superblock is in block 1.
            return self.first_block + 1 + index;
        }
        let first = index * self.per_block();
        self.start(first) + u64::from(self.has_superblock(first))
    }

    /// The copies of superblock and descriptors at the start of a group. Unit: blocks.
    fn head_blocks(&self, group: u64) -> u64 {
        if let Some(first) = self.first_meta_group.filter(|first| group / self.per_block() >= *first) {
            let _ = first;
            let place = group % self.per_block();
            let has_descriptors = place < 2 || place == self.per_block() - 1;
            return u64::from(self.has_superblock(group)) + u64::from(has_descriptors);
        }
        if !self.has_superblock(group) {
            return 0;
        }
        1 + self.first_meta_group.unwrap_or(self.groups.div_ceil(self.per_block())) + self.reserved_descriptors
    }

    /// Adds what a group has allocated; returns the part of its inode table that was never in use. Unit: bytes from
    /// the start of the filesystem.
    fn group(
        &self,
        reader: &mut Reader<'_>,
        base: u64,
        group: u64,
        used: &mut Vec<[u64; 2]>,
    ) -> Result<[u64; 2], Unread> {
        let at = (group % self.per_block()) as usize * self.descriptor_bytes;
        let place = base + self.descriptor_block(group) * self.block_bytes + at as u64;
        let descriptor = reader.read(place, self.descriptor_bytes)?;
        let wide = |low: usize, high: usize| {
            let high = if self.descriptor_bytes >= 64 { descriptor.u32(high) } else { 0 };
            u64::from(descriptor.u32(low)) | u64::from(high) << 32
        };
        let (bitmap, inodes, table) = (wide(0, 32), wide(4, 36), wide(8, 40));
        if [bitmap, inodes, table].iter().any(|block| *block >= self.blocks || *block < self.first_block) {
            return Err(Unread::odd(format_args!("ext whose group {group} lies outside")));
        }
        let bytes = |from: u64, blocks: u64| [from * self.block_bytes, (from + blocks) * self.block_bytes];
        // A group without a bitmap of its own has allocated these; they may be those of other groups.
        used.extend([bytes(bitmap, 1), bytes(inodes, 1), bytes(table, self.inode_table_blocks)]);
        let start = self.start(group);
        used.push(bytes(start, self.head_blocks(group)));
        let flags = descriptor.u16(18);
        let unused = never_used(&descriptor, self.descriptor_bytes);
        let [table_from, table_to] = bytes(table, self.inode_table_blocks);
        let never_in_use = if !self.has_group_flags {
            [table_to, table_to]
        } else if flags & GROUP_INODE_UNINIT != 0 {
            [table_from, table_to]
        } else {
            let in_use = self.group_inodes.saturating_sub(unused) * self.inode_bytes;
            [(table_from + in_use.next_multiple_of(self.block_bytes)).min(table_to), table_to]
        };
        if flags & GROUP_BLOCK_UNINIT != 0 {
            return Ok(never_in_use);
        }
        let blocks = self.group_blocks.min(self.blocks - start);
        let bits = blocks.div_ceil(self.cluster_blocks);
        let map = reader.read(base + bitmap * self.block_bytes, bits.div_ceil(8) as usize)?;
        let mut found = Ranges::default();
        for cluster in (0..bits).filter(|index| map.bit(*index as usize)) {
            let [from, to] = bytes(start + cluster * self.cluster_blocks, self.cluster_blocks);
            found.push(from, to);
        }
        used.extend_from_slice(found.as_slice());
        Ok(never_in_use)
    }
}

/// `bg_itable_unused`: inodes at the end of the table that were never in use.
fn never_used(descriptor: &Bytes, bytes: usize) -> u64 {
    let high = if bytes >= 64 { descriptor.u16(50) } else { 0 };
    u64::from(descriptor.u16(28)) | u64::from(high) << 16
}
