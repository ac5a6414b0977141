//! The metadata blocks that operations change: inodes, bitmaps, descriptors, folders.

use emmc_units::{Instant, Nanos};

use super::layout::{GROUP_BLOCKS, Layout, ROOT_INODE};
use super::{Ext4, File};
use crate::drive::stream::BenchError;
use crate::fs::{FileId, full};

/// Times of files have this resolution (a tick of 250 Hz).
const TICK: Nanos = Nanos::from_millis(4);
/// Entries of a folder's block, three quarters full.
const ENTRIES_PER_BLOCK: u64 = 128;

/// A folder.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    pub(super) inode: u64,
    pub(super) blocks: Vec<u64>,
    pub(super) entries: u64,
}

impl Ext4 {
    /// An inode changes.
    pub(super) fn touch_inode(&mut self, inode: u64, now: Instant) {
        self.journal.add(self.layout.inode_block(inode), now);
    }

    /// The same, of a file.
    pub(super) fn touch_file(&mut self, id: FileId, now: Instant) {
        let transaction = self.journal.running();
        let Some(file) = self.files.get_mut(&id) else { return };
        (file.transaction, file.changed_at) = (transaction, now);
        let inode = file.inode;
        self.touch_inode(inode, now);
    }

    /// A write sets a file's times, which have the resolution of a tick.
    pub(super) fn touch_times(&mut self, id: FileId, now: Instant) {
        let is_same = |file: &File| file.changed_at.0 / TICK.0 == now.0 / TICK.0;
        if !self.files.get(&id).is_some_and(is_same) {
            self.touch_file(id, now);
        }
    }

    /// Blocks are allocated or freed: the bitmap and the descriptor of each group.
    pub(super) fn touch_blocks(&mut self, block: u64, count: u64, now: Instant) {
        for group in block / GROUP_BLOCKS..=(block + count - 1) / GROUP_BLOCKS {
            self.journal.add(self.layout.block_bitmap(group), now);
            self.journal.add(Layout::descriptor(group), now);
        }
    }

    /// An inode is allocated or freed.
    pub(super) fn touch_inodes(&mut self, inode: u64, now: Instant) {
        self.journal.add(self.layout.inode_bitmap(inode), now);
        self.journal.add(Layout::descriptor(self.layout.group_of_inode(inode)), now);
        self.touch_inode(inode, now);
    }

    pub(super) fn new_inode(&mut self, now: Instant) -> u64 {
        let inode = self.free_inodes.pop_first().unwrap_or(self.next_inode);
        self.next_inode = self.next_inode.max(inode + 1);
        self.touch_inodes(inode, now);
        inode
    }

    /// A folder's entry for an inode changes: its block, and the folder's times.
    pub(super) fn touch_entry(&mut self, folder: u32, inode: u64, now: Instant) {
        let Some(folder) = self.folders.get(&folder) else { return };
        // The first block of several is the index; a hash of the name chooses among the others.
        let leaves = (folder.blocks.len() as u64 - 1).max(1);
        let leaf = inode.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let block = folder.blocks[if folder.blocks.len() == 1 { 0 } else { 1 + (leaf % leaves) as usize }];
        let inode = folder.inode;
        self.journal.add(block, now);
        self.touch_inode(inode, now);
    }

    /// Makes the folder if there is none yet.
    pub(super) fn make_folder(&mut self, folder: u32, now: Instant) -> Result<(), BenchError> {
        if self.folders.contains_key(&folder) {
            return Ok(());
        }
        let inode = self.new_inode(now);
        let block = self.folder_block(inode, now)?;
        self.folders.insert(folder, Folder { inode, blocks: vec![block], entries: 0 });
        self.root.entries += 1;
        self.journal.add(self.root.blocks[0], now);
        self.touch_inode(ROOT_INODE, now);
        Ok(())
    }

    pub(super) fn folder_block(&mut self, inode: u64, now: Instant) -> Result<u64, BenchError> {
        let (block, _) = self.free.take(self.layout.folder_goal(inode), 1).ok_or_else(|| full("ext4"))?;
        self.touch_blocks(block, 1, now);
        self.journal.add(block, now);
        Ok(block)
    }

    /// One more entry; a full folder gets another block, and an index with its second one.
    pub(super) fn add_entry(&mut self, number: u32, inode: u64, now: Instant) -> Result<(), BenchError> {
        let Some(folder) = self.folders.get_mut(&number) else { return Ok(()) };
        folder.entries += 1;
        let (inode_of_folder, entries) = (folder.inode, folder.entries);
        let leaves = (folder.blocks.len() as u64 - 1).max(1);
        if entries > leaves * ENTRIES_PER_BLOCK {
            let new = if leaves == 1 && entries == ENTRIES_PER_BLOCK + 1 { 2 } else { 1 };
            for _ in 0..new {
                let block = self.folder_block(inode_of_folder, now)?;
                if let Some(folder) = self.folders.get_mut(&number) {
                    folder.blocks.push(block);
                    let index = folder.blocks[0];
                    self.journal.add(index, now);
                }
            }
        }
        self.touch_entry(number, inode, now);
        Ok(())
    }
}
