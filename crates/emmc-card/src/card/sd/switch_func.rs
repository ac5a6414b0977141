//! CMD6: functions of an SD card, checked or switched, and the resulting bus mode.
//!
//! Only the first group (access mode) has a choice here; command system, driver strength and current limit have only
//! their default.

use emmc_regs::command::SwitchFunc;
use emmc_regs::command::switch_status::{MAXIMUM_CURRENT, SELECTION, SUPPORT};
use emmc_units::Instant;

use crate::card::{Card, Reply};
use crate::device::Bus;
use crate::profile::BusMode;

/// Bytes of the status that CMD6 answers with.
const STATUS_BYTES: usize = 64;
/// A group that stays unchanged; as a result: the group cannot be switched.
const AS_IT_IS: u8 = 15;
/// The largest current at any function. Assumed: the most of default speed.
const CURRENT_MA: u64 = 200;

/// Functions of the access mode group, by number.
const HIGH_SPEED: u8 = 1;
const SDR50: u8 = 2;
const SDR104: u8 = 3;
const DDR50: u8 = 4;

/// The current selection: the access mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Functions {
    access_mode: u8,
}

/// Supported access modes, one bit each.
fn offered(fastest: BusMode, low_voltage: bool) -> u16 {
    let high = fastest >= BusMode::SdHigh;
    let mut modes = 1 | u16::from(high) << HIGH_SPEED;
    if low_voltage {
        for (mode, number) in [(BusMode::Sdr50, SDR50), (BusMode::Ddr50, DDR50), (BusMode::Sdr104, SDR104)] {
            if fastest >= mode {
                modes |= 1 << number;
            }
        }
    }
    modes
}

/// The resulting functions, one for each group; 15 if a group cannot be switched.
fn result(request: &SwitchFunc, modes: u16, now: Functions) -> [u8; 6] {
    let mut result = [0; 6];
    for (group, (wanted, chosen)) in request.functions.iter().zip(&mut result).enumerate() {
        let (support, current) = if group == 0 { (modes, now.access_mode) } else { (1, 0) };
        *chosen = match *wanted {
            AS_IT_IS => current,
            function if support >> function & 1 == 1 => function,
            _ => AS_IT_IS,
        };
    }
    result
}

/// The status: supported functions, and the selected or resulting ones.
fn status(modes: u16, functions: [u8; 6]) -> [u8; STATUS_BYTES] {
    let mut status = [0; STATUS_BYTES];
    let possible = !functions.contains(&AS_IT_IS);
    MAXIMUM_CURRENT.set(&mut status, if possible { CURRENT_MA } else { 0 });
    for (group, function) in functions.into_iter().enumerate() {
        let support = if group == 0 { modes } else { 1 };
        // Bit 15: the function of a group can be kept.
        SUPPORT[group].set(&mut status, u64::from(support | 1 << 15));
        SELECTION[group].set(&mut status, function.into());
    }
    status
}

impl Card {
    /// CMD6.
    pub(super) fn switch_func(&mut self, request: SwitchFunc, now: Instant) -> Reply {
        let modes = offered(self.device.profile().controller.bus_max, self.sd.low_voltage);
        let functions = result(&request, modes, self.sd.functions);
        let reply = self.send_register(status(modes, functions).to_vec(), now);
        // If one group cannot be switched, all stay unchanged. The new mode takes effect after the status.
        if request.set && !functions.contains(&AS_IT_IS) {
            self.sd.functions = Functions { access_mode: functions[0] };
            self.apply_functions();
        }
        reply
    }

    /// ACMD6: one line or four; the other codes are reserved.
    pub(super) fn set_bus_width(&mut self, code: u8) -> Reply {
        match code {
            0 => self.sd.four_lines = false,
            2 => self.sd.four_lines = true,
            _ => return self.refuse(emmc_regs::r1::R1::ERROR),
        }
        self.apply_functions();
        self.answer()
    }

    /// Applies the selected mode to the device's bus.
    pub(super) fn apply_functions(&mut self) {
        let mode = match (self.sd.four_lines, self.sd.functions.access_mode) {
            (false, HIGH_SPEED) => BusMode::Hs52x1,
            (false, _) => BusMode::Legacy1,
            (true, HIGH_SPEED) => BusMode::SdHigh,
            (true, SDR50) => BusMode::Sdr50,
            (true, SDR104) => BusMode::Sdr104,
            (true, DDR50) => BusMode::Ddr50,
            (true, _) => BusMode::SdDefault,
        };
        let host_hz = self.host_hz();
        *self.device.bus_mut() = Bus::clocked(mode, host_hz);
    }

    /// Whether tuning applies: SDR50 and SDR104.
    pub(in crate::card) fn takes_sd_tuning(&self) -> bool {
        matches!(self.sd.functions.access_mode, SDR50 | SDR104)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(set: bool, access_mode: u8, command_system: u8) -> SwitchFunc {
        SwitchFunc { set, functions: [access_mode, command_system, 15, 15, 15, 15] }
    }

    #[test]
    fn the_voltage_selects_the_offered_functions() {
        assert_eq!(offered(BusMode::SdDefault, true), 0b0_0001);
        assert_eq!(offered(BusMode::SdHigh, true), 0b0_0011);
        assert_eq!(offered(BusMode::Sdr104, false), 0b0_0011);
        assert_eq!(offered(BusMode::Sdr104, true), 0b1_1111);
        assert_eq!(offered(BusMode::Sdr50, true), 0b0_0111);
    }

    #[test]
    fn an_unsupported_function_is_reported_as_15() {
        let now = Functions { access_mode: 1 };
        assert_eq!(result(&request(true, 3, 0), 0b11, now), [15, 0, 0, 0, 0, 0]);
        assert_eq!(result(&request(true, 1, 1), 0b11, now), [1, 15, 0, 0, 0, 0]);
        assert_eq!(result(&request(true, 15, 15), 0b11, now), [1, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn the_status_has_its_fields_in_the_standards_bits() {
        // Linux reads bytes 12..14 for the supported functions (byte 13 bit 1: high speed) and the low nibble of byte
        // 16 for group 1.
        let answer = status(0b11, [1, 0, 0, 0, 0, 0]);
        assert_eq!((answer[13], answer[16] & 0xf), (0b11, 1));
        assert_eq!((&answer[..2], &answer[10..12]), (&[0, 200][..], &[0x80, 0x01][..]));
        let refused = status(0b11, [15, 0, 0, 0, 0, 0]);
        assert_eq!((&refused[..2], refused[16] & 0xf), (&[0, 0][..], 15));
    }
}
