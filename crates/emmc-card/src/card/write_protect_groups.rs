//! Write protection commands, CMD28 to CMD31, and checks of protected sectors.

use emmc_regs::csd::mmc;
use emmc_regs::ext_csd::reg;
use emmc_regs::r1::R1;
use emmc_units::{Instant, Nanos};

use super::write_protect::{is_boot_protected, is_card_protected};
use super::{Area, Card, Reply};

/// Duration of protecting a group. Assumed: about one page program.
const STORE: Nanos = Nanos::from_micros(500);

impl Card {
    /// CMD28.
    pub(super) fn set_write_prot(&mut self, address: u32, now: Instant) -> Reply {
        self.change_group(address, true, now)
    }

    /// CMD29.
    pub(super) fn clr_write_prot(&mut self, address: u32, now: Instant) -> Reply {
        self.change_group(address, false, now)
    }

    fn change_group(&mut self, address: u32, protects: bool, now: Instant) -> Reply {
        let sector = match self.sector_at(address) {
            Ok(sector) => sector,
            Err(bits) => return self.refuse(bits),
        };
        if self.holds_write_protection() {
            return self.refuse(R1::ERROR);
        }
        let (area, group) = (self.area(), self.wp_group_sectors());
        let first = sector - sector % group;
        if protects {
            let ext_csd = &self.device.stored_registers().ext_csd;
            self.features.protect.set(ext_csd, area, first, group);
        } else if !self.features.protect.clear(area, first, group) {
            return self.refuse(R1::WP_VIOLATION);
        }
        let r1 = self.r1();
        let done = now + self.device.bus().command() + STORE;
        self.program_until(done);
        Self::answer_busy(r1, done)
    }

    /// CMD30, or CMD31 with `types`.
    pub(super) fn send_write_prot(&mut self, address: u32, types: bool, now: Instant) -> Reply {
        let sector = match self.sector_at(address) {
            Ok(sector) => sector,
            Err(bits) => return self.refuse(bits),
        };
        let (area, group) = (self.area(), self.wp_group_sectors());
        let first = sector - sector % group;
        let bytes = self.features.protect.report(area, first, group, self.device.sectors(area), types);
        let r1 = self.r1();
        let length = bytes.len();
        let data = self.start_sending(bytes, length, now);
        Self::answer_with(r1, data)
    }

    /// Whether class 6 applies: the CSD supports group protection, and the area has groups.
    pub(super) fn has_groups(&self) -> bool {
        self.csd().get(mmc::WP_GRP_ENABLE) == 1 && matches!(self.area(), Area::User | Area::Gp(_))
    }

    /// Sectors of a write protection group.
    pub(super) fn wp_group_sectors(&self) -> u64 {
        let high_capacity = self.ext_csd_byte(reg::ERASE_GROUP_DEF) & 1 == 1;
        let groups = u64::from(self.ext_csd_byte(reg::HC_WP_GRP_SIZE));
        if high_capacity && groups > 0 {
            groups * self.erase_group_sectors()
        } else {
            self.csd().write_protect_group_sectors().unwrap_or(1).max(1)
        }
    }

    /// Whether a whole area is read-only.
    pub(super) fn is_area_protected(&self, area: Area) -> bool {
        let image = self.device.stored_registers();
        match area {
            // RPMB has its own rules.
            Area::Rpmb => false,
            Area::Boot(boot) if is_boot_protected(&image.ext_csd, boot) => true,
            Area::User | Area::Boot(_) | Area::Gp(_) => is_card_protected(&image.csd),
        }
    }

    /// Whether a sector is read-only.
    pub(super) fn is_protected(&self, area: Area, sector: u64) -> bool {
        self.is_area_protected(area) || self.features.protect.of(area, sector, 1).is_some()
    }

    /// The parts of `first..end` that may be erased: first sector and length, in order.
    pub(super) fn erasable(&self, area: Area, first: u64, end: u64) -> Vec<(u64, u64)> {
        if self.is_area_protected(area) {
            return Vec::new();
        }
        self.features.protect.gaps(area, first, end)
    }
}
