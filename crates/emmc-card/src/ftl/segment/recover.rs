//! Memory rebuilt from flash, as after a power cut.
//!
//! The newest copy of a unit counts, unless a trim is newer. A merge that was cut leaves a block of copies that adds
//! nothing: it is known by its stamp, which says how many units it was to get, and is left out, so that cut after cut
//! takes no more blocks than one. AUs that lie in two blocks are open again. What is on pages that may stop reading is
//! merged into fresh blocks at once; until that is done the copies before those are kept, too. Pages of long ago look the
//! same, so where blocks run out, the copies behind the oldest of such pages are given up first: each earlier recovery
//! that came to its end has left nothing in doubt.

use std::collections::{BTreeMap, BTreeSet};

use emmc_units::Instant;

use super::{Frontier, NO_BLOCK, Open, SegmentFtl};
use crate::ftl::FtlError;
use crate::ftl::map::Map;
use crate::ftl::trim_log::Trimmed;
use crate::nand::{BlockHealth, FoundPage, NO_UNIT, Nand, Soundness, Survey};

/// In the stamp of a block that a merge fills; the rest is the number of units that it is to get.
const MERGED: u32 = 1 << 30;

/// The stamp of a block that a merge will fill with so many units.
pub(super) fn merge_stamp(units: u32) -> u32 {
    MERGED | units
}

/// Blocks of an AU, those with older pages first.
type Lies = BTreeMap<u32, Vec<u32>>;

impl SegmentFtl {
    /// Forgets all memory and rebuilds it.
    pub(super) fn rebuild(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let blocks: Vec<u32> = self.spec.blocks.iter().copied().filter(|block| !self.meta.contains(block)).collect();
        let survey = Survey::take(nand, &blocks, now)?;
        let replay = self.trims.replay(nand, survey.done)?;
        if !nand.keeps_orders() {
            return Ok(replay.done);
        }
        self.careful = false;
        self.open.clear();
        self.shared.clear();
        self.part_end = None;
        self.failing.clear();
        self.homes.fill(NO_BLOCK);
        let (map, before) = self.newest(nand, &survey, &replay.trims);
        self.map = map;
        self.doubted = self.on_doubtful(nand, &survey, &before);
        self.find_free(nand);
        let map = &self.map;
        let mut done = self.trims.settle(nand, &|unit| map.lookup(unit) != NO_UNIT, replay.done)?;
        let lies = self.adopt_shared(nand, &survey);
        done = self.adopt(nand, lies, done)?;
        self.doubted.clear();
        while self.shared.len() > self.shared_max {
            done = self.reclaim(nand, done)?;
        }
        Ok(done)
    }

    /// Where each unit lies: the newest copy, merges that were cut left out; and where the copy before that lies.
    fn newest(&self, nand: &Nand, survey: &Survey, trims: &[Trimmed]) -> (Map, Vec<u32>) {
        let per_page = nand.geometry().units_per_page;
        let is_cut = |block: u32, stamp: Option<u32>| {
            let Some(wanted) = stamp.filter(|stamp| stamp & MERGED != 0).map(|stamp| stamp & !MERGED) else {
                return false;
            };
            let held = nand.spare(block).iter().filter(|&&unit| unit != NO_UNIT).count() as u32;
            // Pages behind those of the merge were written after it, so it was whole.
            nand.block(block).next_page <= wanted.div_ceil(per_page) && held < wanted
        };
        let cut: BTreeSet<u32> =
            survey.blocks.iter().filter(|found| is_cut(found.block, found.stamp)).map(|found| found.block).collect();
        self.mapped(nand, survey.pages.iter().filter(|page| !cut.contains(&page.block)), trims)
    }

