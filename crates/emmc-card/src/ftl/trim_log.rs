//! Records trims in flash, for layers that rebuild their map by scanning: without it, trimmed units would return.
//!
//! Two or more blocks with one bit a cell, used in turn. Each trim takes a page: its units, and by the sequence number
//! its time. When a block is full the next one is erased and begins with a *checkpoint*, a bitmap of every unit that is
//! not in flash, closed by a *seal*; only a block whose seal was started counts, and the previous one is not changed
//! before. So after a cut at any step one block has all trims. Programs and erases are charged to the flash; in plain
//! simulation only they are. A block in which a program failed is erased and used again; one that does not erase is
//! left out.
//!
//! A layer calls [`TrimLog::append`] for every [`TrimKind::Trim`](super::TrimKind::Trim), and acknowledges when it is
//! done. Its `recover` calls [`TrimLog::replay`], takes for each unit the newest of page and trim by sequence number,
//! and calls [`TrimLog::settle`] when its map is complete, before any erase, program or reply. Absent on purpose:
//! discards, which may be forgotten; batching, since a trim that is acknowledged must hold.

mod orders;
mod record;
#[cfg(test)]
mod tests;

use emmc_units::Instant;

pub use orders::TrimOrders;
use record::{Record, generation, header, kept_per_page, kept_record, parse, taken_over};

use super::FtlError;
use crate::nand::{BlockHealth, Nand, NandError, PageScan};

/// A durable log of trims.
#[derive(Clone, Debug)]
pub struct TrimLog {
    blocks: Vec<u32>,
    units: u32,
    /// The block that counts, and the generation of its content; generation 1 begins without a checkpoint.
    active: Option<u32>,
    generation: u64,
    /// Power was lost since the active block was started: it is read, but not programmed any more.
    is_closed: bool,
    /// When the last program is done: the log programs one page after the other.
    busy_until: Instant,
}

/// Units that were trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trimmed {
    /// The first.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// Pages with a lower sequence number do not count for them, pages with a higher one do.
    pub order: u64,
}

/// What the log knew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Oldest first; ranges overlap.
    pub trims: Vec<Trimmed>,
    /// When it was read.
    pub done: Instant,
}

impl TrimLog {
    /// A log on blocks for its use alone; two are enough, more spread the wear.
    ///
    /// Shape: erased or bad blocks, at least two.
    pub fn new(nand: &mut Nand, blocks: &[u32], units: u32) -> Self {
        for &block in blocks {
            nand.set_mode(block, nand.geometry().native.single_bit());
        }
        Self {
            blocks: blocks.to_vec(),
            units,
            active: None,
            generation: 0,
            is_closed: false,
            busy_until: Instant::START,
        }
    }

    /// Whether the checkpoint of `units` units leaves space for trims in a block.
    pub fn fits(geometry: &crate::nand::Geometry, units: u32) -> bool {
        checkpoint_pages(geometry.page_bytes(), units) + 2 <= geometry.pages_in(geometry.native.single_bit())
    }

    /// Whether anything was recorded since it was made.
    pub fn is_begun(&self) -> bool {
        self.active.is_some()
    }

    /// Blocks of it that can still be used; with fewer than two it ends when the block is full.
    pub fn good_blocks(&self, nand: &Nand) -> usize {
        self.blocks.iter().filter(|&&block| nand.block(block).health == BlockHealth::Good).count()
    }

    /// Gives it one more block, erased, such as a spare in place of one that went bad.
    pub fn add_block(&mut self, nand: &mut Nand, block: u32) {
        nand.set_mode(block, nand.geometry().native.single_bit());
        self.blocks.push(block);
    }

    /// Remembers that `count` units from `first` were trimmed. It holds when it is done.
    ///
    /// `in_flash` says whether a unit's newest content is in flash now: false for units trimmed or never written, and
    /// for those that were trimmed and written again but wait in memory.
    /// Errors: [`FtlError::WornOut`] when no block is left, [`FtlError::PowerLost`].
    pub fn append(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        in_flash: &dyn Fn(u32) -> bool,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let mut now = now;
        loop {
            if let Some(done) = self.try_append(nand, first, count, now)? {
                return Ok(done);
            }
            now = self.next_block(nand, in_flash, now)?;
        }
    }

    /// As [`TrimLog::append`], but `None` where [`TrimLog::next_block`] must be called first: data in flash must then
    /// be safe, because the trims before it are forgotten.
    ///
    /// Errors: [`FtlError::PowerLost`].
    pub fn try_append(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        now: Instant,
    ) -> Result<Option<Instant>, FtlError> {
        let Some(block) = self.active else { return Ok(None) };
        let has_room = nand.block(block).next_page < nand.pages_of(block) && !self.is_closed;
        if !has_room || nand.block(block).health != BlockHealth::Good {
            return Ok(None);
        }
        self.busy_until = self.busy_until.max(now);
        let record = header(self.generation, u32::MAX, first, count, 0);
        match self.program(nand, block, &record) {
            Ok(()) => Ok(Some(self.busy_until)),
            Err(NandError::PowerLost) => Err(FtlError::PowerLost),
            Err(_) => Ok(None),
        }
    }

