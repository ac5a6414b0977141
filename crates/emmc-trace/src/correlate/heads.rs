//! Where the newest request of each key is: a hash table of 8 bytes a request.
//!
//! A slot has the hash and a place in the table of requests, which knows its key. Linear probing; what is taken out
//! leaves no mark, because those behind it move up.

use std::hash::Hasher;

use crate::notes::Mix;

const NONE: u32 = u32::MAX;
/// Slots at first.
const SLOTS: usize = 256;

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    place: u32,
}

const EMPTY: Slot = Slot { hash: 0, place: NONE };

/// The slots, a power of two, at most half of them used.
#[derive(Debug, Default)]
pub(super) struct Heads {
    slots: Vec<Slot>,
    used: usize,
}

#[inline]
fn hash((device, sector): (u32, u64)) -> u32 {
    let mut mix = Mix::default();
    mix.write_u64(sector ^ u64::from(device) << 40);
    mix.finish() as u32
}

impl Heads {
    /// The slot of a key, or the empty one where it belongs. There are slots.
    #[inline]
    fn slot(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.place == NONE || slot.hash == hash && is_it(slot.place) {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// The place of a key; `is_it` says whether a place has it.
    #[inline]
    pub(super) fn get(&self, key: (u32, u64), is_it: impl Fn(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let place = self.slots[self.slot(hash(key), is_it)].place;
        (place != NONE).then_some(place)
    }

    /// Sets the place of a key; the one before.
    #[inline]
    pub(super) fn put(&mut self, key: (u32, u64), place: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        if self.used * 2 >= self.slots.len() {
            self.grow();
        }
        let hash = hash(key);
        let at = self.slot(hash, is_it);
        let before = std::mem::replace(&mut self.slots[at], Slot { hash, place }).place;
        self.used += usize::from(before == NONE);
        (before != NONE).then_some(before)
    }

    /// Another place for a key.
    pub(super) fn replace(&mut self, key: (u32, u64), place: u32, by: u32) {
        let at = self.slot(hash(key), |other| other == place);
        if self.slots[at].place == place {
            self.slots[at].place = by;
        }
    }

    /// Takes a key out, if it is there.
    #[inline]
    pub(super) fn remove(&mut self, key: (u32, u64), place: u32) {
        let mut hole = self.slot(hash(key), |other| other == place);
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
            let home = slot.hash as usize & mask;
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
            let at = self.slot(slot.hash, |_| false);
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
        let mut keys: Vec<(u32, u64)> = Vec::new();
        for place in 0..20_000u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Few sectors, so that keys come again.
            let key = ((random >> 60) as u32, (random >> 40) % 3000);
            keys.push(key);
            let of = |wanted: (u32, u64)| {
                let keys = &keys;
                move |place: u32| keys[place as usize] == wanted
            };
            assert_eq!(heads.get(key, of(key)), map.get(&key).copied());
            if random >> 33 & 1 == 0 {
                assert_eq!(heads.put(key, place, of(key)), map.insert(key, place));
            } else if let Some(at) = map.remove(&key) {
                heads.remove(key, at);
            }
            assert_eq!(heads.used, map.len());
        }
        assert!(map.len() > 1000, "{}", map.len());
        for (key, place) in &map {
            assert_eq!(heads.get(*key, |place| keys[place as usize] == *key), Some(*place));
        }
    }
}
