//! Placing units: programming stripes, opening blocks, and handling failures of both.

use emmc_units::Instant;

use super::PageFtl;
use super::frontier::NO_BLOCK;
use crate::ftl::FtlError;
use crate::nand::{NO_UNIT, Nand, NandError};

/// Where the bytes of the units to program are.
#[derive(Clone, Copy)]
pub(super) enum Bytes<'a> {
    /// They are padding, or no bytes are stored.
    None,
    /// In the frontier.
    Waiting,
    /// Those of a whole stripe, in the call that fills it.
    Given(&'a [u8]),
}

impl PageFtl {
    /// Programs the buffered units of a frontier, padded to whole pages. Returns the time at which they are in flash.
    pub(super) fn program(&mut self, nand: &mut Nand, role: usize, now: Instant) -> Result<Instant, FtlError> {
        let bytes = if self.keeps_data { Bytes::Waiting } else { Bytes::None };
        self.program_bytes(nand, role, bytes, now)
    }

    /// The same with bytes that need not be in the frontier.
    pub(super) fn program_bytes(
        &mut self,
        nand: &mut Nand,
        role: usize,
        bytes: Bytes<'_>,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let frontier = &mut self.frontiers[role];
        self.stats.padding_units += u64::from(frontier.pad_page(self.geometry.units_per_page));
        let (from, until) = (frontier.programmed, frontier.fill);
        if !self.map.is_run_valid(frontier.base + from, until - from) {
            // Overwritten or trimmed while they waited: if they were programmed, recovery could take them for current.
            for at in from..until {
                if !self.map.is_valid(frontier.base + at) {
                    frontier.slots[(at - frontier.start) as usize] = NO_UNIT;
                }
            }
        }
        let (done, failed) = self.program_slots(nand, role, bytes, now)?;
        if failed {
            if let Bytes::Given(given) = bytes {
                self.frontiers[role].bytes[..given.len()].copy_from_slice(given);
            }
            return self.replace_failed(nand, role, done);
        }
        self.note_exposed(role);
        self.forget_fresh();
        self.close_if_full(role);
        Ok(done)
    }

    /// Programs the pages whose slots are filled, until one fails: returns the end, and whether one failed.
    #[inline]
    pub(super) fn program_slots(
        &mut self,
        nand: &mut Nand,
        role: usize,
        bytes: Bytes<'_>,
        now: Instant,
    ) -> Result<(Instant, bool), FtlError> {
        let (per_page, unit_bytes) = (self.geometry.units_per_page, self.geometry.unit_bytes as usize);
        let frontier = &mut self.frontiers[role];
        let mut done = now;
        if frontier.is_whole() {
            let pages = frontier.pages_in_stripe(per_page);
            if let Some(programmed) = nand.program_pages(frontier.block, frontier.page, pages, &frontier.slots, now) {
                (frontier.programmed, frontier.page) = (frontier.fill, frontier.page + pages);
                done = programmed;
            }
        }
        while frontier.programmed < frontier.fill {
            let slots = frontier.page_slots(per_page);
            let of_page = slots.start * unit_bytes..slots.end * unit_bytes;
            let bytes = match bytes {
                Bytes::None => None,
                Bytes::Waiting => Some(&frontier.bytes[of_page]),
                Bytes::Given(given) => Some(&given[of_page]),
            };
            match nand.program(frontier.block, frontier.page, &frontier.slots[slots], bytes, now) {
                Ok(programmed) => done = done.max(programmed),
                Err(NandError::ProgramFailed { done: failed_at, .. }) => {
                    // Until then a power cut could damage earlier pages on its word line.
                    done = done.max(failed_at);
                    self.programmed_by = self.programmed_by.max(done);
                    return Ok((done, true));
                }
                Err(error) => return Err(error.into()),
            }
            frontier.programmed += per_page;
            frontier.page += 1;
        }
        frontier.advance();
        self.programmed_by = self.programmed_by.max(done);
        Ok((done, false))
    }

    pub(super) fn close_if_full(&mut self, role: usize) {
        let frontier = &mut self.frontiers[role];
        if frontier.is_exhausted() {
            frontier.unsettled_since = u64::MAX;
            self.close(role);
        }
    }

    /// Pages with data were programmed: later pages may share their word lines.
    #[inline]
    fn note_exposed(&mut self, role: usize) {
        let frontier = &mut self.frontiers[role];
        frontier.exposed_until = frontier.exposed_until.max(self.word_line_ends[frontier.page as usize - 1]);
        if frontier.page >= frontier.exposed_until {
            frontier.unsettled_since = u64::MAX;
        }
    }

    /// Something was placed at a frontier that was settled.
    #[inline]
    pub(super) fn note_placed(&mut self, role: usize) {
        let frontier = &mut self.frontiers[role];
        if frontier.unsettled_since == u64::MAX {
            frontier.unsettled_since = self.epoch;
        }
    }

