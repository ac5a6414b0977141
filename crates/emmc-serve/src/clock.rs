//! The card's time, derived from the host machine's clock. No other module here reads a clock.

use std::time::{Duration, Instant as Wall};

use emmc_units::{Instant, Nanos};

/// The card's clock while it is served.
///
/// It follows the host machine's clock, or it is driven: then it shows what the front last set, and nothing else moves
/// it. With a dilation of K, the card's clock runs K times slower than the host machine's clock: one millisecond of the
/// card is K milliseconds for its client. Reported times are the card's. Without delays no client waits: at the end of
/// an operation the card's time jumps to that instant.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// What it showed at `Pace::Wall::began`; the present, if it is driven.
    offset: Instant,
    pace: Pace,
}

/// What moves a clock.
#[derive(Clone, Copy, Debug)]
enum Pace {
    /// The host machine's clock.
    Wall { began: Wall, dilation: u32, delays: bool },
    /// The front.
    Driven,
}

impl Clock {
    /// A clock that shows `offset` now and runs `dilation` times slower than the host machine's clock.
    pub fn new(offset: Instant, dilation: u32) -> Self {
        Self { offset, pace: Pace::Wall { began: Wall::now(), dilation: dilation.max(1), delays: true } }
    }

    /// A clock that shows `offset` until its front advances it.
    pub fn driven(offset: Instant) -> Self {
        Self { offset, pace: Pace::Driven }
    }

    /// The same clock, with no waiting.
    pub fn without_delays(mut self) -> Self {
        self.set_delays(false);
        self
    }

    /// Whether only the front moves it.
    pub fn is_driven(&self) -> bool {
        matches!(self.pace, Pace::Driven)
    }

    /// The card's time now.
    pub fn now(&self) -> Instant {
        let Pace::Wall { began, dilation, .. } = self.pace else { return self.offset };
        let wall = began.elapsed().as_nanos() / u128::from(dilation);
        self.offset + Nanos(u64::try_from(wall).unwrap_or(u64::MAX))
    }

    /// The host machine's time at which the card's clock shows `at`. `None`: nobody waits, because the clock is driven
    /// or clients get their replies at once.
    pub fn wall(&self, at: Instant) -> Option<Wall> {
        let Pace::Wall { began, dilation, delays: true } = self.pace else { return None };
        let nanos = at.since(self.offset).0.saturating_mul(u64::from(dilation));
        Some(began + Duration::from_nanos(nanos))
    }

    /// How many times slower than the host machine's clock it runs; absent if it is driven.
    pub fn dilation(&self) -> Option<u32> {
        match self.pace {
            Pace::Wall { dilation, .. } => Some(dilation),
            Pace::Driven => None,
        }
    }

    /// Whether clients wait until the card is done.
    pub fn has_delays(&self) -> bool {
        matches!(self.pace, Pace::Wall { delays: true, .. })
    }

    /// Sets the dilation: from now on the clock runs `dilation` times slower than the host machine's clock. A driven
    /// clock has none, and stays as it is.
    pub fn set_dilation(&mut self, times: u32) {
        let now = self.now();
        if let Pace::Wall { began, dilation, .. } = &mut self.pace {
            (*began, *dilation, self.offset) = (Wall::now(), times.max(1), now);
        }
    }

    /// Sets whether clients wait; nobody waits for a driven clock.
    pub fn set_delays(&mut self, wait: bool) {
        if let Pace::Wall { delays, .. } = &mut self.pace {
            *delays = wait;
        }
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
                clock.wall(at).unwrap().duration_since(clock.wall(Instant(5_000)).unwrap()),
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
        assert!(clock.now() >= far && clock.dilation() == Some(7));
    }

    #[test]
    fn only_its_front_moves_a_driven_clock() {
        let mut clock = Clock::driven(Instant(5_000));
        // The host machine's clock moves on.
        let began = Wall::now();
        while Wall::now() == began {}
        assert_eq!(clock.now(), Instant(5_000));
        clock.jump_to(Instant(6_000));
        clock.jump_to(Instant(5_500));
        clock.set_dilation(3);
        clock.set_delays(true);
        assert_eq!((clock.now(), clock.dilation(), clock.has_delays()), (Instant(6_000), None, false));
        assert_eq!(clock.wall(Instant(7_000)), None);
    }
}
