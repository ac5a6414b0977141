//! CMD6: a byte of EXT_CSD changes, and with it the behaviour of the card.
//!
//! The checks, in this sequence: the byte must be writable and its class allow it (`access`), the value must be
//! assigned, and the byte's own rule must hold. After a refusal nothing has changed, and the next status has
//! SWITCH_ERROR.

use emmc_regs::command::{Switch, SwitchAccess};
use emmc_regs::ext_csd::{EXT_CSD_BYTES, field_at, reg};
use emmc_regs::r1::R1;
use emmc_units::Instant;

use super::access::{AccessRules, writable};
use super::partition::Refused;
use super::switch_rows::{PLAIN, Write, row_of};
use super::{Card, Reply};
use crate::profile::RegisterImage;

/// A write that the card does not make: it answers SWITCH_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SwitchError;

impl From<Refused> for SwitchError {
    fn from(_: Refused) -> Self {
        Self
    }
}

impl Card {
    /// CMD6.
    pub(super) fn switch(&mut self, switch: Switch, now: Instant) -> Reply {
        let r1 = self.r1();
        let from = now + self.device.bus().command();
        let result = match switch.access {
            // Command set 0 is the standard one; parts have no other.
            SwitchAccess::CommandSet if switch.cmd_set == 0 => Ok(from + PLAIN),
            SwitchAccess::CommandSet => Err(SwitchError),
            _ => self.write_ext_csd(switch, from),
        };
        let done = result.unwrap_or_else(|SwitchError| {
            self.status.raise(R1::SWITCH_ERROR);
            from
        });
        if !matches!(self.phase, super::Phase::Off) {
            self.program_until(done);
        }
        Self::answer_busy(r1, done)
    }

    /// Writes a byte. Returns the time of its effect.
    ///
    /// Errors: any rule broken; nothing has changed.
    fn write_ext_csd(&mut self, switch: Switch, now: Instant) -> Result<Instant, SwitchError> {
        let index = switch.index;
        let (rev, old) = (self.ext_csd_byte(reg::EXT_CSD_REV), self.kept()[usize::from(index)]);
        let new = switch.apply(old).ok_or(SwitchError)?;
        writable(index, rev).ok_or(SwitchError)?;
        self.rules.check(index, old, new, rev).map_err(|_| SwitchError)?;
        if !is_meaningful(index, new) {
            return Err(SwitchError);
        }
        let (row, write) = (row_of(index), Write { index, old, new });
        if let Some(row) = row {
            (row.check)(self, write)?;
        }
        self.store(index, old, new);
        let effect = row.map_or(Ok(now + PLAIN), |row| (row.effect)(self, write, now));
        Ok(self.done_or_failed(effect, now))
    }

    /// Keeps a byte that passed all rules.
    pub(super) fn store(&mut self, index: u8, old: u8, new: u8) {
        self.rules.note(index, old, new);
        self.ext_csd()[usize::from(index)] = AccessRules::readable(index, new);
    }

    /// CMD8.
    pub(super) fn send_ext_csd(&mut self, now: Instant) -> Reply {
        let r1 = self.r1();
        let register = self.registers().ext_csd;
        let data = self.start_sending(register.to_vec(), EXT_CSD_BYTES, now);
        Self::answer_with(r1, data)
    }

    /// The registers as a host would read them now.
    pub fn registers(&self) -> RegisterImage {
        let mut image = self.device.registers();
        if self.is_emmc() {
            image.ext_csd[reg::EXCEPTION_EVENTS_STATUS] = self.exception_events();
        }
        image
    }
}

/// Whether a value is one of those that the field table names, where it names all; they are those of the lowest bits.
fn is_meaningful(index: u8, value: u8) -> bool {
    let Some(field) = field_at(index.into()) else { return false };
    let lowest = field.bits_of_byte(u16::from(index) - field.offset).map(|(mask, _)| mask).min().unwrap_or(0xff);
    let code = (value & lowest) >> lowest.trailing_zeros();
    field.values.is_empty() || field.values.iter().any(|(known, _)| *known == u64::from(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unassigned_values_have_no_effect() {
        for (index, value, meaningful) in [
            (162, 2, true),
            (162, 3, false),
            (34, 4, true),
            (34, 5, false),
            (59, 2, false),
            (30, 16, true),
            (30, 2, false),
            (33, 1, true),
        ] {
            assert_eq!(is_meaningful(index, value), meaningful, "{index} = {value}");
        }
    }
}
