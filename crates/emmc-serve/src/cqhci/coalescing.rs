//! Interrupt coalescing: completions of tasks that request no interrupt are reported in batches, by count or by time.
//!
//! Source: eMMC Command Queuing Host Controller Interface 5.1, CQIC.

use emmc_units::{Instant, Nanos};

const ENABLE: u32 = 1 << 31;
/// At least one completion has been counted.
const STATUS: u32 = 1 << 20;
const RESET: u32 = 1 << 16;
const THRESHOLD_WRITE: u32 = 1 << 15;
const TIMEOUT_WRITE: u32 = 1 << 7;
/// 1024 clocks of the timer's 200 MHz, as CAPABILITIES says.
const TIMEOUT_UNIT: Nanos = Nanos(5_120);

/// Completions that are not reported yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Coalescing {
    enabled: bool,
    /// Tasks per interrupt; 0: never by count.
    threshold: u32,
    /// In units; 0: never by time.
    timeout: u32,
    counted: u32,
    since: Option<Instant>,
}

impl Coalescing {
    /// The register was written.
    pub(super) fn configure(&mut self, value: u32) {
        self.enabled = value & ENABLE != 0;
        if value & THRESHOLD_WRITE != 0 {
            self.threshold = value >> 8 & 0x1f;
        }
        if value & TIMEOUT_WRITE != 0 {
            self.timeout = value & 0x7f;
        }
        if value & RESET != 0 || !self.enabled {
            self.told();
        }
    }

    /// The register, as it reads.
    pub(super) fn register(&self) -> u32 {
        let flag = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
        flag(self.enabled, ENABLE) | flag(self.counted > 0, STATUS) | self.threshold << 8 | self.timeout
    }

    /// Counts a task that requested no interrupt; returns whether an interrupt is due now.
    pub(super) fn count(&mut self, at: Instant) -> bool {
        if !self.enabled {
            return false;
        }
        self.counted += 1;
        self.since = self.since.or(Some(at));
        self.threshold > 0 && self.counted >= self.threshold
    }

    /// When an interrupt is due by time.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let since = self.since.filter(|_| self.timeout > 0)?;
        Some(since + TIMEOUT_UNIT * u64::from(self.timeout))
    }

    /// All completions have been reported to software.
    pub(super) fn told(&mut self) {
        (self.counted, self.since) = (0, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_coalesced_by_count_and_time() {
        let mut coalescing = Coalescing::default();
        assert!(!coalescing.count(Instant(5)), "switched off");
        coalescing.configure(ENABLE | THRESHOLD_WRITE | 3 << 8 | TIMEOUT_WRITE | 2);
        assert_eq!(coalescing.register(), ENABLE | 3 << 8 | 2);
        assert!(!coalescing.count(Instant(100)) && !coalescing.count(Instant(200)));
        assert_eq!(coalescing.deadline(), Some(Instant(100 + 2 * 5_120)));
        assert!(coalescing.count(Instant(300)));
        assert_eq!(coalescing.register() & STATUS, STATUS);
        coalescing.configure(ENABLE | RESET);
        assert_eq!((coalescing.register(), coalescing.deadline()), (ENABLE | 3 << 8 | 2, None));
    }
}
