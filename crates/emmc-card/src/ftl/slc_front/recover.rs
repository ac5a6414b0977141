//! After a power cut: a scan rebuilds the log.
//!
//! Of the copies of a unit in the log the newest counts, unless it is void. A block with an unreadable first page is
//! ignored: no other page was programmed before that one was complete, so the block is either empty, or its erase was
//! interrupted after the folding. Units that may have been interrupted are copied to the main layer before the recovery
//! ends, and are voided here. Where no sequence numbers are kept (plain simulation) memory stays and only the time is
//! taken.

use std::collections::{BTreeMap, BTreeSet};

use emmc_units::Instant;

use super::{FtlError, Nand, SlcFront};
use crate::ftl::trim_log::{TrimOrders, Trimmed};
use crate::nand::{FoundPage, NO_UNIT, NandError, Soundness, Survey};

/// Attempts to copy units within the log: each failed program takes one.
const COPIES_MAX: usize = 8;

impl SlcFront {
    pub(super) fn recover_all(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        self.log.clear_buffer();
        self.folding = None;
        self.unsure.clear();
        (self.stream, self.worn_out) = (Default::default(), false);
        let survey = Survey::take(nand, &self.log.all.clone(), now)?;
        let (trims, mut done) = self.voids.replay(nand, now)?;
        done = done.max(survey.done);
        if !nand.keeps_orders() {
            return Ok(done.max(self.inner.recover(nand, now)?));
        }
        let doubtful = self.find_units(nand, &survey, &trims);
        let damaged = self.queue(nand, &survey);
        let index = &self.log.index;
        let is_certain = |unit| index.get(unit).is_some_and(|physical| !doubtful.contains(&physical));
        done = done.max(self.inner.recover_below(nand, &is_certain, done)?);
        done = self.rescue(nand, &doubtful, done)?;
        self.unsure = self.find_unsure(nand, &survey, &trims, &doubtful);
        // After the rescue: a doubtful unit may have an older, void copy, which must not lose its record.
        done = self.make_voids_last(nand, &doubtful, &trims, done)?;
        for block in damaged {
            // Unless it has been folded meanwhile.
            let is_empty = self.log.valid_in(nand, block).is_empty() && !self.may_be_needed(nand, block);
            if self.log.full.contains(&block) && is_empty {
                self.log.full.retain(|&other| other != block);
                done = self.free_block(nand, block, done)?;
            }
        }
        for (unit, physical) in self.log.index.sorted() {
            if !doubtful.contains(&physical) {
                self.inner.supersede(unit);
            }
        }
        Ok(done)
    }

    /// Rebuilds the index; answers the physical units in it that may stop to read.
    fn find_units(&mut self, nand: &Nand, survey: &Survey, trims: &[Trimmed]) -> BTreeSet<u32> {
        let voids = TrimOrders::new(trims);
        let begun: BTreeSet<u32> =
            survey.pages.iter().filter(|found| found.page == 0).map(|found| found.block).collect();
        let mut doubtful = BTreeSet::new();
        self.log.index.clear();
        for found in survey.pages.iter().filter(|found| begun.contains(&found.block)) {
            let FoundPage { block, page, order, .. } = *found;
            let first = nand.geometry().first_unit(block, page);
            for (&unit, physical) in nand.page_units(block, page).iter().zip(first..) {
                if unit != NO_UNIT && voids.of(unit) < order {
                    self.log.index.set(unit, physical);
                    if found.doubtful {
                        doubtful.insert(physical);
                    }
                }
            }
        }
        doubtful.retain(|&physical| self.log.index.get(nand.logical(physical)) == Some(physical));
        doubtful
    }

    /// Puts the blocks back into their queues; answers those that must be erased before they are used.
    fn queue(&mut self, nand: &Nand, survey: &Survey) -> Vec<u32> {
        let mut newest = BTreeMap::new();
        for found in &survey.pages {
            newest.insert(found.block, found.order);
        }
        let mut used: Vec<_> = survey.blocks.iter().filter(|found| found.soundness != Soundness::Erased).collect();
        used.sort_by_key(|found| newest.get(&found.block).copied().unwrap_or_default());
        let mut free: Vec<u32> = survey
            .blocks
            .iter()
            .filter(|found| found.soundness == Soundness::Erased)
            .map(|found| found.block)
            .collect();
        free.sort_by_key(|&block| (nand.block(block).erase_count, block));
        self.log.free = free.into();
        self.log.full = used.iter().map(|found| found.block).collect();
        self.log.open = None;
        self.log.failed.clear();
        self.log.retired.clear();
        // One whose last program may have been interrupted takes no more.
        let doubtful = |block: u32| survey.pages.iter().any(|found| found.block == block && found.doubtful);
        if used.last().is_some_and(|found| found.soundness == Soundness::Open && !doubtful(found.block)) {
            self.log.open = self.log.full.pop_back();
        }
        used.iter().filter(|found| found.soundness == Soundness::Damaged).map(|found| found.block).collect()
    }

