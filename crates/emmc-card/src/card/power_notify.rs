//! Power-off notification: the host's promise to announce a power-off.
//!
//! POWERED_ON makes the promise; POWER_OFF_SHORT and POWER_OFF_LONG keep it, SLEEP_NOTIFICATION announces CMD5. The
//! card uses the time to flush its cache. A power loss without notice costs only the content of the volatile cache.
//! Absent on purpose: that loss itself (`device::Device::power_off`) and its effect on flash (`nand`).
//!
//! Source: JESD84-B51 clauses 6.6.30, 7.4 (POWER_OFF_NOTIFICATION).
//! Assumed: that the promise cannot be withdrawn (a host writes 0 only while it never promised).

use emmc_regs::ext_csd::{EXT_CSD_BYTES, reg};
use emmc_units::Instant;

use super::partition::Refused;
use crate::device::{Device, StorageError};

const NONE: u8 = 0;
const POWERED_ON: u8 = 1;
const POWER_OFF_SHORT: u8 = 2;
const POWER_OFF_LONG: u8 = 3;
const SLEEP: u8 = 4;

/// Power cycles, and how many of them were unannounced after a promise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PowerLog {
    /// Power-ups.
    pub(crate) cycles: u32,
    /// Unannounced power losses after POWERED_ON.
    pub(crate) unannounced: u32,
}

impl PowerLog {
    /// Power was lost; `ext_csd` is its content before.
    pub(crate) fn power_off(&mut self, ext_csd: &[u8; EXT_CSD_BYTES]) {
        if matches!(ext_csd[reg::POWER_OFF_NOTIFICATION], POWERED_ON | SLEEP) {
            self.unannounced = self.unannounced.saturating_add(1);
        }
    }

    /// Power is on.
    pub(crate) fn power_on(&mut self) {
        self.cycles = self.cycles.saturating_add(1);
    }
}

/// The rule of POWER_OFF_NOTIFICATION beyond its access class: the promise comes first.
///
/// Errors: a reserved value, a notification without the promise, a withdrawn promise.
pub(crate) fn check(ext_csd: &[u8; EXT_CSD_BYTES], value: u8) -> Result<(), Refused> {
    let now = ext_csd[reg::POWER_OFF_NOTIFICATION];
    // SLEEP_NOTIFICATION came with 5.0.
    let known = value <= POWER_OFF_LONG || value == SLEEP && ext_csd[reg::EXT_CSD_REV] >= 7;
    let follows = match (now, value) {
        (NONE, NONE | POWERED_ON) => true,
        (_, NONE) | (NONE, _) => false,
        _ => true,
    };
    if known && follows { Ok(()) } else { Err(Refused) }
}

/// Whether HPI can interrupt the operation of this value.
pub(crate) fn is_interruptible(value: u8) -> bool {
    matches!(value, POWER_OFF_LONG | SLEEP)
}

/// Performs a notification that the rules allow; returns when power may be switched off.
///
/// Errors: worn out, power lost.
pub(crate) fn carry_out(device: &mut Device, value: u8, now: Instant) -> Result<Instant, StorageError> {
    match value {
        POWER_OFF_SHORT | POWER_OFF_LONG | SLEEP => Ok(device.flush(now)?.done),
        _ => Ok(now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(value: u8) -> [u8; EXT_CSD_BYTES] {
        let mut ext_csd = [0; EXT_CSD_BYTES];
        (ext_csd[reg::POWER_OFF_NOTIFICATION], ext_csd[reg::EXT_CSD_REV]) = (value, 8);
        ext_csd
    }

    #[test]
    fn notification_needs_powered_on_first() {
        for (now, value, allowed) in [
            (0, 0, true),
            (0, 1, true),
            (0, 2, false),
            (0, 3, false),
            (0, 4, false),
            (1, 2, true),
            (1, 3, true),
            (1, 4, true),
            (4, 1, true),
            (2, 1, true),
            (1, 0, false),
            (1, 5, false),
        ] {
            assert_eq!(check(&register(now), value).is_ok(), allowed, "{now} -> {value}");
        }
        let mut old = register(1);
        old[192] = 6;
        assert_eq!(check(&old, 4), Err(Refused));
    }

    #[test]
    fn a_power_loss_without_notification_is_counted() {
        let mut log = PowerLog::default();
        for value in [0, 1, 2, 3, 4] {
            log.power_off(&register(value));
            log.power_on();
        }
        assert_eq!(log, PowerLog { cycles: 5, unannounced: 2 });
    }
}
