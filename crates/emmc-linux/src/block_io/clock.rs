//! The clock of a real target: CLOCK_MONOTONIC.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Real};

use emmc_units::{Instant, Nanos};
use rustix::time::{ClockId, clock_gettime};

/// How long an idle target sleeps between two checks of the stop flag.
const NAP: Duration = Duration::from_millis(100);

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

    /// The processor time of this process so far: all its threads, and its calls of the kernel.
    pub(crate) fn processor() -> Nanos {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    /// Waits; ends early after a stop request.
    pub(crate) fn idle(self, time: Nanos, stop: &AtomicBool) {
        let until = self.now() + time;
        loop {
            let left = until.since(self.now());
            if left == Nanos::ZERO || stop.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(NAP.min(Duration::from_nanos(left.0)));
        }
    }
}
