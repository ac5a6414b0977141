//! Writes to the log and without it, and reads from both layers.

use emmc_units::Instant;

use super::{Durability, FtlError, Nand, SlcFront, fault};
use crate::nand::{NO_UNIT, NandError};

impl SlcFront {
    /// Whether a write is large enough to bypass the log, alone or together with the write that it continues.
    pub(super) fn goes_past(&mut self, first: u32, count: u32, durability: Durability) -> bool {
        let continues = self.stream.goes_on && self.stream.end == first;
        self.stream.units = if continues { self.stream.units.saturating_add(count) } else { count };
        self.stream.end = first + count;
        self.stream.goes_on = durability == Durability::Buffered;
        let bytes = u64::from(self.stream.units) * u64::from(self.unit_bytes);
        !self.log.is_usable() || self.bypass_bytes > 0 && bytes >= u64::from(self.bypass_bytes)
    }

    /// Writes to the log, the pages of a row whenever that is full.
    pub(super) fn write_log(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        data: Option<&[u8]>,
        durability: Durability,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let mut done = now;
        if self.log.is_row_full(nand) {
            // It could not be programmed when it was filled.
            done = self.program(nand, now)?;
        }
        for index in 0..count {
            let bytes = data.map(|data| &data[index as usize * self.unit_bytes as usize..][..self.unit_bytes as usize]);
            if self.log.put(nand, first + index, bytes) {
                done = done.max(self.program(nand, now)?);
            }
        }
        if durability != Durability::Buffered {
            done = done.max(self.program(nand, now)?);
        }
        Ok(done)
    }

    /// Writes to the main layer; copies in the log become void once the new ones are durable.
    pub(super) fn write_past(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        data: Option<&[u8]>,
        durability: Durability,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let held = self.log.holds_any(first, count);
        let mut done = self.inner.write(nand, first, count, data, durability, now)?;
        if held && self.log.take_out(first, count) > 0 {
            // A programmed page is not yet safe: later programs of its word lines may damage it, and the log's copies
            // would be gone.
            self.voids.add(first, count, durability != Durability::Reliable);
        }
        if durability != Durability::Buffered || self.voids.are_many() {
            done = done.max(self.settle(nand, done)?);
        }
        Ok(done.max(self.fold_beside(nand, count, now)?))
    }

    /// Makes durable that copies in the log are void. What has taken their place must be so before.
    pub(super) fn settle(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        if self.voids.are_settled() {
            // A record that was written earlier may still be in progress.
            return Ok(now.max(self.voids.recorded_by));
        }
        let mut done = now;
        if self.voids.wait_for_flush() {
            done = self.inner.flush(nand, now)?;
            self.voids.flushed();
        }
        let index = &self.log.index;
        match self.voids.append(nand, &|unit| index.get(unit).is_some(), done) {
            Err(FtlError::WornOut) => self.give_up_log(nand, done),
            recorded => recorded,
        }
    }

    /// Programs the waiting pages, the last one padded where it is not full.
    ///
    /// They are issued together, so that the planes of a die program them together. After a padded page the rest of
    /// its row is filled alone: then whole rows follow again.
    pub(super) fn program(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        if self.log.buffer.is_empty() {
            return Ok(now);
        }
        let mut now = now;
        if self.voids.cover_any(&self.log.buffer) {
            // A record made later would void these copies too.
            now = self.settle(nand, now)?;
        }
        let (mut done, mut pages) = (now, 0);
        while !self.log.buffer.is_empty() {
            let Some((block, room)) = self.open_block(nand, now)? else {
                return Ok(done.max(self.spill(nand, now)?));
            };
            let page = nand.block(block).next_page;
            // No other page is programmed before the first is complete, so an unreadable first page shows a scan that
            // the block is void.
            now = if page == 0 { room } else { room.max(self.log.begun_at) };
            let mut units = self.log.next_page().to_vec();
            let count = units.len();
            units.resize(nand.geometry().units_per_page as usize, NO_UNIT);
            let programmed = match nand.program(block, page, &units, self.log.page_bytes(), now) {
                Ok(programmed) => programmed,
                Err(NandError::ProgramFailed { block, done: failed_at }) => {
                    now = now.max(failed_at);
                    self.log.failed.push(block);
                    self.log.close();
                    continue;
                }
                Err(_) => return Err(FtlError::PowerLost),
            };
            if page == 0 {
                self.log.begun_at = programmed;
            }
            self.log.programmed_by = self.log.programmed_by.max(programmed);
            self.own.padding_units += (units.len() - count) as u64;
            let first = nand.geometry().first_unit(block, page);
            for (&unit, physical) in units[..count].iter().zip(first..) {
                self.log.index.set(unit, physical);
                self.inner.supersede(unit);
            }
            self.log.drop_first(count);
            if page + 1 == nand.pages_of(block) {
                self.log.close();
            }
            (done, pages) = (done.max(programmed), pages + 1);
        }
        self.count();
        for _ in 0..pages {
            done = done.max(self.keep_folding(nand, now)?);
        }
        Ok(done)
    }

