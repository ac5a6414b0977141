//! Which units the log holds, and where: open addressing, so that a look costs one line of memory.

use crate::nand::NO_UNIT;

/// Places that are looked at one after the other in the time of one look at a random place.
const PLACES_PER_LOOK: usize = 8;

/// From logical unit to physical unit, for as many as the log can hold.
#[derive(Clone, Debug)]
pub(super) struct Index {
    /// Logical and physical unit; a logical [`NO_UNIT`] is a free place.
    places: Vec<(u32, u32)>,
    shift: u32,
    len: usize,
}

impl Index {
    /// Capacity for `units`, at most half full.
    pub(super) fn new(units: u32) -> Self {
        let places = (units as usize * 2).next_power_of_two().max(16);
        Self { places: vec![(NO_UNIT, NO_UNIT); places], shift: 32 - places.trailing_zeros(), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn clear(&mut self) {
        self.places.fill((NO_UNIT, NO_UNIT));
        self.len = 0;
    }

    /// Where a unit wants to be: the high bits of a multiplication, which spread runs of neighbours widely.
    #[inline]
    fn home(&self, unit: u32) -> usize {
        (unit.wrapping_mul(0x9e37_79b1) >> self.shift) as usize
    }

    /// The place of a unit, or the free one where it would go.
    #[inline]
    fn find(&self, unit: u32) -> usize {
        let mask = self.places.len() - 1;
        let mut place = self.home(unit);
        while self.places[place].0 != unit && self.places[place].0 != NO_UNIT {
            place = (place + 1) & mask;
        }
        place
    }

    #[inline]
    pub(super) fn get(&self, unit: u32) -> Option<u32> {
        let (found, physical) = self.places[self.find(unit)];
        (found == unit).then_some(physical)
    }

    pub(super) fn set(&mut self, unit: u32, physical: u32) {
        let place = self.find(unit);
        self.len += usize::from(self.places[place].0 == NO_UNIT);
        debug_assert!(self.len * 4 <= self.places.len() * 3, "the index of the log is too small");
        self.places[place] = (unit, physical);
    }

    /// Removes a unit; displaced entries move back, so that no tombstones remain.
    pub(super) fn remove(&mut self, unit: u32) -> Option<u32> {
        let mask = self.places.len() - 1;
        let mut hole = self.find(unit);
        let (found, physical) = self.places[hole];
        if found != unit {
            return None;
        }
        let mut next = (hole + 1) & mask;
        while self.places[next].0 != NO_UNIT {
            let home = self.home(self.places[next].0);
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.places[hole] = self.places[next];
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.places[hole] = (NO_UNIT, NO_UNIT);
        self.len -= 1;
        Some(physical)
    }

    /// Whether looking for each of `count` units is faster than looking at every place.
    pub(super) fn is_faster_by_unit(&self, count: u32) -> bool {
        count as usize <= self.places.len() / PLACES_PER_LOOK
    }

    /// Every logical unit that it holds, in no order.
    pub(super) fn units(&self) -> impl Iterator<Item = u32> {
        self.places.iter().map(|(unit, _)| *unit).filter(|unit| *unit != NO_UNIT)
    }

    /// Every physical unit that it holds, in no order.
    pub(super) fn physical(&self) -> impl Iterator<Item = u32> {
        self.places.iter().filter(|(unit, _)| *unit != NO_UNIT).map(|(_, physical)| *physical)
    }

    /// Everything that it holds, by logical unit.
    pub(super) fn sorted(&self) -> Vec<(u32, u32)> {
        let mut all: Vec<_> = self.places.iter().copied().filter(|&(unit, _)| unit != NO_UNIT).collect();
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use emmc_units::Rng;

    /// Against the standard library's map, with keys that collide.
    #[test]
    fn the_index_agrees_with_a_map() {
        let (mut index, mut map, mut rng) = (Index::new(64), BTreeMap::new(), Rng::new(1));
        for step in 0..20_000u32 {
            let unit = (rng.below(90) * 1024) as u32;
            if rng.below(3) > 0 && map.len() < 64 {
                index.set(unit, step);
                map.insert(unit, step);
            } else {
                assert_eq!(index.remove(unit), map.remove(&unit));
            }
            let probe = (rng.below(90) * 1024) as u32;
            assert_eq!(index.get(probe), map.get(&probe).copied());
            assert_eq!(index.len(), map.len());
        }
        assert_eq!(index.sorted(), map.into_iter().collect::<Vec<_>>());
        index.clear();
        assert_eq!((index.len(), index.get(0)), (0, None));
    }
}
