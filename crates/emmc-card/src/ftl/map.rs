//! The map: the place of each logical unit, and which physical units are valid.
//!
//! Four bytes per logical unit and one bit per physical one; the reverse mapping is in the flash's spare area. Physical
//! units are numbered as in the flash ([`crate::nand::Geometry`]). Absent on purpose: victim selection (`gc`), and free
//! blocks (`pool`).

use std::ops::Range;

use crate::nand::{Geometry, NO_UNIT};

/// The map of a region: logical to physical, valid bits, valid units per block.
#[derive(Clone, Debug)]
pub struct Map {
    l2p: Vec<u32>,
    /// Bits of a block start at a word of their own.
    valid: Vec<u64>,
    counts: Vec<u32>,
    mapped: u32,
    first_block: u32,
    units_per_block: u32,
    words_per_block: u32,
    /// 2^64 / units_per_block, rounded up: turns the division by a block's units into a multiplication, exact for all
    /// 32-bit unit numbers.
    reciprocal: u64,
}

impl Map {
    /// An empty map of `units` logical units, onto blocks within a range.
    pub fn new(units: u32, geometry: &Geometry, blocks: Range<u32>) -> Self {
        let units_per_block = geometry.units_per_block();
        assert!(units_per_block > 1, "a block has several units");
        let words_per_block = units_per_block.div_ceil(64);
        let count = (blocks.end - blocks.start) as usize;
        Self {
            l2p: vec![NO_UNIT; units as usize],
            valid: vec![0; count * words_per_block as usize],
            counts: vec![0; count],
            mapped: 0,
            first_block: blocks.start,
            units_per_block,
            words_per_block,
            reciprocal: u64::MAX / u64::from(units_per_block) + 1,
        }
    }

    /// Logical units that it covers.
    pub fn units(&self) -> u32 {
        self.l2p.len() as u32
    }

    /// Mapped logical units.
    pub fn mapped(&self) -> u32 {
        self.mapped
    }

    /// The place of a logical unit; [`NO_UNIT`]: unmapped.
    #[inline]
    pub fn lookup(&self, unit: u32) -> u32 {
        self.l2p[unit as usize]
    }

    /// Block of a physical unit.
    #[inline(always)]
    pub fn block_of(&self, physical: u32) -> u32 {
        ((u128::from(self.reciprocal) * u128::from(physical)) >> 64) as u32
    }

    /// Block of a physical unit and its place therein.
    #[inline(always)]
    fn place_of(&self, physical: u32) -> (u32, u32) {
        let block = self.block_of(physical);
        (block, physical - block * self.units_per_block)
    }

    /// Prefetches the map entries of some units, and the valid bits of the places of others, announced before.
    #[inline]
    pub fn foresee(&self, soon: &[u32], next: &[u32]) {
        for &unit in soon {
            prefetch(&self.l2p, unit as usize);
        }
        for &unit in next {
            if let Some(&place) = self.l2p.get(unit as usize).filter(|place| **place != NO_UNIT) {
                prefetch(&self.valid, self.bit(place).0);
            }
        }
    }

    /// Prefetches the map entries of the valid units among some of a block's, numbered in `spare`; without branches.
    #[inline]
    pub fn foresee_valid(&self, block: u32, spare: &[u32], units: Range<usize>) {
        let (words, mut last, mut from) = (self.valid_words(block), 0, units.start);
        while from < units.end {
            let until = units.end.min((from | 63) + 1);
            let mut bits = words[from / 64] >> (from & 63);
            for &unit in &spare[from..until] {
                last = if bits & 1 == 1 { unit } else { last };
                prefetch(&self.l2p, last as usize);
                bits >>= 1;
            }
            from = until;
        }
    }

