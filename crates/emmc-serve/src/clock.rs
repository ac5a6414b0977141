//! The card's time, derived from the host machine's clock. No other module here reads a clock.

use std::time::{Duration, Instant as Wall};

use emmc_units::{Instant, Nanos};

/// The card's clock while it is served.
///
/// With a dilation of K, the card's clock runs K times slower than the host machine's clock: one millisecond of the
/// card is K milliseconds for its client. Reported times are the card's. Without delays no client waits: at the end of
/// an operation the card's time jumps to that instant.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Wall,
    offset: Instant,
    dilation: u32,
    delays: bool,
}

impl Clock {
    /// A clock that shows `offset` now and runs `dilation` times slower than the host machine's clock.
    pub fn new(offset: Instant, dilation: u32) -> Self {
        Self { began: Wall::now(), offset, dilation: dilation.max(1), delays: true }
    }

    /// The same clock, with no waiting.
    pub fn without_delays(mut self) -> Self {
        self.delays = false;
        self
    }

    /// The card's time now.
    pub fn now(&self) -> Instant {
        let wall = self.began.elapsed().as_nanos() / u128::from(self.dilation);
        self.offset + Nanos(u64::try_from(wall).unwrap_or(u64::MAX))
    }

    /// The host machine's time at which the card's clock shows `at`.
    pub fn wall(&self, at: Instant) -> Wall {
        let nanos = at.since(self.offset).0.saturating_mul(u64::from(self.dilation));
        self.began + Duration::from_nanos(nanos)
    }

    /// How many times slower than the host machine's clock it runs.
    pub fn dilation(&self) -> u32 {
        self.dilation
    }

    /// Whether clients wait until the card is done.
    pub fn has_delays(&self) -> bool {
        self.delays
    }

    /// Sets the dilation: from now on the clock runs `dilation` times slower than the host machine's clock.
    pub fn set_dilation(&mut self, dilation: u32) {
        let now = self.now();
        (self.began, self.offset, self.dilation) = (Wall::now(), now, dilation.max(1));
    }

    /// Sets whether clients wait.
    pub fn set_delays(&mut self, delays: bool) {
        self.delays = delays;
    }

    /// Advances the card's time to `at`, unless it is later.
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
    fn conversions_in_both_directions_agree() {
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
    fn time_moves_forward_only_and_continues_when_the_speed_changes() {
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
