//! Blocks with one bit a cell in front of another layer: small writes go to a log of them, and are folded later.
//!
//! The log is a queue of blocks. A unit's copy in the log is always newer than its copy in the main layer; if it must
//! not be (a large write bypassed the log, or the unit was trimmed), a durable record voids it (`voids`). When few
//! blocks are free, the host's writes fold the oldest one, in steps or at once (`gc_pace`): its valid units are copied
//! to the main layer, by logical unit, and flushed there with their row; only then is the block erased. What was
//! overwritten in the log is never folded.
//! When a unit's copy in the log is programmed, the main layer drops its copy, as a controller with one map would, so
//! garbage collection does not move stale units. Durability: a page of the log pairs with none, so a programmed page is
//! safe. Time: folding reads a block's pages, then writes; a write ends when its pages are programmed. Absent on
//! purpose: a log that grows into free native blocks (dynamic SLC cache), and any order but the queue's.

mod audit;
mod fold;
mod index;
mod log;
mod recover;
#[cfg(test)]
mod tests;
mod unsure;
mod voids;
mod write;

use emmc_units::Instant;

use super::refresh::Refresh;
use super::unsure::Unsure;
use super::{Durability, Ftl, FtlError, FtlStats, TrimKind};
use crate::nand::{BlockHealth, Nand, NandError};
use crate::profile::{FtlConfig, GcPace, Mapping, SlcCache};
use fold::Folding;
use log::Log;
use voids::Voids;

/// Minimum of blocks: two for its records, and two for the log.
pub const BLOCKS_MIN: u32 = 4;

/// A log of blocks with one bit a cell, and the main layer.
#[derive(Debug)]
pub struct SlcFront {
    inner: Box<dyn Ftl>,
    log: Log,
    voids: Voids,
    unit_bytes: u32,
    bypass_bytes: u32,
    idle_fold: bool,
    /// Pages of the log that are folded for each hundred that bypass it, and hundredths of units that are still owed.
    stream_fold_percent: u32,
    refresh: Option<Refresh>,
    fold_owed: i64,
    /// The requests that have no effect, as in the main layer: discards, or trims as well.
    ignored: Option<TrimKind>,
    stream: Stream,
    /// Whether the host's writes fold in steps, and the block that is being folded.
    paced: bool,
    folding: Option<Folding>,
    unsure: Vec<Unsure>,
    /// A write was refused because no block is left: all others are refused too, so that none is written in part.
    worn_out: bool,
    /// Its own blocks, then those of the main layer.
    blocks: Vec<u32>,
    /// The counters of the front, and those together with the main layer.
    own: FtlStats,
    both: FtlStats,
}

/// Calls that belong together: the data path cuts a large write into chunks, all but the last of them buffered.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    end: u32,
    units: u32,
    goes_on: bool,
}

impl SlcFront {
    /// A front of the erased `blocks`, of which at least [`BLOCKS_MIN`] should be good; with fewer every write bypasses
    /// it.
    pub fn new(config: &FtlConfig, cache: &SlcCache, blocks: &[u32], inner: Box<dyn Ftl>, nand: &mut Nand) -> Self {
        let mode = nand.geometry().native.single_bit();
        let good: Vec<u32> =
            blocks.iter().copied().filter(|&block| nand.block(block).health == BlockHealth::Good).collect();
        for &block in &good {
            nand.set_mode(block, mode);
        }
        let (records, log) = good.split_at(2.min(good.len()));
        Self {
            log: Log::new(log, cache.low_blocks, nand.geometry()),
            voids: Voids::new(nand, records, inner.units()),
            unit_bytes: nand.geometry().unit_bytes,
            bypass_bytes: cache.bypass_bytes,
            idle_fold: cache.idle_fold,
            stream_fold_percent: cache.stream_fold_percent,
            fold_owed: 0,
            refresh: Refresh::of(config),
            ignored: match config.mapping {
                _ if config.trim_frees => None,
                Mapping::Page => Some(TrimKind::Trim),
                Mapping::Segment => Some(TrimKind::Discard),
            },
            stream: Stream::default(),
            paced: config.gc_pace == GcPace::Paced,
            folding: None,
            unsure: Vec::new(),
            worn_out: false,
            blocks: blocks.iter().chain(inner.blocks()).copied().collect(),
            own: FtlStats::default(),
            both: *inner.stats(),
            inner,
        }
    }

    /// Adds the counters of the main layer. Its host writes are the front's folds, or were counted already.
    fn count(&mut self) {
        let inner = FtlStats { host_units: 0, ..*self.inner.stats() };
        self.both = self.own.plus(&inner);
    }

