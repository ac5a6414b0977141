//! The queue of blocks with one bit a cell, and the pages that wait to fill.

use std::collections::VecDeque;

use emmc_units::Instant;

use super::index::Index;
use crate::nand::{Geometry, Nand};

/// Blocks in the order of their writing, the units in them, and units not yet programmed.
#[derive(Clone, Debug)]
pub(super) struct Log {
    low_blocks: u32,
    units_per_page: usize,
    /// Pages of a row: those that the planes of a die program together.
    row_pages: u32,
    /// Between the first physical units of neighbouring blocks.
    block_stride: u32,
    unit_bytes: usize,
    /// Erased, the one erased longest ago first: each is used in turn.
    pub(super) free: VecDeque<u32>,
    /// No longer written, the oldest first.
    pub(super) full: VecDeque<u32>,
    pub(super) open: Option<u32>,
    /// Nothing more can be recorded of it: it stays empty.
    pub(super) is_over: bool,
    /// When the first page of the open block is done.
    pub(super) begun_at: Instant,
    /// When the last program that was issued is done.
    pub(super) programmed_by: Instant,
    /// The blocks that it was made of.
    pub(super) all: Vec<u32>,
    /// Blocks of `full` in which a program has failed: bad once they are folded.
    pub(super) failed: Vec<u32>,
    /// Such blocks, and from when they can be marked bad: not before a cut can bring them back.
    pub(super) retired: Vec<(u32, Instant)>,
    /// The place of the newest programmed copy of a unit.
    pub(super) index: Index,
    /// Units of the pages that wait: up to the end of a row.
    pub(super) buffer: Vec<u32>,
    bytes: Vec<u8>,
}

impl Log {
    pub(super) fn new(blocks: &[u32], low_blocks: u32, geometry: &Geometry) -> Self {
        let units_per_block = geometry.units_in(geometry.native.single_bit());
        Self {
            low_blocks,
            units_per_page: geometry.units_per_page as usize,
            row_pages: geometry.planes,
            block_stride: geometry.units_per_block(),
            unit_bytes: geometry.unit_bytes as usize,
            free: blocks.iter().copied().collect(),
            full: VecDeque::new(),
            open: None,
            is_over: false,
            begun_at: Instant::START,
            programmed_by: Instant::START,
            all: blocks.to_vec(),
            failed: Vec::new(),
            retired: Vec::new(),
            index: Index::new(blocks.len() as u32 * units_per_block),
            buffer: Vec::with_capacity((geometry.planes * geometry.units_per_page) as usize),
            bytes: Vec::new(),
        }
    }

    /// Blocks that take part.
    pub(super) fn blocks(&self) -> usize {
        self.free.len() + self.full.len() + usize::from(self.open.is_some())
    }

    /// Two blocks at least: one to write while another is folded.
    pub(super) fn is_usable(&self) -> bool {
        self.blocks() >= 2 && !self.is_over
    }

    pub(super) fn is_empty(&self) -> bool {
        self.index.len() == 0 && self.buffer.is_empty()
    }

    pub(super) fn has_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// Whether a block must be folded before the next is opened.
    pub(super) fn is_low(&self) -> bool {
        let low = (self.low_blocks as usize).min(self.blocks().saturating_sub(2));
        self.free.len() <= low && self.has_full()
    }

