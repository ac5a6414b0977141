//! Background operations: started by the host, or by the card itself while it is idle.
//!
//! The translation layer does the work in bounded steps; a step starts at the end of the previous one, so the state is
//! current at every access of the host. After BKOPS_START the card is in `prg` until the work is done or HPI comes; the
//! current step is completed. Absent on purpose: URGENT_BKOPS (`exception`), the work of a step (`ftl`) and the clock
//! (`advance` gets the time as an argument).
//!
//! Source: JESD84-B51 clauses 6.6.25, 7.4 (BKOPS_EN, BKOPS_START, BKOPS_STATUS, EXCEPTION_EVENTS_STATUS).
//! Assumed: that BKOPS_START without MANUAL_EN is refused, and the idle time before a card starts on its own.

use emmc_regs::ext_csd::{EXT_CSD_BYTES, reg};
use emmc_units::{Instant, Nanos};

use super::partition::Refused;
use crate::device::{Device, StorageError};

/// Idle time before a card starts background work.
pub const IDLE_AFTER: Nanos = Nanos::from_millis(100);
/// What runs in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Work {
    /// Nothing, and nothing is scheduled.
    #[default]
    Rest,
    /// Started by the host: the next step starts then.
    Manual(Instant),
    /// Started by the card while idle.
    Automatic(Instant),
}

/// State of background operations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Background {
    work: Work,
    /// No work was left at the last step; a command may change that.
    exhausted: bool,
}

/// The rule of BKOPS_EN beyond its access classes.
///
/// Errors: a card without background operations, or without automatic ones: AUTO_EN came with 5.1.
pub(crate) fn check_enable(ext_csd: &[u8; EXT_CSD_BYTES], value: u8) -> Result<(), Refused> {
    let is_automatic = value & 2 != 0;
    Refused::unless(is_supported(ext_csd) && (!is_automatic || ext_csd[reg::EXT_CSD_REV] >= 8))
}

/// The rule of BKOPS_START beyond its access class.
///
/// Errors: a card that has no background operations; a start that the host has not announced by MANUAL_EN.
pub(crate) fn check_start(ext_csd: &[u8; EXT_CSD_BYTES]) -> Result<(), Refused> {
    Refused::unless(is_supported(ext_csd) && ext_csd[reg::BKOPS_EN] & 1 == 1)
}

/// Whether an eMMC may start background operations (AUTO_EN).
pub(crate) fn starts_alone(ext_csd: &[u8; EXT_CSD_BYTES]) -> bool {
    ext_csd[reg::BKOPS_EN] & 2 != 0
}

fn is_supported(ext_csd: &[u8; EXT_CSD_BYTES]) -> bool {
    ext_csd[reg::BKOPS_SUPPORT] & 1 == 1
}

impl Background {
    /// BKOPS_START.
    pub(crate) fn start(&mut self, now: Instant) {
        self.work = Work::Manual(now);
    }

    /// Whether work started by BKOPS_START is still running.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.work, Work::Manual(_))
    }

    /// When the next step starts.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self.work {
            Work::Rest => None,
            Work::Manual(at) | Work::Automatic(at) => Some(at),
        }
    }

    /// Performs the steps that have started by `now`; returns when manual work has just ended, if it has.
    ///
    /// Errors: worn out (then all work stops), power lost.
    pub(crate) fn advance(&mut self, device: &mut Device, now: Instant) -> Result<Option<Instant>, StorageError> {
        loop {
            let (at, manual) = match self.work {
                Work::Manual(at) if at <= now => (at, true),
                Work::Automatic(at) if at <= now => (at, false),
                _ => return Ok(None),
            };
            // An error ends it too: a worn-out card has no more work.
            (self.work, self.exhausted) = (Work::Rest, true);
            let step = device.background(at)?;
            self.exhausted = false;
            match step {
                // A step that takes no time would repeat forever at the same instant.
                Some(done) if manual => self.work = Work::Manual(done.max(at + Nanos(1))),
                Some(done) => self.work = Work::Automatic(done.max(at + Nanos(1))),
                None => {
                    self.exhausted = true;
                    return Ok(manual.then_some(at));
                }
            }
        }
    }

    /// HPI: returns the end of the current step, after which all work stops.
    pub(crate) fn interrupt(&mut self, now: Instant) -> Instant {
        match std::mem::take(&mut self.work) {
            Work::Rest => now,
            Work::Manual(at) | Work::Automatic(at) => at.max(now),
        }
    }

    /// A command arrived: the card's own work waits until it is idle again.
    pub(crate) fn command(&mut self) {
        self.exhausted = false;
        if matches!(self.work, Work::Automatic(_)) {
            self.work = Work::Rest;
        }
    }

    /// The card is idle from `now` on, and may start work if it `works_alone`.
    pub(crate) fn idle(&mut self, works_alone: bool, now: Instant) {
        if works_alone && self.work == Work::Rest && !self.exhausted {
            self.work = Work::Automatic(now + IDLE_AFTER);
        }
    }

    /// Reset or power lost.
    pub(crate) fn stop(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(support: u8, enabled: u8, revision: u8) -> [u8; EXT_CSD_BYTES] {
        let mut ext_csd = [0; EXT_CSD_BYTES];
        (ext_csd[reg::BKOPS_SUPPORT], ext_csd[reg::BKOPS_EN], ext_csd[reg::EXT_CSD_REV]) = (support, enabled, revision);
        ext_csd
    }

    #[test]
    fn a_start_needs_support_and_bkops_en() {
        for (ext_csd, allowed) in [
            (register(1, 0, 8), false),
            (register(1, 2, 8), false),
            (register(1, 1, 8), true),
            (register(0, 1, 8), false),
        ] {
            assert_eq!(check_start(&ext_csd).is_ok(), allowed, "{:?}", &ext_csd[reg::BKOPS_EN]);
        }
        for (ext_csd, value, allowed) in [
            (register(1, 0, 8), 3, true),
            (register(1, 0, 7), 2, false),
            (register(1, 0, 7), 1, true),
            (register(0, 0, 8), 1, false),
        ] {
            assert_eq!(check_enable(&ext_csd, value).is_ok(), allowed, "{value}");
        }
    }

    #[test]
    fn only_an_idle_card_with_auto_en_starts_background_work() {
        let now = Instant::START + Nanos::from_secs(1);
        let mut background = Background::default();
        background.idle(starts_alone(&register(1, 1, 8)), now);
        assert_eq!(background.poll_timeout(), None);
        background.idle(starts_alone(&register(1, 2, 8)), now);
        assert_eq!(background.poll_timeout(), Some(now + IDLE_AFTER));
        assert!(!background.is_busy());
        background.command();
        assert_eq!(background.poll_timeout(), None);
        background.start(now);
        background.command();
        assert!(background.is_busy(), "a command does not end what the host began");
        background.idle(starts_alone(&register(1, 2, 8)), now);
        assert_eq!(background.interrupt(now + Nanos(5)), now + Nanos(5));
        assert!(!background.is_busy());
    }
}
