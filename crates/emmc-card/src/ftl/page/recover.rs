//! Rebuilding the map after a power cut: the newest copy of each unit counts, unless the log of trims is newer still.
//!
//! Blocks that were being written to are closed as they are. What may have been interrupted is copied elsewhere, for it may
//! not read for long. Kept over the cut, as controllers keep it in an area of their own: which blocks are bad, which are
//! spares. The cost is that of [`Survey`], of reading the log, and of the copies.

use std::collections::{BTreeMap, BTreeSet};

use emmc_units::Instant;

use super::{BlockState, PageFtl};
use crate::ftl::FtlError;
use crate::ftl::gc::Victims;
use crate::ftl::map::Map;
use crate::ftl::trim_log::Trimmed;
use crate::nand::{FoundPage, NO_UNIT, Nand, Soundness, Survey};

impl PageFtl {
    pub(super) fn rebuild(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let own: Vec<u32> = self.spec.blocks.iter().filter(|block| !self.log_blocks.contains(block)).copied().collect();
        let survey = Survey::take(nand, &own, now)?;
        let mut done = survey.done;
        let mut trims = Vec::new();
        if let Some(log) = &mut self.trim_log {
            let replay = log.replay(nand, now)?;
            done = done.max(replay.done);
            trims = replay.trims;
        }
        if nand.keeps_orders() {
            self.rebuild_map(nand, &survey, &trims);
            self.rebuild_blocks(nand, &survey);
            done = self.settle_log(nand, done)?;
            done = match self.copy_doubtful(nand, &survey, done) {
                // Read-only parts stay so; what reads now is all that there is.
                Err(FtlError::WornOut) => done,
                copied => copied?,
            };
        }
        match &mut self.mapping_cache {
            Some(cache) => cache.recover(nand, done),
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

    /// Blocks with valid units are full, whatever room they have; all others are free.
    fn rebuild_blocks(&mut self, nand: &Nand, survey: &Survey) {
        let range = self.first_block..self.first_block + self.states.len() as u32;
        self.victims = Victims::new(self.gc, range, self.block_units, self.spec.seed);
        self.states.fill(BlockState::default());
        for frontier in &mut self.frontiers {
            frontier.leave();
        }
        (self.epoch, self.programmed_by) = (0, survey.done);
        self.failing.clear();
        self.fresh.clear();
        self.discards.clear();
        // The oldest first, for policies that go by age.
        let mut ages: BTreeMap<u32, u64> = BTreeMap::new();
        for page in &survey.pages {
            ages.insert(page.block, page.order);
        }
        let mut with_data: Vec<(u64, u32)> = ages.iter().map(|(&block, &order)| (order, block)).collect();
        with_data.retain(|&(_, block)| self.map.valid_in(block) > 0);
        with_data.sort_unstable();
        for (_, block) in with_data {
            self.victims.insert(block, self.map.valid_in(block));
        }
        for found in &survey.blocks {
            self.state(found.block).is_dirty = found.soundness != Soundness::Erased;
        }
        let free = survey.blocks.iter().map(|found| found.block).filter(|&block| !self.victims.contains(block));
        self.pool.reset(free, nand);
    }

    fn settle_log(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let Some(mut log) = self.trim_log.take() else { return Ok(now) };
        let settled = log.settle(nand, &|unit| self.is_in_flash(unit), now);
        self.trim_log = Some(log);
        match settled {
            Err(FtlError::WornOut) => {
                self.worn_out = true;
                Ok(now)
            }
            settled => settled,
        }
    }

    /// Copies what is valid in doubtful pages, blocks with little of it first: each that is emptied makes room for more.
    fn copy_doubtful(&mut self, nand: &mut Nand, survey: &Survey, mut now: Instant) -> Result<Instant, FtlError> {
        let mut doubtful: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for &FoundPage { block, page, .. } in survey.pages.iter().filter(|found| found.doubtful) {
            doubtful.entry(block).or_default().insert(page);
        }
        let mut blocks: Vec<u32> = doubtful.keys().filter(|block| self.map.valid_in(**block) > 0).copied().collect();
        blocks.sort_unstable_by_key(|&block| (self.map.valid_in(block), block));
        for block in blocks {
            now = self.make_recovery_room(nand, now)?;
            if !self.victims.contains(block) {
                continue;
            }
            now = self.move_pages(nand, block, &doubtful[&block], now)?;
            if self.map.valid_in(block) == 0 {
                self.victims.remove(block);
                self.free(nand, block);
            }
        }
        now = self.settle(nand, self.roles.gc, now)?;
        Ok(now.max(self.programmed_by))
    }

    /// Copying takes up to a block beside the one that it has begun: where none is free, the emptiest give way.
    fn make_recovery_room(&mut self, nand: &mut Nand, mut now: Instant) -> Result<Instant, FtlError> {
        if self.frontiers[self.roles.gc].is_exhausted() {
            now = self.start_block(nand, self.roles.gc, now)?;
        }
        while self.pool.free() == 0 {
            let Some(block) = self.victims.emptiest(&self.map) else { break };
            let frontier = &self.frontiers[self.roles.gc];
            if self.map.valid_in(block) > frontier.end - frontier.fill {
                break;
            }
            self.victims.remove(block);
            now = self.collect(nand, block, now)?;
        }
        Ok(now)
    }
}
