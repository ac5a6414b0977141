//! The cached part of the map, if not all of it fits in memory.
//!
//! A mapping page covers a run of units. Accessing a unit whose page is not cached costs a flash read; the least
//! recently used page (by the clock algorithm) is evicted, with a program if it is dirty. Mapping pages have their own
//! blocks with one bit a cell: a log, whose emptiest block is collected when free blocks run short. All of that costs
//! flash time and wear. Loading a page that was never written takes no time. The map itself is in the layer that owns
//! the cache: here is only its cost. Therefore no data can be lost here: after a power cut the owner has rebuilt the
//! map by scanning, and pages that are out of date in flash are written. Absent on purpose: read-ahead in the map, and
//! compression for sequential data.

mod recover;
#[cfg(test)]
mod tests;

use emmc_units::Instant;

use super::FtlError;
use crate::nand::{BlockHealth, Geometry, Nand, NandError};
use crate::profile;

const NOWHERE: u32 = u32::MAX;

/// A mapping page in memory.
#[derive(Clone, Copy, Debug)]
struct Frame {
    page: u32,
    dirty: bool,
    /// Accessed since the clock hand last passed.
    touched: bool,
}

/// Mapping pages in memory, and where all of them lie in flash.
#[derive(Clone, Debug)]
pub struct MappingCache {
    units_per_page: u32,
    frames_max: usize,
    frames: Vec<Frame>,
    hand: usize,
    /// By mapping page: its frame, and its flash page, counted over `slots`.
    frame_of: Vec<u32>,
    lies_at: Vec<u32>,
    /// By flash page: the mapping page in it, if it is that page's newest copy.
    holds: Vec<u32>,
    pages_per_block: u32,
    slots: Vec<Slot>,
    open: Option<usize>,
    /// No block is left for mapping pages.
    worn_out: bool,
    misses: u64,
    writes: u64,
}

/// A block of mapping pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    block: u32,
    state: SlotState,
    valid: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    Free,
    /// Open, or written and not collected yet.
    Used,
    /// A program failed in it: bad once it is collected.
    Failed,
    Bad,
}

impl MappingCache {
    /// Blocks that a region of `units` units needs for its mapping pages: twice their size, and one open block.
    pub fn blocks_for(config: &profile::MappingCache, units: u32, geometry: &Geometry) -> u32 {
        let pages = units.div_ceil(config.units_per_page.max(1));
        2 * pages.div_ceil(geometry.pages_in(geometry.native.single_bit()).max(1)) + 1
    }

    /// An empty cache; its pages are written to erased blocks for its use alone, [`MappingCache::blocks_for`] of them.
    pub fn new(config: &profile::MappingCache, units: u32, blocks: &[u32], nand: &mut Nand) -> Self {
        let mode = nand.geometry().native.single_bit();
        let good = |block: &&u32| nand.block(**block).health == BlockHealth::Good;
        let blocks: Vec<u32> = blocks.iter().filter(good).copied().collect();
        for &block in &blocks {
            nand.set_mode(block, mode);
        }
        let pages = units.div_ceil(config.units_per_page) as usize;
        let pages_per_block = nand.geometry().pages_in(mode);
        Self {
            units_per_page: config.units_per_page,
            frames_max: config.pages as usize,
            frames: Vec::with_capacity((config.pages as usize).min(pages)),
            hand: 0,
            frame_of: vec![NOWHERE; pages],
            lies_at: vec![NOWHERE; pages],
            holds: vec![NOWHERE; blocks.len() * pages_per_block as usize],
            pages_per_block,
            slots: blocks.into_iter().map(|block| Slot { block, state: SlotState::Free, valid: 0 }).collect(),
            open: None,
            worn_out: false,
            misses: 0,
            writes: 0,
        }
    }

    /// Cache misses.
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Mapping pages programmed, collected ones included.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Blocks of mapping pages.
    pub fn blocks(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots.iter().map(|slot| slot.block)
    }

    /// A unit is looked up or, `dirty`, moved; returns when its mapping page is in memory.
    ///
    /// Errors: [`FtlError::WornOut`] when there is no space for mapping pages any more, [`FtlError::PowerLost`].
    #[inline]
    pub fn touch(&mut self, nand: &mut Nand, unit: u32, dirty: bool, now: Instant) -> Result<Instant, FtlError> {
        self.touch_page(nand, unit / self.units_per_page, dirty, now)
    }

