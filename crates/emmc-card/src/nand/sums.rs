//! Checksums of the units that the edge stores: content that is read back after a start is compared with its own.
//!
//! A checksum is made when a unit is put into its slot, and recorded with the page that holds it. Content that another
//! process wrote is compared when it is read for the first time; what this process wrote is not read from the disk as
//! far as it can know. Absent on purpose: what an error does (`ops`), and where checksums are recorded (`changes`).

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use emmc_units::Rng;

use super::{Content, Nand};

/// No checksum is known: content of an earlier build, or none.
const NONE: u32 = 0;

/// The checksums by slot, and which contents were not compared yet.
#[derive(Debug, Default)]
pub(super) struct Sums {
    by_slot: Vec<u32>,
    /// One bit for each slot. Atomic, because a read of content does not change the flash.
    unchecked: Vec<AtomicU64>,
    left: AtomicUsize,
}

impl Sums {
    /// The checksum of a unit's bytes: a CRC-32, in which 0 counts as 1.
    pub(super) fn of(bytes: &[u8]) -> u32 {
        crc32fast::hash(bytes).max(1)
    }

    /// The content of a slot, which needs no comparison.
    pub(super) fn set(&mut self, slot: u32, sum: u32) {
        let slot = slot as usize;
        if self.by_slot.len() <= slot {
            self.by_slot.resize(slot + 1, NONE);
        }
        self.by_slot[slot] = sum;
        if !self.is_done() {
            self.trust(slot);
        }
    }

    /// The checksum of a slot in use; 0: none is known.
    pub(super) fn get(&self, slot: u32) -> u32 {
        self.by_slot.get(slot as usize).copied().unwrap_or(NONE)
    }

    /// The content of these slots is to be compared before it is used.
    pub(super) fn distrust(&mut self, slots: impl Iterator<Item = u32>) {
        let mut words = vec![0u64; self.by_slot.len().div_ceil(64)];
        for slot in slots.filter(|slot| self.get(*slot) != NONE) {
            words[slot as usize / 64] |= 1 << (slot % 64);
        }
        self.left = words.iter().map(|word| word.count_ones() as usize).sum::<usize>().into();
        self.unchecked = words.into_iter().map(AtomicU64::new).collect();
    }

    fn trust(&self, slot: usize) {
        if let Some(word) = self.unchecked.get(slot / 64) {
            let bit = 1 << (slot % 64);
            if word.fetch_and(!bit, Relaxed) & bit != 0 {
                self.left.fetch_sub(1, Relaxed);
            }
        }
    }

    /// Whether everything was compared.
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.left.load(Relaxed) == 0
    }

    /// Compares the content of a slot, if it was not found right before. `false`: these are other bytes.
    pub(super) fn check(&self, slot: u32, bytes: &[u8]) -> bool {
        let slot = slot as usize;
        let is_unchecked = self.unchecked.get(slot / 64).is_some_and(|word| word.load(Relaxed) >> (slot % 64) & 1 == 1);
        if is_unchecked && Self::of(bytes) != self.by_slot[slot] {
            return false;
        }
        if is_unchecked {
            self.trust(slot);
        }
        true
    }
}

impl Clone for Sums {
    fn clone(&self) -> Self {
        let unchecked = self.unchecked.iter().map(|word| word.load(Relaxed).into()).collect();
        Self { by_slot: self.by_slot.clone(), unchecked, left: self.left.load(Relaxed).into() }
    }
}

/// What stands for a unit whose bytes are not those that were stored: a pattern that no host writes. A layer moves it
/// like any other content, so that the unit stays lost; a read of it for the host is an error (`device::path`).
pub(super) fn lost_pattern(unit_bytes: usize) -> Box<[u8]> {
    // Any number; the pattern is not stored.
    let mut rng = Rng::new(0x6c6f_7374_2075_6e69);
    (0..unit_bytes).map(|_| rng.next_u64() as u8).collect()
}

/// What a comparison of stored contents with their checksums found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContentsCheck {
    /// Units that were compared.
    pub compared: u64,
    /// Units without a checksum: stored by an earlier build.
    pub without: u64,
    /// Slots of units that are not what was stored.
    pub wrong: Vec<u32>,
}

impl Nand {
    /// Compares units with slots of the edge: one each of at most `most` blocks, spread evenly, or all of them.
    pub(crate) fn check_contents(&self, most: Option<usize>) -> ContentsCheck {
        let mut found = ContentsCheck::default();
        let Some(slots) = self.store.as_deref().and_then(|store| store.slots.as_ref()) else { return found };
        let in_use: Vec<u32> = (0..self.blocks.len() as u32).filter(|&block| self.block(block).next_page > 0).collect();
        let step = most.map_or(1, |most| in_use.len().div_ceil(most.max(1)).max(1));
        for block in in_use.into_iter().step_by(step) {
            for (slot, content) in self.contents_in_slots(block).take(most.map_or(usize::MAX, |_| 1)) {
                found.compare(slots.sum(content), slot, slots.payload.get(slot));
            }
        }
        found
    }

    /// Which of some units, as they were read, is lost: its bytes were not those that were stored.
    #[inline]
    pub(crate) fn find_lost(&self, units: &[u8]) -> Option<u32> {
        let lost = self.store.as_deref()?.slots.as_ref()?.found_lost()?;
        units.chunks_exact(lost.len()).position(|unit| unit == lost).map(|index| index as u32)
    }

    /// Whether each unit with a slot of the edge has a checksum. No content is read.
    pub(crate) fn has_all_sums(&self) -> bool {
        let Some(slots) = self.store.as_deref().and_then(|store| store.slots.as_ref()) else { return true };
        let mut blocks = 0..self.blocks.len() as u32;
        blocks.all(|block| self.contents_in_slots(block).all(|(_, content)| slots.sum(content) != NONE))
    }

    /// The readable contents of a block that have slots.
    fn contents_in_slots(&self, block: u32) -> impl Iterator<Item = (u32, Content)> {
        let units = self.geometry.first_unit(block, 0)..self.geometry.first_unit(block, self.block(block).next_page);
        units.filter_map(|unit| {
            let content = self.content_of(unit);
            content.slot().map(|slot| (slot, content))
        })
    }
}

impl ContentsCheck {
    fn compare(&mut self, sum: u32, slot: u32, bytes: &[u8]) {
        if sum == NONE {
            self.without += 1;
            return;
        }
        self.compared += 1;
        if Sums::of(bytes) != sum {
            self.wrong.push(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_of_before_is_compared_once_and_new_content_never() {
        let mut sums = Sums::default();
        for slot in [1u32, 2, 70] {
            sums.set(slot, Sums::of(&[slot as u8; 8]));
        }
        assert!(sums.is_done() && sums.check(1, b"it is known"));
        sums.distrust([1, 2, 3, 70, 70, 900].into_iter());
        assert!(!sums.is_done());
        assert!(sums.check(3, b"nothing is known of it"));
        assert!(sums.check(1, &[1; 8]) && sums.check(1, b"it was compared"));
        assert!(!sums.check(2, &[1; 8]) && !sums.check(2, &[3; 8]), "wrong as often as it is read");
        let copy = sums.clone();
        assert!(!copy.is_done() && !copy.check(2, &[3; 8]));
        sums.set(2, Sums::of(&[9; 8]));
        assert!(sums.check(2, b"it is new"));
        assert!(sums.check(70, &[70; 8]) && sums.is_done());
        assert_eq!((sums.get(0), sums.get(9999)), (0, 0));
    }
}
