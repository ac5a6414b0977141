//! Orders with state: interleaved streams, and a hot part beside a cold one.

use emmc_units::{Rng, Scramble};

use super::TWO_TO_64;

/// Interleaved streams.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
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
    pub(super) fn new(blocks: u64, streams: u64, spacing: u64, seed: Option<u64>) -> Self {
        let mut made = Self { blocks, streams, spacing, group: 0, stream: 0, index: 0, seed, order: None };
        made.shuffle();
        made
    }

    /// A new random order for the section that begins.
    fn shuffle(&mut self) {
        self.order = self.seed.map(|seed| Scramble::new(self.spacing, seed ^ self.group));
    }

    #[inline]
    pub(super) fn next(&mut self) -> u64 {
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
pub(crate) struct HotCold {
    hot: u64,
    cold: u64,
    /// Share of the requests that go to the hot part, of 2^64.
    threshold: u64,
}

impl HotCold {
    pub(super) fn new(blocks: u64, hot_share: f64, request_share: f64) -> Self {
        let hot = (blocks as f64 * hot_share).round() as u64;
        let cold = blocks - hot.min(blocks);
        let threshold = match (hot, cold) {
            (0, _) => 0,
            (_, 0) => u64::MAX,
            _ => (request_share * TWO_TO_64) as u64,
        };
        Self { hot: blocks - cold, cold, threshold }
    }

    #[inline]
    pub(super) fn next(&mut self, rng: &mut Rng) -> u64 {
        // A threshold of all ones accepts every draw.
        let is_hot = self.threshold == u64::MAX || rng.next_u64() < self.threshold;
        if is_hot { rng.below(self.hot) } else { self.hot + rng.below(self.cold) }
    }
}
