//! Memory rebuilt from flash, as after a power cut.
//!
//! The newest copy of a unit counts, unless a trim is newer. A merge that was cut leaves a block of redundant copies:
//! its stamp, which has the intended number of units, identifies it. It is left out, so repeated cuts take no more than
//! one block. AUs in two blocks are open again. Units on pages that may become unreadable are immediately merged into
//! new blocks; until that is done the copies before those are kept, too. Old pages look the same, so if blocks run out,
//! the older copies of the oldest of such pages are dropped first: each completed earlier recovery has left no doubtful
//! unit.

use std::collections::{BTreeMap, BTreeSet};

use emmc_units::Instant;

use super::{Frontier, NO_BLOCK, Open, SegmentFtl, empty_map};
use crate::ftl::FtlError;
use crate::ftl::map::Map;
use crate::ftl::trim_log::Trimmed;
use crate::nand::{BlockHealth, FoundPage, NO_UNIT, Nand, Soundness, Survey, session_of};

/// The stamp of a log.
pub(super) const LOG_STAMP: u32 = 0;

/// In the stamp of a block that a merge fills; the rest is the number of units that it is to get.
const MERGED: u32 = 1 << 30;

/// The stamp of a block that a merge fills with `units` units.
pub(super) fn merge_stamp(units: u32) -> u32 {
    MERGED | units
}

/// Whether a merge started a block; without a readable page it is unknown.
fn is_merge(nand: &Nand, block: u32) -> bool {
    nand.stamp(block).is_none_or(|stamp| stamp & MERGED != 0)
}

/// The content of pages and trims.
struct Found {
    map: Map,
    /// By unit: the place of the copy before the newest, unless it was trimmed.
    before: Vec<u32>,
    /// What the newest trim took away: unit, the trim's sequence number, where it lay.
    trimmed: Vec<(u32, u64, u32)>,
}

/// Blocks of an AU, those with older pages first.
type Lies = BTreeMap<u32, Vec<u32>>;

impl SegmentFtl {
    /// Forgets all memory and rebuilds it.
    pub(super) fn rebuild(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let blocks: Vec<u32> = self.spec.blocks.iter().copied().filter(|block| !self.meta.contains(block)).collect();
        let mut survey = Survey::take(nand, &blocks, now)?;
        let replay = self.trims.replay(nand, survey.done)?;
        if !nand.keeps_orders() {
            return Ok(replay.done);
        }
        self.careful = false;
        self.open.clear();
        self.shared.clear();
        (self.reclaiming, self.waited_pages) = (None, 0);
        self.part_end = None;
        self.failing.clear();
        self.retiring.clear();
        self.strays.clear();
        self.homes.fill(NO_BLOCK);
        // Only merges write before the end of a recovery, so a session with pages in a log had already secured the
        // doubtful units.
        let logged = survey.pages.iter().rev().find(|page| !is_merge(nand, page.block));
        survey.doubt_since(nand, logged.map_or(0, |page| session_of(page.order)));
        let found = self.newest(nand, &survey, &replay.trims);
        self.doubted = self.on_doubtful(nand, &survey, &found);
        self.map = found.map;
        self.find_free(nand);
        let lies = self.adopt_shared(nand, &survey);
        let mut done = self.adopt(nand, lies, replay.done)?;
        // Only now may the trims be forgotten: the replacements of trimmed units no longer depend on doubtful pages.
        let keep = self.trims_behind(&replay.trims);
        let map = &self.map;
        match self.trims.settle(nand, &|unit| map.lookup(unit) != NO_UNIT, &keep, done) {
            // A worn-out part, read-only from now on.
            Err(FtlError::WornOut) => {}
            settled => done = settled?,
        }
        self.doubted.clear();
        while self.shared.len() > self.shared_most() {
            match self.reclaim(nand, done) {
                Err(FtlError::WornOut) => break,
                reclaimed => done = reclaimed?,
            }
        }
        self.shared_found = self.shared.len();
        self.erase_free(nand, done)
    }

    /// The trims of units of which the newest copy is still in doubt.
    fn trims_behind(&self, trims: &[Trimmed]) -> Vec<Trimmed> {
        let doubted = self.doubted.keys().copied().filter(|&unit| self.map.lookup(unit) != NO_UNIT);
        let newest = |unit: u32| {
            let covers = |trim: &&Trimmed| (trim.first..trim.first.saturating_add(trim.count)).contains(&unit);
            let order = trims.iter().filter(covers).map(|trim| trim.order).max()?;
            Some(Trimmed { first: unit, count: 1, order })
        };
        doubted.filter_map(newest).collect()
    }

    /// The place of each unit: its newest copy, without merges that were cut.
    fn newest(&self, nand: &Nand, survey: &Survey, trims: &[Trimmed]) -> Found {
        let per_page = nand.geometry().units_per_page;
        let is_cut = |block: u32, stamp: Option<u32>| {
            let Some(wanted) = stamp.filter(|stamp| stamp & MERGED != 0).map(|stamp| stamp & !MERGED) else {
                return false;
            };
            let held = nand.spare(block).iter().filter(|&&unit| unit != NO_UNIT).count() as u32;
            // Pages after those of the merge were written later, so the merge was complete.
            nand.block(block).next_page <= wanted.div_ceil(per_page) && held < wanted
        };
        let cut: BTreeSet<u32> =
            survey.blocks.iter().filter(|found| is_cut(found.block, found.stamp)).map(|found| found.block).collect();
        self.mapped(nand, survey.pages.iter().filter(|page| !cut.contains(&page.block)), trims)
    }

