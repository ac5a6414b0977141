//! CMD6: a byte of EXT_CSD changes, and with it what the card does.
//!
//! In order: the byte must be writable and its class allow it (`access`), the value must mean something, then the
//! byte's own rule applies. Whatever refuses, nothing has changed and SWITCH_ERROR is told with the next status.

use emmc_regs::command::{Switch, SwitchAccess};
use emmc_regs::ext_csd::{EXT_CSD_BYTES, field_at};
use emmc_regs::r1::R1;
use emmc_units::{Instant, Nanos};

use super::access::{AccessRules, writable};
use super::{Card, Reply, accessed, boot, queue};
use crate::profile::RegisterImage;

/// What a switch takes that only changes a register.
///
/// Assumed: traces of parts show tens of microseconds; GENERIC_CMD6_TIME bounds it.
const PLAIN: Nanos = Nanos::from_micros(50);
/// What a change of the accessed area takes.
///
/// Assumed: some hundred microseconds; PARTITION_SWITCH_TIME bounds it.
const AREA_SWITCH: Nanos = Nanos::from_micros(200);

/// A write that the card does not make: it answers SWITCH_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SwitchError;

const HS_TIMING: u8 = 185;
const BUS_WIDTH: u8 = 183;
const PARTITION_CONFIG: u8 = 179;
const POWER_CLASS: u8 = 187;
const EXT_CSD_REV: usize = 192;
const USE_NATIVE_SECTOR: u8 = 62;
const NATIVE_SECTOR_SIZE: usize = 63;
const SEC_FEATURE_SUPPORT: usize = 231;
const SEC_BAD_BLK_MGMNT: u8 = 134;

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

    /// A byte is written. Answers when its effect is there.
    ///
    /// Errors: any rule broken; nothing has changed.
    fn write_ext_csd(&mut self, switch: Switch, now: Instant) -> Result<Instant, SwitchError> {
        let index = switch.index;
        let (rev, old) = (self.ext_csd_byte(EXT_CSD_REV), self.ext_csd_byte(index.into()));
        let new = switch.apply(old).ok_or(SwitchError)?;
        writable(index, rev).ok_or(SwitchError)?;
        if let Some(done) = self.feature_switch(index, old, new, now)? {
            return Ok(done);
        }
        self.rules.check(index, old, new, rev).map_err(|_| SwitchError)?;
        if !is_meaningful(index, new) {
            return Err(SwitchError);
        }
        let done = self.take_effect(index, old, new, now)?;
        self.store(index, old, new);
        Ok(done)
    }

    /// Keeps a byte that passed all rules.
    pub(super) fn store(&mut self, index: u8, old: u8, new: u8) {
        self.rules.note(index, old, new);
        self.ext_csd()[usize::from(index)] = AccessRules::readable(index, new);
    }

    /// What a byte does besides being kept.
    ///
    /// Errors: the value does not suit the part or the moment.
    fn take_effect(&mut self, index: u8, old: u8, new: u8, now: Instant) -> Result<Instant, SwitchError> {
        match index {
            HS_TIMING => {
                let abilities = self.abilities();
                self.interface = self.interface.with_timing(new, abilities).ok_or(SwitchError)?;
                self.apply_interface();
            }
            BUS_WIDTH => {
                let abilities = self.abilities();
                self.interface = self.interface.with_width(new, abilities).ok_or(SwitchError)?;
                self.apply_interface();
            }
            PARTITION_CONFIG => return self.switch_partition(old, new, now),
            POWER_CLASS if new > 0x0f => return Err(SwitchError),
            USE_NATIVE_SECTOR if new == 1 && self.ext_csd_byte(NATIVE_SECTOR_SIZE) != 1 => return Err(SwitchError),
            SEC_BAD_BLK_MGMNT if self.ext_csd_byte(SEC_FEATURE_SUPPORT) & 4 == 0 => return Err(SwitchError),
            _ => {}
        }
        Ok(now + PLAIN)
    }

    /// PARTITION_CONFIG: the accessed area must exist; the boot configuration may be protected.
    fn switch_partition(&mut self, old: u8, new: u8, now: Instant) -> Result<Instant, SwitchError> {
        boot::check_partition_config(&self.device.stored_registers().ext_csd, new)?;
        let queue_allows =
            queue::check_mode(&self.device.stored_registers().ext_csd, self.is_queueing(), Some(new)).is_ok();
        if self.device.sectors(accessed(new)) == 0 || !queue_allows {
            return Err(SwitchError);
        }
        Ok(now + if (old ^ new) & 7 != 0 { AREA_SWITCH } else { PLAIN })
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
            image.ext_csd[54] = self.exception_events();
        }
        image
    }
}

/// Whether a value is one of those that the field table names, where it names all.
pub(super) fn is_meaningful(index: u8, value: u8) -> bool {
    let Some(field) = field_at(index.into()) else { return false };
    let named = |known: &(u64, &str)| known.0 == u64::from(value);
    // Named values of these cover only some of their bits.
    let partly = matches!(index, HS_TIMING | BUS_WIDTH | 52 | 53);
    field.values.is_empty() || partly || field.values.iter().any(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_the_table_does_not_name_mean_nothing() {
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
