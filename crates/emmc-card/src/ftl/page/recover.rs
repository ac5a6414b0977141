//! Rebuilds the map after a power cut: the newest copy of each unit is current, unless the trim log has a newer entry.
//!
//! Open blocks are closed without padding. Units that may have been interrupted are copied elsewhere, because they may
//! soon be unreadable; until the copies are durable, no block with data that would be current without them is erased.
//! The block of the copies is stamped with the page of its *seal*, which is programmed last: a block without a started
//! seal is left out of the map, so that repeated cuts use up no more than one block. Two facts persist outside this
//! scan, as controllers store them in an area of their own: which blocks are bad, and which are spares. The cost is
//! that of [`Survey`], of reading the log, and of the copies.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use emmc_units::Instant;

use super::place::Bytes;
use super::{BlockState, PageFtl};
use crate::ftl::FtlError;
use crate::ftl::gc::Victims;
use crate::ftl::map::Map;
use crate::ftl::trim_log::Trimmed;
use crate::nand::{NO_UNIT, Nand, NandError, Soundness, Survey};

/// Flag in the stamp of a block of copies made by recovery; the rest is the page of its seal.
const COPIES: u32 = 1 << 30;

/// Units by the block and page of the copy's source.
type Doubtful = BTreeMap<u32, BTreeSet<u32>>;

impl PageFtl {
    pub(super) fn rebuild(
        &mut self,
        nand: &mut Nand,
        is_superseded: &dyn Fn(u32) -> bool,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let own: Vec<u32> = self.spec.blocks.iter().filter(|block| !self.log_blocks.contains(block)).copied().collect();
        let mut survey = Survey::take(nand, &own, now)?;
        leave_out_unsealed(nand, &mut survey);
        let mut done = survey.done;
        let mut trims = Vec::new();
        if let Some(log) = &mut self.trim_log {
            let replay = log.replay(nand, now)?;
            done = done.max(replay.done);
            trims = replay.trims;
        }
        if nand.keeps_orders() {
            self.rebuild_map(nand, &survey, &trims);
            for unit in (0..self.map.units()).filter(|&unit| is_superseded(unit)) {
                self.map.clear(unit);
            }
            self.rebuild_blocks(nand, &survey);
            let behind = self.trims_behind(nand, &survey, &trims);
            done = self.settle_log(nand, &behind, done)?;
            done = match self.copy_doubtful(nand, &survey, done) {
                // A worn-out part stays read-only; only its readable content is left.
                Err(FtlError::WornOut) => {
                    self.unsure = self.find_unsure(nand, &survey, &trims);
                    done
                }
                copied => copied?,
            };
            self.held.clear();
        }
        match &mut self.mapping_cache {
            Some(cache) => {
                let map = &self.map;
                let has_units = |units: Range<u32>| {
                    map.places(units.start..units.end.min(map.units())).iter().any(|&place| place != NO_UNIT)
                };
                cache.recover(nand, &has_units, done)
            }
            None => Ok(done),
        }
    }

    fn rebuild_map(&mut self, nand: &Nand, survey: &Survey, trims: &[Trimmed]) {
        let range = self.first_block..self.first_block + self.states.len() as u32;
        let units = self.map.units();
        self.map = Map::new(units, &self.geometry, range);
        let mut orders = vec![0; units as usize];
        for found in &survey.pages {
            let first = self.geometry.first_unit(found.block, found.page);
            for (physical, &unit) in (first..).zip(nand.page_units(found.block, found.page)) {
                if unit != NO_UNIT {
                    self.map.set(unit, physical);
                    orders[unit as usize] = found.order;
                }
            }
        }
        for trim in trims {
            for unit in trim.first..trim.first.saturating_add(trim.count).min(units) {
                if orders[unit as usize] < trim.order {
                    self.map.clear(unit);
                }
            }
        }
    }

