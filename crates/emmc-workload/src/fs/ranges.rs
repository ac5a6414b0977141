//! Sets of block ranges; neighbours are merged.

use std::collections::BTreeMap;

/// Ranges without overlap, by their beginning.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    by_start: BTreeMap<u64, u64>,
    total: u64,
}

impl Ranges {
    /// Blocks in all.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Adds blocks; some of them may be present already.
    pub(super) fn insert(&mut self, start: u64, count: u64) {
        let (mut from, mut to) = (start, start + count);
        let touching: Vec<(u64, u64)> = self
            .by_start
            .range(..=to)
            .rev()
            .take_while(|(first, end)| **end >= from || **first >= from)
            .map(pair)
            .collect();
        for (first, end) in touching.into_iter().filter(|(_, end)| *end >= start) {
            self.by_start.remove(&first);
            self.total -= end - first;
            (from, to) = (from.min(first), to.max(end));
        }
        self.by_start.insert(from, to);
        self.total += to - from;
    }

    /// Removes up to `count` blocks from the first range at or after `goal`, else from the first of all.
    pub(super) fn take(&mut self, goal: u64, count: u64) -> Option<(u64, u64)> {
        let (start, end) = self.by_start.range(goal..).next().or_else(|| self.by_start.iter().next()).map(pair)?;
        let taken = count.min(end - start);
        self.by_start.remove(&start);
        if start + taken < end {
            self.by_start.insert(start + taken, end);
        }
        self.total -= taken;
        Some((start, taken))
    }

    /// Ranges as beginning and count, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_start.iter().map(|(start, end)| (*start, end - start))
    }

    /// Empties it.
    pub(super) fn drain(&mut self) -> Vec<(u64, u64)> {
        self.total = 0;
        std::mem::take(&mut self.by_start).into_iter().map(|(start, end)| (start, end - start)).collect()
    }
}

fn pair((start, end): (&u64, &u64)) -> (u64, u64) {
    (*start, *end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_and_overlapping_ranges_merge() {
        let mut ranges = Ranges::default();
        for (start, count) in [(10, 5), (20, 5), (15, 5), (0, 1), (12, 20), (40, 2)] {
            ranges.insert(start, count);
        }
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [(0, 1), (10, 22), (40, 2)]);
        assert_eq!(ranges.total(), 25);
        assert_eq!(ranges.take(11, 4), Some((40, 2)));
        assert_eq!(ranges.take(5, 4), Some((10, 4)));
        assert_eq!(ranges.take(100, 4), Some((0, 1)));
        assert_eq!(ranges.drain(), [(14, 18)]);
        assert!(ranges.is_empty() && ranges.take(0, 1).is_none());
    }
}
