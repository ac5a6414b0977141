//! The order in which requests visit the blocks of a range.
//!
//! Absent on purpose: bytes and devices; blocks are counted from the start of the range.

use emmc_units::{Rng, Scramble};

use super::streams::{HotCold, Streams};
use super::zipf::Zipf;

/// An order of blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// Ascending in interleaved streams; each continues in the section behind the others' when its own is done.
    Streams {
        /// Streams.
        streams: u64,
        /// Blocks of a section, from the beginning of one stream to that of the next.
        spacing: u64,
        /// The blocks inside each section come in random order.
        shuffled: bool,
    },
    /// A share of the requests goes to the first part of the range.
    HotCold {
        /// Share of the space, 0 to 1.
        hot_share: f64,
        /// Share of the requests, 0 to 1.
        request_share: f64,
    },
    /// The n-th most popular block has a probability proportional to n^-s.
    Zipf {
        /// Exponent, above 0.
        s: f64,
        /// Whether popular blocks are scattered over the range, else they are at its start.
        scrambled: bool,
    },
}

impl Order {
    /// Whether a seed determines it, apart from the random numbers of each request.
    pub(crate) fn needs_seed(&self) -> bool {
        match *self {
            Self::Shuffled => true,
            Self::Streams { shuffled, .. } => shuffled,
            Self::Zipf { scrambled, .. } => scrambled,
            _ => false,
        }
    }
}

/// An endless sequence of blocks of a range.
#[derive(Clone, Debug)]
pub(crate) enum Positions {
    /// Every block in turn.
    Turns(Turns),
    /// Uniform below a bound.
    Random(u64),
    /// In one or more streams.
    Streams(Streams),
    /// Two parts with uniform load each.
    HotCold(HotCold),
    /// By popularity.
    Zipf(Zipf, Option<Scramble>),
}

impl Positions {
    /// The blocks 0 to `blocks` - 1; `blocks` is at least 1.
    pub(crate) fn new(order: Order, blocks: u64, seed: u64) -> Self {
        let blocks = blocks.max(1);
        let turns = |step, is_backward, seed| Self::Turns(Turns::new(blocks, step, is_backward, seed));
        match order {
            Order::Sequential => turns(None, false, None),
            Order::Backward => turns(None, true, None),
            Order::Shuffled => turns(None, false, Some(seed)),
            Order::Strided { step } => turns(Some(step), false, None),
            Order::Random => Self::Random(blocks),
            Order::Streams { streams, spacing, shuffled } => {
                Self::Streams(Streams::new(blocks, streams, spacing, shuffled.then_some(seed)))
            }
            Order::HotCold { hot_share, request_share } => {
                Self::HotCold(HotCold::new(blocks, hot_share, request_share))
            }
            Order::Zipf { s, scrambled } => {
                Self::Zipf(Zipf::new(blocks, s), scrambled.then(|| Scramble::new(blocks, seed)))
            }
        }
    }

    /// The next block.
    #[inline]
    pub(crate) fn take(&mut self, rng: &mut Rng) -> u64 {
        match self {
            Self::Random(blocks) => rng.below(*blocks),
            Self::Turns(turns) => turns.next(),
            Self::Streams(streams) => streams.next(),
            Self::HotCold(parts) => parts.next(rng),
            Self::Zipf(zipf, None) => zipf.next(rng),
            Self::Zipf(zipf, Some(scramble)) => scramble.of(zipf.next(rng)),
        }
    }
}

/// Every block in turn, round after round.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    blocks: u64,
    next: u64,
    step: Option<u64>,
    is_backward: bool,
    round: u64,
    seed: u64,
    scramble: Option<Scramble>,
}

impl Turns {
    fn new(blocks: u64, step: Option<u64>, is_backward: bool, seed: Option<u64>) -> Self {
        let scramble = seed.map(|seed| Scramble::new(blocks, seed));
        Self { blocks, next: 0, step, is_backward, round: 0, seed: seed.unwrap_or(0), scramble }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        if let Some(step) = self.step {
            let block = self.next;
            self.next = (self.next + step) % self.blocks;
            return block;
        }
        if self.next == self.blocks {
            self.next = 0;
            self.round += 1;
            self.scramble = self.scramble.map(|_| Scramble::new(self.blocks, self.seed.wrapping_add(self.round)));
        }
        let index = self.next;
        self.next += 1;
        match &self.scramble {
            Some(scramble) => scramble.of(index),
            None if self.is_backward => self.blocks - 1 - index,
            None => index,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(order: Order, blocks: u64, count: usize) -> Vec<u64> {
        let (mut positions, mut rng) = (Positions::new(order, blocks, 7), Rng::new(5));
        (0..count).map(|_| positions.take(&mut rng)).collect()
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

    #[test]
    fn streams_alternate_and_advance() {
        let streams = |streams, spacing, shuffled| Order::Streams { streams, spacing, shuffled };
        assert_eq!(taken(streams(1, 3, false), 3, 7), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(taken(streams(2, 2, false), 9, 10), [0, 2, 1, 3, 4, 6, 5, 7, 0, 2]);
        let mut shuffled = taken(streams(2, 16, true), 64, 64);
        assert_ne!(shuffled[..8], taken(streams(2, 16, false), 64, 8));
        assert!(shuffled[..32].iter().all(|block| *block < 32));
        shuffled.sort_unstable();
        assert_eq!(shuffled, (0..64).collect::<Vec<_>>());
    }

    #[test]
    fn hot_and_cold_areas_get_their_shares() {
        let drawn = taken(Order::HotCold { hot_share: 0.2, request_share: 0.8 }, 1000, 100_000);
        let hot = drawn.iter().filter(|block| **block < 200).count();
        // Five standard deviations of a binomial.
        assert!((79_368..=80_632).contains(&hot), "{hot}");
        assert!(drawn.iter().all(|block| *block < 1000));
        for (hot_share, request_share, part) in
            [(0.0, 0.9, 0..10), (1.0, 0.1, 0..10), (0.5, 1.0, 0..5), (0.5, 0.0, 5..10)]
        {
            let drawn = taken(Order::HotCold { hot_share, request_share }, 10, 1000);
            assert!(drawn.iter().all(|block| part.contains(block)), "{hot_share} {request_share}");
        }
    }
}
