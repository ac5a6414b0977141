//! After a power cut: finds the mapping pages in flash, and writes missing ones.

use emmc_units::Instant;

use super::{FtlError, MappingCache, NOWHERE, Nand, Slot, SlotState};
use crate::nand::{Soundness, Survey};

impl MappingCache {
    /// After a power cut, once the owner has rebuilt its map: memory is empty, and missing pages are written.
    ///
    /// Errors: as [`MappingCache::touch`].
    pub fn recover(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
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
