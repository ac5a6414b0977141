//! Copies of many pages in one call, if no event can occur between them.
//!
//! A translation layer that merges whole blocks spends nearly all its time here. Reads and programs have the same times
//! and random state as single ones through [`Nand::read`] and [`Nand::program`]; only the bookkeeping is combined. It
//! does not apply if power may be lost or a program fails during the copy, or if sequence numbers are stored.

use std::ops::Range;

use emmc_units::Instant;

use super::timing::Clockwork;
use super::{Block, BlockHealth, CellMode, Geometry, NO_UNIT, Nand, NandError};

/// A copy to the next pages of a block.
pub(crate) struct PageCopy<'a> {
    pub(crate) block: u32,
    /// The units that are copied.
    pub(crate) units: &'a [u32],
    /// The place of each unit.
    pub(crate) from: &'a [u32],
    /// Physical units that need not be read.
    pub(crate) in_memory: &'a [Range<u32>],
}

impl Nand {
    /// Reads parts of pages of a block at one instant, as [`Nand::read`] does for each: pages and bytes. Returns when
    /// all are in memory.
    ///
    /// Errors: as [`Nand::read`], of the first page that has one.
    #[inline]
    pub(crate) fn read_pages(
        &mut self,
        block: u32,
        parts: impl Iterator<Item = (u32, u32)>,
        now: Instant,
    ) -> Result<Instant, NandError> {
        let mut done = now;
        if self.wary || self.ages() {
            for (page, bytes) in parts {
                done = done.max(self.read(block, page, bytes, now)?);
            }
            return Ok(done);
        }
        let mode = self.blocks[block as usize].mode;
        for (page, bytes) in parts {
            self.counters.page_reads += 1;
            done = done.max(self.timing.read(&self.geometry, mode, block, page, bytes, now));
        }
        Ok(done)
    }

    /// Programs the next pages of a block at one instant, as [`Nand::program`] does for each. Returns when all are
    /// programmed; `None`: an event may occur between them, or more than numbers is kept, and nothing was done.
    ///
    /// Shape: `units` has units_per_page entries for each of `pages` pages.
    #[inline]
    pub(crate) fn program_pages(
        &mut self,
        block: u32,
        page: u32,
        pages: u32,
        units: &[u32],
        now: Instant,
    ) -> Option<Instant> {
        let state = self.blocks[block as usize];
        if page != state.next_page || !self.takes_copies(block, pages) {
            return None;
        }
        let mut done = now;
        for page in page..page + pages {
            done = done.max(self.timing.program(&self.geometry, state.mode, block, page, now).1);
        }
        let first = self.geometry.first_unit(block, page) as usize;
        copy_few(&mut self.spare[first..first + units.len()], units);
        self.blocks[block as usize].next_page = page + pages;
        self.counters.page_programs += u64::from(pages);
        self.counters.unit_programs += units.len() as u64;
        self.steps += u64::from(pages);
        Some(done)
    }

    /// Whether [`Nand::copy_pages`] applies to `pages` pages of a block: no special event at any of their steps, and
    /// only logical units are stored.
    #[inline]
    pub(crate) fn takes_copies(&self, block: u32, pages: u32) -> bool {
        let state = &self.blocks[block as usize];
        let is_plain = self.store.is_none() && !self.wary && !self.ages() && self.steps + u64::from(pages) < self.alarm;
        let fits = state.health == BlockHealth::Good && state.next_page + pages <= self.timing.pages_in(state.mode);
        is_plain && fits && self.power.is_on()
    }

    /// Reads units and programs them into the next pages of a block, row by row of the lanes: a row is programmed when
    /// all of it is in memory, and the next one read from then on. Answers how many pages these were, and when all are
    /// programmed.
    ///
    /// Shape: as many places as units. Only where [`Nand::takes_copies`] says so.
    pub(crate) fn copy_pages(&mut self, copy: &PageCopy<'_>, now: Instant) -> (u32, Instant) {
        let (geometry, state) = (self.geometry, self.blocks[copy.block as usize]);
        let source = Source { mode: state.mode, block: copy.block, first_unit: 0, units: 0, page_at: 0, page: 0 };
        let mut issue = Issue { geometry, blocks: &self.blocks, copy, mode: state.mode, reads: 0, source };
        let (end, done) = match self.timing.lane(&geometry) {
            Some(mut lane) => {
                let ended = issue.rows(&mut lane, state.next_page, now);
                let stands = lane.end();
                self.timing.take_over(stands);
                ended
            }
            None => issue.rows(&mut self.timing, state.next_page, now),
        };
        self.counters.page_reads += issue.reads;
        let (pages, first) = (end - state.next_page, geometry.first_unit(copy.block, state.next_page) as usize);
        let places = &mut self.spare[first..first + (pages * geometry.units_per_page) as usize];
        let (held, padding) = places.split_at_mut(copy.units.len());
        held.copy_from_slice(copy.units);
        padding.fill(NO_UNIT);
        self.blocks[copy.block as usize].next_page = end;
        self.counters.page_programs += u64::from(pages);
        self.counters.unit_programs += u64::from(pages * geometry.units_per_page);
        self.steps += u64::from(pages);
        (pages, done)
    }
}

