//! Where the newest request of each key is: a hash table of 16 bytes a request.
//!
//! A slot has the key and a place in the table of requests. Linear probing; what is taken out leaves no mark, because
//! those behind it move up.

use std::hash::Hasher;

use crate::notes::Mix;

const NONE: u32 = u32::MAX;
/// Slots at first.
const SLOTS: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Slot {
    sector: u64,
    device: u32,
    place: u32,
}

const EMPTY: Slot = Slot { sector: 0, device: 0, place: NONE };

/// The slots, a power of two, at most half of them used.
#[derive(Debug)]
pub(super) struct Heads {
    slots: Vec<Slot>,
    used: usize,
}

impl Default for Heads {
    fn default() -> Self {
        Self { slots: vec![EMPTY; SLOTS], used: 0 }
    }
}

#[inline]
pub(super) fn hash((device, sector): (u32, u64)) -> usize {
    let mut mix = Mix::default();
    mix.write_u64(sector ^ u64::from(device) << 40);
    mix.finish() as usize
}

impl Heads {
    /// The slot of a key, or the empty one where it belongs.
    #[inline]
    pub(super) fn slot(&self, key: (u32, u64)) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash(key) & mask;
        loop {
            let slot = &self.slots[at];
            if slot.sector == key.1 && slot.device == key.0 || slot.place == NONE {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// The place in a slot, or a place that is none.
    #[inline]
    pub(super) fn at(&self, slot: usize) -> u32 {
        self.slots[slot].place
    }

    /// The place of a key, or a place that is none.
    #[inline]
    pub(super) fn get(&self, key: (u32, u64)) -> u32 {
        self.at(self.slot(key))
    }

    /// Sets the place of a key; the one before, or one that is none.
    #[inline]
    pub(super) fn put(&mut self, key: (u32, u64), place: u32) -> u32 {
        if self.used * 2 >= self.slots.len() {
            self.grow();
        }
        let at = self.slot(key);
        let before = std::mem::replace(&mut self.slots[at], Slot { sector: key.1, device: key.0, place }).place;
        self.used += usize::from(before == NONE);
        before
    }

    /// Another place for the key of a slot.
    pub(super) fn replace(&mut self, slot: usize, by: u32) {
        self.slots[slot].place = by;
    }

    /// Takes the key of a slot out.
    #[inline]
    pub(super) fn remove(&mut self, slot: usize) {
        let mut hole = slot;
        if self.slots[hole].place == NONE {
            return;
        }
        self.used -= 1;
        let mask = self.slots.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot.place == NONE {
                self.slots[hole] = EMPTY;
                return;
            }
            // It may move to the hole if the hole is not before the slot that it belongs into.
            let home = hash((slot.device, slot.sector)) & mask;
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.slots[hole] = slot;
                hole = at;
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(SLOTS);
        let before = std::mem::replace(&mut self.slots, vec![EMPTY; slots]);
        for slot in before.into_iter().filter(|slot| slot.place != NONE) {
            let at = self.slot((slot.device, slot.sector));
            self.slots[at] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Against the standard library's map, with keys that collide and a table that grows.
    #[test]
    fn it_is_a_map() {
        let (mut heads, mut map) = (Heads::default(), HashMap::new());
        let mut random = 1u64;
        for place in 0..20_000u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Few sectors, so that keys come again; place 0 of device 0 is like an empty slot.
            let key = ((random >> 60) as u32, (random >> 40) % 3000);
            assert_eq!(heads.get(key), map.get(&key).copied().unwrap_or(NONE));
            if random >> 33 & 1 == 0 {
                assert_eq!(heads.put(key, place), map.insert(key, place).unwrap_or(NONE));
            } else {
                map.remove(&key);
                heads.remove(heads.slot(key));
            }
            assert_eq!(heads.used, map.len());
        }
        assert!(map.len() > 1000, "{}", map.len());
        for (key, place) in &map {
            assert_eq!(heads.get(*key), *place);
        }
    }
}
