//! How the bus runs: HS_TIMING and BUS_WIDTH in their legal combinations, tuning, bus test, block length.

use emmc_regs::csd::mmc;
use emmc_regs::ext_csd::reg;
use emmc_regs::r1::{R1, State};
use emmc_units::Instant;

use super::transfer::{Collecting, Purpose};
use super::{Card, Reply};
use crate::device::Bus;
use crate::profile::BusMode;

/// TIMING_INTERFACE of HS_TIMING.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Timing {
    #[default]
    Legacy,
    HighSpeed,
    Hs200,
    Hs400,
}

/// The host's selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    timing: Timing,
    lines: u8,
    ddr: bool,
    strobe: bool,
}

impl Default for Interface {
    fn default() -> Self {
        Self { timing: Timing::Legacy, lines: 1, ddr: false, strobe: false }
    }
}

/// The part's capabilities, from the registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// DEVICE_TYPE.
    pub(crate) device_type: u8,
    /// DRIVER_STRENGTH; type 0 is always there.
    pub(crate) driver_strength: u8,
    /// STROBE_SUPPORT.
    pub(crate) strobe: bool,
}

impl Interface {
    /// The boot mode: high speed or not, the number of lines, on both edges or not.
    pub(crate) fn of_boot((high_speed, lines, ddr): (bool, u8, bool)) -> Self {
        let timing = if high_speed { Timing::HighSpeed } else { Timing::Legacy };
        Self { timing, lines, ddr, strobe: false }
    }

    /// Whether data uses both edges.
    pub(crate) fn is_ddr(&self) -> bool {
        self.ddr
    }

    /// CMD21 is for HS200 on four or eight lines.
    pub(crate) fn takes_tuning(&self) -> bool {
        self.timing == Timing::Hs200 && self.lines >= 4
    }

    /// HS_TIMING is written; absent: the part cannot, or not from the present mode.
    ///
    /// Source: JESD84-B51, bus mode selection: HS200 needs four or eight lines at single rate; HS400 is entered from
    /// high speed with eight lines at double rate.
    pub(crate) fn with_timing(self, value: u8, abilities: Abilities) -> Option<Self> {
        let (driver, wide) = (value >> 4, self.lines >= 4);
        let has = |mask: u8| abilities.device_type & mask != 0;
        let driver_is_there = driver == 0 || driver < 8 && abilities.driver_strength >> driver & 1 == 1;
        let timing = match value & 0xf {
            0 if !self.ddr => Timing::Legacy,
            1 if has(0x03) => Timing::HighSpeed,
            2 if has(0x30) && wide && !self.ddr => Timing::Hs200,
            3 if has(0xc0) && self.lines == 8 && self.ddr && self.timing != Timing::Hs200 => Timing::Hs400,
            _ => return None,
        };
        driver_is_there.then_some(Self { timing, ..self })
    }

    /// BUS_WIDTH is written; absent: the part cannot, or not in the present timing.
    pub(crate) fn with_width(self, value: u8, abilities: Abilities) -> Option<Self> {
        let (lines, ddr) = match value & 0x7f {
            0 => (1, false),
            1 => (4, false),
            2 => (8, false),
            5 => (4, true),
            6 => (8, true),
            _ => return None,
        };
        let strobe = value & 0x80 != 0;
        let ddr_is_there = abilities.device_type & 0xcc != 0 && self.timing == Timing::HighSpeed;
        let fits = match self.timing {
            Timing::Legacy | Timing::HighSpeed => !ddr || ddr_is_there,
            Timing::Hs200 => !ddr && lines >= 4,
            Timing::Hs400 => ddr && lines == 8,
        };
        let strobe_fits = !strobe || abilities.strobe && ddr && lines == 8;
        (fits && strobe_fits).then_some(Self { lines, ddr, strobe, ..self })
    }

