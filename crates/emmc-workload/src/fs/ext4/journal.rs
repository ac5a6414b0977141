//! The journal (jbd2): transactions of metadata blocks, their commits, and the way of the blocks to their places.
//!
//! A commit writes descriptors and blocks sequentially, a flush, and the commit block with FUA. The committed blocks
//! are dirty in the page cache from then on: the kernel writes them back when the oldest has expired, neighbours in
//! one request. Before the journal is full, the process that needs space writes those of the oldest transactions, a
//! flush, and the journal's new tail. Source: fs/jbd2/commit.c, transaction.c and checkpoint.c of the kernel.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use emmc_units::{Instant, Nanos};

use crate::drive::stream::BenchError;
use crate::fs::Disk;
use crate::fs::page_cache::EXPIRE;
use crate::fs::ranges::Ranges;

/// Blocks that one descriptor lists, with 16 bytes for each (64 bit numbers and checksums).
const TAGS: u64 = 254;
/// This share of the journal stays free: the largest transaction. Source: `jbd2_journal_get_max_txn_bufs`.
const FREE_SHARE: u64 = 3;

/// The journal of a filesystem.
#[derive(Debug)]
pub(super) struct Journal {
    /// First block: the journal's superblock.
    first: u64,
    /// Blocks for transactions.
    size: u64,
    /// The next block, from the first one for transactions on.
    head: u64,
    /// Blocks in use since the tail, and the transactions there: number and blocks.
    used: u64,
    logged: VecDeque<(u64, u64)>,
    /// Number of the running transaction, its blocks, and when it began.
    running: u64,
    blocks: BTreeSet<u64>,
    began: Instant,
    /// Committed blocks that are dirty in the page cache with their last transactions, and since when.
    dirty: BTreeMap<u64, u64>,
    dirty_since: Instant,
}

impl Journal {
    pub(super) fn new(first: u64, blocks: u64) -> Self {
        Self {
            first,
            size: blocks - 1,
            head: 0,
            used: 0,
            logged: VecDeque::new(),
            running: 0,
            blocks: BTreeSet::new(),
            began: Instant::START,
            dirty: BTreeMap::new(),
            dirty_since: Instant::START,
        }
    }

    /// The number of the running transaction.
    pub(super) fn running(&self) -> u64 {
        self.running
    }

    /// Adds a block to the running transaction.
    pub(super) fn add(&mut self, block: u64, now: Instant) {
        if self.blocks.is_empty() {
            self.began = now;
        }
        self.blocks.insert(block);
    }

    /// When the running transaction began, if there is one.
    pub(super) fn began(&self) -> Option<Instant> {
        (!self.blocks.is_empty()).then_some(self.began)
    }

    /// When committed blocks have to be written to their places, if there are any.
    pub(super) fn expires(&self) -> Option<Instant> {
        (!self.dirty.is_empty()).then_some(self.dirty_since + EXPIRE)
    }

    /// Commits the running transaction, if there is one.
    ///
    /// Errors: as the target.
    pub(super) fn commit(&mut self, disk: &mut Disk<'_>) -> Result<(), BenchError> {
        let blocks = std::mem::take(&mut self.blocks);
        if blocks.is_empty() {
            return Ok(());
        }
        let number = self.running;
        self.running += 1;
        let count = blocks.len() as u64;
        let logged = (count + count.div_ceil(TAGS)).min(self.size - 1);
        if self.used + logged + 1 > self.size - self.size / FREE_SHARE {
            self.make_room(disk, logged + 1)?;
        }
        self.append(disk, logged, false)?;
        disk.flush()?;
        self.append(disk, 1, true)?;
        self.used += logged + 1;
        self.logged.push_back((number, logged + 1));
        if self.dirty.is_empty() {
            self.dirty_since = disk.now();
        }
        self.dirty.extend(blocks.into_iter().map(|block| (block, number)));
        Ok(())
    }

    /// Writes committed blocks to their places, neighbours in one request.
    ///
    /// Errors: as the target.
    pub(super) fn write_home(&mut self, disk: &mut Disk<'_>) -> Result<(), BenchError> {
        write_runs(disk, std::mem::take(&mut self.dirty).into_keys())
    }

    /// A checkpoint of the oldest transactions, and the end of those that have no blocks of their own any more.
    fn make_room(&mut self, disk: &mut Disk<'_>, blocks: u64) -> Result<(), BenchError> {
        while let Some((oldest, used)) = self.logged.front().copied() {
            let its_own = self.dirty.iter().filter(|(_, number)| **number == oldest).map(|(block, _)| *block);
            let its_own: Vec<u64> = its_own.collect();
            if self.used + blocks <= self.size - self.size / FREE_SHARE && !its_own.is_empty() {
                break;
            }
            for block in &its_own {
                self.dirty.remove(block);
            }
            write_runs(disk, its_own)?;
            self.used -= used;
            self.logged.pop_front();
        }
        disk.flush()?;
        disk.write(self.first, 1, true)
    }

    /// Writes at the head; behind the last block the first follows.
    fn append(&mut self, disk: &mut Disk<'_>, blocks: u64, through: bool) -> Result<(), BenchError> {
        let mut left = blocks;
        while left > 0 {
            let run = left.min(self.size - self.head);
            disk.write(self.first + 1 + self.head, run, through)?;
            self.head = (self.head + run) % self.size;
            left -= run;
        }
        Ok(())
    }
}

/// Writes blocks, neighbours in one request.
fn write_runs(disk: &mut Disk<'_>, blocks: impl IntoIterator<Item = u64>) -> Result<(), BenchError> {
    let mut runs = Ranges::default();
    blocks.into_iter().for_each(|block| runs.insert(block, 1));
    runs.iter().try_for_each(|(start, count)| disk.write(start, count, false))
}

/// The default of `-o commit=`.
pub(super) const COMMIT_EVERY: Nanos = Nanos::from_secs(5);