    /// Begins a block, with a checkpoint. `in_flash` as for [`TrimLog::append`].
    ///
    /// Errors: as [`TrimLog::append`].
    pub fn next_block(
        &mut self,
        nand: &mut Nand,
        in_flash: &dyn Fn(u32) -> bool,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        self.busy_until = self.busy_until.max(now);
        self.move_on(nand, in_flash, &[])?;
        Ok(self.busy_until)
    }

    /// Reads the log from flash and drops the state in memory. Call [`TrimLog::settle`] next.
    pub fn replay(&mut self, nand: &mut Nand, now: Instant) -> Result<Replay, FtlError> {
        let mut replay = Replay { trims: Vec::new(), done: now };
        self.busy_until = now;
        if !nand.keeps_orders() {
            return self.read_through(nand, now).map(|done| Replay { done, ..replay });
        }
        (self.active, self.generation, self.is_closed) = (None, 0, true);
        replay.done = self.read_through(nand, now)?;
        let mut newest = 0;
        for &block in &self.blocks {
            let generation = self.generation_of(nand, block);
            newest = newest.max(generation.unwrap_or_default());
            if let Some(generation) =
                generation.filter(|&found| found > self.generation && self.counts(nand, block, found))
            {
                (self.active, self.generation) = (Some(block), generation);
            }
        }
        if let Some(block) = self.active {
            self.collect(nand, block, &mut replay.trims);
        }
        // Never the generation of a checkpoint that was cut: its remains must not be mistaken for the next one.
        self.generation = newest;
        Ok(replay)
    }

    /// Makes the result of [`TrimLog::replay`] durable: a trim in progress at the cut may be readable now and not
    /// later. `in_flash` as for [`TrimLog::append`], over the recovered map; `keep` are the trims after units whose
    /// newest copy is doubtful: they stay, because a cut may destroy the copy before it is safe.
    pub fn settle(
        &mut self,
        nand: &mut Nand,
        in_flash: &dyn Fn(u32) -> bool,
        keep: &[Trimmed],
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let used = |block: &u32| nand.block(*block).next_page > 0 && nand.block(*block).health == BlockHealth::Good;
        if !self.blocks.iter().any(used) {
            return Ok(now);
        }
        self.busy_until = self.busy_until.max(now);
        // From 2 on a block begins with a checkpoint.
        self.generation = self.generation.max(1);
        // A record takes a page, and a block has few.
        let mut joined: Vec<Trimmed> = Vec::new();
        for trim in keep {
            match joined.last_mut() {
                Some(last) if last.order == trim.order && last.first + last.count == trim.first => {
                    last.count += trim.count;
                }
                _ => joined.push(*trim),
            }
        }
        self.move_on(nand, in_flash, &joined)?;
        Ok(self.busy_until)
    }

    /// Starts the next block; the active one is unchanged until the new one is sealed.
    fn move_on(&mut self, nand: &mut Nand, in_flash: &dyn Fn(u32) -> bool, keep: &[Trimmed]) -> Result<(), FtlError> {
        // What is still being programmed counts as in flash below: let it be there first.
        self.busy_until = self.busy_until.max(nand.quiet_at());
        let at = self.active.and_then(|block| self.blocks.iter().position(|&other| other == block));
        for step in 1..=self.blocks.len() * 4 {
            let block = self.blocks[at.map_or(step - 1, |at| at + step) % self.blocks.len()];
            if Some(block) == self.active || nand.block(block).health != BlockHealth::Good {
                continue;
            }
            match self.begin(nand, block, in_flash, keep) {
                Ok(()) => {
                    (self.active, self.is_closed) = (Some(block), false);
                    return Ok(());
                }
                Err(NandError::PowerLost) => return Err(FtlError::PowerLost),
                Err(_) => {}
            }
        }
        Err(FtlError::WornOut)
    }