/// Copies a few numbers, without a call.
#[inline]
pub(crate) fn copy_few(to: &mut [u32], from: &[u32]) {
    let (mut wide, mut parts) = (to.chunks_exact_mut(4), from.chunks_exact(4));
    wide.by_ref().zip(parts.by_ref()).for_each(|(to, from)| to.copy_from_slice(from));
    wide.into_remainder().iter_mut().zip(parts.remainder()).for_each(|(to, from)| *to = *from);
}

/// A copy in progress.
struct Issue<'a> {
    geometry: Geometry,
    blocks: &'a [Block],
    copy: &'a PageCopy<'a>,
    /// Of the block that is written.
    mode: CellMode,
    reads: u64,
    source: Source,
}

/// The place of the last read: the next unit is mostly in the same block, which saves a division.
struct Source {
    mode: CellMode,
    block: u32,
    first_unit: u32,
    /// 0 before the first read.
    units: u32,
    /// The first unit of the page, within the block, and the page.
    page_at: u32,
    page: u32,
}

impl Issue<'_> {
    /// Returns the page after the last one, and the time at which all are programmed.
    #[inline(always)]
    fn rows<C: Clockwork>(&mut self, clock: &mut C, mut page: u32, now: Instant) -> (u32, Instant) {
        let (per_page, lanes) = (self.geometry.units_per_page as usize, self.geometry.lanes());
        let (mut ready, mut done) = (now, now);
        let mut rest = self.copy.from;
        let mut row_pages = lanes - page % lanes;
        while !rest.is_empty() {
            let (row, others) = rest.split_at(rest.len().min(row_pages as usize * per_page));
            ready = self.fetch(clock, row, ready);
            let mut programmed = 0;
            while programmed < row.len() {
                done = done.max(clock.program(&self.geometry, self.mode, self.copy.block, page, ready).1);
                page += 1;
                programmed += per_page;
            }
            row_pages = lanes;
            rest = others;
        }
        (page, done)
    }

    /// Reads the pages of physical units, each once where they are neighbours; answers when all are in memory.
    #[inline(always)]
    fn fetch<C: Clockwork>(&mut self, clock: &mut C, slots: &[u32], now: Instant) -> Instant {
        let per_page = self.geometry.units_per_page;
        let (mut ready, mut rest) = (now, slots);
        while let Some(&slot) = rest.first() {
            self.source.go_to(slot, &self.geometry, self.blocks);
            let start = self.source.first_unit + self.source.page_at;
            let count = rest.iter().take_while(|&&other| other.wrapping_sub(start) < per_page).count();
            if !self.copy.in_memory.iter().any(|waiting| waiting.contains(&slot)) {
                let bytes = count as u32 * self.geometry.unit_bytes;
                self.reads += 1;
                ready = ready.max(clock.read(
                    &self.geometry,
                    self.source.mode,
                    self.source.block,
                    self.source.page,
                    bytes,
                    now,
                ));
            }
            rest = &rest[count..];
        }
        ready
    }
}

impl Source {
    #[inline(always)]
    fn go_to(&mut self, slot: u32, geometry: &Geometry, blocks: &[Block]) {
        let per_page = geometry.units_per_page;
        if slot.wrapping_sub(self.first_unit) >= self.units {
            let block = geometry.block_of(slot);
            let first_unit = geometry.first_unit(block, 0);
            let mode = blocks[block as usize].mode;
            *self = Self { mode, block, first_unit, units: geometry.units_per_block(), page_at: 0, page: 0 };
        }
        let ahead = (slot - self.first_unit).wrapping_sub(self.page_at);
        let pages = match ahead {
            _ if ahead < per_page => 0,
            _ if ahead < 2 * per_page => 1,
            _ => {
                self.page = (slot - self.first_unit) / per_page;
                self.page_at = self.page * per_page;
                0
            }
        };
        self.page += pages;
        self.page_at += pages * per_page;
    }
}
