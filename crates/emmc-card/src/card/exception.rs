//! Exception events: reported by one bit of R1 and two bytes of EXT_CSD.

use emmc_regs::ext_csd::reg;

use super::Card;

/// URGENT_BKOPS has no enable bit: it is always reported.
const ALWAYS_TOLD: u8 = 1;

impl Card {
    /// EXCEPTION_EVENT: an enabled event is pending.
    pub(super) fn has_exception(&self) -> bool {
        if !self.is_emmc() {
            return false;
        }
        let told = self.ext_csd_byte(reg::EXCEPTION_EVENTS_CTRL) | ALWAYS_TOLD;
        self.exception_events() & told != 0
    }

    /// EXCEPTION_EVENTS_STATUS now: the features' events, and whether background operations are urgent (level 2, 3).
    pub(super) fn exception_events(&self) -> u8 {
        let noted = self.ext_csd_byte(reg::EXCEPTION_EVENTS_STATUS) & !ALWAYS_TOLD;
        let urgent = self.ext_csd_byte(reg::BKOPS_SUPPORT) & 1 == 1 && self.device.urgency() >= 2;
        noted | if urgent { ALWAYS_TOLD } else { 0 }
    }
}