    /// Maps a logical unit to `physical`. Returns its old place, or [`NO_UNIT`].
    #[inline(always)]
    pub fn set(&mut self, unit: u32, physical: u32) -> u32 {
        let old = std::mem::replace(&mut self.l2p[unit as usize], physical);
        if old == NO_UNIT {
            self.mapped += 1;
        } else {
            self.invalidate(old);
        }
        let (word, bit, slot) = self.bit(physical);
        debug_assert!(self.valid[word] & bit == 0, "physical unit {physical} is already in use");
        self.valid[word] |= bit;
        self.counts[slot] += 1;
        old
    }

    /// Unmaps a logical unit. Returns its old place, or [`NO_UNIT`].
    #[inline]
    pub fn clear(&mut self, unit: u32) -> u32 {
        let old = std::mem::replace(&mut self.l2p[unit as usize], NO_UNIT);
        if old != NO_UNIT {
            self.mapped -= 1;
            self.invalidate(old);
        }
        old
    }

    /// The places of consecutive logical units.
    #[inline]
    pub fn places(&self, units: Range<u32>) -> &[u32] {
        &self.l2p[units.start as usize..units.end as usize]
    }

    /// Moves logical units from their places `from` to consecutive physical units of one block: like [`Map::set`] for
    /// each, at the cost of one call per run.
    pub fn move_run(&mut self, units: &[u32], from: &[u32], first_physical: u32) {
        debug_assert!(units.iter().zip(from).all(|(&unit, &from)| self.lookup(unit) == from), "units lie elsewhere");
        let mut rest = from;
        while let Some(&start) = rest.first() {
            let (block, index) = self.place_of(start);
            let room = (self.units_per_block - index) as usize;
            let run = (start..).zip(rest).take(room).take_while(|(expected, found)| expected == *found).count();
            self.change_bits(block, index as usize..index as usize + run, |word, mask| *word &= !mask);
            self.counts[(block - self.first_block) as usize] -= run as u32;
            rest = &rest[run..];
        }
        self.place_run(units, first_physical);
    }

    /// Changes the valid bits of some units of a block, word by word.
    #[inline]
    fn change_bits(&mut self, block: u32, units: Range<usize>, mut change: impl FnMut(&mut u64, u64)) {
        let base = (block - self.first_block) as usize * self.words_per_block as usize;
        let mut from = units.start;
        while from < units.end {
            let until = units.end.min((from | 63) + 1);
            let mask = (u64::MAX >> (64 - (until - from))) << (from & 63);
            change(&mut self.valid[base + from / 64], mask);
            from = until;
        }
    }

    /// Maps logical units to consecutive physical ones of one block, after [`Map::empty_block`] has cleared their old
    /// places.
    #[inline]
    pub fn place_run(&mut self, units: &[u32], first_physical: u32) {
        for (physical, &unit) in (first_physical..).zip(units) {
            self.l2p[unit as usize] = physical;
        }
        let (block, index) = self.place_of(first_physical);
        let slot = (block - self.first_block) as usize;
        self.change_bits(block, index as usize..index as usize + units.len(), |word, mask| {
            debug_assert!(*word & mask == 0, "physical units are already in use");
            *word |= mask;
        });
        self.counts[slot] += units.len() as u32;
    }

    /// Clears all valid units of a block. The map is inconsistent for them until [`Map::place_run`] has set their new
    /// places.
    #[inline]
    pub fn empty_block(&mut self, block: u32) {
        let slot = (block - self.first_block) as usize;
        let base = slot * self.words_per_block as usize;
        self.valid[base..base + self.words_per_block as usize].fill(0);
        self.counts[slot] = 0;
    }

    /// Clears the valid units of a part of a block, counted from its first; as [`Map::empty_block`] does for all.
    #[inline]
    pub fn empty_part(&mut self, block: u32, units: Range<u32>) {
        let mut cleared = 0;
        self.change_bits(block, units.start as usize..units.end as usize, |word, mask| {
            cleared += (*word & mask).count_ones();
            *word &= !mask;
        });
        self.counts[(block - self.first_block) as usize] -= cleared;
    }