    /// Like [`MappingCache::touch`] for `count` units from `first`, each mapping page once.
    ///
    /// Errors: as [`MappingCache::touch`].
    #[inline]
    pub fn touch_run(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        dirty: bool,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let mut done = now;
        for page in first / self.units_per_page..(first + count).div_ceil(self.units_per_page) {
            done = self.touch_page(nand, page, dirty, done)?;
        }
        Ok(done)
    }

    #[inline]
    fn touch_page(&mut self, nand: &mut Nand, page: u32, dirty: bool, now: Instant) -> Result<Instant, FtlError> {
        if let Some(frame) = self.frames.get_mut(self.frame_of[page as usize] as usize) {
            frame.touched = true;
            frame.dirty |= dirty;
            return Ok(now);
        }
        self.load(nand, page, dirty, now)
    }

    /// Loads a mapping page.
    #[inline(never)]
    fn load(&mut self, nand: &mut Nand, page: u32, dirty: bool, now: Instant) -> Result<Instant, FtlError> {
        let frame = Frame { page, dirty, touched: true };
        let index = if self.frames.len() < self.frames_max {
            self.frames.push(frame);
            self.frames.len() - 1
        } else {
            let index = self.make_room(nand, now)?;
            self.frames[index] = frame;
            index
        };
        self.frame_of[page as usize] = index as u32;
        if dirty && self.worn_out {
            return Err(FtlError::WornOut);
        }
        let at = self.lies_at[page as usize];
        if at == NOWHERE {
            return Ok(now);
        }
        self.misses += 1;
        self.read(nand, at, now)
    }

    /// A free frame, after evicting a page if necessary. A program for that is in progress when the frame can be used
    /// again.
    fn make_room(&mut self, nand: &mut Nand, now: Instant) -> Result<usize, FtlError> {
        loop {
            self.hand = (self.hand + 1) % self.frames.len();
            let frame = &mut self.frames[self.hand];
            if !std::mem::take(&mut frame.touched) {
                break;
            }
        }
        let Frame { page, dirty, .. } = self.frames[self.hand];
        if dirty {
            match self.write(nand, page, now) {
                // The part accepts no more writes; so that it still reads, the owner's map is used.
                Err(FtlError::WornOut) => {
                    self.worn_out = true;
                    self.drop_copy(page);
                }
                written => _ = written?,
            }
        }
        self.frame_of[page as usize] = NOWHERE;
        Ok(self.hand)
    }

    fn read(&self, nand: &mut Nand, at: u32, now: Instant) -> Result<Instant, FtlError> {
        let (slot, page) = (at / self.pages_per_block, at % self.pages_per_block);
        let bytes = nand.geometry().page_bytes();
        match nand.read(self.slots[slot as usize].block, page, bytes, now) {
            Err(NandError::PowerLost) => Err(FtlError::PowerLost),
            // The owner still has the content of the unreadable page; the page is written when it changes.
            read => Ok(read.unwrap_or(now)),
        }
    }

    /// Writes a mapping page to flash.
    fn write(&mut self, nand: &mut Nand, page: u32, now: Instant) -> Result<Instant, FtlError> {
        let mut now = now;
        if self.open.is_none() {
            now = self.collect(nand, now)?;
        }
        self.append(nand, page, now)
    }

    /// Programs the next page of the open block, or of a free one.
    fn append(&mut self, nand: &mut Nand, page: u32, mut now: Instant) -> Result<Instant, FtlError> {
        loop {
            let slot = match self.open {
                Some(slot) => slot,
                None => self.open_next(nand)?,
            };
            let block = self.slots[slot].block;
            let next = nand.block(block).next_page;
            let programmed = nand.program_record(block, next, &page.to_le_bytes(), now);
            if next + 1 == self.pages_per_block {
                self.open = None;
            }
            match programmed {
                Ok(done) => {
                    self.writes += 1;
                    self.settle_at(page, slot as u32 * self.pages_per_block + next);
                    return Ok(done);
                }
                Err(NandError::ProgramFailed { done, .. }) => {
                    now = now.max(done);
                    self.slots[slot].state = SlotState::Failed;
                    // Its other pages may do; they must where only one free block is left.
                    self.open = self.open.filter(|_| self.free_slots() < 2);
                }
                Err(_) => return Err(FtlError::PowerLost),
            }
        }
    }

