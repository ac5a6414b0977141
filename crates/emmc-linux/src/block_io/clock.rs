//! The clock of a real target: CLOCK_MONOTONIC.

use std::time::Instant as Real;

use emmc_units::Instant;

/// Time since the target was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Real);

impl Default for Clock {
    fn default() -> Self {
        Self(Real::now())
    }
}

impl Clock {
    #[inline]
    pub(crate) fn now(self) -> Instant {
        let time = self.0.elapsed();
        Instant(time.as_secs() * 1_000_000_000 + u64::from(time.subsec_nanos()))
    }
}