    /// Voids are recorded again, or the log is emptied if that is impossible. If the main layer takes no more writes
    /// either, everything stays unchanged.
    fn make_voids_last(
        &mut self,
        nand: &mut Nand,
        doubtful: &BTreeSet<u32>,
        trims: &[Trimmed],
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let index = &self.log.index;
        let stay = doubtful.iter().filter(|&&physical| index.get(nand.logical(physical)) == Some(physical));
        let voids = TrimOrders::new(trims);
        let behind = stay.map(|&physical| nand.logical(physical)).map(|unit| (unit, voids.of(unit)));
        let known = behind.filter(|&(_, order)| order > 0);
        let keep: Vec<Trimmed> = known.map(|(first, order)| Trimmed { first, count: 1, order }).collect();
        let made = match self.voids.make_last(nand, &|unit| index.get(unit).is_some(), &keep, now) {
            Err(FtlError::WornOut) => self.give_up_log(nand, now),
            made => made,
        };
        match made {
            Err(FtlError::WornOut) => {
                self.worn_out = true;
                Ok(now)
            }
            made => made,
        }
    }

    /// Moves units that may become unreadable to the main layer, then voids their copies here. If that layer takes no
    /// more writes, they move to a free block of the log.
    fn rescue(&mut self, nand: &mut Nand, doubtful: &BTreeSet<u32>, now: Instant) -> Result<Instant, FtlError> {
        let mut units: Vec<(u32, u32)> = doubtful.iter().map(|&physical| (nand.logical(physical), physical)).collect();
        units.sort_unstable();
        let units_per_page = nand.geometry().units_per_page;
        let pages = units.iter().map(|&(unit, physical)| (physical / units_per_page, unit)).collect();
        let read = self.read_pages(nand, pages, now)?;
        if units.is_empty() {
            return Ok(now);
        }
        let written = match self.write_runs(nand, &units, read) {
            Err(FtlError::WornOut) => return self.copy_within_log(nand, &units, read),
            written => written?,
        };
        let flushed = self.inner.flush(nand, written)?;
        for &(unit, _) in &units {
            self.log.index.remove(unit);
            self.voids.add(unit, 1, false);
        }
        Ok(flushed)
    }

    /// Copies units to other blocks of the log, once more where a program fails; those that find no place stay.
    fn copy_within_log(&mut self, nand: &mut Nand, units: &[(u32, u32)], now: Instant) -> Result<Instant, FtlError> {
        let mut done = now;
        for _ in 0..COPIES_MAX {
            let left: Vec<_> =
                units.iter().copied().filter(|&(unit, physical)| self.log.index.get(unit) == Some(physical)).collect();
            if left.is_empty() {
                break;
            }
            let Some(ready) = self.place_for_copies(nand, done)? else { break };
            done = match self.copy_to_open(nand, &left, ready) {
                Err(FtlError::WornOut) => ready,
                copied => copied?,
            };
            self.log.clear_buffer();
        }
        self.log.close();
        Ok(done)
    }

    /// Opens a block for copies and answers when it is ready: a free one, the end of the last one written, or one in
    /// which a program has failed, erased where nothing valid is in it. The main layer takes no more.
    fn place_for_copies(&mut self, nand: &mut Nand, now: Instant) -> Result<Option<Instant>, FtlError> {
        if self.log.open.is_some() {
            return Ok(Some(now));
        }
        self.log.open = self.log.free.pop_front();
        if self.log.open.is_some() {
            return Ok(Some(now));
        }
        let failed = self.log.failed.clone();
        let is_failed = |block: &u32| failed.contains(block);
        let has_room = |block: u32| nand.soundness(block) == Soundness::Open;
        let last = self.log.full.iter().copied().rfind(|block| !is_failed(block)).filter(|&block| has_room(block));
        if let Some(block) = last {
            self.log.full.retain(|&other| other != block);
            self.log.open = Some(block);
            return Ok(Some(now));
        }
        for block in failed {
            let holds_copies = self.log.valid_count(block) > 0;
            if holds_copies && nand.block(block).next_page == nand.pages_of(block) {
                continue;
            }
            let ready = match if holds_copies { Ok(now) } else { nand.erase(block, now) } {
                Ok(ready) => ready,
                // Bad from now on.
                Err(NandError::EraseFailed { .. }) => {
                    self.log.failed.retain(|&other| other != block);
                    self.log.full.retain(|&other| other != block);
                    continue;
                }
                Err(_) => return Err(FtlError::PowerLost),
            };
            self.log.failed.retain(|&other| other != block);
            self.log.full.retain(|&other| other != block);
            self.log.open = Some(block);
            return Ok(Some(ready));
        }
        Ok(None)
    }

    /// Programs units to the open block, and on to free ones.
    fn copy_to_open(&mut self, nand: &mut Nand, units: &[(u32, u32)], now: Instant) -> Result<Instant, FtlError> {
        let mut done = now;
        for (index, &(unit, physical)) in units.iter().enumerate() {
            if self.log.open.is_none() {
                self.log.open = self.log.free.pop_front();
            }
            if self.log.open.is_none() {
                break;
            }
            let bytes = nand.unit_data(physical).map(<[u8]>::to_vec);
            if self.log.put(nand, unit, bytes.as_deref()) || index + 1 == units.len() {
                done = done.max(self.program(nand, now)?);
            }
        }
        Ok(done)
    }
}
