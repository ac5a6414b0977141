//! HPI: the high priority interrupt that ends a long command early.
//!
//! Which commands can be interrupted, how fast the card reacts, and how much of a write it reports as programmed. The
//! flash already has its work: operations that the card no longer waits for continue, and CORRECTLY_PRG_SECTORS_NUM
//! counts sectors that were certainly done. More may be: the host writes the rest again.
//!
//! Source: JESD84-B51 clauses 6.6.23, 7.4 (HPI_MGMT, HPI_FEATURES, OUT_OF_INTERRUPT_TIME, CORRECTLY_PRG_SECTORS_NUM).
//! Assumed: that a card reacts in a tenth of its specified maximum.

use emmc_regs::command::Command;
use emmc_regs::ext_csd::{EXT_CSD_BYTES, reg};
use emmc_units::{Instant, Nanos};

use super::partition::Refused;

/// The operation of a card in `prg`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Busy {
    /// A write: its size and start.
    Write {
        /// Sectors.
        sectors: u32,
        /// When the first of them had arrived.
        from: Instant,
    },
    /// A packed write: it can be interrupted, and all of it must be written again.
    PackedWrite,
    /// Erase, trim or discard; not the secure ones.
    Erase,
    /// A cache flush, or the flush with which the cache is switched off.
    Flush,
    /// Background operations that the host started.
    Background,
    /// Sanitize.
    Sanitize,
    /// POWER_OFF_NOTIFICATION with POWER_OFF_LONG or SLEEP_NOTIFICATION.
    PowerOff,
    /// Any other operation: it cannot be interrupted.
    #[default]
    Other,
}

/// Result of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupted {
    /// When the card is no longer busy.
    pub(crate) until: Instant,
    /// For CORRECTLY_PRG_SECTORS_NUM, if a write was interrupted.
    pub(crate) programmed: Option<u32>,
}

/// Whether a command is an interrupt for this card: HPI is enabled, and it is the card's choice of CMD12 and CMD13.
pub(crate) fn is_interrupt(ext_csd: &[u8; EXT_CSD_BYTES], command: &Command) -> bool {
    let by_cmd12 = ext_csd[reg::HPI_FEATURES] & 2 != 0;
    let asked = match command {
        Command::StopTransmission { hpi, .. } => *hpi && by_cmd12,
        Command::SendStatus { hpi, .. } => *hpi && !by_cmd12,
        _ => false,
    };
    asked && ext_csd[reg::HPI_FEATURES] & 1 == 1 && ext_csd[reg::HPI_MGMT] & 1 == 1
}

/// The rule of HPI_MGMT beyond its access class: a card without HPI does not switch it on.
///
/// Errors: it does not.
pub(crate) fn check(ext_csd: &[u8; EXT_CSD_BYTES], value: u8) -> Result<(), Refused> {
    if value & 1 == 0 || ext_csd[reg::HPI_FEATURES] & 1 == 1 { Ok(()) } else { Err(Refused) }
}

/// Interrupts at `now` an operation that would have ended at `end`.
pub(crate) fn interrupt(ext_csd: &[u8; EXT_CSD_BYTES], busy: Busy, end: Instant, now: Instant) -> Interrupted {
    if busy == Busy::Other || end <= now {
        return Interrupted { until: end.max(now), programmed: None };
    }
    let allowed = Nanos::from_millis(u64::from(ext_csd[reg::OUT_OF_INTERRUPT_TIME].max(1)) * 10);
    let until = end.min(now + Nanos(allowed.0 / 10));
    let programmed = match busy {
        Busy::Write { sectors, from } => Some(share(sectors, now.since(from), end.since(from))),
        Busy::PackedWrite => Some(0),
        _ => None,
    };
    Interrupted { until, programmed }
}

/// Whole sectors of `sectors` after `passed` of `all`.
fn share(sectors: u32, passed: Nanos, all: Nanos) -> u32 {
    let part = u128::from(sectors) * u128::from(passed.0) / u128::from(all.0.max(1));
    u32::try_from(part).unwrap_or(sectors).min(sectors)
}

/// Puts the count of sectors into the register.
pub(crate) fn set_correctly_programmed(ext_csd: &mut [u8; EXT_CSD_BYTES], sectors: u32) {
    ext_csd[reg::CORRECTLY_PRG_SECTORS_NUM.range()].copy_from_slice(&sectors.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::START + Nanos::from_micros(micros)
    }

    fn register(features: u8, management: u8) -> [u8; EXT_CSD_BYTES] {
        let mut ext_csd = [0; EXT_CSD_BYTES];
        (ext_csd[reg::HPI_FEATURES], ext_csd[reg::HPI_MGMT], ext_csd[reg::OUT_OF_INTERRUPT_TIME]) =
            (features, management, 1);
        ext_csd
    }

    #[test]
    fn the_card_states_its_interrupt_command() {
        let stop = Command::StopTransmission { rca: 1, hpi: true };
        let status = Command::SendStatus { rca: 1, sqs: false, hpi: true };
        let plain = Command::SendStatus { rca: 1, sqs: false, hpi: false };
        for (features, management, by_stop, by_status) in
            [(1, 1, false, true), (3, 1, true, false), (1, 0, false, false), (0, 1, false, false), (2, 1, false, false)]
        {
            let ext_csd = register(features, management);
            assert_eq!(is_interrupt(&ext_csd, &stop), by_stop, "{features} {management}");
            assert_eq!(is_interrupt(&ext_csd, &status), by_status, "{features} {management}");
            assert!(!is_interrupt(&ext_csd, &plain));
        }
        assert_eq!((check(&register(0, 0), 1), check(&register(0, 0), 0)), (Err(Refused), Ok(())));
        assert_eq!(check(&register(1, 0), 1), Ok(()));
    }

    #[test]
    fn an_interrupted_write_reports_completed_sectors() {
        let ext_csd = register(1, 1);
        let busy = Busy::Write { sectors: 8, from: at(1000) };
        let interrupted = |now| interrupt(&ext_csd, busy, at(9000), at(now));
        assert_eq!(interrupted(1000), Interrupted { until: at(2000), programmed: Some(0) });
        assert_eq!(interrupted(5500), Interrupted { until: at(6500), programmed: Some(4) });
        assert_eq!(interrupted(8999), Interrupted { until: at(9000), programmed: Some(7) });
        assert_eq!(interrupted(9000), Interrupted { until: at(9000), programmed: None }, "it had ended");
        let packed = interrupt(&ext_csd, Busy::PackedWrite, at(9000), at(100));
        assert_eq!(packed.programmed, Some(0));
    }

    #[test]
    fn uninterruptible_work_completes() {
        let ext_csd = register(1, 1);
        for (busy, until) in [
            (Busy::Other, 90_000),
            (Busy::Erase, 1100),
            (Busy::Flush, 1100),
            (Busy::Background, 1100),
            (Busy::Sanitize, 1100),
            (Busy::PowerOff, 1100),
        ] {
            let interrupted = interrupt(&ext_csd, busy, at(90_000), at(100));
            assert_eq!(interrupted, Interrupted { until: at(until), programmed: None }, "{busy:?}");
        }
        let mut ext_csd = register(1, 1);
        set_correctly_programmed(&mut ext_csd, 0x0102_0304);
        assert_eq!(ext_csd[reg::CORRECTLY_PRG_SECTORS_NUM.range()], [4, 3, 2, 1]);
    }
}
