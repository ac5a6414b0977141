//! The card's time from the machine's: the only place here that reads a clock.

use std::time::{Duration, Instant as Wall};

use emmc_units::{Instant, Nanos};

/// Real time since serving began, slowed down for the card.
///
/// With a dilation of K the card's clock runs K times slower than the machine's: what takes the card a millisecond
/// takes its client K milliseconds, and everything reported is in the card's time. Without delays nobody waits: when
/// the card is done with something, its time jumps there.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Wall,
    offset: Instant,
    dilation: u32,
    delays: bool,
}

impl Clock {
    /// A clock that shows `offset` now and runs `dilation` times slower than the machine's.
    pub fn new(offset: Instant, dilation: u32) -> Self {
        Self { began: Wall::now(), offset, dilation: dilation.max(1), delays: true }
    }

    /// The same clock, on which nobody waits.
    pub fn without_delays(mut self) -> Self {
        self.delays = false;
        self
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

    /// Whether clients wait until the card is done.
    pub fn has_delays(&self) -> bool {
        self.delays
    }

    /// From now on it runs `dilation` times slower than the machine's.
    pub fn set_dilation(&mut self, dilation: u32) {
        let now = self.now();
        (self.began, self.offset, self.dilation) = (Wall::now(), now, dilation.max(1));
    }

    /// From now on clients wait or not.
    pub fn set_delays(&mut self, delays: bool) {
        self.delays = delays;
    }

    /// The card's time goes on to `at`, if it is not there yet.
    pub fn jump_to(&mut self, at: Instant) {
        let now = self.now();
        if at > now {
            self.offset = self.offset + at.since(now);
        }
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

    #[test]
    fn time_jumps_forward_only_and_goes_on_when_the_speed_changes() {
        let mut clock = Clock::new(Instant(0), 1000);
        let far = Instant(3_600_000_000_000);
        clock.jump_to(far);
        assert!(clock.now() >= far);
        clock.jump_to(Instant(1));
        assert!(clock.now() >= far);
        clock.set_dilation(7);
        assert!(clock.now() >= far && clock.dilation() == 7);
    }
}