    /// The block to program next, and the time at which folding has freed it; `None` when too few blocks are left.
    fn open_block(&mut self, nand: &mut Nand, now: Instant) -> Result<Option<(u32, Instant)>, FtlError> {
        let mut now = now;
        if self.log.open.is_none() {
            self.mark_retired(nand, now);
            if self.log.is_low() {
                self.own.foreground_stalls += 1;
            }
            while self.log.is_low() {
                now = self.fold_oldest(nand, now)?;
            }
            if self.log.is_usable() {
                self.log.open = self.log.free.pop_front();
            }
        }
        Ok(self.log.open.map(|block| (block, now)))
    }

    /// The log has ended: buffered and logged units move to the main layer.
    fn spill(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let mut done = now;
        while self.log.has_full() {
            done = self.fold_oldest(nand, done)?;
        }
        let buffer = self.log.buffer.clone();
        for (slot, &unit) in buffer.iter().enumerate() {
            let data = self.log.waiting_bytes(slot).map(<[u8]>::to_vec);
            done = done.max(self.inner.write(nand, unit, 1, data.as_deref(), Durability::Buffered, now)?);
        }
        done = done.max(self.inner.flush(nand, done)?);
        self.log.clear_buffer();
        self.count();
        Ok(done)
    }

    /// Reads units of which some may be in the log: each of its pages once, and runs of the others from the main layer.
    pub(super) fn read_mixed(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        mut out: Option<&mut [u8]>,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        self.drop_unreadable(nand);
        let unit_bytes = self.unit_bytes as usize;
        let mut done = now;
        let mut pages: Vec<(u32, u32)> = Vec::new();
        let mut behind = first;
        for unit in first..=first + count {
            let is_end = unit == first + count;
            let waits = !is_end && self.log.buffer.contains(&unit);
            let physical = if is_end || waits { None } else { self.log.index.get(unit) };
            if !is_end && !waits && physical.is_none() {
                continue;
            }
            if behind < unit {
                let part = out
                    .as_deref_mut()
                    .map(|out| &mut out[(behind - first) as usize * unit_bytes..(unit - first) as usize * unit_bytes]);
                done = done.max(self.inner.read(nand, behind, unit - behind, part, now)?);
            }
            behind = unit + 1;
            if let Some(physical) = physical {
                pages.push((physical / nand.geometry().units_per_page, unit));
            }
            if let (false, Some(out)) = (is_end, out.as_deref_mut()) {
                self.copy_held(nand, unit, physical, &mut out[(unit - first) as usize * unit_bytes..][..unit_bytes]);
            }
        }
        self.count();
        Ok(done.max(self.read_pages(nand, pages, now)?))
    }

    /// Reads pages of the log, each once; `pages` holds one entry for each unit wanted.
    pub(super) fn read_pages(
        &self,
        nand: &mut Nand,
        mut pages: Vec<(u32, u32)>,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        pages.sort_unstable();
        let geometry = *nand.geometry();
        let mut done = now;
        for units in pages.chunk_by(|one, other| one.0 == other.0) {
            let physical = units[0].0 * geometry.units_per_page;
            let (block, page) = (geometry.block_of(physical), geometry.page_of(physical));
            let bytes = units.len() as u32 * geometry.unit_bytes;
            done = done.max(nand.read(block, page, bytes, now).map_err(|error| fault(error, units[0].1))?);
        }
        Ok(done)
    }
}
