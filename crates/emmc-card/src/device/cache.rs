//! The volatile cache: units that are acknowledged before they are in flash.
//!
//! First in, first out, in batches; a unit that is overwritten in the cache is written once. Its content is lost with
//! power, as CACHE_CTRL warns. Absent on purpose: when it is switched on or flushed (`registers`).

use std::collections::VecDeque;

/// Entries of the presence filter, at least and for each unit that fits. Every unit that shares its entry with a cached
/// one costs a search of the whole cache.
const FILTER_MIN: usize = 4096;
const FILTER_PER_UNIT: usize = 64;

/// A dirty unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dirty {
    /// Its region.
    pub(crate) region: u8,
    /// Its number there.
    pub(crate) unit: u32,
    /// Its content, if payload is simulated.
    pub(crate) data: Option<Box<[u8]>>,
    /// Not the host's: it is written again with a page of which the host wrote a part.
    pub(crate) is_rest: bool,
}

/// Dirty units, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct VolatileCache {
    waiting: VecDeque<Dirty>,
    capacity: usize,
    /// Number of cached units per low bits of their numbers: zero means that a unit is not cached.
    filter: Vec<u16>,
    /// Units that left it and were not the host's.
    pub(crate) rests: u64,
}

impl VolatileCache {
    /// A cache for `capacity` units.
    pub(crate) fn new(capacity: usize) -> Self {
        let entries = capacity.min(1 << 11).saturating_mul(FILTER_PER_UNIT).next_power_of_two().max(FILTER_MIN);
        Self { waiting: VecDeque::with_capacity(capacity.min(1 << 16)), capacity, filter: vec![0; entries], rests: 0 }
    }

    /// Whether it is full.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= self.capacity
    }

    /// Units waiting.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The entry of a unit in a filter: low bits of its number, for which the filter's size is a power of two.
    #[inline]
    fn slot(filter: &[u16], region: u8, unit: u32) -> usize {
        (unit as usize ^ usize::from(region) << 10) & (filter.len() - 1)
    }

    #[inline]
    fn position(&self, region: u8, unit: u32) -> Option<usize> {
        if self.filter[Self::slot(&self.filter, region, unit)] == 0 {
            return None;
        }
        self.waiting.iter().position(|dirty| dirty.unit == unit && dirty.region == region)
    }

    /// The cached unit, if present.
    #[inline]
    pub(crate) fn find(&self, region: u8, unit: u32) -> Option<&Dirty> {
        self.position(region, unit).map(|at| &self.waiting[at])
    }

    /// Adds a unit; replaces its older content. The caller makes space first.
    #[inline]
    pub(crate) fn put(&mut self, dirty: Dirty) {
        if let Some(at) = self.position(dirty.region, dirty.unit) {
            self.waiting[at].data = dirty.data;
            self.waiting[at].is_rest &= dirty.is_rest;
            return;
        }
        let slot = Self::slot(&self.filter, dirty.region, dirty.unit);
        self.filter[slot] += 1;
        self.waiting.push_back(dirty);
    }

    /// The oldest units, which leave next: region and number.
    #[inline]
    pub(crate) fn oldest(&self, units: usize) -> impl Iterator<Item = (u8, u32)> + '_ {
        self.waiting.iter().take(units).map(|dirty| (dirty.region, dirty.unit))
    }

    /// The numbers of cached units from a place on, counted from the oldest, up to the first of another region. Returns
    /// how many of `numbers` are set.
    #[inline]
    pub(crate) fn numbers(&self, place: usize, region: u8, numbers: &mut [u32]) -> usize {
        let first = place.min(self.waiting.len());
        let end = self.waiting.len().min(first + numbers.len());
        let mut count = 0;
        for (number, dirty) in numbers.iter_mut().zip(self.waiting.range(first..end)) {
            if dirty.region != region {
                break;
            }
            *number = dirty.unit;
            count += 1;
        }
        count
    }

    /// Removes the oldest units.
    #[inline]
    pub(crate) fn drop_oldest(&mut self, units: usize) {
        for _ in 0..units {
            self.take_oldest();
        }
    }

    /// Removes the oldest unit.
    #[inline]
    pub(crate) fn take_oldest(&mut self) -> Option<Dirty> {
        let dirty = self.waiting.pop_front()?;
        let slot = Self::slot(&self.filter, dirty.region, dirty.unit);
        self.filter[slot] -= 1;
        self.rests += u64::from(dirty.is_rest);
        Some(dirty)
    }

    /// Drops the units of a range: they were written directly or trimmed.
    pub(crate) fn forget(&mut self, region: u8, first: u32, count: u32) {
        if self.waiting.is_empty() {
            return;
        }
        let filter = &mut self.filter;
        self.waiting.retain(|dirty| {
            let inside = dirty.region == region && dirty.unit.wrapping_sub(first) < count;
            if inside {
                let slot = Self::slot(filter, dirty.region, dirty.unit);
                filter[slot] -= 1;
            }
            !inside
        });
    }

    /// Drops everything, as at a power loss.
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.filter.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirty(unit: u32, fill: u8) -> Dirty {
        Dirty { region: 1, unit, data: Some(vec![fill; 2].into()), is_rest: false }
    }

    #[test]
    fn a_unit_is_cached_once_and_written_in_arrival_sequence() {
        let mut cache = VolatileCache::new(3);
        for (unit, fill) in [(7, 1), (9, 2), (7, 3)] {
            cache.put(dirty(unit, fill));
        }
        assert_eq!(cache.len(), 2);
        assert_eq!(cache.find(1, 7), Some(&dirty(7, 3)));
        assert_eq!(cache.find(0, 7), None);
        assert_eq!(cache.take_oldest(), Some(dirty(7, 3)));
        assert_eq!(cache.find(1, 7), None);
        assert_eq!(cache.rests, 0);
        cache.put(Dirty { is_rest: true, ..dirty(11, 5) });
        cache.put(Dirty { is_rest: true, ..dirty(12, 5) });
        // What the host writes meanwhile is the host's.
        cache.put(dirty(12, 6));
        assert_eq!([cache.take_oldest(), cache.take_oldest(), cache.take_oldest()].iter().flatten().count(), 3);
        assert_eq!(cache.rests, 1);
        cache.put(dirty(9, 2));
        cache.put(dirty(10, 4));
        cache.put(dirty(9 + FILTER_MIN as u32, 5));
        assert!(cache.is_full());
        cache.forget(1, 9, 2);
        assert_eq!(cache.len(), 1);
        assert_eq!(cache.find(1, 9), None);
        assert_eq!(cache.find(1, 9 + FILTER_MIN as u32), Some(&dirty(9 + FILTER_MIN as u32, 5)));
    }
}
