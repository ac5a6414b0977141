//! ext4 with its defaults: delayed allocation, ordered data, a journal with commits every five seconds.
//!
//! A group of 128 MiB begins with its bitmaps and inode table; the journal is in the middle. A commit writes the
//! allocated data, the metadata blocks sequentially into the journal, a flush, and the commit block with FUA; the
//! blocks are written to their home locations when they expire. Source: Documentation/filesystems/ext4 and jbd2 of the
//! kernel.
//! Assumed: a folder's entries in one block of its group.

use std::collections::{BTreeMap, BTreeSet};

use emmc_units::{Instant, Nanos};

use super::page_cache::{Dirty, EXPIRE, dirty_files};
use super::ranges::Ranges;
use super::{BLOCK_BYTES, Disk, FileId, Filesystem, MountOptions, full};
use crate::drive::stream::BenchError;

/// Blocks of a group.
const GROUP_BLOCKS: u64 = 32_768;
/// Bitmaps and inode table at a group's beginning. Unit: blocks.
const GROUP_META_BLOCKS: u64 = 516;
const INODES_PER_BLOCK: u64 = 16;
/// Journal by size of the filesystem, as mke2fs chooses. Unit: blocks.
const JOURNALS: [(u64, u64); 5] =
    [(32_768, 1024), (262_144, 4096), (524_288, 8192), (4_194_304, 16_384), (u64::MAX, 32_768)];

/// A file's data.
#[derive(Clone, Debug, Default)]
struct File {
    /// Number of the inode.
    inode: u64,
    /// Preferred place of its first block: its folder's group.
    goal: u64,
    folder: u32,
    /// Where its blocks are, by the first block in the file: (on disk, count).
    extents: BTreeMap<u64, (u64, u64)>,
    dirty: Dirty,
}

/// The filesystem.
#[derive(Debug)]
pub struct Ext4 {
    options: MountOptions,
    /// Groups of the disk.
    groups: u64,
    free: Ranges,
    files: BTreeMap<FileId, File>,
    next_file: u32,
    /// First block of the journal, its size, and where it is.
    journal: (u64, u64, u64),
    /// Metadata blocks of the running transaction.
    running: BTreeSet<u64>,
    committed_at: Instant,
    /// Committed blocks that are not yet written to their home locations.
    checkpoint: BTreeSet<u64>,
    checkpointed_at: Instant,
    /// Freed by the running transaction: usable after its commit.
    freed: Ranges,
}

impl Ext4 {
    /// Creates one on the whole disk: writes the tables and the superblock (`mkfs.ext4 -E
    /// lazy_itable_init=1,nodiscard`).
    ///
    /// Errors: as the target; a disk of less than 16 MiB.
    pub fn make(disk: &mut Disk<'_>, options: MountOptions) -> Result<Self, BenchError> {
        let blocks = disk.blocks();
        if blocks < 4096 {
            let what = format!("a filesystem on {} bytes; it needs 16 MiB", blocks * BLOCK_BYTES);
            return Err(BenchError::Misfit { suite: "ext4", what });
        }
        let mut free = Ranges::default();
        for group in (0..blocks).step_by(GROUP_BLOCKS as usize) {
            let end = (group + GROUP_BLOCKS).min(blocks);
            let meta = GROUP_META_BLOCKS.min(end - group);
            if end > group + meta {
                free.insert(group + meta, end - group - meta);
            }
            disk.write(group, 4.min(meta), false)?;
        }
        let size = JOURNALS.iter().find(|(below, _)| blocks < *below).map_or(32_768, |(_, size)| *size);
        let journal = free.take(blocks / 2, size).ok_or_else(|| full("ext4"))?;
        disk.flush()?;
        let now = disk.now();
        Ok(Self {
            options,
            groups: blocks.div_ceil(GROUP_BLOCKS),
            free,
            files: BTreeMap::new(),
            next_file: 0,
            journal: (journal.0, journal.1, 0),
            running: BTreeSet::new(),
            committed_at: now,
            checkpoint: BTreeSet::new(),
            checkpointed_at: now,
            freed: Ranges::default(),
        })
    }