    /// Clears some valid units of a block, given by their places; as [`Map::empty_block`] does for all.
    pub fn take_from(&mut self, block: u32, places: &[u32]) {
        let slot = (block - self.first_block) as usize;
        let base = slot * self.words_per_block as usize;
        for &place in places {
            self.valid[base + place as usize / 64] &= !(1 << (place % 64));
        }
        self.counts[slot] -= places.len() as u32;
    }

    /// Reverts units that [`Map::empty_block`] or [`Map::take_from`] cleared and [`Map::place_run`] has not placed: the
    /// map still has their places.
    pub fn put_back(&mut self, units: &[u32]) {
        for &unit in units {
            let (word, bit, slot) = self.bit(self.l2p[unit as usize]);
            self.valid[word] |= bit;
            self.counts[slot] += 1;
        }
    }

    /// Whether a physical unit is the current copy of its logical unit.
    #[inline]
    pub fn is_valid(&self, physical: u32) -> bool {
        let (word, bit, _) = self.bit(physical);
        self.valid[word] & bit != 0
    }

    /// Whether `count` physical units of one block are all valid.
    #[inline]
    pub fn is_run_valid(&self, first_physical: u32, count: u32) -> bool {
        let (word, bit, _) = self.bit(first_physical);
        let shift = bit.trailing_zeros();
        if count > 0 && shift + count <= 64 {
            let mask = (u64::MAX >> (64 - count)) << shift;
            return self.valid[word] & mask == mask;
        }
        (first_physical..first_physical + count).all(|physical| self.is_valid(physical))
    }

    /// Valid units of a block.
    #[inline]
    pub fn valid_in(&self, block: u32) -> u32 {
        self.counts[(block - self.first_block) as usize]
    }

    /// The valid bits of a block, unit 0 in the lowest bit of the first word.
    #[inline]
    pub fn valid_words(&self, block: u32) -> &[u64] {
        let base = (block - self.first_block) as usize * self.words_per_block as usize;
        &self.valid[base..base + self.words_per_block as usize]
    }