    /// Blocks with valid units count as full, even with free pages; all others are free.
    fn rebuild_blocks(&mut self, nand: &Nand, survey: &Survey) {
        let range = self.first_block..self.first_block + self.states.len() as u32;
        self.victims = Victims::new(self.gc, range, self.block_units, self.spec.seed);
        self.states.fill(BlockState::default());
        for frontier in &mut self.frontiers {
            frontier.leave();
        }
        (self.epoch, self.programmed_by, self.replacing) = (0, survey.done, u64::MAX);
        self.failing.clear();
        self.in_progress = None;
        self.fresh.clear();
        self.unplaced.clear();
        self.discards.clear();
        self.superseded.clear();
        self.unsure.clear();
        self.held.clear();
        if let Some(refreshing) = self.refreshing.as_deref_mut() {
            refreshing.read_often.clear();
            refreshing.when.hurry();
        }
        // The oldest first, for policies that go by age.
        let mut ages: BTreeMap<u32, u64> = BTreeMap::new();
        for page in &survey.pages {
            ages.insert(page.block, page.order);
        }
        let mut with_data: Vec<(u64, u32)> = ages.iter().map(|(&block, &order)| (order, block)).collect();
        with_data.retain(|&(_, block)| self.map.valid_in(block) > 0);
        with_data.sort_unstable();
        self.opened = with_data.len() as u64;
        for (rank, (_, block)) in (0..).zip(with_data) {
            self.state(block).opened = rank;
            self.victims.insert(block, self.map.valid_in(block));
        }
        for found in &survey.blocks {
            self.state(found.block).is_dirty = found.soundness != Soundness::Erased;
        }
        let free = survey.blocks.iter().map(|found| found.block).filter(|&block| !self.victims.contains(block));
        self.pool.reset(free, nand);
        self.pool.lend_spares(|block| self.victims.contains(block));
    }

    /// The trims of units that were overwritten since, in pages that may soon be unreadable.
    fn trims_behind(&self, nand: &Nand, survey: &Survey, trims: &[Trimmed]) -> Vec<Trimmed> {
        let mut behind = BTreeMap::new();
        for found in survey.pages.iter().filter(|found| found.doubtful) {
            let first = self.geometry.first_unit(found.block, found.page);
            for physical in (first..first + self.geometry.units_per_page).filter(|&at| self.map.is_valid(at)) {
                let unit = nand.logical(physical);
                let covers = |trim: &&Trimmed| (trim.first..trim.first.saturating_add(trim.count)).contains(&unit);
                let newest = trims.iter().filter(covers).map(|trim| trim.order).max();
                behind.extend(newest.map(|order| (unit, Trimmed { first: unit, count: 1, order })));
            }
        }
        behind.into_values().collect()
    }

    fn settle_log(&mut self, nand: &mut Nand, keep: &[Trimmed], now: Instant) -> Result<Instant, FtlError> {
        let Some(mut log) = self.trim_log.take() else { return Ok(now) };
        let settled = log.settle(nand, &|unit| self.is_in_flash(unit), keep, now);
        self.trim_log = Some(log);
        match settled {
            Err(FtlError::WornOut) => {
                self.worn_out = true;
                Ok(now)
            }
            settled => settled,
        }
    }

    /// Copies the valid units of doubtful pages.
    fn copy_doubtful(&mut self, nand: &mut Nand, survey: &Survey, mut now: Instant) -> Result<Instant, FtlError> {
        let mut doubtful = self.doubtful(survey);
        self.add_emptiest(nand, &mut doubtful);
        if doubtful.is_empty() {
            return Ok(now);
        }
        self.held = self.behind_doubtful(nand, survey);
        let role = self.roles.gc;
        now = self.start_block(nand, role, now)?;
        let seal = self.seal_page(doubtful.iter().map(|(&block, pages)| self.valid_on(block, pages)).sum());
        let block = self.frontiers[role].block;
        if seal < nand.pages_of(block) {
            nand.set_stamp(block, COPIES | seal);
        }
        for (&from, pages) in &doubtful {
            if !self.victims.contains(from) {
                continue;
            }
            now = self.move_pages(nand, from, pages, now)?;
            if self.map.valid_in(from) == 0 {
                self.victims.remove(from);
                self.free(nand, from);
            }
        }
        now = self.settle(nand, role, now)?.max(self.programmed_by);
        // A block of copies with a failed program has no seal: its data must be elsewhere.
        now = self.retire_failing(nand, now)?.max(self.programmed_by);
        if self.frontiers[role].block == block {
            now = self.seal(nand, now)?;
        }
        self.make_recovery_room(nand, now)
    }

    /// The end of `units` copies and the padding after them.
    fn seal_page(&self, units: u32) -> u32 {
        let pages = units.div_ceil(self.geometry.units_per_page) as usize;
        self.word_line_ends[pages.min(self.word_line_ends.len()) - 1]
    }

    /// If few blocks are free, nearly empty ones are emptied too, as far as the block of copies has space: repeated
    /// cuts leave many of them, and each takes two more.
    fn add_emptiest(&self, nand: &Nand, doubtful: &mut Doubtful) {
        let moving = |doubtful: &Doubtful, block| doubtful.get(&block).map_or(0, |pages| self.valid_on(block, pages));
        let mut units: u32 = doubtful.keys().map(|&block| moving(doubtful, block)).sum();
        let rest = self.victims.iter().map(|block| (self.map.valid_in(block) - moving(doubtful, block), block));
        let rest: BTreeSet<(u32, u32)> = rest.collect();
        let wanted = (self.low_blocks + 1).saturating_sub(self.pool.free().max(1)) as usize;
        for (valid, block) in rest.into_iter().take(wanted) {
            if self.seal_page(units + valid) >= nand.pages_of(block) {
                break;
            }
            let pages = (0..nand.block(block).next_page).filter(|&page| self.valid_on(block, &[page].into()) > 0);
            doubtful.entry(block).or_default().extend(pages);
            units += valid;
        }
    }