    fn commit_every(&self) -> Nanos {
        Nanos::from_secs(if self.options.commit_s == 0 { 5 } else { u64::from(self.options.commit_s) })
    }

    /// The metadata blocks of a file's inode, its folder and its group.
    fn touch(&mut self, inode: u64, block: u64) {
        let group = block / GROUP_BLOCKS * GROUP_BLOCKS;
        self.running.insert(group + 4 + inode / INODES_PER_BLOCK % (GROUP_META_BLOCKS - 4));
        self.running.insert(group + 1);
    }

    /// A folder's entry.
    fn touch_folder(&mut self, folder: u32) {
        let group = self.group_of(folder);
        self.running.insert(group + GROUP_META_BLOCKS - 1);
    }

    /// The group that a folder's files go to: folders are spread over all.
    fn group_of(&self, folder: u32) -> u64 {
        u64::from(folder) % self.groups * GROUP_BLOCKS
    }

    /// Allocates and writes a file's dirty blocks.
    fn write_out(&mut self, disk: &mut Disk<'_>, id: FileId) -> Result<(), BenchError> {
        let Some(file) = self.files.get_mut(&id) else { return Ok(()) };
        let (inode, dirty) = (file.inode, file.dirty.drain());
        for (start, count) in dirty {
            for (block, count) in self.places(id, inode, start, count)? {
                disk.write(block, count, false)?;
            }
        }
        Ok(())
    }

    /// The places of a run of a file's blocks, in order; allocates missing ones.
    fn places(&mut self, id: FileId, inode: u64, start: u64, count: u64) -> Result<Vec<(u64, u64)>, BenchError> {
        let (mut at, end, mut places) = (start, start + count, Vec::new());
        while at < end {
            let file = self.files.entry(id).or_default();
            let before = file.extents.range(..=at).next_back().map(|(first, extent)| (*first, *extent));
            if let Some((first, (block, length))) = before.filter(|(first, (_, length))| at < first + length) {
                let run = (first + length - at).min(end - at);
                places.push((block + at - first, run));
                at += run;
                continue;
            }
            let until = file.extents.range(at..).next().map_or(end, |(next, _)| end.min(*next));
            let follows = before.map(|(first, (block, length))| (first, block, length));
            let goal = follows.map_or(file.goal, |(_, block, length)| block + length);
            let (block, run) = self.free.take(goal, until - at).ok_or_else(|| full("ext4"))?;
            let file = self.files.entry(id).or_default();
            match follows.filter(|(first, before, length)| before + length == block && first + length == at) {
                Some((first, before, length)) => file.extents.insert(first, (before, length + run)),
                None => file.extents.insert(at, (block, run)),
            };
            self.touch(inode, block);
            places.push((block, run));
            at += run;
        }
        Ok(places)
    }

    /// Commits the running transaction.
    fn commit(&mut self, disk: &mut Disk<'_>) -> Result<(), BenchError> {
        self.committed_at = disk.now();
        let running = std::mem::take(&mut self.running);
        if !running.is_empty() {
            let blocks = running.len() as u64 + 1;
            let place = self.journal_place(blocks);
            disk.write(place, blocks, false)?;
            disk.flush()?;
            let place = self.journal_place(1);
            disk.write(place, 1, true)?;
            self.checkpoint.extend(running);
        }
        for (start, count) in self.freed.drain() {
            self.free.insert(start, count);
            if self.options.discard {
                disk.trim(start, count)?;
            }
        }
        let half_full = self.checkpoint.len() as u64 * 4 > self.journal.1;
        if half_full || disk.now().since(self.checkpointed_at) >= EXPIRE {
            self.write_home(disk)?;
        }
        Ok(())
    }

    /// Writes committed metadata to its home locations, neighbours in one request.
    fn write_home(&mut self, disk: &mut Disk<'_>) -> Result<(), BenchError> {
        self.checkpointed_at = disk.now();
        let mut runs = Ranges::default();
        for block in std::mem::take(&mut self.checkpoint) {
            runs.insert(block, 1);
        }
        runs.iter().try_for_each(|(start, count)| disk.write(start, count, false))
    }

