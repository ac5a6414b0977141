//! Garbage collection of whole victims when free blocks run out, and the copying itself. In steps: `steps`.

use std::collections::BTreeSet;
use std::ops::Range;

use emmc_units::Instant;

use super::PageFtl;
use crate::ftl::FtlError;
use crate::ftl::map::prefetch;
use crate::nand::{NO_UNIT, Nand, NandError, copy_few};

/// Units of a victim whose map entries are prefetched before they are needed: those of some steps, so that the lines
/// have come when they are used, and few enough that they stay in the processor's first cache. Measured with
/// `cargo bench -p emmc-workload --bench device -- random-8g`.
const FORESEEN_UNITS: usize = 192;
/// Numbers of units in a line of the processor's cache.
const LINE_UNITS: usize = 16;

/// Reusable buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    /// Logical units that move.
    pub(super) units: Vec<u32>,
    /// Their positions in the block; only if needed.
    places: Vec<u32>,
    keeps_places: bool,
    /// The map entries were fetched before ([`PageFtl::foresee_victim`]).
    pub(super) is_foreseen: bool,
    /// The pages that hold them.
    pages: Vec<PageRun>,
}

/// The units of a page that move, cumulative.
#[derive(Clone, Copy, Debug)]
struct PageRun {
    page: u32,
    first: u32,
    count: u32,
}

/// `count` bits, at most 64, from a place in words.
#[inline]
fn bits_at(words: &[u64], from: u32, count: u32) -> u64 {
    let (word, shift) = (from as usize / 64, from % 64);
    let mut bits = words[word] >> shift;
    if shift + count > 64 {
        bits |= words[word + 1] << (64 - shift);
    }
    bits & (u64::MAX >> (64 - count))
}

impl PageFtl {
    /// A block for a host write frontier; collects first if too few are free. Returns when there is space.
    #[cold]
    pub(super) fn make_room(&mut self, nand: &mut Nand, role: usize, mut now: Instant) -> Result<Instant, FtlError> {
        let shared = role == self.roles.gc;
        let mut left = 2 * self.spec.blocks.len();
        if self.pool.free() <= self.low_blocks {
            self.stats.foreground_stalls += 1;
        }
        now = self.retire_failing(nand, now)?;
        loop {
            if shared && self.frontiers[role].is_exhausted() {
                now = self.start_block(nand, role, now)?;
            }
            // Where collected units go to the same block, it has been taken from the free ones already.
            let enough = if shared { self.low_blocks } else { self.low_blocks + 1 };
            if self.pool.free() >= enough {
                if !self.frontiers[role].is_exhausted() {
                    return Ok(now);
                }
                if !shared {
                    return self.start_block(nand, role, now);
                }
                continue;
            }
            if left == 0 {
                self.worn_out = true;
                return Err(FtlError::WornOut);
            }
            left -= 1;
            if self.in_progress.is_some() {
                now = self.finish_victim(nand, now)?;
                continue;
            }
            let Some(victim) = self.victims.pick(&self.map) else {
                self.worn_out = true;
                return Err(FtlError::WornOut);
            };
            self.note_life(victim);
            now = self.collect(nand, victim, self.roles.gc, now)?;
            if self.levelling.is_due() {
                now = self.level(nand, now)?.unwrap_or(now);
            }
        }
    }

    /// Moves a block's valid units to a frontier and frees it. Returns when those that fill stripes are programmed; the
    /// rest waits, as does the erase of the block.
    pub(super) fn collect(
        &mut self,
        nand: &mut Nand,
        victim: u32,
        role: usize,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let moved = self.move_out(nand, victim, role, now);
        if moved.is_err() {
            self.victims.insert(victim, self.map.valid_in(victim));
        }
        let done = moved?;
        self.stats.collections += 1;
        self.free(nand, victim);
        Ok(done)
    }

