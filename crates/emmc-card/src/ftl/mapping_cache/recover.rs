//! After a power cut: finds the mapping pages in flash, and writes missing ones.

use std::ops::Range;

use emmc_units::Instant;

use super::{FtlError, MappingCache, NOWHERE, Nand, Slot, SlotState};
use crate::nand::{Soundness, Survey};

impl MappingCache {
    /// After a power cut, once the owner has rebuilt its map: memory is empty, and missing pages are written.
    /// `has_units` says whether any of a run of units is mapped.
    ///
    /// Errors: as [`MappingCache::touch`].
    pub fn recover(
        &mut self,
        nand: &mut Nand,
        has_units: &dyn Fn(Range<u32>) -> bool,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let unknown: Vec<bool> = self.lies_at.iter().map(|&at| at == NOWHERE).collect();
        // The owner's scan finds the pages that are older than the units they cover: those that were changed in memory.
        let mut stale: Vec<u32> = self.frames.iter().filter(|frame| frame.dirty).map(|frame| frame.page).collect();
        for &page in &stale {
            self.drop_copy(page);
        }
        self.frames.clear();
        self.frame_of.fill(NOWHERE);
        let blocks: Vec<u32> = self.blocks().collect();
        let survey = Survey::take(nand, &blocks, now)?;
        let mut done = survey.done;
        stale.extend(self.forget_undone(nand));
        stale.extend(self.adopt(nand, &survey, &unknown, has_units));
        for slot in 0..self.slots.len() {
            let block = self.slots[slot].block;
            let soundness = survey.blocks.iter().find(|found| found.block == block).map(|found| found.soundness);
            self.slots[slot].state = match soundness {
                None => SlotState::Bad,
                Some(Soundness::Erased) => SlotState::Free,
                Some(_) => SlotState::Used,
            };
            let sound = matches!(soundness, Some(Soundness::Open | Soundness::Full));
            stale.extend(self.forget_from(slot, if sound { nand.block(block).next_page } else { 0 }));
            if soundness == Some(Soundness::Damaged) {
                done = self.free(nand, slot, done)?;
            }
        }
        for found in survey.pages.iter().filter(|found| found.doubtful) {
            let Some(slot) = self.slots.iter().position(|slot| slot.block == found.block) else { continue };
            // It takes no more programs if one was interrupted.
            self.open = self.open.filter(|&open| open != slot);
            let page = self.holds[slot * self.pages_per_block as usize + found.page as usize];
            if page != NOWHERE {
                self.drop_copy(page);
                stale.push(page);
            }
        }
        self.open = self.open.filter(|&slot| {
            let Slot { block, state, .. } = self.slots[slot];
            state == SlotState::Used && nand.block(block).next_page < self.pages_per_block
        });
        // A cut during garbage collection may have left no free block; the owner knows the blocks that are erased now.
        while self.free_slots() < self.free_min() {
            let Some(slot) = self.emptiest() else { break };
            stale.extend(self.forget_from(slot, 0));
            done = self.free(nand, slot, done)?;
        }
        stale.sort_unstable();
        stale.dedup();
        for page in stale {
            done = match self.write(nand, page, done) {
                Err(FtlError::WornOut) => {
                    self.worn_out = true;
                    return Ok(done);
                }
                written => written?,
            };
        }
        Ok(done)
    }

    /// The mapping pages that are not where memory has them: a program that was issued did not happen. They now have no
    /// place.
    fn forget_undone(&mut self, nand: &Nand) -> Vec<u32> {
        if !nand.keeps_orders() {
            return Vec::new();
        }
        let is_undone = |&page: &u32| {
            let at = self.lies_at[page as usize];
            at != NOWHERE && self.recorded(nand, at) != Some(page)
        };
        let undone: Vec<u32> = (0..self.lies_at.len() as u32).filter(is_undone).collect();
        for &page in &undone {
            self.drop_copy(page);
        }
        undone
    }

    /// The mapping page that the flash holds at a place.
    fn recorded(&self, nand: &Nand, at: u32) -> Option<u32> {
        let slot = (at / self.pages_per_block) as usize;
        let record = nand.record(self.slots[slot].block, at % self.pages_per_block)?;
        record.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// The places of pages that memory does not know, as of a card that was loaded: the newest copies in flash count.
    /// Answers pages with units that are nowhere in flash.
    fn adopt(
        &mut self,
        nand: &Nand,
        survey: &Survey,
        unknown: &[bool],
        has_units: &dyn Fn(Range<u32>) -> bool,
    ) -> Vec<u32> {
        for found in &survey.pages {
            let Some(slot) = self.slots.iter().position(|slot| slot.block == found.block) else { continue };
            let at = slot as u32 * self.pages_per_block + found.page;
            if let Some(page) = self.recorded(nand, at).filter(|&page| unknown.get(page as usize) == Some(&true)) {
                self.settle_at(page, at);
            }
        }
        let units = |page: u32| page * self.units_per_page..(page + 1) * self.units_per_page;
        let is_missing = |&page: &u32| self.lies_at[page as usize] == NOWHERE && has_units(units(page));
        if nand.keeps_orders() { (0..self.lies_at.len() as u32).filter(is_missing).collect() } else { Vec::new() }
    }

    /// The mapping pages that a block held from one of its pages on; they now have no place.
    fn forget_from(&mut self, slot: usize, page: u32) -> Vec<u32> {
        let first = slot * self.pages_per_block as usize;
        let range = first + page as usize..first + self.pages_per_block as usize;
        let held: Vec<u32> = self.holds[range].iter().copied().filter(|&page| page != NOWHERE).collect();
        for &page in &held {
            self.drop_copy(page);
        }
        held
    }
}