    /// The mode, for its clock and width.
    pub(crate) fn mode(&self) -> BusMode {
        match (self.timing, self.lines, self.ddr) {
            (Timing::Legacy, 8, _) => BusMode::Legacy8,
            (Timing::Legacy, 4, _) => BusMode::Legacy4,
            (Timing::Legacy, ..) => BusMode::Legacy1,
            (Timing::HighSpeed, 8, true) => BusMode::Ddr52,
            (Timing::HighSpeed, 4, true) => BusMode::Ddr52x4,
            (Timing::HighSpeed, 8, false) => BusMode::Hs52,
            (Timing::HighSpeed, 4, false) => BusMode::Hs52x4,
            (Timing::HighSpeed, ..) => BusMode::Hs52x1,
            (Timing::Hs200, 8, _) => BusMode::Hs200,
            (Timing::Hs200, ..) => BusMode::Hs200x4,
            (Timing::Hs400, ..) => BusMode::Hs400,
        }
    }
}

impl Card {
    /// The part's capabilities.
    pub(super) fn abilities(&self) -> Abilities {
        Abilities {
            device_type: self.ext_csd_byte(reg::DEVICE_TYPE),
            driver_strength: self.ext_csd_byte(reg::DRIVER_STRENGTH),
            strobe: self.ext_csd_byte(reg::STROBE_SUPPORT) & 1 == 1,
        }
    }

    /// Applies the selected mode to the device's bus.
    pub(super) fn apply_interface(&mut self) {
        if self.is_emmc() {
            let host_hz = self.host_hz();
            *self.device.bus_mut() = Bus::clocked(self.interface.mode(), host_hz);
        }
    }

    /// The host's controller clocks the card at `hz`, in place of the profile's board.
    pub fn set_host_clock(&mut self, hz: u64) {
        if self.host_hz != Some(hz) {
            self.host_hz = Some(hz);
            let mode = self.device.bus().mode();
            *self.device.bus_mut() = Bus::clocked(mode, hz);
        }
    }

    /// The clock that the card gets, as far as its mode bears it. Unit: Hz.
    pub(super) fn host_hz(&self) -> u64 {
        self.host_hz.unwrap_or_else(|| self.device.profile().controller.bus_clock_hz())
    }

    /// CMD16: at most the length in the CSD; reads and writes still require 512 bytes.
    pub(super) fn set_block_len(&mut self, bytes: u32) -> Reply {
        let longest = 1 << self.csd().get(mmc::READ_BL_LEN).min(11);
        if bytes == 0 || bytes > longest {
            return self.refuse(R1::BLOCK_LEN_ERROR);
        }
        self.block_len = bytes;
        self.answer()
    }

    /// CMD21: the tuning block of the bus width in use.
    pub(super) fn send_tuning_block(&mut self, now: Instant) -> Reply {
        let r1 = self.r1();
        let bytes = match self.interface.lines {
            8 => TUNING_X4.iter().flat_map(|byte| [byte >> 4, byte & 0xf]).map(|nibble| nibble << 4 | nibble).collect(),
            _ => TUNING_X4.to_vec(),
        };
        let length = bytes.len();
        let data = self.start_sending(bytes, length, now);
        Self::answer_with(r1, data)
    }

    /// CMD19: the host sends a pattern over all its lines.
    pub(super) fn bus_test_w(&mut self, now: Instant) -> Reply {
        let r1 = self.r1();
        let collecting = Collecting { purpose: Purpose::BusTest, block_bytes: 8, left: Some(1), bytes: Vec::new() };
        let data = self.start_collecting(collecting, State::Btst, now);
        Self::answer_with(r1, data)
    }

    /// CMD14: the first two bits of every line come back inverted, followed by zeros.
    ///
    /// The length determines the number of lines: 8 bytes for eight lines, 4 for four, fewer for one.
    pub(super) fn bus_test_r(&mut self, now: Instant) -> Reply {
        self.transfer = None;
        let r1 = self.r1();
        let pattern = std::mem::take(&mut self.test_pattern);
        let first = |index: usize| pattern.get(index).map_or(0, |byte| !byte);
        let mut bytes = vec![0; pattern.len().max(1)];
        match bytes.len() {
            8.. => (bytes[0], bytes[1]) = (first(0), first(1)),
            4..8 => bytes[0] = first(0),
            _ => bytes[0] = first(0) & 0xc0,
        }
        let length = bytes.len();
        let data = self.start_sending(bytes, length, now);
        Self::answer_with(r1, data)
    }

