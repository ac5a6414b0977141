//! The order in which a stream visits the blocks of its range.
//!
//! Absent on purpose: bytes and devices; blocks are counted from the start of the range.

use emmc_units::{Rng, Scramble};

/// An order of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Ascending, then again from the start.
    Sequential,
    /// Descending, then again from the end.
    Backward,
    /// Every block once in random order, then once more in another.
    Shuffled,
    /// Uniformly random, with repetitions.
    Random,
    /// Every `step`-th block, then again from the start of the range.
    Strided {
        /// Unit: blocks.
        step: u64,
    },
}

/// An endless sequence of blocks of a range.
#[derive(Clone, Debug)]
pub struct Positions {
    order: Order,
    blocks: u64,
    next: u64,
    round: u64,
    seed: u64,
    rng: Rng,
    scramble: Scramble,
}

impl Positions {
    /// The blocks 0 to `blocks` - 1; `blocks` is at least 1.
    pub fn new(order: Order, blocks: u64, seed: u64) -> Self {
        let blocks = blocks.max(1);
        Self { order, blocks, next: 0, round: 0, seed, rng: Rng::new(seed), scramble: Scramble::new(blocks, seed) }
    }

    /// The next block.
    #[inline]
    pub fn take(&mut self) -> u64 {
        match self.order {
            Order::Random => return self.rng.below(self.blocks),
            Order::Strided { step } => {
                let block = self.next;
                self.next = (self.next + step) % self.blocks;
                return block;
            }
            _ => {}
        }
        if self.next == self.blocks {
            self.next = 0;
            self.round += 1;
            self.scramble = Scramble::new(self.blocks, self.seed.wrapping_add(self.round));
        }
        let index = self.next;
        self.next += 1;
        match self.order {
            Order::Backward => self.blocks - 1 - index,
            Order::Shuffled => self.scramble.of(index),
            _ => index,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(order: Order, blocks: u64, count: usize) -> Vec<u64> {
        let mut positions = Positions::new(order, blocks, 7);
        (0..count).map(|_| positions.take()).collect()
    }

    #[test]
    fn orders_repeat() {
        assert_eq!(taken(Order::Sequential, 3, 7), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(taken(Order::Backward, 3, 4), [2, 1, 0, 2]);
        assert_eq!(taken(Order::Strided { step: 4 }, 10, 6), [0, 4, 8, 2, 6, 0]);
        assert!(taken(Order::Random, 10, 1000).iter().all(|block| *block < 10));
    }

    #[test]
    fn a_shuffle_visits_each_place_once_and_differs_per_pass() {
        let both = taken(Order::Shuffled, 100, 200);
        let (first, second) = both.split_at(100);
        assert_ne!(first, second);
        for round in [first, second] {
            let mut round = round.to_vec();
            round.sort_unstable();
            assert_eq!(round, (0..100).collect::<Vec<_>>());
        }
    }
}
