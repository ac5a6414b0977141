//! Deallocation: trims, which are effective immediately and after a power cut, discards, which a cut may undo, and
//! purges.

use emmc_units::Instant;

use super::PageFtl;
use super::frontier::NO_BLOCK;
use crate::ftl::trim_log::TrimLog;
use crate::ftl::{FtlError, TrimKind};
use crate::nand::{NO_UNIT, Nand};

impl PageFtl {
    pub(super) fn trim_units(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        kind: TrimKind,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        if self.trim_log.is_none() {
            return Ok(now);
        }
        if self.worn_out {
            return Err(FtlError::WornOut);
        }
        let now = self.touch_map(nand, first, count, true, now)?;
        let mapped_before = self.map.mapped();
        for unit in first..first + count {
            let old = self.map.clear(unit);
            if old != NO_UNIT {
                let block = self.map.block_of(old);
                self.victims.lower(block, self.map.valid_in(block));
            }
        }
        self.stats.trimmed_units += u64::from(mapped_before - self.map.mapped());
        if mapped_before == self.map.mapped() && kind == TrimKind::Discard {
            return Ok(now);
        }
        match kind {
            TrimKind::Trim => self.log_trim(nand, first, count, now),
            TrimKind::Discard => {
                self.discards.push((first, count));
                Ok(now)
            }
        }
    }

    /// Writes a trim to the log. None of its units waits to be programmed.
    fn log_trim(&mut self, nand: &mut Nand, first: u32, count: u32, mut now: Instant) -> Result<Instant, FtlError> {
        loop {
            if let Some(done) = self.try_append(nand, first, count, now)? {
                return Ok(done);
            }
            now = self.start_log_block(nand, now)?;
        }
    }

    /// Writes discards to the log before a block is erased: else the newest copy of a discarded unit could be erased,
    /// and an older one come back.
    pub(super) fn log_discards(&mut self, nand: &mut Nand, mut now: Instant) -> Result<Instant, FtlError> {
        // A record takes a page: a whole card that was trimmed piece by piece is one record, not thousands before the
        // first erase.
        join_neighbours(&mut self.discards);
        // Each stays until it is recorded, for a block may have to be erased meanwhile.
        while let Some(&(first, count)) = self.discards.first() {
            let mut at = first;
            while at < first + count {
                // Units that are in flash again have been written since.
                let end = (at..first + count).find(|&unit| self.is_in_flash(unit)).unwrap_or(first + count);
                if end > at {
                    let Some(done) = self.try_append(nand, at, end - at, now)? else {
                        // It programs what waits: a unit of this discard may be in flash afterwards.
                        now = self.start_log_block(nand, now)?;
                        continue;
                    };
                    now = done;
                }
                at = (end..first + count).find(|&unit| !self.is_in_flash(unit)).unwrap_or(first + count);
            }
            if self.discards.first() == Some(&(first, count)) {
                self.discards.remove(0);
            }
        }
        Ok(now)
    }

    /// Records a trim; `None` if the block of the log is full.
    fn try_append(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        now: Instant,
    ) -> Result<Option<Instant>, FtlError> {
        let Some(mut log) = self.trim_log.take() else { return Ok(Some(now)) };
        let appended = log.try_append(nand, first, count, now);
        self.mend_log(nand, &mut log);
        self.trim_log = Some(log);
        appended
    }

    /// Goes on in the next block of the log, without the trims of units that are in flash again.
    fn start_log_block(&mut self, nand: &mut Nand, mut now: Instant) -> Result<Instant, FtlError> {
        // Data that was written after a trim must not be damaged by later programs on its word lines: its trim is
        // dropped.
        for role in 0..self.frontiers.len() {
            now = self.settle(nand, role, now)?;
        }
        let Some(mut log) = self.trim_log.take() else { return Ok(now) };
        let begun = log.next_block(nand, &|unit| self.is_in_flash(unit), now);
        self.mend_log(nand, &mut log);
        self.trim_log = Some(log);
        begun
    }

    /// A block of the log that became bad is replaced like any other.
    fn mend_log(&mut self, nand: &mut Nand, log: &mut TrimLog) {
        while log.good_blocks(nand) < self.log_blocks.len().min(2) {
            let states = &self.states;
            let first = self.first_block;
            let Some(block) = self.pool.take_where(|block| !states[(block - first) as usize].is_dirty) else { return };
            log.add_block(nand, block);
            self.log_blocks.push(block);
            self.worn_out |= !self.pool.retire(nand);
            self.stats.replaced_blocks += 1;
        }
    }

    /// Whether the flash holds a valid copy of a unit. A unit in memory may have an older copy there.
    pub(super) fn is_in_flash(&self, unit: u32) -> bool {
        let physical = self.map.lookup(unit);
        physical != NO_UNIT && !(self.fresh.contains(&unit) && self.is_in_memory(unit, physical))
    }

    /// Erases every block with obsolete data, after moving its valid data.
    ///
    /// Data in a bad block stays: it is unreadable and cannot be erased.
    pub(super) fn purge_blocks(&mut self, nand: &mut Nand, mut now: Instant) -> Result<Instant, FtlError> {
        now = self.retire_failing(nand, now)?;
        now = self.finish_victim(nand, now)?;
        for role in 0..self.frontiers.len() {
            now = self.settle(nand, role, now)?;
            if self.frontiers[role].block != NO_BLOCK {
                self.close(role);
            }
        }
        let mut stale: Vec<u32> = self.victims.iter().filter(|&block| self.holds_stale(nand, block)).collect();
        stale.sort_unstable_by_key(|&block| (self.map.valid_in(block), block));
        for block in stale {
            self.victims.remove(block);
            now = self.collect(nand, block, self.roles.gc, now)?;
        }
        for role in 0..self.frontiers.len() {
            now = self.settle(nand, role, now)?;
        }
        now = self.log_discards(nand, now)?;
        self.erase_free(nand, now)
    }

    fn holds_stale(&self, nand: &Nand, block: u32) -> bool {
        let first = self.geometry.first_unit(block, 0);
        let mut units = (first..).zip(nand.spare(block));
        units.any(|(physical, &unit)| unit != NO_UNIT && !self.map.is_valid(physical))
    }

    fn erase_free(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let dirty: Vec<u32> = self.pool.iter().filter(|&block| nand.block(block).next_page > 0).collect();
        for block in dirty {
            let taken = self.pool.take_where(|other| other == block);
            debug_assert_eq!(taken, Some(block));
            if self.erase(nand, block, now)? {
                self.pool.give(block, nand.block(block).erase_count);
            }
        }
        Ok(now.max(nand.quiet_at()))
    }
}

/// Sorts ranges, and merges those that touch or overlap.
fn join_neighbours(ranges: &mut Vec<(u32, u32)>) {
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let touches = next.0 <= last.0 + last.1;
        if touches {
            last.1 = last.1.max(next.0 + next.1 - last.0);
        }
        touches
    });
}

#[cfg(test)]
mod tests {
    use super::join_neighbours;

    #[test]
    fn adjacent_and_overlapping_ranges_merge() {
        let mut ranges = vec![(20, 5), (0, 10), (10, 5), (12, 1), (26, 4), (24, 2), (40, 1)];
        join_neighbours(&mut ranges);
        assert_eq!(ranges, [(0, 15), (20, 10), (40, 1)]);
    }
}
