//! Copying units: reading them, row by row of the lanes, and programming them elsewhere.

use emmc_units::Instant;

use super::SegmentFtl;
use crate::ftl::FtlError;
use crate::nand::{NO_UNIT, Nand, NandError, PageCopy};

/// What became of a copy.
pub(super) enum Copied {
    /// All of it is in flash at that instant.
    Whole(Instant),
    /// A page failed to program, as its status said at that instant; the earlier copies are in place.
    Failed(Instant),
}

impl SegmentFtl {
    /// Reads the pages of units; answers when all are in memory.
    fn fetch(&mut self, nand: &mut Nand, units: &[u32], now: Instant) -> Result<Instant, FtlError> {
        let geometry = *nand.geometry();
        let mut ready = now;
        let mut index = 0;
        while index < units.len() {
            let slot = self.map.lookup(units[index]);
            let page = slot / geometry.units_per_page;
            let same = |unit: &&u32| self.map.lookup(**unit) / geometry.units_per_page == page;
            let count = units[index..].iter().take_while(same).count();
            if self.waiting(nand, slot).is_none() {
                let bytes = count as u32 * geometry.unit_bytes;
                let read = nand.read(geometry.block_of(slot), geometry.page_of(slot), bytes, now);
                ready = ready.max(read.map_err(|error| unreadable(error, units[index]))?);
            }
            index += count;
        }
        Ok(ready)
    }

    /// The bytes of a unit that was read.
    fn bytes(&self, nand: &Nand, unit: u32) -> Option<Vec<u8>> {
        if !nand.keeps_data() {
            return None;
        }
        let slot = self.map.lookup(unit);
        let size = nand.geometry().unit_bytes as usize;
        let waiting =
            self.waiting(nand, slot).and_then(|front| front.bytes(nand, slot)).filter(|bytes| !bytes.is_empty());
        let bytes = waiting.or_else(|| nand.unit_data(slot));
        // Units that were written without bytes read as zeros, as the layer's reads answer them.
        Some(bytes.map_or_else(|| vec![0; size], <[u8]>::to_vec))
    }

