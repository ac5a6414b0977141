//! Access to the areas below the command level, as for a block device server.
//!
//! Absent on purpose: the access itself, which is the device's ([`crate::device::Device`]).

use emmc_regs::ext_csd::reg;

use super::legality::Phase;
use super::{Area, Card};
use crate::device::{Bus, Device};

impl Card {
    /// The device, for access below the command level. Until a host starts identification, its bus runs in the
    /// profile's mode.
    pub fn direct(&mut self) -> &mut Device {
        if matches!(self.phase, Phase::PreIdle | Phase::Off) {
            let controller = &self.device.profile().controller;
            let (mode, hz) = (controller.bus(), controller.bus_clock_hz());
            if self.device.bus().mode() != mode {
                *self.device.bus_mut() = Bus::clocked(mode, hz);
            }
        }
        &mut self.device
    }

    /// Whether any of these sectors is write-protected: the card, the area, or a group.
    pub fn is_write_protected(&self, area: Area, first: u64, sectors: u64) -> bool {
        self.is_area_protected(area) || self.features.protect.of(area, first, sectors).is_some()
    }

    /// Whether an area is read-only now.
    pub fn is_read_only(&self, area: Area) -> bool {
        self.is_area_protected(area) || self.device.is_worn_out()
    }

    /// Whether a password locks the card.
    pub fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }

    /// Whether the card may do background work on its own: BKOPS_EN's AUTO_EN. An SD card always may.
    pub fn works_when_idle(&self) -> bool {
        !self.is_emmc() || self.ext_csd_byte(reg::BKOPS_EN) & 2 != 0
    }

    /// Whether a host has initialised the card by commands since power-up; then the card goes idle by its own rules.
    pub fn has_commanding_host(&self) -> bool {
        matches!(self.phase, Phase::In(_))
    }
}

#[cfg(test)]
mod tests {
    use emmc_units::Instant;

    use super::*;
    use crate::device::DeviceOptions;
    use crate::nand::StoredContent;
    use crate::profile::{BusMode, shipped};

    #[test]
    fn direct_access_uses_the_profiles_bus_until_a_host_sends_commands() {
        let profile = shipped::named("generic-8g").expect("it is shipped");
        let mode = profile.controller.bus();
        let mut card =
            Card::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 }).expect("it is a card");
        assert_eq!(card.direct().bus().mode(), mode);
        assert_ne!(mode, BusMode::Legacy1);
        assert_eq!(card.into_parts().0.bus().mode(), mode);
        let profile = shipped::named("generic-8g").expect("it is shipped");
        let mut card =
            Card::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 }).expect("it is a card");
        card.handle_command(0, 0, Instant(1_000_000_000));
        card.handle_command(1, 0x40ff_8080, Instant(1_001_000_000));
        assert_eq!(card.direct().bus().mode(), BusMode::Legacy1);
    }
}