    /// A command that turns out to be illegal.
    pub(super) fn illegal(&mut self) -> Reply {
        self.status.raise(R1::ILLEGAL_COMMAND);
        Reply::SILENT
    }
}

/// The tuning block of four lines; the block of eight lines has every nibble twice.
///
/// Source: JESD84-B51, tuning block pattern for HS200.
pub(super) const TUNING_X4: [u8; 64] = [
    0xff, 0x0f, 0xff, 0x00, 0xff, 0xcc, 0xc3, 0xcc, 0xc3, 0x3c, 0xcc, 0xff, 0xfe, 0xff, 0xfe, 0xef, 0xff, 0xdf, 0xff,
    0xdd, 0xff, 0xfb, 0xff, 0xfb, 0xbf, 0xff, 0x7f, 0xff, 0x77, 0xf7, 0xbd, 0xef, 0xff, 0xf0, 0xff, 0xf0, 0x0f, 0xfc,
    0xcc, 0x3c, 0xcc, 0x33, 0xcc, 0xcf, 0xff, 0xef, 0xff, 0xee, 0xff, 0xfd, 0xff, 0xfd, 0xdf, 0xff, 0xbf, 0xff, 0xbb,
    0xff, 0xf7, 0xff, 0xf7, 0x7f, 0x7b, 0xde,
];

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Abilities = Abilities { device_type: 0x57, driver_strength: 0x1f, strobe: true };

    /// Writes (true: HS_TIMING, false: BUS_WIDTH) in sequence.
    fn after(writes: &[(bool, u8)], abilities: Abilities) -> Option<BusMode> {
        let write = |interface: Interface, (is_timing, value): &(bool, u8)| {
            if *is_timing { interface.with_timing(*value, abilities) } else { interface.with_width(*value, abilities) }
        };
        writes.iter().try_fold(Interface::default(), write).map(|interface| interface.mode())
    }

    #[test]
    fn a_host_selects_every_mode_as_linux_does() {
        for (writes, mode) in [
            (&[(true, 1), (false, 2)][..], Some(BusMode::Hs52)),
            (&[(true, 1), (false, 2), (false, 6)], Some(BusMode::Ddr52)),
            (&[(false, 2), (true, 2)], Some(BusMode::Hs200)),
            (&[(false, 1), (true, 0x12)], Some(BusMode::Hs200x4)),
            // HS200, tuned, then over high speed to HS400, and back.
            (&[(false, 2), (true, 2), (true, 1), (false, 6), (true, 3)], Some(BusMode::Hs400)),
            (&[(true, 1), (false, 0x86), (true, 3), (true, 1), (false, 2), (true, 2)], Some(BusMode::Hs200)),
            // What no part takes.
            (&[(true, 2)], None),
            (&[(true, 3)], None),
            (&[(false, 6)], None),
            (&[(true, 1), (false, 6), (true, 2)], None),
            (&[(true, 1), (false, 6), (true, 0)], None),
            (&[(true, 1), (false, 2), (true, 3)], None),
            (&[(true, 1), (false, 0x82)], None),
            (&[(false, 3)], None),
            (&[(true, 4)], None),
            (&[(true, 0x71)], None),
        ] {
            assert_eq!(after(writes, ALL), mode, "{writes:?}");
        }
    }

    #[test]
    fn a_part_supports_exactly_the_modes_of_its_registers() {
        let old = Abilities { device_type: 0x03, driver_strength: 0, strobe: false };
        assert_eq!(after(&[(true, 1), (false, 1)], old), Some(BusMode::Hs52x4));
        for writes in [&[(false, 2), (true, 2)][..], &[(true, 1), (false, 6)], &[(true, 0x11)]] {
            assert_eq!(after(writes, old), None, "{writes:?}");
        }
    }
}
