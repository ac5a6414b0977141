//! ext4 with its defaults: delayed allocation, a journal with commits every five seconds, writing back after thirty.
//!
//! Data gets its place when it is written back. A transaction collects the metadata blocks that operations change:
//! folders, inodes, bitmaps, group descriptors. An fsync whose file is part of the running transaction writes the
//! file's data and commits: the blocks and their descriptor into the journal with one request, a flush, the commit
//! block with FUA. Any other fsync is a flush. What `sync_file_range` starts waits in the scheduler's queue, where
//! neighbours become one request. Source: fs/ext4 of the kernel; Documentation/filesystems/ext4. A kernel's requests
//! are compared with these by `cargo xtask guest test ext4`. Assumed: all folders are in one folder; entries of 24
//! bytes, and folders of more than one block with an index; extents in the inode.

mod allocator;
mod journal;
mod layout;
mod metadata;

use std::collections::{BTreeMap, BTreeSet};

use emmc_units::{Instant, Nanos};

use super::page_cache::{Dirty, dirty_files};
use super::ranges::Ranges;
use super::{BLOCK_BYTES, Disk, FileId, Filesystem, MountOptions, full};
use crate::drive::stream::BenchError;
use allocator::Allocator;
use journal::{COMMIT_EVERY, Journal};
use layout::{FIRST_INODE, LOST_BLOCKS, Layout, ORPHAN_BLOCKS, ROOT_INODE};
use metadata::Folder;

/// How often the kernel looks for expired data (`dirty_writeback_centisecs`).
const WRITE_BACK_EVERY: Nanos = Nanos::from_secs(5);

/// A file's data.
#[derive(Clone, Debug, Default)]
struct File {
    /// Number of the inode, from 0.
    inode: u64,
    folder: u32,
    /// Unit: blocks.
    size: u64,
    /// Where its blocks are, by the first block in the file: (on disk, count).
    extents: BTreeMap<u64, (u64, u64)>,
    dirty: Dirty,
    /// The transaction that changed its inode last.
    transaction: u64,
    /// When its times were last set.
    changed_at: Instant,
}

/// The filesystem.
#[derive(Debug)]
pub struct Ext4 {
    options: MountOptions,
    layout: Layout,
    free: Allocator,
    files: BTreeMap<FileId, File>,
    folders: BTreeMap<u32, Folder>,
    /// The folder that all folders are in.
    root: Folder,
    next_file: u32,
    free_inodes: BTreeSet<u64>,
    next_inode: u64,
    journal: Journal,
    /// When the kernel last looked for expired data.
    woke_at: Instant,
    /// Freed by the running transaction: usable after its commit.
    freed: Ranges,
    /// First block of the list of deleted inodes.
    orphans: u64,
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
        let layout = Layout::new(blocks);
        let (mut free, mut start) = (Allocator::default(), 0);
        for (first, count) in layout.metadata() {
            if first > start {
                free.insert(start, first - start);
            }
            start = first + count;
            disk.write(first, 4.min(count), false)?;
        }
        if start < blocks {
            free.insert(start, blocks - start);
        }
        let size = layout.journal_blocks();
        let mut root = Folder { inode: ROOT_INODE, blocks: Vec::new(), entries: 0 };
        let of_mke2fs = 1 + LOST_BLOCKS + ORPHAN_BLOCKS;
        let (block, _) = free.take(layout.folder_goal(ROOT_INODE), of_mke2fs).ok_or_else(|| full("ext4"))?;
        root.blocks.push(block);
        let (first, count) = free.take(blocks / 2, size).ok_or_else(|| full("ext4"))?;
        disk.write(first, 1, false)?;
        disk.flush()?;
        Ok(Self {
            options,
            layout,
            free,
            files: BTreeMap::new(),
            folders: BTreeMap::new(),
            root,
            next_file: 0,
            free_inodes: BTreeSet::new(),
            next_inode: FIRST_INODE,
            journal: Journal::new(first, count),
            woke_at: disk.now(),
            freed: Ranges::default(),
            orphans: block + 1 + LOST_BLOCKS,
        })
    }

    fn commit_every(&self) -> Nanos {
        if self.options.commit_s == 0 { COMMIT_EVERY } else { Nanos::from_secs(self.options.commit_s.into()) }
    }

    /// Allocates a file's dirty blocks; returns their places.
    fn allocate(&mut self, id: FileId, now: Instant) -> Result<Vec<(u64, u64)>, BenchError> {
        let Some(file) = self.files.get_mut(&id) else { return Ok(Vec::new()) };
        let (dirty, mut found) = (file.dirty.drain(), Vec::new());
        for (start, count) in dirty {
            found.extend(self.places(id, start, count, now)?);
        }
        Ok(found)
    }

    /// Writes back without waiting for it.
    fn write_out(&mut self, disk: &mut Disk<'_>, id: FileId) -> Result<(), BenchError> {
        let now = disk.now();
        for (block, count) in self.allocate(id, now)? {
            disk.write_later(block, count)?;
        }
        Ok(())
    }

    /// The places of a run of a file's blocks, in order; allocates missing ones.
    fn places(&mut self, id: FileId, start: u64, count: u64, now: Instant) -> Result<Vec<(u64, u64)>, BenchError> {
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
            file.size = file.size.max(end);
            let until = file.extents.range(at..).next().map_or(end, |(next, _)| end.min(*next));
            let follows = before.map(|(first, (block, length))| (first, block, length));
            let goal = follows.map_or(self.layout.file_goal(file.inode), |(_, block, length)| block + length);
            let found = self.free.take_for_file(goal, until - at, file.size);
            let (block, run) = found.ok_or_else(|| full("ext4"))?;
            match follows.filter(|(first, before, length)| before + length == block && first + length == at) {
                Some((first, before, length)) => file.extents.insert(first, (before, length + run)),
                None => file.extents.insert(at, (block, run)),
            };
            self.touch_blocks(block, run, now);
            self.touch_file(id, now);
            places.push((block, run));
            at += run;
        }
        Ok(places)
    }

    /// Commits the running transaction.
    fn commit(&mut self, disk: &mut Disk<'_>) -> Result<(), BenchError> {
        self.journal.commit(disk)?;
        for (start, count) in self.freed.drain() {
            self.free.insert(start, count);
            if self.options.discard {
                disk.trim(start, count)?;
            }
        }
        Ok(())
    }

    /// When the kernel has something to do by itself: a commit, or expired data.
    fn due(&self) -> Instant {
        let looks = self.woke_at + WRITE_BACK_EVERY;
        self.journal.began().map_or(looks, |began| looks.min(began + self.commit_every()))
    }

    /// Timed work of the kernel.
    fn tick(&mut self, disk: &mut Disk<'_>) -> Result<(), BenchError> {
        let now = disk.now();
        if now < self.due() {
            return Ok(());
        }
        if now >= self.woke_at + WRITE_BACK_EVERY {
            self.woke_at = now;
            for id in dirty_files(&self.files, Some(now), |file| &file.dirty) {
                self.write_out(disk, id)?;
            }
            if self.journal.expires().is_some_and(|at| at <= now) {
                self.journal.write_home(disk)?;
            }
        }
        if self.journal.began().is_some_and(|began| now >= began + self.commit_every()) {
            self.commit(disk)?;
        }
        Ok(())
    }
}

