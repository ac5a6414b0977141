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

    /// Removes up to `count` blocks from `goal` on; from the first range after it, else from the first of all.
    pub(super) fn take(&mut self, goal: u64, count: u64) -> Option<(u64, u64)> {
        let around = self.by_start.range(..=goal).next_back().map(pair).filter(|(_, end)| *end > goal);
        let later = || self.by_start.range(goal..).next().or_else(|| self.by_start.iter().next()).map(pair);
        let (start, end) = around.or_else(later)?;
        let from = if around.is_some() { goal } else { start };
        let taken = count.min(end - from);
        self.by_start.remove(&start);
        if start < from {
            self.by_start.insert(start, from);
        }
        if from + taken < end {
            self.by_start.insert(from + taken, end);
        }
        self.total -= taken;
        Some((from, taken))
    }

    /// Removes `count` blocks at a multiple of `count`: the first after `goal`, or of all. `None`: there is no such
    /// run.
    pub(super) fn take_aligned(&mut self, goal: u64, count: u64) -> Option<(u64, u64)> {
        let within = |start: u64, end: u64| {
            let at = start.next_multiple_of(count);
            (at + count <= end).then_some(at)
        };
        let later = self.by_start.iter().filter(|(_, end)| **end > goal);
        let found = later.map(pair).find_map(|(start, end)| within(start.max(goal), end));
        let at = found.or_else(|| self.by_start.iter().map(pair).find_map(|(start, end)| within(start, end)))?;
        self.take(at, count)
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
        assert_eq!(ranges.take(35, 4), Some((40, 2)));
        assert_eq!(ranges.take(5, 2), Some((10, 2)));
        assert_eq!(ranges.take(20, 4), Some((20, 4)));
        assert_eq!(ranges.take_aligned(11, 4), Some((12, 4)));
        assert_eq!(ranges.take_aligned(13, 16), None);
        assert_eq!(ranges.take(100, 4), Some((0, 1)));
        assert_eq!(ranges.drain(), [(16, 4), (24, 8)]);
        assert!(ranges.is_empty() && ranges.take(0, 1).is_none());
    }
}
