//! A run's cost on this machine: real time, and processor time, which other load affects less.

use std::time::Instant;

/// Ticks of the kernel's process accounting (USER_HZ).
const TICKS_PER_S: f64 = 100.0;

/// Time spent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    /// Real time.
    pub(crate) wall_s: f64,
    /// Processor time of this process and of its finished child processes.
    pub(crate) cpu_s: f64,
}

/// A running clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    begun: Instant,
    cpu_s: f64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { begun: Instant::now(), cpu_s: cpu_s() }
    }

    pub(crate) fn spent(&self) -> Spent {
        Spent { wall_s: self.begun.elapsed().as_secs_f64(), cpu_s: cpu_s() - self.cpu_s }
    }
}

/// User and system time so far, children included (Linux; 0 elsewhere).
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may hold spaces; utime to cstime are the 14th to 17th fields, the 12th to 15th after it.
    let after = stat.rsplit(')').next().unwrap_or_default();
    let fields = after.split_ascii_whitespace().skip(11).take(4);
    fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS_PER_S
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted() {
        let clock = Clock::start();
        let mut sum = 0u64;
        while clock.begun.elapsed().as_millis() < 300 {
            sum = std::hint::black_box(sum.wrapping_mul(31) + 7);
        }
        let spent = clock.spent();
        assert!(spent.wall_s >= 0.3);
        if cfg!(target_os = "linux") {
            assert!((0.01..=spent.wall_s * 64.0).contains(&spent.cpu_s), "{spent:?}");
        }
    }
}