    /// Programs the buffered units of a frontier, and pads until no later program can damage them. Returns the time of
    /// the end.
    pub(super) fn settle(&mut self, nand: &mut Nand, role: usize, now: Instant) -> Result<Instant, FtlError> {
        let mut done = now;
        if self.frontiers[role].has_waiting() {
            done = done.max(self.program(nand, role, now)?);
        }
        loop {
            let frontier = &mut self.frontiers[role];
            if frontier.block == NO_BLOCK || frontier.page >= frontier.exposed_until {
                frontier.unsettled_since = u64::MAX;
                return Ok(done);
            }
            let stripe_end = frontier.limit.min(frontier.exposed_until * self.geometry.units_per_page);
            done = done.max(self.pad(nand, role, stripe_end, now)?);
        }
    }

    /// Pads a settled frontier to the end of its stripe, if it is inside one and a program takes a whole row. Returns
    /// the time of the end.
    pub(super) fn end_row(&mut self, nand: &mut Nand, role: usize, now: Instant) -> Result<Instant, FtlError> {
        let frontier = &self.frontiers[role];
        if !nand.is_multi_plane() || frontier.block == NO_BLOCK || frontier.fill == frontier.start {
            return Ok(now);
        }
        self.pad(nand, role, frontier.limit, now)
    }

    /// Programs padding up to a unit of the present stripe. It holds no data, so no data is at risk.
    fn pad(&mut self, nand: &mut Nand, role: usize, end: u32, now: Instant) -> Result<Instant, FtlError> {
        self.stats.padding_units += u64::from(self.frontiers[role].pad_until(end));
        let (done, failed) = self.program_slots(nand, role, Bytes::None, now)?;
        if failed {
            // The block's content is intact, but must be moved.
            return Ok(done.max(self.replace_failed(nand, role, done)?));
        }
        self.close_if_full(role);
        Ok(done)
    }

    /// The block is full, or is not written any more: it becomes a candidate.
    pub(super) fn close(&mut self, role: usize) {
        let block = self.frontiers[role].block;
        self.frontiers[role].leave();
        self.victims.insert(block, self.map.valid_in(block));
    }

    /// A page failed to program: its content and that of the later pages is programmed into another block.
    #[cold]
    pub(super) fn replace_failed(&mut self, nand: &mut Nand, role: usize, now: Instant) -> Result<Instant, FtlError> {
        let frontier = &mut self.frontiers[role];
        let unit_bytes = self.geometry.unit_bytes as usize;
        let range = (frontier.programmed - frontier.start) as usize..(frontier.fill - frontier.start) as usize;
        let mut units = Vec::new();
        for slot in range {
            if frontier.slots[slot] == NO_UNIT {
                continue;
            }
            let bytes = if self.keeps_data { frontier.slot_bytes(slot, unit_bytes).to_vec() } else { Vec::new() };
            units.push((frontier.slots[slot], bytes));
        }
        let since = frontier.unsettled_since;
        let block = frontier.block;
        self.failing.push(block);
        frontier.leave();
        // The units are in memory only: no block with their previous copies may be erased for them.
        let outer = self.replacing;
        self.replacing = outer.min(since);
        // A failure meanwhile has units of its own.
        let others = self.unplaced.len();
        self.unplaced.extend(units.iter().rev().map(|&(unit, _)| unit));
        let done = self.place_again(nand, role, (block, since), &units, now);
        self.unplaced.truncate(others);
        self.replacing = outer;
        done
    }

    /// Programs units from memory into another block than `failed`, whose first of them was placed at an epoch.
    fn place_again(
        &mut self,
        nand: &mut Nand,
        role: usize,
        (failed, since): (u32, u64),
        units: &[(u32, Vec<u8>)],
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let unit_bytes = self.geometry.unit_bytes as usize;
        let now = self.seal_failed(nand, failed, now)?;
        // The spare is added now, so that there is a block to continue with; the failed block is retired when it is
        // empty.
        self.use_spare(nand);
        let mut done = now;
        let count = units.len();
        for (index, (unit, bytes)) in units.iter().enumerate() {
            let unit = *unit;
            if self.frontiers[role].is_exhausted() {
                if let Err(error) = self.start_block(nand, role, done) {
                    if error == FtlError::WornOut {
                        self.fall_back(nand, units[index..].iter().map(|&(unit, _)| unit));
                    }
                    return Err(error);
                }
                self.frontiers[role].unsettled_since = since.min(self.epoch);
            }
            let frontier = &mut self.frontiers[role];
            let physical = frontier.place(unit);
            let placed = self.unplaced.pop();
            debug_assert_eq!(placed, Some(unit));
            if self.keeps_data {
                let slot = (physical - frontier.base - frontier.start) as usize;
                frontier.slot_bytes(slot, unit_bytes).copy_from_slice(bytes);
            }
            let old = self.map.set(unit, physical);
            debug_assert_ne!(old, NO_UNIT, "it was placed before");
            if self.frontiers[role].is_due() || index + 1 == count {
                done = done.max(self.program(nand, role, done)?);
            }
        }
        Ok(done)
    }