    /// Erases a block and writes checkpoint and seal; the checkpoint of the very first block is empty.
    fn begin(
        &mut self,
        nand: &mut Nand,
        block: u32,
        in_flash: &dyn Fn(u32) -> bool,
        keep: &[Trimmed],
    ) -> Result<(), NandError> {
        if nand.block(block).next_page > 0 {
            self.busy_until = nand.erase(block, self.busy_until)?;
        }
        self.generation += 1;
        if self.generation == 1 {
            return Ok(());
        }
        let page_bytes = nand.geometry().page_bytes();
        let pages = checkpoint_pages(page_bytes, self.units);
        // The checkpoint, the seal and one trim to come take their pages before anything that is taken over.
        let room = nand.pages_of(block).saturating_sub(pages + 2) as usize;
        let kept: Vec<&[Trimmed]> = keep.chunks(kept_per_page(page_bytes)).collect();
        debug_assert!(kept.len() <= room, "{} trims to take over, and {room} pages for them", keep.len());
        let kept = &kept[..kept.len().min(room)];
        for index in 0..pages {
            let mut record = header(self.generation, index, kept.len() as u32, 0, 0).to_vec();
            if nand.keeps_orders() {
                let first = index * page_bytes * 8;
                record.extend(bitmap(first, self.units.min(first + page_bytes * 8), in_flash));
            }
            self.program(nand, block, &record)?;
        }
        for trims in kept {
            self.program(nand, block, &kept_record(self.generation, trims))?;
        }
        let seal = header(self.generation, u32::MAX, 0, 0, 0);
        self.program(nand, block, &seal)
    }

    fn program(&mut self, nand: &mut Nand, block: u32, record: &[u8]) -> Result<(), NandError> {
        let page = nand.block(block).next_page;
        match nand.program_record(block, page, record, self.busy_until) {
            Ok(done) => self.busy_until = done,
            Err(error) => {
                if let NandError::ProgramFailed { done, .. } = error {
                    self.busy_until = done;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// The time of reading every page of the log.
    fn read_through(&self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let (mut done, bytes) = (now, nand.geometry().page_bytes());
        for &block in &self.blocks {
            for page in 0..nand.block(block).next_page {
                match nand.read(block, page, bytes, now) {
                    Ok(read) => done = done.max(read),
                    Err(NandError::PowerLost) => return Err(FtlError::PowerLost),
                    Err(_) => {}
                }
            }
        }
        Ok(done)
    }

    fn generation_of(&self, nand: &Nand, block: u32) -> Option<u64> {
        let good = nand.block(block).health == BlockHealth::Good;
        let mut records = (0..nand.block(block).next_page).filter_map(|page| nand.record(block, page));
        good.then(|| records.next().map(generation)).flatten()
    }

    /// Whether a block is complete: its checkpoint is readable, and a later page was started, so it stays readable.
    fn counts(&self, nand: &Nand, block: u32, generation: u64) -> bool {
        if generation == 1 {
            return true;
        }
        let Some(kept) = nand.record(block, 0).map(taken_over) else {
            return false;
        };
        let pages = checkpoint_pages(nand.geometry().page_bytes(), self.units).saturating_add(kept);
        let begun = nand.block(block).next_page > pages && nand.look(block, pages) != PageScan::Erased;
        begun && (0..pages).all(|page| nand.record(block, page).is_some())
    }

    /// The trims in a block.
    fn collect(&self, nand: &Nand, block: u32, trims: &mut Vec<Trimmed>) {
        let checkpoint_order = nand.order(block, 0);
        for page in 0..nand.block(block).next_page {
            let (Some(record), Some(order)) = (nand.record(block, page), nand.order(block, page)) else { continue };
            match parse(record) {
                Record::Trim { count: 0, .. } => {}
                Record::Trim { first, count, order: 0 } => trims.push(Trimmed { first, count, order }),
                Record::Trim { first, count, order } => trims.push(Trimmed { first, count, order }),
                Record::Kept { entries } => trims.extend(record::kept_trims(entries)),
                Record::Checkpoint { index, bits } => {
                    let first = index * nand.geometry().page_bytes() * 8;
                    let order = checkpoint_order.unwrap_or(order);
                    trims.extend(runs(bits).map(|(at, count)| Trimmed { first: first + at, count, order }));
                }
            }
        }
    }
}

fn checkpoint_pages(page_bytes: u32, units: u32) -> u32 {
    units.div_ceil(8).div_ceil(page_bytes)
}

/// A set bit for every unit that is not in flash.
fn bitmap(first: u32, end: u32, in_flash: &dyn Fn(u32) -> bool) -> Vec<u8> {
    let byte = |at: u32| (at..end.min(at + 8)).fold(0, |byte, unit| byte | u8::from(!in_flash(unit)) << (unit - at));
    (first..end).step_by(8).map(byte).collect()
}

/// Runs of set bits: where each begins, and its length.
fn runs(bits: &[u8]) -> impl Iterator<Item = (u32, u32)> + '_ {
    let set = |at: u32| bits[at as usize / 8] >> (at % 8) & 1 == 1;
    let (mut at, end) = (0, bits.len() as u32 * 8);
    std::iter::from_fn(move || {
        let first = (at..end).find(|&at| set(at))?;
        at = (first..end).find(|&at| !set(at)).unwrap_or(end);
        Some((first, at - first))
    })
}
