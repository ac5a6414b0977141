//! The newest trim of each unit.

use std::collections::BTreeMap;

use super::Trimmed;

/// For ranges of units, the sequence number of the newest trim: from where, and up to the next entry.
#[derive(Clone, Debug)]
pub struct TrimOrders(BTreeMap<u32, u64>);

impl TrimOrders {
    /// Of trims, the oldest first; they may overlap.
    pub fn new(trims: &[Trimmed]) -> Self {
        let mut all = Self(BTreeMap::from([(0, 0)]));
        // Oldest first, so a later one covers all of its range.
        for trim in trims {
            let end = trim.first.saturating_add(trim.count);
            let after = all.of(end);
            let inside: Vec<u32> = all.0.range(trim.first..end).map(|(&at, _)| at).collect();
            for at in inside {
                all.0.remove(&at);
            }
            all.0.insert(trim.first, trim.order);
            all.0.entry(end).or_insert(after);
        }
        all
    }

    /// The sequence number of the newest trim of a unit; 0: none.
    pub fn of(&self, unit: u32) -> u64 {
        self.0.range(..=unit).next_back().map_or(0, |(_, &order)| order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_overlapping_trims_counts() {
        let trim = |first, count, order| Trimmed { first, count, order };
        let trims = TrimOrders::new(&[trim(10, 10, 1), trim(5, 20, 2), trim(12, 3, 3), trim(15, 1, 4), trim(0, 6, 5)]);
        let orders: Vec<u64> = (0..27).map(|unit| trims.of(unit)).collect();
        let mut wanted = vec![0; 27];
        wanted[5..25].fill(2);
        wanted[12..15].fill(3);
        wanted[15] = 4;
        wanted[..6].fill(5);
        assert_eq!(orders, wanted);
    }
}