    /// Copies units into the pages of a block that come next.
    pub(super) fn copy(
        &mut self,
        nand: &mut Nand,
        block: u32,
        units: &[u32],
        mut now: Instant,
    ) -> Result<Copied, FtlError> {
        let geometry = *nand.geometry();
        if nand.takes_copies(block, (units.len() as u32).div_ceil(geometry.units_per_page)) {
            return Ok(Copied::Whole(self.copy_at_once(nand, block, units, now)));
        }
        let mut done = now;
        let mut rest = units;
        while !rest.is_empty() {
            // Up to the end of a row, so that the planes program together and the dies in parallel.
            let pages = geometry.lanes() - nand.block(block).next_page % geometry.lanes();
            let row = &rest[..rest.len().min((pages * geometry.units_per_page) as usize)];
            let ready = self.fetch(nand, row, now)?;
            for page_units in row.chunks(geometry.units_per_page as usize) {
                match self.copy_page(nand, block, page_units, ready) {
                    Ok(programmed) => done = done.max(programmed),
                    Err(NandError::ProgramFailed { block, done: failed_at }) => {
                        self.failing.insert(block);
                        return Ok(Copied::Failed(done.max(failed_at)));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            rest = &rest[row.len()..];
            now = ready;
        }
        Ok(Copied::Whole(done))
    }

    /// [`SegmentFtl::copy`] for pages without any event between them: the same reads and programs at the same times,
    /// with one change of the map.
    fn copy_at_once(&mut self, nand: &mut Nand, block: u32, units: &[u32], now: Instant) -> Instant {
        let geometry = *nand.geometry();
        let mut from = std::mem::take(&mut self.sources);
        from.clear();
        from.extend(units.iter().map(|&unit| self.map.lookup(unit)));
        let fronts = self.open.iter().map(|open| &open.log).chain(&self.shared);
        let in_memory: Vec<_> = fronts.filter(|front| front.is_waiting()).map(|front| front.slots(nand)).collect();
        let first = geometry.first_unit(block, nand.block(block).next_page);
        let copy = PageCopy { block, units, from: &from, in_memory: &in_memory };
        let (pages, done) = nand.copy_pages(&copy, now);
        self.map.move_run(units, &from, first);
        self.sources = from;
        self.stats.copied_units += units.len() as u64;
        self.stats.padding_units += u64::from(pages * geometry.units_per_page) - units.len() as u64;
        done
    }

    /// Copies a page's worth of units; the map changes only when they are in flash.
    fn copy_page(&mut self, nand: &mut Nand, block: u32, units: &[u32], now: Instant) -> Result<Instant, NandError> {
        let geometry = *nand.geometry();
        let page = nand.block(block).next_page;
        let mut numbers = units.to_vec();
        numbers.resize(geometry.units_per_page as usize, NO_UNIT);
        let bytes = nand.keeps_data().then(|| {
            let mut whole: Vec<u8> = units.iter().filter_map(|&unit| self.bytes(nand, unit)).flatten().collect();
            whole.resize(geometry.page_bytes() as usize, 0);
            whole
        });
        let done = nand.program(block, page, &numbers, bytes.as_deref(), now)?;
        for (slot, &unit) in (geometry.first_unit(block, page)..).zip(units) {
            self.map.set(unit, slot);
        }
        self.stats.copied_units += units.len() as u64;
        self.stats.padding_units += (geometry.units_per_page as usize - units.len()) as u64;
        Ok(done)
    }

    /// Copies units to the end of an open AU's log. `None`: a page failed, and the AU has been closed.
    ///
    /// The last of them wait for their page to fill: their old copies stay until the AU is closed.
    pub(super) fn extend(
        &mut self,
        nand: &mut Nand,
        index: usize,
        units: &[u32],
        now: Instant,
    ) -> Result<Option<Instant>, FtlError> {
        let au = self.open[index].au;
        let per_page = nand.geometry().units_per_page as usize;
        let waits = self.open[index].log.waiting_units();
        let head = if waits == 0 { 0 } else { units.len().min(per_page - waits) };
        let body = (units.len() - head) / per_page * per_page;
        let (head, rest) = units.split_at(head);
        let (body, tail) = rest.split_at(body);
        let mut done = now;
        for (part, is_whole) in [(head, false), (body, true), (tail, false)] {
            if part.is_empty() {
                continue;
            }
            let Some(index) = self.open_index(au) else { return Ok(None) };
            let block = self.open[index].log.block;
            // A failed page uses the space of a page.
            if self.open[index].log.room(nand) < part.len() as u32 {
                self.merge(nand, au, done)?;
                return Ok(None);
            }
            let copied = if is_whole {
                let copied = self.copy(nand, block, part, done)?;
                self.open[index].log.catch_up(nand);
                match copied {
                    Copied::Whole(done) => Some(done),
                    Copied::Failed(failed_at) => {
                        done = done.max(failed_at);
                        None
                    }
                }
            } else {
                self.extend_page(nand, index, part, done)?
            };
            let Some(ready) = copied else {
                if self.open_index(au).is_some() {
                    self.merge(nand, au, done)?;
                }
                return Ok(None);
            };
            done = ready;
        }
        if let (Some(index), Some(last)) = (self.open_index(au), units.last()) {
            let last = last % self.per_block;
            let open = &mut self.open[index];
            open.last = Some(open.last.map_or(last, |before| before.max(last)));
        }
        Ok(Some(done))
    }

    /// Copies units into the waiting page of a log and programs it if it is full. `None`: it failed for good.
    fn extend_page(
        &mut self,
        nand: &mut Nand,
        index: usize,
        units: &[u32],
        now: Instant,
    ) -> Result<Option<Instant>, FtlError> {
        let ready = self.fetch(nand, units, now)?;
        for &unit in units {
            let bytes = self.bytes(nand, unit);
            let slot = self.open[index].log.put(nand, unit, bytes.as_deref());
            self.map.set(unit, slot);
        }
        self.stats.copied_units += units.len() as u64;
        if !self.open[index].log.is_full(nand) {
            return Ok(Some(ready));
        }
        let (done, still) = self.program(nand, super::place::Place::Open(index), ready)?;
        Ok(still.then_some(done))
    }
}

/// A page that cannot be corrected, as the layer above knows it.
pub(super) fn unreadable(error: NandError, unit: u32) -> FtlError {
    match error {
        NandError::Uncorrectable { .. } => FtlError::Uncorrectable { unit },
        error => error.into(),
    }
}