    fn use_spare(&mut self, nand: &Nand) {
        if self.pool.retire(nand) {
            self.stats.replaced_blocks += 1;
        } else {
            self.worn_out = true;
        }
    }

    /// Opens a block at a frontier, without collecting first.
    pub(super) fn start_block(&mut self, nand: &mut Nand, role: usize, now: Instant) -> Result<Instant, FtlError> {
        let still = role == self.roles.still && role != self.roles.gc;
        let (block, now) = self.take_erased(nand, still, now)?;
        self.opened += 1;
        let is_host = role == self.roles.host || role < self.roles.gc;
        let opened = (if is_host { self.stats.host_units } else { 0 }, self.opened);
        let state = self.state(block);
        (state.born, state.opened) = opened;
        let (base, end) = (self.geometry.first_unit(block, 0), self.block_units);
        self.frontiers[role].start(block, base, end);
        Ok(now)
    }

    /// A free block, erased: the next, or the most worn. The erase is issued, not waited for: programs to the block
    /// come after it anyway.
    fn take_erased(&mut self, nand: &mut Nand, most_worn: bool, mut now: Instant) -> Result<(u32, Instant), FtlError> {
        let mut is_settled = false;
        loop {
            let settled = self.settled_epoch();
            let (states, first, held) = (&self.states, self.first_block, &self.held);
            let can_go = |block: u32| states[(block - first) as usize].freed_in <= settled && !held.contains(&block);
            let taken = if most_worn { self.pool.take_most_worn(nand, can_go) } else { self.pool.take_where(can_go) };
            match taken {
                Some(block) if !self.state(block).is_dirty => {
                    self.state(block).is_dirty = true;
                    return Ok((block, now));
                }
                Some(block) => {
                    let logged = self.log_discards(nand, now);
                    if logged.is_err() {
                        self.pool.give(block, nand.block(block).erase_count);
                    }
                    now = logged?;
                    if self.erase(nand, block, now)? {
                        self.state(block).is_dirty = true;
                        return Ok((block, now));
                    }
                }
                None if self.pool.free() == 0 => {
                    if self.pool.borrow_spare(nand) {
                        continue;
                    }
                    self.worn_out = true;
                    return Err(FtlError::WornOut);
                }
                None if self.pool.iter().all(|block| self.held.contains(&block)) => {
                    // No other block is free: a reserved one is used. Its old copies may be erased, because the newer,
                    // doubtful copies are usually readable.
                    if !self.pool.borrow_spare(nand) {
                        self.held.clear();
                    }
                }
                // Each free block may hold the only copy in flash of a unit that is placed again.
                None if is_settled && self.replacing != u64::MAX => {
                    if !self.pool.borrow_spare(nand) {
                        self.worn_out = true;
                        return Err(FtlError::WornOut);
                    }
                }
                None => {
                    for role in 0..self.frontiers.len() {
                        now = self.settle(nand, role, now)?;
                    }
                    is_settled = true;
                }
            }
        }
    }

    /// Everything that was placed before a block was freed is settled if that was in this epoch or earlier.
    pub(super) fn settled_epoch(&self) -> u64 {
        self.frontiers.iter().map(|frontier| frontier.unsettled_since).fold(self.replacing, u64::min)
    }

    /// Erases a block that was taken from the free ones; a block that fails is replaced, and the result is `false`.
    pub(super) fn erase(&mut self, nand: &mut Nand, block: u32, now: Instant) -> Result<bool, FtlError> {
        match nand.erase(block, now) {
            Ok(_) => {
                *self.state(block) = super::BlockState::default();
                Ok(true)
            }
            Err(NandError::EraseFailed { .. }) => {
                self.use_spare(nand);
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Frees a block without valid data that is not open.
    pub(super) fn free(&mut self, nand: &Nand, block: u32) {
        debug_assert_eq!(self.map.valid_in(block), 0);
        self.epoch += 1;
        let epoch = self.epoch;
        let state = self.state(block);
        (state.freed_in, state.is_dirty) = (epoch, true);
        self.pool.give(block, nand.block(block).erase_count);
    }

    /// Removes programmed units from the list of unprogrammed ones.
    #[inline]
    fn forget_fresh(&mut self) {
        if !self.fresh.is_empty() {
            let mut fresh = std::mem::take(&mut self.fresh);
            fresh.retain(|&unit| {
                let physical = self.map.lookup(unit);
                physical != NO_UNIT && self.is_in_memory(unit, physical)
            });
            self.fresh = fresh;
        }
    }
}
