//! Background work: erasing, closing, merging ahead; and AUs that trims have emptied.

use emmc_units::Instant;

use super::{NO_BLOCK, SegmentFtl};
use crate::ftl::FtlError;
use crate::nand::Nand;

impl SegmentFtl {
    /// One step of background work.
    ///
    /// Work without wear comes first: complete logs become homes, free blocks are erased. Merges, which copy, only
    /// until the profile's number of free blocks is reached (`gc_high_blocks`; 0: none).
    pub(super) fn step(&mut self, nand: &mut Nand, now: Instant) -> Result<Option<Instant>, FtlError> {
        if let Some(index) = (0..self.open.len()).find(|&index| self.is_whole(nand, index)) {
            return self.close(nand, index, now).map(Some);
        }
        let dirty = |&block: &u32| nand.block(block).next_page > 0 && !self.backs_waiting(nand, block);
        let found = self.pool.iter().find(dirty);
        if let Some(block) = found {
            return self.erase_one(nand, block, now).map(Some);
        }
        if let Some(au) = self.au_to_refresh(nand, now) {
            self.stats.refreshes += 1;
            return self.merge(nand, au, now).map(Some);
        }
        if self.pool.free() >= self.free_wanted {
            return Ok(None);
        }
        if self.shared_max > 0 && self.shared.len() >= self.shared_max {
            return self.reclaim_step(nand, now).map(Some);
        }
        if !self.open.is_empty() {
            return self.close(nand, 0, now).map(Some);
        }
        Ok(None)
    }

    /// A closed AU whose home was read too often, or holds old data. A merge takes a block before it frees one.
    fn au_to_refresh(&mut self, nand: &Nand, now: Instant) -> Option<u32> {
        let mut refresh = self.refresh.filter(|_| self.pool.free() > 1)?;
        let closed = |&au: &u32| self.homes[au as usize] != NO_BLOCK && self.open_index(au).is_none();
        let homes = (0..self.homes.len() as u32).filter(closed).map(|au| self.homes[au as usize]);
        let found = refresh.search(nand, homes, now);
        self.refresh = Some(refresh);
        let home = found?;
        (0..self.homes.len() as u32).find(|&au| self.homes[au as usize] == home)
    }

    /// Whether closing an open AU needs no copies, and its log is full.
    fn is_whole(&self, nand: &Nand, index: usize) -> bool {
        let open = &self.open[index];
        let next = open.last.map_or(0, |last| last + 1);
        open.in_order
            && open.log.room(nand) == 0
            && self.valid_outside(nand, open.au, next, self.per_block, open.log.block).is_empty()
    }

    /// Erases a free block; it stays free.
    fn erase_one(&mut self, nand: &mut Nand, block: u32, now: Instant) -> Result<Instant, FtlError> {
        self.pool.take_where(|free| free == block);
        match self.erase(nand, block, now)? {
            Some(done) => {
                self.pool.give(block, nand.block(block).erase_count);
                Ok(done)
            }
            None => Ok(now.max(nand.quiet_at())),
        }
    }

    /// Erases every free block that was written.
    pub(super) fn erase_free(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let dirty: Vec<u32> = self.pool.iter().filter(|&block| nand.block(block).next_page > 0).collect();
        let mut done = now;
        for block in dirty {
            done = self.erase_one(nand, block, done)?;
        }
        Ok(done)
    }

    /// After a trim: an AU without valid units needs no blocks.
    pub(super) fn forget_if_empty(&mut self, nand: &mut Nand, au: u32, now: Instant) -> Result<Instant, FtlError> {
        if !self.valid_units(au).is_empty() {
            return Ok(now);
        }
        let mut blocks = self.strays.remove(&au).unwrap_or_default();
        blocks.push(std::mem::replace(&mut self.homes[au as usize], NO_BLOCK));
        if let Some(index) = self.open_index(au) {
            blocks.push(self.open.remove(index).log.block);
        }
        let mut done = now;
        for block in blocks {
            done = self.release(nand, block, done)?;
        }
        Ok(done)
    }
}
