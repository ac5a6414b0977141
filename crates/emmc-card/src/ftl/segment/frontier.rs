//! An open block, and its incomplete page.
//!
//! A unit gets its physical place immediately, although its page is programmed only when it is full or must be durable;
//! until then it is read from memory, and lost with power.

use emmc_units::Instant;

use crate::ftl::map::Map;
use crate::nand::{NO_UNIT, Nand, NandError};

/// A block being written.
#[derive(Clone, Debug)]
pub(super) struct Frontier {
    pub(super) block: u32,
    /// The page of the units in `waiting`.
    page: u32,
    /// Logical units of the page that is not full yet.
    waiting: Vec<u32>,
    /// Their bytes, where payload is simulated.
    data: Vec<u8>,
}

impl Frontier {
    /// At the next page of a block.
    pub(super) fn new(nand: &Nand, block: u32) -> Self {
        Self { block, page: nand.block(block).next_page, waiting: Vec::new(), data: Vec::new() }
    }

    /// Units that still fit.
    pub(super) fn room(&self, nand: &Nand) -> u32 {
        let pages = nand.pages_of(self.block).saturating_sub(self.page);
        (pages * nand.geometry().units_per_page).saturating_sub(self.waiting.len() as u32)
    }

    /// Whether units wait for their page to fill.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// How many units wait.
    pub(super) fn waiting_units(&self) -> usize {
        self.waiting.len()
    }

    /// Whole pages were programmed without this frontier's buffer.
    pub(super) fn catch_up(&mut self, nand: &Nand) {
        debug_assert!(self.waiting.is_empty(), "units wait for a page that is gone");
        self.page = nand.block(self.block).next_page;
    }