    /// Checks that map, bits and counts agree.
    ///
    /// Errors: a description of the violation.
    pub fn audit(&self) -> Result<(), String> {
        let mut seen = vec![0u32; self.counts.len()];
        let mut mapped = 0;
        for (unit, &physical) in self.l2p.iter().enumerate().filter(|(_, physical)| **physical != NO_UNIT) {
            let block = self.block_of(physical);
            let known = block.checked_sub(self.first_block).map(|slot| slot as usize).filter(|slot| *slot < seen.len());
            let slot = known.ok_or_else(|| format!("unit {unit} lies in block {block}, outside its region"))?;
            if !self.is_valid(physical) {
                return Err(format!("unit {unit} lies at {physical}, which is not valid"));
            }
            seen[slot] += 1;
            mapped += 1;
        }
        if mapped != self.mapped {
            return Err(format!("{mapped} units are mapped, {} are counted", self.mapped));
        }
        for (slot, (&counted, &seen)) in self.counts.iter().zip(&seen).enumerate() {
            let block = self.first_block + slot as u32;
            let bits: u32 = self.valid_words(block).iter().map(|word| word.count_ones()).sum();
            // Equal sums over distinct valid bits: no two units share a place.
            if counted != seen || counted != bits {
                return Err(format!("block {block}: {seen} units mapped, {bits} valid bits, {counted} counted"));
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn invalidate(&mut self, physical: u32) {
        let (word, bit, slot) = self.bit(physical);
        debug_assert!(self.valid[word] & bit != 0, "physical unit {physical} was not in use");
        self.valid[word] &= !bit;
        self.counts[slot] -= 1;
    }

    /// Word, bit in it, and slot of the block of a physical unit.
    #[inline(always)]
    fn bit(&self, physical: u32) -> (usize, u64, usize) {
        let (block, index) = self.place_of(physical);
        let slot = (block - self.first_block) as usize;
        (slot * self.words_per_block as usize + (index >> 6) as usize, 1 << (index & 63), slot)
    }
}

/// Has the processor fetch an element's line, without waiting for it. Where it cannot, the element is loaded.
#[inline(always)]
pub(super) fn prefetch<T: Copy>(data: &[T], index: usize) {
    match cfg!(target_arch = "x86_64") {
        true => prefetch_index::prefetch_index(data, index),
        false => drop(std::hint::black_box(data.get(index).copied())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nand::CellMode;
    use emmc_units::Rng;

    fn geometry(pages_per_block: u32) -> Geometry {
        Geometry {
            blocks: 40,
            pages_per_block,
            units_per_page: 3,
            unit_bytes: 4096,
            dies: 1,
            planes: 1,
            channels: 1,
            native: CellMode::Slc,
        }
    }

    #[test]
    fn block_of_is_exact_for_every_size_and_boundary() {
        for pages in [1, 7, 24, 64, 100, 341, 0x1555] {
            let geometry = geometry(pages);
            let map = Map::new(1, &geometry, 0..1);
            let size = geometry.units_per_block();
            for block in [0, 1, 2, 39, u32::MAX / size - 1] {
                for physical in [block * size, block * size + 1, block * size + size - 1] {
                    assert_eq!(map.place_of(physical), (physical / size, physical % size));
                }
            }
            assert_eq!(map.block_of(u32::MAX - 1), (u32::MAX - 1) / size);
        }
    }

    #[test]
    fn agrees_with_a_plain_model_under_random_use() {
        let geometry = geometry(25);
        let size = geometry.units_per_block();
        let mut map = Map::new(500, &geometry, 10..30);
        let mut model = std::collections::BTreeMap::new();
        let mut rng = Rng::new(1);
        for _ in 0..20_000 {
            let unit = rng.below(500) as u32;
            if rng.below(4) == 0 {
                assert_eq!(map.clear(unit), model.remove(&unit).unwrap_or(NO_UNIT));
                continue;
            }
            let physical = 10 * size + rng.below(u64::from(20 * size)) as u32;
            if !map.is_valid(physical) {
                assert_eq!(map.set(unit, physical), model.insert(unit, physical).unwrap_or(NO_UNIT));
            }
        }
        map.audit().unwrap();
        assert_eq!(map.mapped() as usize, model.len());
        for unit in 0..500 {
            assert_eq!(map.lookup(unit), model.get(&unit).copied().unwrap_or(NO_UNIT));
        }
        for block in 10..30 {
            assert_eq!(map.valid_in(block) as usize, model.values().filter(|p| *p / size == block).count());
        }
    }

    #[test]
    fn a_run_moves_units_across_words() {
        let geometry = geometry(50);
        let mut map = Map::new(150, &geometry, 0..40);
        let units: Vec<u32> = (0..150).collect();
        for unit in 0..150 {
            map.set(unit, unit);
        }
        map.empty_block(0);
        map.place_run(&units[..61], 5 * 150 + 3);
        map.place_run(&units[61..150], 7 * 150 + 1);
        map.audit().unwrap();
        assert_eq!((map.valid_in(0), map.valid_in(5), map.valid_in(7)), (0, 61, 89));
        assert_eq!((map.lookup(60), map.lookup(61)), (5 * 150 + 63, 7 * 150 + 1));
    }

    #[test]
    fn audit_finds_a_wrong_count_and_two_units_in_one_place() {
        let mut map = Map::new(4, &geometry(2), 0..2);
        map.set(0, 1);
        let mut lying = map.clone();
        lying.counts[1] = 1;
        assert!(lying.audit().unwrap_err().contains("block 1"));
        map.l2p[2] = 1;
        map.mapped += 1;
        assert!(map.audit().unwrap_err().contains("block 0"));
    }
}
