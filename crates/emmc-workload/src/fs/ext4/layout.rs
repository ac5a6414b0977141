//! Where ext4's metadata is.
//!
//! With `flex_bg` the bitmaps and inode tables of 16 groups are together at the start of the first of them, behind the
//! superblock, the group descriptors and the space that is reserved for more of them. Source: the ext4 pages of the
//! kernel's documentation; defaults of mke2fs 1.47.

/// Blocks of a group.
pub(super) const GROUP_BLOCKS: u64 = 32_768;
/// Groups whose metadata is together (`flex_bg`).
const FLEX_GROUPS: u64 = 16;
/// Inodes of 256 bytes.
const INODES_PER_BLOCK: u64 = 16;
/// Descriptors of 64 bytes.
const DESCRIPTORS_PER_BLOCK: u64 = 64;
/// The filesystem can grow by this factor, up to a block of block numbers (`resize_inode`).
const GROWTH: u64 = 1024;
const RESERVED_MAX: u64 = 1024;
/// Bytes per inode, of filesystems below 512 MiB and of others (`inode_ratio` of mke2fs.conf).
const INODE_RATIOS: [u64; 2] = [4096, 16_384];
/// Unit: blocks; 512 MiB.
const SMALL_BLOCKS: u64 = 131_072;
/// Journal by size of the filesystem. Unit: blocks.
const JOURNALS: [(u64, u64); 6] =
    [(32_768, 1024), (262_144, 4096), (524_288, 8192), (4_194_304, 16_384), (8_388_608, 32_768), (u64::MAX, 65_536)];
/// Inodes that are taken when the filesystem is new: reserved ones, `lost+found` and `orphan_file`.
pub(super) const FIRST_INODE: u64 = 12;
/// Blocks of `lost+found` and of the list of deleted inodes (`orphan_file`), behind the root folder's.
pub(super) const LOST_BLOCKS: u64 = 4;
pub(super) const ORPHAN_BLOCKS: u64 = 129;
/// The root folder's inode and the first reserved one, counted from 0.
pub(super) const ROOT_INODE: u64 = 1;

/// The places of metadata, by number of the group or inode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    blocks: u64,
    /// Superblock, descriptors and their reserve. Unit: blocks.
    head_blocks: u64,
    /// Of a group. Unit: blocks.
    table_blocks: u64,
}

impl Layout {
    pub(super) fn new(blocks: u64) -> Self {
        let groups = blocks.div_ceil(GROUP_BLOCKS);
        let descriptors = groups.div_ceil(DESCRIPTORS_PER_BLOCK);
        let reserved = (groups * GROWTH).div_ceil(DESCRIPTORS_PER_BLOCK).min(RESERVED_MAX).saturating_sub(descriptors);
        let ratio = INODE_RATIOS[usize::from(blocks >= SMALL_BLOCKS)];
        let inodes = (blocks * super::BLOCK_BYTES / ratio).div_ceil(groups);
        let table_blocks = inodes.div_ceil(INODES_PER_BLOCK);
        Self { blocks, head_blocks: 1 + descriptors + reserved, table_blocks }
    }

    fn groups(&self) -> u64 {
        self.blocks.div_ceil(GROUP_BLOCKS)
    }

    /// The block with a group's descriptor.
    pub(super) fn descriptor(group: u64) -> u64 {
        1 + group / DESCRIPTORS_PER_BLOCK
    }

    /// First metadata block of the 16 groups that a group belongs to; how many they are, and the group's place in them.
    fn flex(&self, group: u64) -> (u64, u64, u64) {
        let first = group / FLEX_GROUPS * FLEX_GROUPS;
        let count = FLEX_GROUPS.min(self.groups() - first);
        let head = if first == 0 { self.head_blocks } else { 0 };
        (first * GROUP_BLOCKS + head, count, group - first)
    }

    pub(super) fn block_bitmap(&self, group: u64) -> u64 {
        let (start, _, index) = self.flex(group);
        start + index
    }

    fn inodes_per_group(&self) -> u64 {
        self.table_blocks * INODES_PER_BLOCK
    }

    /// The group of an inode.
    pub(super) fn group_of_inode(&self, inode: u64) -> u64 {
        (inode / self.inodes_per_group()).min(self.groups() - 1)
    }

    pub(super) fn inode_bitmap(&self, inode: u64) -> u64 {
        let (start, count, index) = self.flex(self.group_of_inode(inode));
        start + count + index
    }

    /// The block of the inode table that holds an inode.
    pub(super) fn inode_block(&self, inode: u64) -> u64 {
        let (start, count, index) = self.flex(self.group_of_inode(inode));
        let place = inode % self.inodes_per_group() / INODES_PER_BLOCK;
        start + 2 * count + index * self.table_blocks + place
    }

    /// Preferred place of a folder's entries: the first group of the 16 of its inode.
    pub(super) fn folder_goal(&self, inode: u64) -> u64 {
        self.group_of_inode(inode) / FLEX_GROUPS * FLEX_GROUPS * GROUP_BLOCKS
    }

    /// Preferred place of a file's data: the second group.
    pub(super) fn file_goal(&self, inode: u64) -> u64 {
        (self.folder_goal(inode) + GROUP_BLOCKS).min((self.groups() - 1) * GROUP_BLOCKS)
    }

    /// The size of the journal. Unit: blocks.
    pub(super) fn journal_blocks(&self) -> u64 {
        JOURNALS.iter().find(|(below, _)| self.blocks < *below).map_or(65_536, |(_, size)| *size)
    }

    /// Metadata as first block and count, ascending: tables, and copies of superblock and descriptors in groups 1 and
    /// the powers of 3, 5 and 7 (`sparse_super`).
    pub(super) fn metadata(&self) -> Vec<(u64, u64)> {
        let is_copy = |group: u64| [3, 5, 7].iter().any(|base| (0..20).any(|power| u64::pow(*base, power) == group));
        let of_group = |group: u64| {
            let start = group * GROUP_BLOCKS;
            let end = match group % FLEX_GROUPS {
                0 => {
                    let (start, count, _) = self.flex(group);
                    start + count * (2 + self.table_blocks)
                }
                _ if is_copy(group) => start + self.head_blocks,
                _ => start,
            };
            (start, end.min(self.blocks) - start)
        };
        (0..self.groups()).map(of_group).filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_two_gib_is_where_mke2fs_places_it() {
        // `dumpe2fs` of a filesystem of 2 GiB made by e2fsprogs 1.47.2.
        let layout = Layout::new(524_288);
        assert_eq!((layout.block_bitmap(0), layout.block_bitmap(3)), (257, 260));
        assert_eq!((layout.inode_bitmap(0), layout.inode_bitmap(8192)), (273, 274));
        assert_eq!((layout.inode_block(0), layout.inode_block(8192)), (289, 801));
        assert_eq!(layout.journal_blocks(), 16_384);
        let metadata = layout.metadata();
        assert_eq!(metadata[..3], [(0, 8481), (32_768, 257), (3 * 32_768, 257)]);
        assert_eq!(metadata.len(), 6, "groups 0, 1, 3, 5, 7, 9");
    }
}
