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
use crate::ftl::trim_log::Trimmed;
use crate::nand::{FoundPage, NO_UNIT, Soundness, Survey};

impl SlcFront {
    pub(super) fn recover_all(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        self.log.clear_buffer();
        self.folding = None;
        (self.stream, self.worn_out) = (Default::default(), false);
        let survey = Survey::take(nand, &self.log.all.clone(), now)?;
        let (trims, mut done) = self.voids.replay(nand, now)?;
        done = done.max(survey.done);
        if !nand.keeps_orders() {
            return Ok(done.max(self.inner.recover(nand, now)?));
        }
        let doubtful = self.find_units(nand, &survey, &trims);
        let damaged = self.queue(nand, &survey);
        done = done.max(self.inner.recover(nand, done)?);
        done = self.rescue(nand, &doubtful, done)?;
        // After the rescue: a doubtful unit may have an older, void copy, which must not lose its record.
        done = self.make_voids_last(nand, &doubtful, &trims, done)?;
        for block in damaged {
            // Unless it has been folded meanwhile.
            if self.log.full.contains(&block) && self.log.valid_in(nand, block).is_empty() {
                self.log.full.retain(|&other| other != block);
                done = self.free_block(nand, block, done)?;
            }
        }
        for (unit, _) in self.log.index.sorted() {
            self.inner.supersede(unit);
        }
        Ok(done)
    }

    /// Rebuilds the index; answers the physical units in it that may stop to read.
    fn find_units(&mut self, nand: &Nand, survey: &Survey, trims: &[Trimmed]) -> BTreeSet<u32> {
        let voids = newest_voids(trims);
        let begun: BTreeSet<u32> =
            survey.pages.iter().filter(|found| found.page == 0).map(|found| found.block).collect();
        let mut doubtful = BTreeSet::new();
        self.log.index.clear();
        for found in survey.pages.iter().filter(|found| begun.contains(&found.block)) {
            let FoundPage { block, page, order, .. } = *found;
            let first = nand.geometry().first_unit(block, page);
            for (&unit, physical) in nand.page_units(block, page).iter().zip(first..) {
                if unit != NO_UNIT && void_order(&voids, unit) < order {
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
        let voids = newest_voids(trims);
        let behind = stay.map(|&physical| nand.logical(physical)).map(|unit| (unit, void_order(&voids, unit)));
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

    /// Copies units to a free block or, without one, to the end of their block; if that is full they stay.
    fn copy_within_log(&mut self, nand: &mut Nand, units: &[(u32, u32)], now: Instant) -> Result<Instant, FtlError> {
        let last = self.log.full.back().copied().filter(|&block| nand.soundness(block) == Soundness::Open);
        if self.log.open.is_none() && self.log.free.is_empty() && last.is_some() {
            self.log.open = self.log.full.pop_back();
        }
        self.log.open = self.log.open.or_else(|| self.log.free.pop_front());
        let mut done = now;
        for (index, &(unit, physical)) in units.iter().enumerate() {
            self.log.open = self.log.open.or_else(|| self.log.free.pop_front());
            if self.log.open.is_none() {
                break;
            }
            let bytes = nand.unit_data(physical).map(<[u8]>::to_vec);
            if self.log.put(unit, bytes.as_deref()) || index + 1 == units.len() {
                match self.program(nand, now) {
                    Err(FtlError::WornOut) => break,
                    programmed => done = done.max(programmed?),
                }
            }
        }
        self.log.clear_buffer();
        self.log.close();
        Ok(done)
    }
}

/// For ranges of units, the sequence number of the newest void: from where, and up to the next entry.
fn newest_voids(trims: &[Trimmed]) -> BTreeMap<u32, u64> {
    let mut steps = BTreeMap::from([(0, 0)]);
    // Oldest first, so a later one covers all of its range.
    for trim in trims {
        let end = trim.first + trim.count;
        let after = void_order(&steps, end);
        let inside: Vec<u32> = steps.range(trim.first..end).map(|(&at, _)| at).collect();
        for at in inside {
            steps.remove(&at);
        }
        steps.insert(trim.first, trim.order);
        steps.entry(end).or_insert(after);
    }
    steps
}

/// The sequence number of the newest void of a unit; 0: none.
fn void_order(steps: &BTreeMap<u32, u64>, unit: u32) -> u64 {
    steps.range(..=unit).next_back().map_or(0, |(_, &order)| order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_overlapping_voids_counts() {
        let trim = |first, count, order| Trimmed { first, count, order };
        let voids = newest_voids(&[trim(10, 10, 1), trim(5, 20, 2), trim(12, 3, 3), trim(15, 1, 4), trim(0, 6, 5)]);
        let orders: Vec<u64> = (0..27).map(|unit| void_order(&voids, unit)).collect();
        let mut wanted = vec![0; 27];
        wanted[5..25].fill(2);
        wanted[12..15].fill(3);
        wanted[15] = 4;
        wanted[..6].fill(5);
        assert_eq!(orders, wanted);
    }
}