impl Filesystem for Ext4 {
    fn name(&self) -> &'static str {
        "ext4"
    }

    fn create(&mut self, disk: &mut Disk<'_>, folder: u32) -> Result<FileId, BenchError> {
        let (id, now) = (FileId(self.next_file), disk.now());
        self.next_file += 1;
        self.make_folder(folder, now)?;
        let inode = self.new_inode(now);
        self.files.insert(id, File { inode, folder, ..File::default() });
        self.touch_file(id, now);
        self.add_entry(folder, inode, now)?;
        self.tick(disk)?;
        Ok(id)
    }

    fn write(&mut self, disk: &mut Disk<'_>, id: FileId, offset: u64, bytes: u64) -> Result<(), BenchError> {
        let now = disk.now();
        let file = self.files.entry(id).or_default();
        file.dirty.write(now, offset, bytes);
        file.size = file.size.max((offset + bytes).div_ceil(BLOCK_BYTES));
        self.touch_times(id, now);
        self.tick(disk)
    }

    fn write_direct(&mut self, disk: &mut Disk<'_>, file: FileId, offset: u64, bytes: u64) -> Result<(), BenchError> {
        let (first, last, now) = (offset / BLOCK_BYTES, (offset + bytes).div_ceil(BLOCK_BYTES), disk.now());
        self.touch_times(file, now);
        for (block, count) in self.places(file, first, last - first, now)? {
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
        disk.write_waiting()?;
        let running = self.journal.running();
        let is_in = self.files.get(&file).is_some_and(|file| file.transaction == running);
        if is_in && self.journal.began().is_some() {
            self.commit(disk)?
        } else {
            disk.flush()?
        }
        self.tick(disk)
    }

    fn rename(&mut self, disk: &mut Disk<'_>, id: FileId) -> Result<(), BenchError> {
        let now = disk.now();
        if let Some((folder, inode)) = self.files.get(&id).map(|file| (file.folder, file.inode)) {
            self.touch_entry(folder, inode, now);
            self.touch_file(id, now);
        }
        self.tick(disk)
    }

    fn unlink(&mut self, disk: &mut Disk<'_>, file: FileId) -> Result<(), BenchError> {
        let now = disk.now();
        if let Some(entry) = self.files.remove(&file) {
            for (block, count) in entry.extents.into_values() {
                self.freed.insert(block, count);
                self.touch_blocks(block, count, now);
            }
            self.touch_entry(entry.folder, entry.inode, now);
            self.touch_inodes(entry.inode, now);
            self.journal.add(self.orphans, now);
            self.free_inodes.insert(entry.inode);
            if let Some(folder) = self.folders.get_mut(&entry.folder) {
                folder.entries -= 1;
            }
        }
        self.tick(disk)
    }

    fn idle(&mut self, disk: &mut Disk<'_>, time: Nanos) -> Result<(), BenchError> {
        let until = disk.now() + time;
        disk.write_waiting()?;
        loop {
            self.tick(disk)?;
            disk.write_waiting()?;
            let now = disk.now();
            if now >= until {
                return Ok(());
            }
            disk.think(self.due().max(now + Nanos(1)).min(until).since(now))?;
        }
    }

    fn sync(&mut self, disk: &mut Disk<'_>) -> Result<(), BenchError> {
        for id in dirty_files(&self.files, None, |file| &file.dirty) {
            self.write_out(disk, id)?;
        }
        disk.write_waiting()?;
        self.commit(disk)?;
        disk.flush()?;
        self.journal.write_home(disk)
    }

    fn trim(&mut self, disk: &mut Disk<'_>) -> Result<u64, BenchError> {
        self.sync(disk)?;
        let before = disk.trimmed_bytes;
        self.free.ranges().try_for_each(|(start, count)| disk.trim(start, count))?;
        Ok(disk.trimmed_bytes - before)
    }

    fn free_bytes(&self) -> u64 {
        self.free.free_bytes()
    }
}