    /// Moves a block's valid units to a frontier.
    fn move_out(&mut self, nand: &mut Nand, victim: u32, role: usize, now: Instant) -> Result<Instant, FtlError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.is_foreseen = false;
        self.gather(nand, victim, 0, u32::MAX, &mut scratch);
        self.map.empty_block(victim);
        let moved = self.move_units(nand, victim, role, &scratch, now);
        self.scratch = scratch;
        moved
    }

    /// Moves the valid units of some pages of a block to the frontier for collected ones.
    pub(super) fn move_pages(
        &mut self,
        nand: &mut Nand,
        block: u32,
        pages: &BTreeSet<u32>,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let mut scratch = Scratch { keeps_places: true, ..Scratch::default() };
        self.gather_where(nand, block, 0..u32::MAX, &mut scratch, |page| pages.contains(&page));
        self.map.take_from(block, &scratch.places);
        self.move_units(nand, block, self.roles.gc, &scratch, now)
    }

    /// The valid units of a block's pages from `first` on, until there are `most`; returns the page after them.
    #[inline]
    pub(super) fn gather(&self, nand: &Nand, block: u32, first: u32, most: u32, scratch: &mut Scratch) -> u32 {
        scratch.keeps_places = self.keeps_data;
        self.gather_where(nand, block, first..most, scratch, |_| true)
    }

    /// Prefetches the map entries of a victim's valid units from `page` on, beyond those that are foreseen already.
    /// Returns the page after them.
    #[inline]
    pub(super) fn foresee_victim(&self, nand: &Nand, block: u32, page: u32, foreseen: u32) -> u32 {
        let per_page = self.geometry.units_per_page;
        let spare = nand.spare(block);
        let from = ((foreseen.max(page) * per_page) as usize).min(spare.len());
        let until = spare.len().min((page * per_page) as usize + FORESEEN_UNITS);
        if from < until {
            // Their numbers were prefetched by the call before; here those of the next.
            for at in (until..spare.len().min(until + FORESEEN_UNITS / 2)).step_by(LINE_UNITS) {
                prefetch(spare, at);
            }
            self.map.foresee_valid(block, spare, from..until);
        }
        (until.div_ceil(per_page as usize) as u32).max(foreseen)
    }

    /// The same for some pages, from page `span.start` until there are `span.end` units. With one branch per page, and
    /// with prefetching of the map entries that will change.
    #[inline(always)]
    fn gather_where(
        &self,
        nand: &Nand,
        block: u32,
        span: Range<u32>,
        scratch: &mut Scratch,
        is_wanted: impl Fn(u32) -> bool,
    ) -> u32 {
        let per_page = self.geometry.units_per_page;
        let (spare, words) = (nand.spare(block), self.map.valid_words(block));
        let rest = &spare[((span.start * per_page) as usize).min(spare.len())..];
        let most = (span.end as usize).min(rest.len());
        if !scratch.is_foreseen {
            // One word of each cache line, so that they load in parallel. Some units more: not all are valid.
            for at in (0..rest.len().min(most + most / 2)).step_by(LINE_UNITS) {
                prefetch(rest, at);
            }
        }
        let Scratch { units, places, pages, keeps_places, is_foreseen } = scratch;
        pages.clear();
        places.clear();
        units.clear();
        units.resize(most + per_page as usize + 1, NO_UNIT);
        let mut count = 0;
        let mut page = span.start;
        for slots in rest.chunks_exact(per_page as usize) {
            if count >= most {
                break;
            }
            let bits = bits_at(words, page * per_page, per_page);
            if bits != 0 && is_wanted(page) {
                let first = count;
                for (slot, &unit) in slots.iter().enumerate() {
                    units[count] = unit;
                    count += (bits >> slot & 1) as usize;
                }
                pages.push(PageRun { page, first: first as u32, count: (count - first) as u32 });
                if *keeps_places || cfg!(debug_assertions) {
                    let valid = (0..per_page).filter(|slot| bits >> slot & 1 == 1);
                    places.extend(valid.map(|slot| page * per_page + slot));
                }
            }
            page += 1;
        }
        units.truncate(count);
        if !*is_foreseen {
            self.map.foresee(units, &[]);
        }
        debug_assert!(self.is_current(block, scratch), "a stale copy would be moved");
        page
    }

    /// Whether each unit to be moved is the current copy.
    fn is_current(&self, victim: u32, scratch: &Scratch) -> bool {
        let first = self.geometry.first_unit(victim, 0);
        let mut pairs = scratch.units.iter().zip(&scratch.places);
        pairs.all(|(&unit, &place)| unit != NO_UNIT && self.map.lookup(unit) == first + place)
    }

    pub(super) fn move_units(
        &mut self,
        nand: &mut Nand,
        victim: u32,
        role: usize,
        scratch: &Scratch,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let (mut done, mut ready) = (now, now);
        let (mut at, mut pages) = (0, scratch.pages.as_slice());
        while at < scratch.units.len() {
            if self.frontiers[role].is_exhausted() {
                if let Err(error) = self.start_block(nand, role, now) {
                    self.map.put_back(&scratch.units[at..]);
                    return Err(error);
                }
            }
            self.note_placed(role);
            let frontier = &self.frontiers[role];
            let run = at..scratch.units.len().min(at + (frontier.limit - frontier.fill) as usize);
            let count = pages.iter().take_while(|page| (page.first as usize) < run.end).count();
            let (needed, later) = pages.split_at(count);
            pages = later;
            match self.fetch(nand, victim, needed, scratch, now) {
                Ok(read) => ready = ready.max(read),
                Err(error) => {
                    self.map.put_back(&scratch.units[at..]);
                    return Err(error);
                }
            }
            self.place_copies(nand, victim, role, scratch, run.clone());
            at = run.end;
            if self.frontiers[role].is_due() {
                match self.program(nand, role, ready) {
                    Ok(programmed) => done = done.max(programmed),
                    Err(error) => {
                        self.map.put_back(&scratch.units[at..]);
                        return Err(error);
                    }
                }
            }
        }
        self.stats.copied_units += scratch.units.len() as u64;
        Ok(done.max(ready))
    }

    /// Reads the units of pages that move.
    #[inline]
    fn fetch(
        &self,
        nand: &mut Nand,
        victim: u32,
        pages: &[PageRun],
        scratch: &Scratch,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let parts = pages.iter().map(|page| (page.page, page.count * self.geometry.unit_bytes));
        nand.read_pages(victim, parts, now).map_err(|error| match error {
            NandError::Uncorrectable { page, .. } => {
                let of_page = pages.iter().find(|run| run.page == page);
                let unit = of_page.and_then(|run| scratch.units.get(run.first as usize));
                FtlError::Uncorrectable { unit: unit.copied().unwrap_or(NO_UNIT) }
            }
            error => error.into(),
        })
    }

    /// Places copies at a frontier whose stripe has space for them.
    fn place_copies(&mut self, nand: &Nand, victim: u32, role: usize, scratch: &Scratch, run: Range<usize>) {
        let frontier = &mut self.frontiers[role];
        let units = &scratch.units[run.clone()];
        let (first, slot) = (frontier.fill, (frontier.fill - frontier.start) as usize);
        copy_few(&mut frontier.slots[slot..slot + units.len()], units);
        frontier.fill += units.len() as u32;
        self.map.place_run(units, frontier.base + first);
        if self.keeps_data {
            let unit_bytes = self.geometry.unit_bytes as usize;
            for (slot, &place) in (slot..).zip(&scratch.places[run]) {
                let target = frontier.slot_bytes(slot, unit_bytes);
                match nand.unit_data(self.geometry.first_unit(victim, 0) + place) {
                    Some(bytes) => target.copy_from_slice(bytes),
                    None => target.fill(0),
                }
            }
        }
    }

    /// Moves the data out of blocks with a failed program, and retires them.
    pub(super) fn retire_failing(&mut self, nand: &mut Nand, mut now: Instant) -> Result<Instant, FtlError> {
        if !self.failing.is_empty() {
            // Only one block to copy to is reserved.
            now = self.finish_victim(nand, now)?;
        }
        while let Some(block) = self.failing.pop() {
            let moved = self.move_out(nand, block, self.roles.gc, now);
            if moved.is_err() {
                self.failing.push(block);
            }
            // A bad block is not scanned after a power cut: whatever is newer than its content must be durable before
            // the mark is, the copies as well as what the host has overwritten since.
            now = moved?;
            for role in 0..self.frontiers.len() {
                now = self.settle(nand, role, now)?;
            }
            nand.mark_bad(block, now.max(nand.quiet_at()));
        }
        Ok(now)
    }

    /// Invalid units that collecting could reclaim.
    pub(super) fn has_garbage(&mut self) -> bool {
        let emptiest = self.victims.emptiest(&self.map);
        emptiest.is_some_and(|block| self.map.valid_in(block) < self.block_units)
    }

    /// One step of background work: a failing block, or a part of a block to be collected or to be levelled.
    pub(super) fn background_step(&mut self, nand: &mut Nand, now: Instant) -> Result<Option<Instant>, FtlError> {
        if self.worn_out {
            return Ok(None);
        }
        if !self.failing.is_empty() {
            return self.retire_failing(nand, now).map(Some);
        }
        self.idle_step(nand, now)
    }

    /// The urgency of background work, as in BKOPS_STATUS: none while enough blocks are free or no space can be gained;
    /// performance suffers when the host's writes have to wait for it; critical when most of a victim must be copied,
    /// or paced collection is a block behind the host's writes.
    pub(super) fn background_urgency(&self) -> u8 {
        let free = self.pool.free();
        let calm = u8::from(!self.failing.is_empty());
        let pressure = self.pressure();
        // Checked first: it is the usual case, and every status needs it.
        if pressure == 0 && free >= self.high_blocks.max(self.low_blocks + 1) {
            return calm;
        }
        let candidates = self.victims.iter().chain(self.in_progress.map(|victim| victim.block));
        let least = candidates.map(|block| self.map.valid_in(block)).min().unwrap_or(self.block_units);
        let waits = if self.is_paced() { pressure > 0 } else { free <= self.low_blocks };
        match least {
            least if least == self.block_units => calm,
            _ if !waits => 1,
            least if least < self.block_units / 8 * 7 && pressure < 2 => 2,
            _ => 3,
        }
    }
}
