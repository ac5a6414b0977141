//! Folding: the oldest block of the log is copied to the main layer, in parts where collection is paced.

use emmc_units::Instant;

use super::log::Log;
use super::{Durability, FtlError, Nand, SlcFront};
use crate::nand::NandError;

/// Pages of the log that a step of idle time folds: some 10 ms.
const IDLE_PAGES: u32 = 8;

/// The block that is folded in parts.
#[derive(Clone, Debug)]
pub(super) struct Folding {
    block: u32,
    /// Its valid units and their places when it was begun, by unit.
    valid: Vec<(u32, u32)>,
    /// How many of them are folded.
    at: usize,
}

impl Folding {
    fn new(log: &Log, nand: &Nand, block: u32) -> Self {
        Self { block, valid: log.valid_in(nand, block), at: 0 }
    }
}

impl SlcFront {
    /// Moves the valid units of the oldest block to the main layer, flushes them there, and erases the block.
    ///
    /// The copies stay valid until then: after a cut in between they are found with the same content.
    pub(super) fn fold_oldest(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        self.fold_part(nand, usize::MAX, now)
    }

    /// Paced folding: for each page that is written to the log a page's share of the oldest block, if the next block
    /// would have to wait for it.
    pub(super) fn keep_folding(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let Some(&block) = self.log.full.front().filter(|_| self.paced && self.log.is_low()) else { return Ok(now) };
        if self.folding.as_ref().is_none_or(|folding| folding.block != block) {
            self.own.foreground_stalls += 1;
            self.folding = Some(Folding::new(&self.log, nand, block));
        }
        let units = self.folding.as_ref().map_or(0, |folding| folding.valid.len());
        // At least one, so that it ends.
        self.fold_part(nand, units.div_ceil(nand.pages_of(block) as usize).max(1), now)
    }

    /// Folding beside writes that bypass the log: what earlier writes have left in it is paid by those that come next.
    /// A page at a time, so that whole pages of the main layer fill. The erase of a folded block counts as what could
    /// be programmed in its time: blocks without valid units are not all erased one after another.
    pub(super) fn fold_beside(&mut self, nand: &mut Nand, count: u32, now: Instant) -> Result<Instant, FtlError> {
        if self.stream_fold_percent == 0 || !self.log.has_full() {
            self.fold_owed = 0;
            return Ok(now);
        }
        self.fold_owed += i64::from(count) * i64::from(self.stream_fold_percent);
        let stripe = i64::from(nand.geometry().units_per_page * nand.geometry().lanes());
        let units = self.fold_owed.max(0) / 100 / stripe * stripe;
        self.fold_owed -= units * 100;
        if units == 0 {
            return Ok(now);
        }
        let folds = self.own.folds;
        let done = self.fold_part(nand, units as usize, now)?;
        if self.own.folds > folds {
            self.fold_owed -= i64::from(nand.units_in_erase()) * 100;
        }
        Ok(done)
    }

    /// The same for a share of the background: the units of some pages.
    pub(super) fn fold_in_idle_time(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let units = if self.paced { (IDLE_PAGES * nand.geometry().units_per_page) as usize } else { usize::MAX };
        self.fold_part(nand, units, now)
    }

    /// Folds the next `units` of the oldest block, and frees it after the last.
    fn fold_part(&mut self, nand: &mut Nand, units: usize, now: Instant) -> Result<Instant, FtlError> {
        let Some(&block) = self.log.full.front() else { return Ok(now) };
        self.drop_unreadable(nand);
        let begun = self.folding.take().filter(|folding| folding.block == block);
        let folding = begun.unwrap_or_else(|| Folding::new(&self.log, nand, block));
        let end = folding.at.saturating_add(units).min(folding.valid.len());
        let part = self.still_here(&folding.valid[folding.at..end]);
        let units_per_page = nand.geometry().units_per_page;
        let pages = part.iter().map(|&(unit, physical)| (physical / units_per_page, unit)).collect();
        let mut done = self.read_pages(nand, pages, now)?;
        done = self.write_runs(nand, &part, done)?;
        self.own.copied_units += part.len() as u64;
        if end < folding.valid.len() {
            self.folding = Some(Folding { at: end, ..folding });
            self.count();
            return Ok(done);
        }
        if self.may_be_needed(nand, block) {
            return Err(FtlError::WornOut);
        }
        if !folding.valid.is_empty() || self.voids.wait_for_flush() {
            done = done.max(self.inner.flush_row(nand, done)?);
            self.voids.flushed();
        }
        for (unit, _) in self.still_here(&folding.valid) {
            self.log.index.remove(unit);
        }
        self.log.full.pop_front();
        self.own.folds += 1;
        self.count();
        self.free_block(nand, block, done)
    }

    /// Those of the units that were neither overwritten nor trimmed since.
    fn still_here(&self, valid: &[(u32, u32)]) -> Vec<(u32, u32)> {
        valid.iter().copied().filter(|&(unit, physical)| self.log.index.get(unit) == Some(physical)).collect()
    }

    /// No block is left for records of voids: all units move to the main layer, and the log takes no more writes. Then
    /// no unit in it can be mistaken for valid.
    pub(super) fn give_up_log(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        self.log.is_over = true;
        self.log.close();
        let mut done = now;
        while self.log.has_full() {
            done = self.fold_oldest(nand, done)?;
        }
        self.voids.forget();
        Ok(done)
    }

    /// Writes units to the main layer, each run of adjacent units in one call.
    pub(super) fn write_runs(
        &mut self,
        nand: &mut Nand,
        valid: &[(u32, u32)],
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let unit_bytes = self.unit_bytes as usize;
        let mut data = Vec::new();
        let mut done = now;
        for run in valid.chunk_by(|one, next| one.0 + 1 == next.0) {
            if nand.keeps_data() {
                data.clear();
                for &(_, physical) in run {
                    let start = data.len();
                    data.resize(start + unit_bytes, 0);
                    if let Some(bytes) = nand.unit_data(physical) {
                        data[start..].copy_from_slice(bytes);
                    }
                }
            }
            let bytes = nand.keeps_data().then_some(&data[..]);
            let count = run.len() as u32;
            done = done.max(self.inner.write(nand, run[0].0, count, bytes, Durability::Buffered, now)?);
        }
        Ok(done)
    }

    /// Erases a block without valid units, and returns it to the queue, or retires it if it became bad.
    pub(super) fn free_block(&mut self, nand: &mut Nand, block: u32, now: Instant) -> Result<Instant, FtlError> {
        let failed = self.log.failed.iter().position(|&failed| failed == block);
        match nand.erase(block, now) {
            Ok(done) => {
                match failed {
                    Some(slot) => self.log.retired.push((self.log.failed.swap_remove(slot), done)),
                    None => self.log.free.push_back(block),
                }
                Ok(done)
            }
            Err(NandError::EraseFailed { .. }) => {
                self.log.failed.retain(|&other| other != block);
                Ok(now)
            }
            Err(_) => Err(FtlError::PowerLost),
        }
    }

    /// Marks blocks bad in which a program had failed.
    pub(super) fn mark_retired(&mut self, nand: &mut Nand, now: Instant) {
        self.log.retired.retain(|&(block, erased_at)| {
            let is_due = erased_at <= now;
            if is_due {
                nand.mark_bad(block, now);
            }
            !is_due
        });
    }
}