    /// The least worn free block.
    fn open_next(&mut self, nand: &Nand) -> Result<usize, FtlError> {
        let free = (0..self.slots.len()).filter(|&slot| self.slots[slot].state == SlotState::Free);
        let slot = free.min_by_key(|&slot| nand.block(self.slots[slot].block).erase_count).ok_or(FtlError::WornOut)?;
        self.slots[slot].state = SlotState::Used;
        self.open = Some(slot);
        Ok(slot)
    }

    /// Sets the place of a mapping page's newest copy.
    fn settle_at(&mut self, page: u32, at: u32) {
        self.drop_copy(page);
        self.lies_at[page as usize] = at;
        self.holds[at as usize] = page;
        self.slots[(at / self.pages_per_block) as usize].valid += 1;
    }

    fn drop_copy(&mut self, page: u32) {
        let old = std::mem::replace(&mut self.lies_at[page as usize], NOWHERE);
        if old != NOWHERE {
            self.holds[old as usize] = NOWHERE;
            self.slots[(old / self.pages_per_block) as usize].valid -= 1;
        }
    }

    /// Collects the emptiest blocks until enough are free.
    fn collect(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let mut now = now;
        while self.free_slots() < self.free_min() {
            let Some(victim) = self.emptiest() else { return Ok(now) };
            let first = victim as u32 * self.pages_per_block;
            for at in first..first + self.pages_per_block {
                let page = self.holds[at as usize];
                if page != NOWHERE {
                    let read = self.read(nand, at, now)?;
                    now = self.append(nand, page, read)?;
                }
            }
            now = self.free(nand, victim, now)?;
        }
        Ok(now)
    }

    fn free_slots(&self) -> usize {
        self.slots.iter().filter(|slot| slot.state == SlotState::Free).count()
    }

    /// Free blocks after collecting: one to write, one to collect into and, of more than four, one that may fail.
    fn free_min(&self) -> usize {
        let good = self.slots.iter().filter(|slot| slot.state != SlotState::Bad).count();
        good.div_ceil(2).clamp(1, 3)
    }

    /// The victim; `None` if garbage collection would free no space.
    fn emptiest(&self) -> Option<usize> {
        let used = |slot: &usize| matches!(self.slots[*slot].state, SlotState::Used | SlotState::Failed);
        let closed = (0..self.slots.len()).filter(used).filter(|&slot| Some(slot) != self.open);
        let emptiest = closed.min_by_key(|&slot| self.slots[slot].valid)?;
        (self.slots[emptiest].valid < self.pages_per_block).then_some(emptiest)
    }

    /// Erases an empty block; one that has failed or fails now is retired.
    fn free(&mut self, nand: &mut Nand, slot: usize, now: Instant) -> Result<Instant, FtlError> {
        let block = self.slots[slot].block;
        if self.slots[slot].state == SlotState::Failed {
            nand.mark_bad(block, now.max(nand.quiet_at()));
            self.slots[slot].state = SlotState::Bad;
            return Ok(now);
        }
        let erased = nand.erase(block, now);
        self.slots[slot].state = if erased.is_ok() { SlotState::Free } else { SlotState::Bad };
        match erased {
            Err(NandError::PowerLost) => Err(FtlError::PowerLost),
            erased => Ok(erased.unwrap_or(now)),
        }
    }

    /// Checks that pages, places and blocks agree.
    ///
    /// Errors: what is wrong, in words.
    pub fn audit(&self, nand: &Nand) -> Result<(), String> {
        for (page, &at) in (0u32..).zip(&self.lies_at).filter(|(_, at)| **at != NOWHERE) {
            let slot = self.slots[(at / self.pages_per_block) as usize];
            let programmed = at % self.pages_per_block < nand.block(slot.block).next_page;
            if self.holds[at as usize] != page || slot.state == SlotState::Free || !programmed {
                return Err(format!("mapping page {page} does not lie in block {}", slot.block));
            }
        }
        for (index, slot) in self.slots.iter().enumerate() {
            let first = index * self.pages_per_block as usize;
            let held = self.holds[first..first + self.pages_per_block as usize].iter().filter(|&&page| page != NOWHERE);
            if held.count() as u32 != slot.valid {
                return Err(format!("block {} counts {} mapping pages", slot.block, slot.valid));
            }
            if slot.state == SlotState::Free && nand.block(slot.block).next_page != 0 {
                return Err(format!("block {} of the map is free and not erased", slot.block));
            }
        }
        for (index, frame) in self.frames.iter().enumerate() {
            if self.frame_of[frame.page as usize] != index as u32 {
                return Err(format!("mapping page {} is not in its frame", frame.page));
            }
        }
        Ok(())
    }
}
