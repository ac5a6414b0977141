//! Reclaiming the oldest shared log: at once, or some of its AUs with each write to the newest.
//!
//! Every AU with units in the log costs a merge, and small writes over a large area put another AU into each page.
//! Paced (`gc_pace`), a card therefore goes on in one more log. Each write there merges as many AUs as it uses pages,
//! or more if the log would be full before the last of them is merged; or it waits until `merges_at_once` of them are
//! owed. The AUs are merged whole, in the state that they
//! have then, so the order of events in flash is that of a reclaim at once with writes in between, and a power cut
//! leaves nothing to be continued: recovery finds a log with fewer AUs in it. Without a free block for that log, the
//! oldest is reclaimed at once.

use std::collections::BTreeSet;

use emmc_units::Instant;

use super::SegmentFtl;
use super::release::LEFT_FOR_MERGES;
use crate::ftl::FtlError;
use crate::nand::{NO_UNIT, Nand};

/// Logs beyond the profile's number that paced reclaiming takes: one to go on in, and one when that cannot be filled
/// because a cut, or a reliable write after a plain one, ended it early.
const LOGS_BEYOND: usize = 2;

impl SegmentFtl {
    /// The most shared logs that there may be.
    pub(super) fn shared_most(&self) -> usize {
        self.shared_max + if self.is_paced && self.shared_max > 0 { LOGS_BEYOND } else { 0 }
    }

    /// Whether one more log may be started; otherwise the oldest is reclaimed at once.
    pub(super) fn may_start_log(&self) -> bool {
        let is_beyond = self.shared.len() >= self.shared_max;
        !is_beyond || self.shared.len() < self.shared_most() && self.pool.free() > LEFT_FOR_MERGES
    }

    /// Merges the share of `units` units, which the newest log takes next, of a log that is being reclaimed.
    pub(super) fn keep_pace(&mut self, nand: &mut Nand, units: u32, mut now: Instant) -> Result<Instant, FtlError> {
        let beyond = self.shared.len().saturating_sub(self.shared_max) as u32;
        let Some(newest) = self.shared.back().filter(|_| self.is_paced && beyond > 0) else { return Ok(now) };
        let per_page = nand.geometry().units_per_page;
        let room = newest.room(nand).div_ceil(per_page).max(1);
        let waited = std::mem::take(&mut self.waited_pages);
        let is_last = units.div_ceil(per_page) >= room;
        let pages = waited + units.div_ceil(per_page).clamp(1, room);
        let mut aus = self.reclaiming.take().unwrap_or_else(|| self.aus_in_oldest(nand));
        let share = (aus.len() as u32 * beyond * pages).div_ceil(waited + room).max(pages);
        if share < self.merges_at_once.min(aus.len() as u32) && !is_last {
            (self.waited_pages, self.reclaiming) = (pages, Some(aus));
            return Ok(now);
        }
        let mut merged = 0;
        while merged < share {
            let Some(au) = aus.pop() else { break };
            if self.is_in_oldest(nand, au) {
                now = self.merge(nand, au, now)?;
                merged += 1;
            }
        }
        self.stats.foreground_stalls += u64::from(merged > 0);
        // Copies are kept while newer ones are at risk: until the word line of those is whole, some pages on.
        if aus.is_empty() && !self.units_of_oldest(nand).any(|(unit, slot)| self.is_needed(nand, unit, slot)) {
            return self.reclaim(nand, now);
        }
        self.reclaiming = Some(aus);
        Ok(now)
    }

    /// A step of idle time: merges one AU of the oldest log, and frees the log after the last.
    pub(super) fn reclaim_step(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let mut aus = self.reclaiming.take().unwrap_or_else(|| self.aus_in_oldest(nand));
        while let Some(au) = aus.pop() {
            if self.is_in_oldest(nand, au) {
                let done = self.merge(nand, au, now)?;
                // The log may be the newest too, and be written before the next step.
                self.reclaiming = (self.shared.len() > 1).then_some(aus);
                return Ok(done);
            }
        }
        self.reclaim(nand, now)
    }

    /// Frees the oldest shared log by merging every AU with data in it, and every AU whose previous copy in it is
    /// needed because a newer one may be damaged by later programs.
    pub(super) fn reclaim(&mut self, nand: &mut Nand, mut now: Instant) -> Result<Instant, FtlError> {
        (self.reclaiming, self.waited_pages) = (None, 0);
        let Some(block) = self.shared.front().map(|front| front.block) else { return Ok(now) };
        loop {
            let found = self.units_of_oldest(nand).find(|&(unit, slot)| self.is_needed(nand, unit, slot));
            let Some((unit, _)) = found else { break };
            now = self.merge(nand, self.au_of(unit), now)?;
        }
        self.stats.collections += 1;
        self.shared.pop_front();
        self.release(nand, block, now)
    }

    /// The units that the oldest log holds or that wait there, and their places.
    fn units_of_oldest<'a>(&'a self, nand: &'a Nand) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.shared.front().into_iter().flat_map(|front| {
            let held = (nand.geometry().first_unit(front.block, 0)..).zip(nand.spare(front.block));
            held.map(|(slot, &unit)| (unit, slot)).chain(front.current(nand, &self.map))
        })
    }

    /// Whether the copy of a unit in the oldest log must not be lost yet.
    fn is_needed(&self, nand: &Nand, unit: u32, slot: u32) -> bool {
        unit != NO_UNIT && {
            let newest = self.map.lookup(unit);
            newest == slot || self.is_exposed(nand, newest)
        }
    }

    /// The units of which the newest copy is in the oldest log.
    fn current_in_oldest<'a>(&'a self, nand: &'a Nand) -> impl Iterator<Item = u32> + 'a {
        let current = |&(unit, slot): &(u32, u32)| unit != NO_UNIT && self.map.lookup(unit) == slot;
        self.units_of_oldest(nand).filter(current).map(|(unit, _)| unit)
    }

    /// The AUs of those.
    fn aus_in_oldest(&self, nand: &Nand) -> Vec<u32> {
        let aus: BTreeSet<u32> = self.current_in_oldest(nand).map(|unit| self.au_of(unit)).collect();
        aus.into_iter().collect()
    }

    fn is_in_oldest(&self, nand: &Nand, au: u32) -> bool {
        self.current_in_oldest(nand).any(|unit| self.au_of(unit) == au)
    }

    /// For the audit: a unit in the oldest log whose AU is forgotten.
    pub(super) fn forgotten(&self, nand: &Nand) -> Option<u32> {
        let aus = self.reclaiming.as_ref()?;
        self.current_in_oldest(nand).find(|&unit| !aus.contains(&self.au_of(unit)))
    }
}