    /// Padding after the copies: once it has started, they are complete. Garbage collection continues in the same
    /// block.
    fn seal(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let role = self.roles.gc;
        let limit = self.frontiers[role].limit;
        self.stats.padding_units += u64::from(self.frontiers[role].pad_until(limit));
        let (done, failed) = self.program_slots(nand, role, Bytes::None, now)?;
        if failed {
            return self.replace_failed(nand, role, done);
        }
        self.close_if_full(role);
        Ok(done)
    }

    /// A program failed in a block of copies: the copies in it are current from now on, because their sources may be
    /// erased for the rest of them.
    pub(super) fn seal_failed(&mut self, nand: &mut Nand, block: u32, mut now: Instant) -> Result<Instant, FtlError> {
        let padding = vec![NO_UNIT; self.geometry.units_per_page as usize];
        while nand.stamp(block).is_some_and(|stamp| is_unsealed(nand, block, stamp)) {
            match nand.program(block, nand.block(block).next_page, &padding, None, now) {
                Ok(programmed) => now = now.max(programmed),
                Err(NandError::ProgramFailed { done, .. }) => now = now.max(done),
                Err(error) => return Err(error.into()),
            }
            self.stats.padding_units += u64::from(self.geometry.units_per_page);
        }
        Ok(now)
    }

    /// Garbage collection needs a block to copy to: if none is free, the emptiest blocks are moved to the open one.
    fn make_recovery_room(&mut self, nand: &mut Nand, mut now: Instant) -> Result<Instant, FtlError> {
        while self.pool.free() == 0 {
            let Some(block) = self.victims.emptiest(&self.map) else { break };
            let frontier = &self.frontiers[self.roles.gc];
            if self.map.valid_in(block) > frontier.end - frontier.fill {
                break;
            }
            self.victims.remove(block);
            now = self.collect(nand, block, self.roles.gc, now)?;
        }
        Ok(now)
    }

    /// Doubtful pages with valid units.
    fn doubtful(&self, survey: &Survey) -> Doubtful {
        let mut doubtful = Doubtful::new();
        for found in survey.pages.iter().filter(|found| found.doubtful) {
            if self.valid_on(found.block, &BTreeSet::from([found.page])) > 0 {
                doubtful.entry(found.block).or_default().insert(found.page);
            }
        }
        doubtful
    }

    /// Valid units on pages of a block.
    fn valid_on(&self, block: u32, pages: &BTreeSet<u32>) -> u32 {
        let units = |page: u32| (0..self.geometry.units_per_page).map(move |unit| (page, unit));
        let valid = |&(page, unit): &(u32, u32)| self.map.is_valid(self.geometry.first_unit(block, page) + unit);
        pages.iter().flat_map(|&page| units(page)).filter(valid).count() as u32
    }

    /// Blocks with copies that would be current if doubtful ones became unreadable: for each such unit the previous
    /// ones, back to one that is certain.
    fn behind_doubtful(&self, nand: &Nand, survey: &Survey) -> BTreeSet<u32> {
        let mut open: BTreeSet<u32> = BTreeSet::new();
        let mut held = BTreeSet::new();
        for found in survey.pages.iter().rev() {
            let first = self.geometry.first_unit(found.block, found.page);
            for (physical, &unit) in (first..).zip(nand.page_units(found.block, found.page)) {
                if unit == NO_UNIT {
                    continue;
                }
                if found.doubtful && self.map.is_valid(physical) {
                    open.insert(unit);
                } else if open.contains(&unit) {
                    held.insert(found.block);
                    if !found.doubtful {
                        open.remove(&unit);
                    }
                }
            }
        }
        held
    }
}

/// Whether a block of copies was abandoned before its seal was started.
fn is_unsealed(nand: &Nand, block: u32, stamp: u32) -> bool {
    stamp & COPIES != 0 && nand.block(block).next_page <= stamp & !COPIES
}

/// Copies of a recovery that was cut add nothing: their sources still exist.
fn leave_out_unsealed(nand: &Nand, survey: &mut Survey) {
    let unsealed = |block: u32, stamp: u32| is_unsealed(nand, block, stamp);
    let blocks = survey.blocks.iter().filter(|found| found.stamp.is_some_and(|stamp| unsealed(found.block, stamp)));
    let blocks: BTreeSet<u32> = blocks.map(|found| found.block).collect();
    survey.pages.retain(|found| !blocks.contains(&found.block));
}
