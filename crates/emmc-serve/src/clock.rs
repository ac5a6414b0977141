//! The card's time from the machine's: the only place here that reads a clock.

use std::time::{Duration, Instant as Wall};

use emmc_units::{Instant, Nanos};

/// Real time since serving began, slowed down for the card.
///
/// With a dilation of K the card's clock runs K times slower than the machine's: what takes the card a millisecond takes
/// its client K milliseconds, and everything reported is in the card's time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Wall,
    offset: Instant,
    dilation: u32,
}

impl Clock {
    /// A clock that shows `offset` now and runs `dilation` times slower than the machine's.
    pub fn new(offset: Instant, dilation: u32) -> Self {
        Self { began: Wall::now(), offset, dilation: dilation.max(1) }
    }

    /// The card's time now.
    pub fn now(&self) -> Instant {
        let wall = self.began.elapsed().as_nanos() / u128::from(self.dilation);
        self.offset + Nanos(u64::try_from(wall).unwrap_or(u64::MAX))
    }

    /// When the machine's clock gets where the card's shows `at`.
    pub fn wall(&self, at: Instant) -> Wall {
        let nanos = at.since(self.offset).0.saturating_mul(u64::from(self.dilation));
        self.began + Duration::from_nanos(nanos)
    }

    /// How many times slower than the machine's.
    pub fn dilation(&self) -> u32 {
        self.dilation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_agree() {
        for dilation in [1, 10] {
            let clock = Clock::new(Instant(5_000), dilation);
            let at = Instant(5_000 + 1_000_000);
            assert_eq!(
                clock.wall(at).duration_since(clock.wall(Instant(5_000))),
                Duration::from_millis(dilation.into())
            );
            assert!(clock.now() >= Instant(5_000));
        }
    }
}