    fn journal_place(&mut self, blocks: u64) -> u64 {
        let (first, size, at) = self.journal;
        let at = if at + blocks > size { 0 } else { at };
        self.journal.2 = at + blocks;
        first + at
    }

    /// Timed work of the kernel.
    fn tick(&mut self, disk: &mut Disk<'_>) -> Result<(), BenchError> {
        let now = disk.now();
        if now.since(self.committed_at) < self.commit_every() {
            return Ok(());
        }
        for id in dirty_files(&self.files, Some(now), |file| &file.dirty) {
            self.write_out(disk, id)?;
        }
        self.commit(disk)
    }
}

impl Filesystem for Ext4 {
    fn name(&self) -> &'static str {
        "ext4"
    }

    fn create(&mut self, disk: &mut Disk<'_>, folder: u32) -> Result<FileId, BenchError> {
        let id = FileId(self.next_file);
        self.next_file += 1;
        let inode = u64::from(id.0) + 16;
        let goal = self.group_of(folder);
        self.files.insert(id, File { inode, goal, folder, ..File::default() });
        self.touch(inode, goal);
        self.touch_folder(folder);
        self.tick(disk)?;
        Ok(id)
    }

    fn write(&mut self, disk: &mut Disk<'_>, file: FileId, offset: u64, bytes: u64) -> Result<(), BenchError> {
        self.files.entry(file).or_default().dirty.write(disk.now(), offset, bytes);
        self.tick(disk)
    }

    fn write_direct(&mut self, disk: &mut Disk<'_>, file: FileId, offset: u64, bytes: u64) -> Result<(), BenchError> {
        let inode = self.files.entry(file).or_default().inode;
        let (first, last) = (offset / BLOCK_BYTES, (offset + bytes).div_ceil(BLOCK_BYTES));
        for (block, count) in self.places(file, inode, first, last - first)? {
            disk.write(block, count, false)?;
        }
        self.tick(disk)
    }

    fn read(&mut self, disk: &mut Disk<'_>, file: FileId, offset: u64, bytes: u64) -> Result<(), BenchError> {
        let Some(entry) = self.files.get(&file) else { return Ok(()) };
        let (first, last) = (offset / BLOCK_BYTES, (offset + bytes).div_ceil(BLOCK_BYTES));
        let from = entry.extents.range(..=first).next_back().map_or(first, |(start, _)| *start);
        for (start, (block, count)) in entry.extents.range(from..last) {
            let (begin, end) = (first.max(*start), last.min(start + count));
            if begin < end {
                disk.read(block + begin - start, end - begin)?;
            }
        }
        Ok(())
    }

    fn write_back(&mut self, disk: &mut Disk<'_>, file: FileId) -> Result<(), BenchError> {
        self.write_out(disk, file)
    }

    fn fsync(&mut self, disk: &mut Disk<'_>, file: FileId) -> Result<(), BenchError> {
        self.write_out(disk, file)?;
        if self.running.is_empty() { disk.flush() } else { self.commit(disk) }
    }

    fn unlink(&mut self, disk: &mut Disk<'_>, file: FileId) -> Result<(), BenchError> {
        if let Some(entry) = self.files.remove(&file) {
            for (block, count) in entry.extents.into_values() {
                self.freed.insert(block, count);
                self.touch(entry.inode, block);
            }
            self.touch_folder(entry.folder);
        }
        self.tick(disk)
    }

    fn sync(&mut self, disk: &mut Disk<'_>) -> Result<(), BenchError> {
        for id in dirty_files(&self.files, None, |file| &file.dirty) {
            self.write_out(disk, id)?;
        }
        self.commit(disk)?;
        self.write_home(disk)?;
        disk.flush()
    }

    fn trim(&mut self, disk: &mut Disk<'_>) -> Result<u64, BenchError> {
        self.sync(disk)?;
        let before = disk.trimmed_bytes;
        self.free.iter().try_for_each(|(start, count)| disk.trim(start, count))?;
        Ok(disk.trimmed_bytes - before)
    }

    fn free_bytes(&self) -> u64 {
        self.free.total() * BLOCK_BYTES
    }
}