    /// A unit that is in the log, read into `out`. The caller takes the time of it.
    fn copy_held(&self, nand: &Nand, unit: u32, physical: Option<u32>, out: &mut [u8]) {
        let data = match physical {
            None => self.log.buffered(unit),
            Some(physical) => nand.unit_data(physical),
        };
        match data {
            Some(data) => out.copy_from_slice(data),
            None => out.fill(0),
        }
    }
}

/// What an error of reading or programming the log means.
fn fault(error: NandError, unit: u32) -> FtlError {
    match error {
        NandError::Uncorrectable { .. } => FtlError::Uncorrectable { unit },
        _ => FtlError::PowerLost,
    }
}

impl Ftl for SlcFront {
    fn units(&self) -> u32 {
        self.inner.units()
    }

    fn write(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        data: Option<&[u8]>,
        durability: Durability,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        if self.worn_out {
            return Err(FtlError::WornOut);
        }
        self.own.host_units += u64::from(count);
        self.both.host_units += u64::from(count);
        let result = if self.goes_past(first, count, durability) {
            let result = self.write_past(nand, first, count, data, durability, now);
            self.count();
            result
        } else {
            self.write_log(nand, first, count, data, durability, now)
        };
        self.worn_out = result == Err(FtlError::WornOut);
        result
    }

    fn step_back(&mut self, nand: &mut Nand, unit: u32, now: Instant) -> Result<Instant, FtlError> {
        let ready = self.inner.step_back(nand, unit, now);
        self.count();
        ready
    }

    fn foresee(&self, soon: &[u32], next: &[u32]) {
        self.inner.foresee(soon, next);
    }

    fn read(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        out: Option<&mut [u8]>,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        if self.log.is_empty() {
            let result = self.inner.read(nand, first, count, out, now);
            self.count();
            return result;
        }
        self.read_mixed(nand, first, count, out, now)
    }

    fn trim(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        kind: TrimKind,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        if self.ignored == Some(TrimKind::Trim) || self.ignored == Some(kind) {
            return Ok(now);
        }
        // The main layer first: if the log's copy were void earlier, a cut would restore a still older one.
        let mut done = self.inner.trim(nand, first, count, kind, now)?;
        let taken_out = self.log.take_out(first, count);
        if taken_out > 0 {
            self.voids.add(first, count, false);
        }
        self.own.trimmed_units += taken_out as u64;
        if kind == TrimKind::Trim || self.voids.are_many() {
            done = self.settle(nand, done)?;
        }
        self.count();
        Ok(done)
    }

    fn flush(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let programmed = self.program(nand, now)?;
        let flushed = self.inner.flush(nand, now)?;
        self.voids.flushed();
        let done = self.settle(nand, programmed.max(flushed))?;
        self.count();
        // A page of the log that was programmed earlier may still be in progress.
        Ok(done.max(self.log.programmed_by))
    }

    fn is_mapped(&self, unit: u32) -> bool {
        self.log.holds(unit) || self.inner.is_mapped(unit)
    }

    fn mapped_units(&self) -> u32 {
        self.inner.mapped_units() + self.log.units_beside(|unit| self.inner.is_mapped(unit))
    }

    fn background(&mut self, nand: &mut Nand, now: Instant) -> Result<Option<Instant>, FtlError> {
        // A main layer without free blocks would only stop the folding.
        // Folding is also how its data is refreshed.
        let is_due = |refresh: &Refresh| self.log.full.iter().any(|&block| refresh.is_due(nand, block, now));
        let folds = self.idle_fold || self.refresh.as_ref().is_some_and(is_due);
        let result = if folds && self.log.has_full() && self.inner.urgency(nand) < 2 {
            self.fold_in_idle_time(nand, now).map(Some)
        } else {
            self.inner.background(nand, now)
        };
        self.count();
        result
    }

    fn urgency(&self, nand: &Nand) -> u8 {
        let inner = self.inner.urgency(nand);
        if self.idle_fold { inner.max(self.log.urgency(self.paced)) } else { inner }
    }

    fn purge(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let mut done = self.flush(nand, now)?;
        self.log.close();
        while self.log.has_full() {
            done = self.fold_oldest(nand, done)?;
        }
        done = self.inner.purge(nand, done)?;
        self.count();
        Ok(done)
    }

    fn recover(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let result = self.recover_all(nand, now);
        self.count();
        result
    }

    fn spares(&self) -> (u32, u32) {
        self.inner.spares()
    }

    fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    fn valid_in(&self, block: u32) -> Option<u32> {
        if self.log.all.contains(&block) {
            return Some(self.log.valid_count(block));
        }
        self.inner.blocks().contains(&block).then(|| self.inner.valid_in(block)).flatten()
    }

    fn stats(&self) -> &FtlStats {
        &self.both
    }

    fn audit(&self, nand: &Nand) -> Result<(), String> {
        self.audit_log(nand)?;
        self.inner.audit(nand)
    }
}
