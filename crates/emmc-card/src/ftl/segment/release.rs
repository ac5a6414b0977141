//! Blocks: taken and erased, released, retired; and trims, which invalidate their content.

use emmc_units::Instant;

use super::recover::LOG_STAMP;
use super::{NO_BLOCK, SegmentFtl};
use crate::ftl::FtlError;
use crate::nand::{NO_UNIT, Nand, NandError};

/// One block for a merge, and another for the recovery when that merge is cut: its last page may stop reading, and then
/// the blocks that it was made from hold the newest copies, so none of those may be erased for its repetition.
pub(super) const LEFT_FOR_MERGES: u32 = 2;

impl SegmentFtl {
    /// An erased block, stamped as a log.
    ///
    /// Errors: [`FtlError::WornOut`] when there is none.
    pub(super) fn take(&mut self, nand: &mut Nand, mut now: Instant) -> Result<(u32, Instant), FtlError> {
        let mut programmed = false;
        self.mark_retiring(nand, now);
        loop {
            // Unneeded blocks first; then, during recovery, those after the oldest doubtful page.
            let wanted = {
                let mut free = self.pool.iter().filter(|&block| !self.backs_waiting(nand, block));
                let any_doubt = !self.doubted.is_empty();
                if any_doubt { free.min_by_key(|&block| self.doubt(block)) } else { free.next() }
            };
            let Some(wanted) = wanted else {
                if programmed || self.pool.free() == 0 {
                    return Err(FtlError::WornOut);
                }
                now = self.program_plainly(nand, now)?;
                programmed = true;
                continue;
            };
            let Some(block) = self.pool.take_where(|block| block == wanted) else { return Err(FtlError::WornOut) };
            match self.erase(nand, block, now)? {
                Some(erased) => {
                    // One that was set before a cut, and never programmed, would stay.
                    nand.set_stamp(block, LOG_STAMP);
                    return Ok((block, erased));
                }
                None => continue,
            }
        }
    }

    /// An erased block for the host's writes, which leave [`LEFT_FOR_MERGES`]; logs beyond the profile's number are
    /// reclaimed for it.
    ///
    /// Errors: as [`SegmentFtl::take`].
    pub(super) fn take_for_host(&mut self, nand: &mut Nand, mut now: Instant) -> Result<(u32, Instant), FtlError> {
        while self.pool.free() <= LEFT_FOR_MERGES && self.shared.len() > self.shared_max.max(1) {
            now = self.reclaim(nand, now)?;
        }
        if self.pool.free() <= LEFT_FOR_MERGES {
            return Err(FtlError::WornOut);
        }
        self.take(nand, now)
    }

    /// Programs the buffered units, so that no free blocks need be reserved for them: this is the only option here,
    /// even if a word line is at risk. It happens only when more buffered writes replace units of old blocks than there
    /// are free blocks.
    fn program_plainly(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let careful = std::mem::replace(&mut self.careful, false);
        let done = self.program_all(nand, now);
        self.careful = careful;
        done
    }

    /// Erases a block if a page of it was programmed. `None`: it became bad, and a spare replaces it if there is one.
    pub(super) fn erase(&mut self, nand: &mut Nand, block: u32, now: Instant) -> Result<Option<Instant>, FtlError> {
        if nand.block(block).next_page == 0 {
            return Ok(Some(now));
        }
        match nand.erase(block, now) {
            Ok(done) => Ok(Some(done)),
            Err(NandError::EraseFailed { .. }) => {
                self.stats.replaced_blocks += u64::from(self.pool.retire(nand));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a free block may have the only programmed copy of a unit whose newer one waits in memory.
    pub(super) fn backs_waiting(&self, nand: &Nand, block: u32) -> bool {
        // Most free blocks are erased, and few units are buffered: searching those is faster than searching the block.
        let held = nand.spare(block);
        let mut waiting = self.open.iter().map(|open| &open.log).chain(&self.shared).filter(|front| front.is_waiting());
        !held.is_empty() && waiting.any(|front| front.current(nand, &self.map).any(|(unit, _)| held.contains(&unit)))
    }

    /// The newest of the doubtful pages whose valid older copy is in a free block.
    fn doubt(&self, block: u32) -> Option<u64> {
        self.doubted.values().filter(|(_, backing)| *backing == block).map(|(order, _)| *order).max()
    }

    /// Releases a block without valid units, erased; one with a failed program is retired.
    ///
    /// So none of its content, such as discarded units, can return after a cut. It is erased later, when it is taken,
    /// if it may still be needed: during recovery, or for a unit whose newer copy is buffered in memory.
    pub(super) fn release(&mut self, nand: &mut Nand, block: u32, now: Instant) -> Result<Instant, FtlError> {
        if block == NO_BLOCK {
            return Ok(now);
        }
        debug_assert_eq!(self.map.valid_in(block), 0, "block {block} is given back with valid units");
        let mut done = now;
        if self.failing.remove(&block) {
            self.stats.replaced_blocks += u64::from(self.pool.retire(nand));
            self.retiring.push(block);
            self.mark_retiring(nand, now);
            return Ok(done);
        }
        if self.is_spent(nand, block) {
            match self.erase(nand, block, now)? {
                Some(erased) => done = erased,
                None => return Ok(now.max(nand.quiet_at())),
            }
        }
        self.pool.give(block, nand.block(block).erase_count);
        Ok(done)
    }

    /// Whether no power cut can bring back the content of a block without valid units.
    fn is_spent(&self, nand: &Nand, block: u32) -> bool {
        self.doubted.is_empty() && !self.backs_waiting(nand, block)
    }

    /// Marks released blocks bad in which a program had failed. One that backs a unit in memory stays readable: a bad
    /// block is not scanned after a power cut.
    pub(super) fn mark_retiring(&mut self, nand: &mut Nand, now: Instant) {
        for block in std::mem::take(&mut self.retiring) {
            if self.is_spent(nand, block) {
                nand.mark_bad(block, now.max(nand.quiet_at()));
            } else {
                self.retiring.push(block);
            }
        }
    }

    /// Makes a trim last. The units still lie where they lay.
    pub(super) fn record_trim(
        &mut self,
        nand: &mut Nand,
        range: std::ops::Range<u32>,
        mut now: Instant,
    ) -> Result<Instant, FtlError> {
        loop {
            if let Some(done) = self.trims.try_append(nand, range.start, range.end - range.start, now)? {
                return Ok(done);
            }
            // Units that were trimmed and written again must not be damaged by programs of their word lines: their trim
            // is forgotten.
            now = self.whole_lines(nand, now)?;
            let map = &self.map;
            let in_flash = |unit: u32| map.lookup(unit) != NO_UNIT && !range.contains(&unit);
            now = self.trims.next_block(nand, &in_flash, now)?;
        }
    }
}