    /// Urgency of folding: 2 when the host's writes fold or, with steps, do so from the next block on; 1 when half of
    /// the log is used.
    pub(super) fn urgency(&self, paced: bool) -> u8 {
        let next = paced && self.open.is_none() && self.free.len() <= self.low_blocks as usize + 1 && self.has_full();
        match (self.is_low() || next, self.full.len() * 2 > self.blocks()) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        }
    }

    /// The open block is written no more.
    pub(super) fn close(&mut self) {
        self.full.extend(self.open.take());
    }

    /// Puts a unit into the waiting pages, over its older self; answers whether their row is full.
    pub(super) fn put(&mut self, nand: &Nand, unit: u32, data: Option<&[u8]>) -> bool {
        let slot = self.buffer.iter().position(|&waiting| waiting == unit).unwrap_or_else(|| {
            self.buffer.push(unit);
            self.buffer.len() - 1
        });
        if let Some(data) = data {
            self.resize_bytes();
            self.bytes[slot * self.unit_bytes..][..self.unit_bytes].copy_from_slice(data);
        }
        self.is_row_full(nand)
    }

    /// Whether what waits fills the rest of the row that is programmed next: all its planes program together then.
    pub(super) fn is_row_full(&self, nand: &Nand) -> bool {
        let page = self.open.map_or(0, |block| nand.block(block).next_page);
        let pages = (self.row_pages - page % self.row_pages) as usize;
        self.buffer.len() >= pages * self.units_per_page
    }

    /// The most units that may wait.
    pub(super) fn waiting_max(&self) -> usize {
        self.row_pages as usize * self.units_per_page
    }

    /// The units of the page that is programmed next.
    pub(super) fn next_page(&self) -> &[u32] {
        &self.buffer[..self.buffer.len().min(self.units_per_page)]
    }

    /// The bytes of the page that is programmed next, where payload is simulated.
    pub(super) fn page_bytes(&self) -> Option<&[u8]> {
        self.bytes.get(..self.units_per_page * self.unit_bytes)
    }

    /// The first `units` no longer wait.
    pub(super) fn drop_first(&mut self, units: usize) {
        self.buffer.drain(..units);
        if !self.bytes.is_empty() {
            self.bytes.drain(..units * self.unit_bytes);
            self.resize_bytes();
        }
    }

    fn resize_bytes(&mut self) {
        self.bytes.resize(self.waiting_max() * self.unit_bytes, 0);
    }

    /// The bytes of a unit that waits.
    pub(super) fn buffered(&self, unit: u32) -> Option<&[u8]> {
        let slot = self.buffer.iter().position(|&waiting| waiting == unit)?;
        self.waiting_bytes(slot)
    }

    /// The bytes of the unit that waits in a slot, where payload is simulated.
    pub(super) fn waiting_bytes(&self, slot: usize) -> Option<&[u8]> {
        self.bytes.get(slot * self.unit_bytes..(slot + 1) * self.unit_bytes)
    }

    pub(super) fn clear_buffer(&mut self) {
        self.buffer.clear();
        self.bytes.fill(0);
    }

    /// Whether a unit is in a waiting page or in a block.
    #[inline]
    pub(super) fn holds(&self, unit: u32) -> bool {
        self.buffer.contains(&unit) || self.index.get(unit).is_some()
    }

    /// How many of the units that it holds are not `elsewhere`.
    pub(super) fn units_beside(&self, elsewhere: impl Fn(u32) -> bool) -> u32 {
        let waiting = self.buffer.iter().copied().filter(|unit| self.index.get(*unit).is_none());
        self.index.units().chain(waiting).filter(|unit| !elsewhere(*unit)).count() as u32
    }

    pub(super) fn holds_any(&self, first: u32, count: u32) -> bool {
        if self.is_empty() {
            return false;
        }
        if self.index.is_faster_by_unit(count) {
            return (first..first + count).any(|unit| self.holds(unit));
        }
        let inside = |unit: u32| unit.wrapping_sub(first) < count;
        self.buffer.iter().copied().chain(self.index.units()).any(inside)
    }

    /// Forgets units; answers how many of them were in a block.
    pub(super) fn take_out(&mut self, first: u32, count: u32) -> usize {
        if self.is_empty() {
            return 0;
        }
        let inside = |unit: u32| unit.wrapping_sub(first) < count;
        for slot in (0..self.buffer.len()).rev().filter(|&slot| inside(self.buffer[slot])).collect::<Vec<_>>() {
            self.buffer.remove(slot);
            if !self.bytes.is_empty() {
                self.bytes.drain(slot * self.unit_bytes..(slot + 1) * self.unit_bytes);
                self.resize_bytes();
            }
        }
        let before = self.index.len();
        if self.index.is_faster_by_unit(count) {
            for unit in first..first + count {
                self.index.remove(unit);
            }
        } else {
            let held: Vec<u32> = self.index.units().filter(|&unit| inside(unit)).collect();
            for unit in held {
                self.index.remove(unit);
            }
        }
        before - self.index.len()
    }

    /// Units of a block that are valid. For inspection: it looks at the whole index.
    pub(super) fn valid_count(&self, block: u32) -> u32 {
        self.index.physical().filter(|physical| physical / self.block_stride == block).count() as u32
    }

    /// What is valid in a block: logical and physical units, by logical unit.
    pub(super) fn valid_in(&self, nand: &Nand, block: u32) -> Vec<(u32, u32)> {
        let first = nand.geometry().first_unit(block, 0);
        let spare = nand.spare(block).iter().zip(first..);
        let mut valid: Vec<_> = spare
            .filter(|&(&unit, physical)| self.index.get(unit) == Some(physical))
            .map(|(&unit, physical)| (unit, physical))
            .collect();
        valid.sort_unstable();
        valid
    }
}
