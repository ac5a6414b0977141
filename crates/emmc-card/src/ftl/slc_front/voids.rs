//! Voids: obsolete copies in the log that are newer than the copies in the main layer.
//!
//! A unit that is trimmed, or written without the log, is removed from the index immediately; its copies stay in flash
//! until their blocks are erased, and a scan would find them. A record, newer than they, voids them. It is made before
//! the host gets a guarantee (a durable write, a trim, a flush), after the replacing data is durable: until then a cut
//! may restore the old content. A unit with an unrecorded void must not be programmed into the log.

use emmc_units::Instant;

use crate::ftl::FtlError;
use crate::ftl::trim_log::{TrimLog, Trimmed};
use crate::nand::Nand;

/// Ranges that may wait for their records.
const RANGES_MAX: usize = 32;

/// Voids: recorded ones in flash, others in memory.
#[derive(Clone, Debug)]
pub(super) struct Voids {
    records: Option<TrimLog>,
    /// First unit and count, not recorded yet.
    waiting: Vec<(u32, u32)>,
    /// Whether the replacements of waiting voids need a flush to be durable.
    buffered: bool,
    /// When the last record is done.
    pub(super) recorded_by: Instant,
}

impl Voids {
    /// Voids with their records in two blocks; with fewer there is no log, and so no void.
    pub(super) fn new(nand: &mut Nand, blocks: &[u32], units: u32) -> Self {
        let records = (blocks.len() >= 2).then(|| TrimLog::new(nand, blocks, units));
        Self { records, waiting: Vec::new(), buffered: false, recorded_by: Instant::START }
    }

    /// Copies of these units are void; `buffered`: their new content is not safe in flash yet.
    pub(super) fn add(&mut self, first: u32, count: u32, buffered: bool) {
        self.buffered |= buffered;
        match self.waiting.last_mut() {
            Some((start, known)) if *start + *known == first => *known += count,
            _ => self.waiting.push((first, count)),
        }
    }

    pub(super) fn are_settled(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn are_many(&self) -> bool {
        self.waiting.len() > RANGES_MAX
    }

    /// Whether the main layer must flush before a record is written, or a block of the log erased.
    pub(super) fn wait_for_flush(&self) -> bool {
        self.buffered
    }

    /// The main layer has been flushed.
    pub(super) fn flushed(&mut self) {
        self.buffered = false;
    }

    /// Whether one of the units has a void without record.
    pub(super) fn cover_any(&self, units: &[u32]) -> bool {
        let covered = |unit: u32| self.waiting.iter().any(|&(first, count)| unit.wrapping_sub(first) < count);
        !self.waiting.is_empty() && units.iter().any(|&unit| covered(unit))
    }

    /// Makes the records of all that wait. `in_log` as the index says.
    pub(super) fn append(
        &mut self,
        nand: &mut Nand,
        in_log: &dyn Fn(u32) -> bool,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let mut done = now;
        if let Some(records) = &mut self.records {
            for &(first, count) in &self.waiting {
                done = records.append(nand, first, count, in_log, done)?;
                self.recorded_by = done;
            }
        }
        self.waiting.clear();
        Ok(done)
    }

    /// After a power cut: the recorded voids, and when they have been read.
    pub(super) fn replay(&mut self, nand: &mut Nand, now: Instant) -> Result<(Vec<Trimmed>, Instant), FtlError> {
        (self.buffered, self.recorded_by) = (false, now);
        self.waiting.clear();
        match &mut self.records {
            None => Ok((Vec::new(), now)),
            Some(records) => records.replay(nand, now).map(|replay| (replay.trims, replay.done)),
        }
    }

    /// After a power cut, when the index is complete: records that may have been cut are repeated, and waiting ones are
    /// written. `keep`: the recorded voids before copies that may become unreadable, which no other record voids.
    pub(super) fn make_last(
        &mut self,
        nand: &mut Nand,
        in_log: &dyn Fn(u32) -> bool,
        keep: &[Trimmed],
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let Some(records) = self.records.as_mut().filter(|_| nand.keeps_orders()) else { return Ok(now) };
        let done = records.settle(nand, in_log, keep, now)?;
        if records.is_begun() {
            self.waiting.clear();
        }
        // Without earlier records there is nothing to repeat.
        self.append(nand, in_log, done)
    }

    /// The log has no unit that could be void.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
    }
}
