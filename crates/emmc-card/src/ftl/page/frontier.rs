//! A write frontier: the open block, and the units in memory until a stripe is full.
//!
//! A stripe is one page of each plane of a die: the unit of one multi-plane program. Units are placed, and mapped, when
//! they arrive; they are programmed when the stripe is full, or earlier if a unit must be durable.

use crate::nand::NO_UNIT;

/// No open block.
pub(super) const NO_BLOCK: u32 = u32::MAX;

/// An open block. Positions are units counted from the block's first.
#[derive(Clone, Debug)]
pub(super) struct Frontier {
    pub(super) block: u32,
    /// Physical number of the block's first unit.
    pub(super) base: u32,
    /// Where the present stripe begins, and ends.
    pub(super) start: u32,
    pub(super) limit: u32,
    /// Units that are programmed, and units that are placed.
    pub(super) programmed: u32,
    pub(super) fill: u32,
    /// The page that is programmed next.
    pub(super) page: u32,
    /// Units of the block.
    pub(super) end: u32,
    /// Logical numbers of the stripe's units.
    pub(super) slots: Vec<u32>,
    /// Their bytes, where the flash keeps any.
    pub(super) bytes: Vec<u8>,
    /// Until this many pages are programmed, pages with data share word lines with unprogrammed pages.
    pub(super) exposed_until: u32,
    /// The epoch since which a unit placed here could still be lost; `u64::MAX`: none could.
    pub(super) unsettled_since: u64,
}

impl Frontier {
    pub(super) fn new(stripe_units: u32, stripe_bytes: usize) -> Self {
        Self {
            block: NO_BLOCK,
            base: 0,
            start: 0,
            limit: 0,
            programmed: 0,
            fill: 0,
            page: 0,
            end: 0,
            slots: vec![NO_UNIT; stripe_units as usize],
            bytes: vec![0; stripe_bytes],
            exposed_until: 0,
            unsettled_since: u64::MAX,
        }
    }

    /// Begins with an erased block that holds `end` units.
    pub(super) fn start(&mut self, block: u32, base: u32, end: u32) {
        debug_assert!(self.is_exhausted() && self.unsettled_since == u64::MAX);
        (self.block, self.base, self.end) = (block, base, end);
        (self.start, self.programmed, self.fill, self.page, self.exposed_until) = (0, 0, 0, 0, 0);
        self.limit = end.min(self.slots.len() as u32);
    }

    /// Detaches the block; no unit is buffered any more.
    pub(super) fn leave(&mut self) {
        *self =
            Self { slots: std::mem::take(&mut self.slots), bytes: std::mem::take(&mut self.bytes), ..Self::new(0, 0) };
    }

    /// Whether it needs another block before a unit can be placed.
    #[inline]
    pub(super) fn is_exhausted(&self) -> bool {
        self.fill == self.end
    }

    /// Places a unit; answers where it will lie.
    #[inline]
    pub(super) fn place(&mut self, unit: u32) -> u32 {
        self.slots[(self.fill - self.start) as usize] = unit;
        self.fill += 1;
        self.base + self.fill - 1
    }

    /// Whether the stripe is full and must be programmed.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.fill == self.limit
    }

    /// Whether units wait in memory.
    pub(super) fn has_waiting(&self) -> bool {
        self.fill > self.programmed
    }

    /// Whether all slots of a whole stripe are filled, and none is programmed.
    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        self.programmed == self.start && (self.fill - self.start) as usize == self.slots.len()
    }

    /// Pages of a whole stripe.
    #[inline]
    pub(super) fn pages_in_stripe(&self, per_page: u32) -> u32 {
        (self.slots.len() as u32) / per_page
    }

    /// The slot of a unit that waits; `None`: it is elsewhere.
    pub(super) fn waiting(&self, physical: u32) -> Option<usize> {
        let at = physical.wrapping_sub(self.base);
        let waits = self.block != NO_BLOCK && (self.programmed..self.fill).contains(&at);
        waits.then(|| (at - self.start) as usize)
    }

    /// The bytes of a slot.
    pub(super) fn slot_bytes(&mut self, slot: usize, unit_bytes: usize) -> &mut [u8] {
        &mut self.bytes[slot * unit_bytes..][..unit_bytes]
    }

    /// The slots of the page that is programmed next.
    pub(super) fn page_slots(&self, per_page: u32) -> std::ops::Range<usize> {
        let first = (self.programmed - self.start) as usize;
        first..first + per_page as usize
    }

    /// Pads the incomplete page; returns the number of padding units.
    pub(super) fn pad_page(&mut self, per_page: u32) -> u32 {
        if self.is_due() {
            return 0;
        }
        let mut page_end = self.programmed;
        while page_end < self.fill {
            page_end += per_page;
        }
        self.pad_until(page_end)
    }

    /// Places padding; returns the number of units.
    pub(super) fn pad_until(&mut self, end: u32) -> u32 {
        let padding = end - self.fill;
        for _ in 0..padding {
            self.place(NO_UNIT);
        }
        padding
    }

    /// Goes to the next stripe when all of this one is programmed.
    pub(super) fn advance(&mut self) {
        if self.fill == self.limit && self.limit < self.end {
            self.start = self.limit;
            self.limit = self.end.min(self.start + self.slots.len() as u32);
        }
    }
}