    /// A map of pages and trims in the order in which they came, and where each unit was before.
    fn mapped<'a>(
        &self,
        nand: &Nand,
        pages: impl Iterator<Item = &'a FoundPage>,
        trims: &[Trimmed],
    ) -> (Map, Vec<u32>) {
        let mut map = self.empty_map(nand);
        let mut before = vec![NO_UNIT; self.spec.units as usize];
        let mut trims = trims.iter().peekable();
        let clear = |map: &mut Map, trim: &Trimmed| {
            for unit in trim.first..(trim.first + trim.count).min(self.spec.units) {
                map.clear(unit);
            }
        };
        for page in pages {
            while let Some(trim) = trims.next_if(|trim| trim.order < page.order) {
                clear(&mut map, trim);
            }
            let first = nand.geometry().first_unit(page.block, page.page);
            for (slot, &unit) in (first..).zip(nand.page_units(page.block, page.page)) {
                if unit < self.spec.units {
                    before[unit as usize] = map.set(unit, slot);
                }
            }
        }
        trims.for_each(|trim| clear(&mut map, trim));
        (map, before)
    }

    /// Units whose newest copy may stop reading, with its order number and the block of the copy before it.
    fn on_doubtful(&self, nand: &Nand, survey: &Survey, before: &[u32]) -> BTreeMap<u32, (u64, u32)> {
        let mut units = BTreeMap::new();
        for page in survey.pages.iter().filter(|page| page.doubtful) {
            let first = nand.geometry().first_unit(page.block, page.page);
            for (slot, &unit) in (first..).zip(nand.page_units(page.block, page.page)) {
                if unit < self.spec.units && self.map.lookup(unit) == slot {
                    let old = before[unit as usize];
                    let block = if old == NO_UNIT { NO_BLOCK } else { self.map.block_of(old) };
                    units.insert(unit, (page.order, block));
                }
            }
        }
        units
    }

    /// Blocks without valid units are free; blocks that went bad unnoticed are replaced.
    fn find_free(&mut self, nand: &Nand) {
        while self.pool.take().is_some() {}
        let spares: BTreeSet<u32> = self.pool.spare_blocks().iter().copied().collect();
        let mut in_service = 0;
        for &block in self.spec.blocks.iter().filter(|block| !self.meta.contains(block) && !spares.contains(block)) {
            if nand.block(block).health == BlockHealth::Good {
                in_service += 1;
                if self.map.valid_in(block) == 0 {
                    self.pool.give(block, nand.block(block).erase_count);
                }
            }
        }
        for _ in in_service + self.pool.unreplaced()..self.service {
            self.stats.replaced_blocks += u64::from(self.pool.retire(nand));
        }
    }

    /// Blocks in which several AUs have valid units are shared logs; answers the blocks of each AU that are its own.
    fn adopt_shared(&mut self, nand: &Nand, survey: &Survey) -> Lies {
        let mut lies = Lies::new();
        let mut seen = BTreeSet::new();
        // By their last page, which is when they were last written.
        for page in survey.pages.iter().rev() {
            if !seen.insert(page.block) || self.map.valid_in(page.block) == 0 {
                continue;
            }
            let first = nand.geometry().first_unit(page.block, 0);
            let held = (first..).zip(nand.spare(page.block));
            let valid = held.filter(|&(slot, &unit)| unit != NO_UNIT && self.map.lookup(unit) == slot);
            let aus: BTreeSet<u32> = valid.map(|(_, &unit)| self.au_of(unit)).collect();
            if aus.len() > 1 {
                self.shared.push_front(Frontier::new(nand, page.block));
            } else if let Some(&au) = aus.first() {
                lies.entry(au).or_default().insert(0, page.block);
            }
        }
        for front in &mut self.shared {
            let sound =
                survey.blocks.iter().any(|found| found.block == front.block && found.soundness == Soundness::Open);
            if !sound {
                front.seal(nand);
            }
        }
        lies
    }

    /// Homes and open AUs; what cannot stay as it is is merged.
    fn adopt(&mut self, nand: &mut Nand, lies: Lies, now: Instant) -> Result<Instant, FtlError> {
        let mut done = now;
        let doubted: BTreeSet<u32> = self.doubted.keys().map(|&unit| self.au_of(unit)).collect();
        let (mut kept, mut merged) = (Vec::new(), Vec::new());
        for (au, blocks) in lies {
            if doubted.contains(&au) || blocks.len() > 2 {
                merged.push((au, blocks));
            } else if let [home, log] = blocks[..] {
                kept.push((nand.order(log, nand.block(log).next_page - 1), au, home, log));
            } else {
                self.homes[au as usize] = blocks[0];
            }
        }
        // The most lately written stay open.
        kept.sort_unstable();
        let over = kept.len().saturating_sub(self.open_max);
        for (index, (_, au, home, log)) in kept.into_iter().enumerate() {
            if index < over {
                merged.push((au, vec![home, log]));
            } else {
                self.homes[au as usize] = home;
                let open = self.reopen(nand, au, log);
                self.open.push(open);
            }
        }
        for (au, blocks) in merged {
            done = self.merge_doubted(nand, au, done)?;
            for block in blocks {
                self.release(nand, block);
            }
        }
        // Doubtful units of AUs that lie in shared logs only.
        for au in doubted {
            if self.homes[au as usize] == NO_BLOCK {
                done = self.merge_doubted(nand, au, done)?;
            }
        }
        Ok(done)
    }

    /// Merges an AU; older copies of its units are needed no more.
    fn merge_doubted(&mut self, nand: &mut Nand, au: u32, now: Instant) -> Result<Instant, FtlError> {
        let done = self.merge(nand, au, now)?;
        let per_block = self.per_block;
        self.doubted.retain(|unit, _| unit / per_block != au);
        Ok(done)
    }

    /// An AU that was open, as far as its log tells.
    fn reopen(&self, nand: &Nand, au: u32, log: u32) -> Open {
        let units = nand.spare(log).iter().copied().filter(|&unit| unit != NO_UNIT);
        let last = units.clone().map(|unit| unit % self.per_block).max();
        let ascends = units.clone().zip(units.skip(1)).all(|(before, after)| before < after);
        let next = last.map_or(0, |last| last + 1);
        let in_order = ascends && self.valid_outside(nand, au, 0, next, log).is_empty();
        Open { au, log: Frontier::new(nand, log), last, in_order }
    }
}
