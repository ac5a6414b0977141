//! What one asks who reaches the areas past the commands, as a server of block devices does.
//!
//! Absent on purpose: the access itself, which is the device's ([`crate::device::Device`]).

use super::{Area, Card};

impl Card {
    /// Whether the host may not write all of these sectors: a write protection of the card, of the area, or of a group.
    pub fn is_write_protected(&self, area: Area, first: u64, sectors: u64) -> bool {
        self.is_area_protected(area) || self.features.protect.of(area, first, sectors).is_some()
    }

    /// Whether an area takes no writes at all now.
    pub fn is_read_only(&self, area: Area) -> bool {
        self.is_area_protected(area) || self.device.is_worn_out()
    }

    /// Whether a password locks the card.
    pub fn is_locked(&self) -> bool {
        self.lock.is_locked()
    }

    /// Whether it may work in the background of its own: BKOPS_EN's AUTO_EN. An SD card is not asked.
    pub fn works_when_idle(&self) -> bool {
        !self.is_emmc() || self.ext_csd_byte(163) & 2 != 0
    }
}
