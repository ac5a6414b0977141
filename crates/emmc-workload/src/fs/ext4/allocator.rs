//! Free blocks, and the choice of a file's place (mballoc).
//!
//! Small files of all folders share a preallocated run of blocks, so that they are next to each other in the sequence
//! in which they were written back. Source: fs/ext4/mballoc.c of the kernel (`s_mb_stream_request`,
//! `s_mb_group_prealloc`). Assumed: one such run, where the kernel has some for each processor.

use super::BLOCK_BYTES;
use crate::fs::ranges::Ranges;

/// Files up to this size share a run. Unit: blocks.
const SMALL_BLOCKS: u64 = 16;
/// Unit: blocks.
const RUN_BLOCKS: u64 = 512;

/// Free blocks.
#[derive(Debug, Default)]
pub(super) struct Allocator {
    free: Ranges,
    /// The run for small files, aligned to its size: first free block and number.
    run: (u64, u64),
}

impl Allocator {
    pub(super) fn insert(&mut self, start: u64, count: u64) {
        self.free.insert(start, count);
    }

    /// Up to `count` blocks, preferably from `goal` on. `None`: the filesystem is full.
    pub(super) fn take(&mut self, goal: u64, count: u64) -> Option<(u64, u64)> {
        let found = self.free.take(goal, count);
        if found.is_none() && self.run.1 > 0 {
            // A full filesystem gives preallocated blocks back.
            let (start, left) = std::mem::take(&mut self.run);
            self.free.insert(start, left);
            return self.free.take(goal, count);
        }
        found
    }

    /// The same for a file of `size` blocks.
    pub(super) fn take_for_file(&mut self, goal: u64, count: u64, size: u64) -> Option<(u64, u64)> {
        if size > SMALL_BLOCKS {
            return self.take(goal, count);
        }
        if self.run.1 < count {
            let (start, left) = std::mem::take(&mut self.run);
            if left > 0 {
                self.free.insert(start, left);
            }
            let whole = self.free.take_aligned(goal, RUN_BLOCKS);
            self.run = whole.or_else(|| self.free.take(goal, RUN_BLOCKS))?;
        }
        let (start, left) = self.run;
        let taken = count.min(left);
        self.run = (start + taken, left - taken);
        Some((start, taken))
    }

    /// Free ranges, without the preallocated one.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.free.iter()
    }

    pub(super) fn free_bytes(&self) -> u64 {
        (self.free.total() + self.run.1) * BLOCK_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_share_a_run_and_a_full_filesystem_takes_it_back() {
        let mut free = Allocator::default();
        free.insert(0, 2000);
        assert_eq!(free.take_for_file(100, 4, 4), Some((512, 4)));
        assert_eq!(free.take_for_file(900, 8, 16), Some((516, 8)));
        assert_eq!(free.take_for_file(1024, 17, 17), Some((1024, 17)));
        assert_eq!(free.free_bytes(), (2000 - 29) * BLOCK_BYTES);
        let mut taken = 29;
        while let Some((_, count)) = free.take(0, 100) {
            taken += count;
        }
        assert_eq!((taken, free.take_for_file(0, 1, 1)), (2000, None));
    }
}
