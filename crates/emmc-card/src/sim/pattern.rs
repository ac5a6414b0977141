//! The positions of a phase's requests, block by block.
//!
//! A block is a request-sized part of the range, counted from 0. Absent on purpose: sectors and areas (`run`).

mod trim_mix;
mod zipf;

use emmc_units::Scramble;

use super::Rng;
use super::job::Pattern;
pub(super) use trim_mix::BlocksInUse;
use zipf::Zipf;

/// One more than the largest number that a draw can be.
pub(super) const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// A source of block numbers.
#[derive(Clone, Debug)]
pub(super) enum Blocks {
    /// Sequential, in one or more streams.
    Streams(Streams),
    /// Uniform below a bound.
    Random(u64),
    /// Two parts with uniform load each.
    HotCold(HotCold),
    /// By popularity.
    Zipf(Zipf, Option<Scramble>),
    /// Random writes and trims of blocks in use.
    Mixed(Box<BlocksInUse>),
}

/// The operation on a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// It is written or, in a phase that reads, read.
    Transfer(u64),
    /// It is trimmed.
    Trim(u64),
}

impl Blocks {
    /// The blocks of a pattern over `blocks` blocks, with `spacing` blocks between streams.
    pub(super) fn new(pattern: &Pattern, blocks: u64, spacing: u64, rng: &mut Rng) -> Self {
        match *pattern {
            Pattern::Sequential { streams, shuffled, .. } => {
                let seed = shuffled.then(|| rng.next_u64());
                Self::Streams(Streams::new(blocks, u64::from(streams), spacing, seed))
            }
            Pattern::Random => Self::Random(blocks),
            Pattern::HotCold { hot_share, write_share } => Self::HotCold(HotCold::new(blocks, hot_share, write_share)),
            Pattern::Zipf { s, scrambled } => {
                Self::Zipf(Zipf::new(blocks, s), scrambled.then(|| Scramble::new(blocks, rng.next_u64())))
            }
            Pattern::Mixed { trim_share } => Self::Mixed(Box::new(BlocksInUse::new(blocks, trim_share))),
        }
    }

    /// The next one.
    #[inline]
    pub(super) fn next(&mut self, rng: &mut Rng) -> Choice {
        Choice::Transfer(match self {
            Self::Random(blocks) => rng.below(*blocks),
            Self::Streams(streams) => streams.next(),
            Self::HotCold(parts) => parts.next(rng),
            Self::Zipf(zipf, None) => zipf.next(rng),
            Self::Zipf(zipf, Some(scramble)) => scramble.of(zipf.next(rng)),
            Self::Mixed(in_use) => return in_use.next(rng),
        })
    }
}

/// Interleaved streams.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    blocks: u64,
    streams: u64,
    spacing: u64,
    /// First block of the first stream's current section.
    group: u64,
    /// The current stream, and the position of all streams in their sections.
    stream: u64,
    index: u64,
    seed: Option<u64>,
    order: Option<Scramble>,
}

impl Streams {
    fn new(blocks: u64, streams: u64, spacing: u64, seed: Option<u64>) -> Self {
        let mut made = Self { blocks, streams, spacing, group: 0, stream: 0, index: 0, seed, order: None };
        made.shuffle();
        made
    }

    /// A new random order for the section that begins.
    fn shuffle(&mut self) {
        self.order = self.seed.map(|seed| Scramble::new(self.spacing, seed ^ self.group));
    }

    #[inline]
    fn next(&mut self) -> u64 {
        let within = self.order.as_ref().map_or(self.index, |order| order.of(self.index));
        let block = self.group + self.stream * self.spacing + within;
        self.stream += 1;
        if self.stream == self.streams {
            self.stream = 0;
            self.index += 1;
            if self.index == self.spacing {
                self.go_on();
            }
        }
        block
    }

    /// Moves all streams to their next section, or back to the start if there is no space for all.
    fn go_on(&mut self) {
        self.index = 0;
        self.group += self.streams * self.spacing;
        if self.group + self.streams * self.spacing > self.blocks {
            self.group = 0;
        }
        self.shuffle();
    }
}

/// A hot part and a cold one, the hot one first.
#[derive(Clone, Copy, Debug)]
pub(super) struct HotCold {
    hot: u64,
    cold: u64,
    /// Share of the requests that go to the hot part, of 2^64.
    threshold: u64,
}

impl HotCold {
    fn new(blocks: u64, hot_share: f64, write_share: f64) -> Self {
        let hot = (blocks as f64 * hot_share).round() as u64;
        let cold = blocks - hot.min(blocks);
        let threshold = match (hot, cold) {
            (0, _) => 0,
            (_, 0) => u64::MAX,
            _ => (write_share * TWO_TO_64) as u64,
        };
        Self { hot: blocks - cold, cold, threshold }
    }

    #[inline]
    fn next(&mut self, rng: &mut Rng) -> u64 {
        // A threshold of all ones accepts every draw.
        let is_hot = self.threshold == u64::MAX || rng.next_u64() < self.threshold;
        if is_hot { rng.below(self.hot) } else { self.hot + rng.below(self.cold) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(pattern: Pattern, blocks: u64, spacing: u64, count: usize) -> Vec<u64> {
        let mut rng = Rng::new(5);
        let mut source = Blocks::new(&pattern, blocks, spacing, &mut rng);
        let mut next = || match source.next(&mut rng) {
            Choice::Transfer(block) => block,
            Choice::Trim(block) => panic!("trim of {block}"),
        };
        (0..count).map(|_| next()).collect()
    }

    fn sequential(streams: u32, shuffled: bool) -> Pattern {
        Pattern::Sequential { streams, spacing: None, shuffled }
    }

    #[test]
    fn streams_alternate_and_advance() {
        assert_eq!(blocks(sequential(1, false), 3, 3, 7), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(blocks(sequential(2, false), 9, 2, 10), [0, 2, 1, 3, 4, 6, 5, 7, 0, 2]);
        let mut shuffled = blocks(sequential(2, true), 64, 16, 64);
        assert_ne!(shuffled[..8], blocks(sequential(2, false), 64, 16, 8));
        assert!(shuffled[..32].iter().all(|block| *block < 32));
        shuffled.sort_unstable();
        assert_eq!(shuffled, (0..64).collect::<Vec<_>>());
    }

    #[test]
    fn hot_and_cold_areas_get_their_shares() {
        let pattern = Pattern::HotCold { hot_share: 0.2, write_share: 0.8 };
        let drawn = blocks(pattern, 1000, 0, 100_000);
        let hot = drawn.iter().filter(|block| **block < 200).count();
        // Five standard deviations of a binomial.
        assert!((79_368..=80_632).contains(&hot), "{hot}");
        assert!(drawn.iter().all(|block| *block < 1000));
        for (hot_share, write_share, part) in
            [(0.0, 0.9, 0..10), (1.0, 0.1, 0..10), (0.5, 1.0, 0..5), (0.5, 0.0, 5..10)]
        {
            let drawn = blocks(Pattern::HotCold { hot_share, write_share }, 10, 0, 1000);
            assert!(drawn.iter().all(|block| part.contains(block)), "{hot_share} {write_share}");
        }
    }
}