    /// A map of pages and trims in the order in which they came.
    fn mapped<'a>(&self, nand: &Nand, pages: impl Iterator<Item = &'a FoundPage>, trims: &[Trimmed]) -> Found {
        let mut map = empty_map(&self.spec, nand);
        let mut before = vec![NO_UNIT; self.spec.units as usize];
        let mut trimmed = Vec::new();
        let mut trims = trims.iter().peekable();
        let mut clear = |map: &mut Map, trim: &Trimmed| {
            let range = trim.first..(trim.first + trim.count).min(self.spec.units);
            let cleared = range.map(|unit| (unit, map.clear(unit))).filter(|(_, slot)| *slot != NO_UNIT);
            trimmed = cleared.map(|(unit, slot)| (unit, trim.order, slot)).collect();
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
        Found { map, before, trimmed }
    }

    /// What may stop reading, newest copies and the newest trim, with its sequence number and the block of the copy
    /// that would count then.
    ///
    /// With one page of a merge all of it is in doubt: should the page go, the merge will look cut, and the
    /// copies that it was made from must be there.
    fn on_doubtful(&self, nand: &Nand, survey: &Survey, found: &Found) -> BTreeMap<u32, (u64, u32)> {
        let in_doubt = survey.pages.iter().filter(|page| page.doubtful);
        let pages: BTreeMap<(u32, u32), u64> = in_doubt.map(|page| ((page.block, page.page), page.order)).collect();
        let merges: BTreeMap<u32, u64> = pages
            .iter()
            .filter(|((block, _), _)| is_merge(nand, *block))
            .map(|(&(block, _), &order)| (block, order))
            .collect();
        let mut units = BTreeMap::new();
        for page in &survey.pages {
            let Some(&order) = pages.get(&(page.block, page.page)).or_else(|| merges.get(&page.block)) else {
                continue;
            };
            let first = nand.geometry().first_unit(page.block, page.page);
            for (slot, &unit) in (first..).zip(nand.page_units(page.block, page.page)) {
                if unit < self.spec.units && found.map.lookup(unit) == slot {
                    let old = found.before[unit as usize];
                    let block = if old == NO_UNIT { NO_BLOCK } else { found.map.block_of(old) };
                    units.insert(unit, (order, block));
                }
            }
        }
        let trimmed = found.trimmed.iter().filter(|(unit, ..)| found.map.lookup(*unit) == NO_UNIT);
        units.extend(trimmed.map(|&(unit, order, slot)| (unit, (order, found.map.block_of(slot)))));
        units
    }

    /// Blocks without valid units are free; blocks that went bad unnoticed are replaced.
    fn find_free(&mut self, nand: &Nand) {
        let spares: BTreeSet<u32> = self.pool.spare_blocks().iter().copied().collect();
        let ours = self.spec.blocks.iter().filter(|block| !self.meta.contains(block) && !spares.contains(block));
        let good: Vec<u32> = ours.copied().filter(|&block| nand.block(block).health == BlockHealth::Good).collect();
        self.pool.reset(good.iter().copied().filter(|&block| self.map.valid_in(block) == 0), nand);
        let in_service = good.len() as u32;
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
            if !sound || front.splits_line(nand) {
                front.seal(nand);
            }
        }
        lies
    }

    /// Homes and open AUs; all other states are merged.
    fn adopt(&mut self, nand: &mut Nand, lies: Lies, now: Instant) -> Result<Instant, FtlError> {
        let mut done = now;
        let mapped = self.doubted.keys().filter(|&&unit| self.map.lookup(unit) != NO_UNIT);
        let doubted: BTreeSet<u32> = mapped.map(|&unit| self.au_of(unit)).collect();
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
            self.strays.insert(au, blocks);
            done = self.merge_doubted(nand, au, done)?;
        }
        // Doubtful units of AUs that lie in shared logs only.
        for au in doubted {
            if self.homes[au as usize] == NO_BLOCK && !self.strays.contains_key(&au) {
                done = self.merge_doubted(nand, au, done)?;
            }
        }
        Ok(done)
    }

    /// Merges an AU, if a block is left for it; the copies before its units are needed no more.
    fn merge_doubted(&mut self, nand: &mut Nand, au: u32, now: Instant) -> Result<Instant, FtlError> {
        let done = match self.merge(nand, au, now) {
            // A worn-out part: it is only read.
            Err(FtlError::WornOut) => return Ok(now),
            merged => merged?,
        };
        let (per_block, map) = (self.per_block, &self.map);
        self.doubted.retain(|&unit, _| unit / per_block != au || map.lookup(unit) == NO_UNIT);
        Ok(done)
    }

    /// An AU that was open according to its log.
    fn reopen(&self, nand: &Nand, au: u32, log: u32) -> Open {
        let units = nand.spare(log).iter().copied().filter(|&unit| unit != NO_UNIT);
        let last = units.clone().map(|unit| unit % self.per_block).max();
        let ascends = units.clone().zip(units.skip(1)).all(|(before, after)| before < after);
        let next = last.map_or(0, |last| last + 1);
        let in_order = ascends && self.valid_outside(nand, au, 0, next, log).is_empty();
        let mut front = Frontier::new(nand, log);
        // Later programs must not damage the content that was found.
        if nand.soundness(log) == Soundness::Damaged || front.splits_line(nand) {
            front.seal(nand);
        }
        Open { au, log: front, last, in_order }
    }
}