    /// The units that wait and are still current, with their physical places.
    pub(super) fn current<'a>(&'a self, nand: &'a Nand, map: &'a Map) -> impl Iterator<Item = (u32, u32)> + 'a {
        let first = nand.geometry().first_unit(self.block, self.page);
        (first..).zip(&self.waiting).map(|(slot, &unit)| (unit, slot)).filter(|&(unit, slot)| map.lookup(unit) == slot)
    }

    /// Where in `waiting` a physical unit is.
    fn index_of(&self, nand: &Nand, slot: u32) -> Option<usize> {
        let index = slot.wrapping_sub(nand.geometry().first_unit(self.block, self.page)) as usize;
        (index < self.waiting.len()).then_some(index)
    }

    /// The physical units that wait here.
    pub(super) fn slots(&self, nand: &Nand) -> std::ops::Range<u32> {
        let first = nand.geometry().first_unit(self.block, self.page);
        first..first + self.waiting.len() as u32
    }

    /// Whether a physical unit is one that waits here.
    pub(super) fn holds(&self, nand: &Nand, slot: u32) -> bool {
        self.index_of(nand, slot).is_some()
    }

    /// The bytes of a waiting unit; empty where payload is not simulated.
    pub(super) fn bytes(&self, nand: &Nand, slot: u32) -> Option<&[u8]> {
        let (index, size) = (self.index_of(nand, slot)?, nand.geometry().unit_bytes as usize);
        Some(self.data.get(index * size..(index + 1) * size).unwrap_or(&[]))
    }

    /// New content for a unit that waits here already.
    pub(super) fn replace(&mut self, nand: &Nand, slot: u32, data: Option<&[u8]>) {
        let size = nand.geometry().unit_bytes as usize;
        if let (Some(index), Some(data)) = (self.index_of(nand, slot), data) {
            self.data[index * size..(index + 1) * size].copy_from_slice(data);
        }
    }

    /// Takes a unit and answers its place; the caller programs the page when it is full.
    pub(super) fn put(&mut self, nand: &Nand, unit: u32, data: Option<&[u8]>) -> u32 {
        let slot = nand.geometry().first_unit(self.block, self.page) + self.waiting.len() as u32;
        self.waiting.push(unit);
        self.data.extend_from_slice(data.unwrap_or(&[]));
        slot
    }

    /// Takes over current units that wait in another frontier.
    pub(super) fn take_over(&mut self, nand: &Nand, map: &mut Map, other: &mut Self) {
        let moved: Vec<(u32, u32)> = other.current(nand, map).collect();
        for (unit, slot) in moved {
            let place = self.put(nand, unit, other.bytes(nand, slot));
            map.set(unit, place);
        }
        other.waiting.clear();
        other.data.clear();
    }

    /// Whether its last page failed, with waiting units that have no place here.
    pub(super) fn is_stuck(&self, nand: &Nand) -> bool {
        self.is_waiting() && nand.block(self.block).next_page > self.page
    }

    /// Closes it; waiting units have been moved elsewhere.
    pub(super) fn seal(&mut self, nand: &Nand) {
        self.page = nand.pages_of(self.block);
        self.waiting.clear();
        self.data.clear();
    }

    /// Whether programmed pages share a word line with an unprogrammed one: programming the latter puts them at risk.
    pub(super) fn splits_line(&self, nand: &Nand) -> bool {
        let (geometry, mode) = (nand.geometry(), nand.block(self.block).mode);
        mode.bits() > 1
            && self.page < nand.pages_of(self.block)
            && geometry.whole_word_lines(mode, self.page) != self.page
    }

    /// Whether a physical unit is in an incomplete word line here.
    pub(super) fn exposes(&self, nand: &Nand, slot: u32) -> bool {
        let (geometry, mode) = (nand.geometry(), nand.block(self.block).mode);
        self.splits_line(nand)
            && geometry.block_of(slot) == self.block
            && geometry.whole_word_lines(mode, geometry.page_of(slot) + 1) > self.page
    }

    /// Whether the page must be programmed before another unit comes.
    pub(super) fn is_full(&self, nand: &Nand) -> bool {
        self.waiting.len() as u32 == nand.geometry().units_per_page
    }

    /// Programs the buffered page, padded; returns the time of its end and the number of padding units.
    ///
    /// Obsolete units become padding: their sequence number would be newer than that of their current content. Errors:
    /// [`NandError::ProgramFailed`] leaves the units buffered for the next page, if [`Frontier::room`] allows.
    pub(super) fn program(
        &mut self,
        nand: &mut Nand,
        map: &mut Map,
        now: Instant,
    ) -> Result<(Instant, u32), NandError> {
        let per_page = nand.geometry().units_per_page as usize;
        let first = nand.geometry().first_unit(self.block, self.page);
        let mut page = vec![NO_UNIT; per_page];
        for ((slot, &unit), out) in (first..).zip(&self.waiting).zip(&mut page) {
            if map.lookup(unit) == slot {
                *out = unit;
            }
        }
        let padding = per_page - self.waiting.len();
        let mut whole = std::mem::take(&mut self.data);
        let size = nand.geometry().page_bytes() as usize;
        let bytes = if whole.is_empty() {
            None
        } else {
            whole.resize(size, 0);
            Some(&whole[..])
        };
        let result = nand.program(self.block, self.page, &page, bytes, now);
        self.page += 1;
        match result {
            Ok(done) => {
                self.waiting.clear();
                Ok((done, padding as u32))
            }
            Err(error) => {
                whole.truncate(self.waiting.len() * nand.geometry().unit_bytes as usize);
                self.data = whole;
                if matches!(error, NandError::ProgramFailed { .. }) && self.page < nand.pages_of(self.block) {
                    self.move_up(nand, map, first);
                } else {
                    // Nowhere to go in this block: the units stay where the map says, readable from here.
                    self.page -= 1;
                }
                Err(error)
            }
        }
    }

    /// The units that waited for the page at `from` now wait for the next one.
    fn move_up(&mut self, nand: &Nand, map: &mut Map, from: u32) {
        let first = nand.geometry().first_unit(self.block, self.page);
        for (index, &unit) in (0..).zip(&self.waiting) {
            if map.lookup(unit) == from + index {
                map.set(unit, first + index);
            }
        }
    }
}
