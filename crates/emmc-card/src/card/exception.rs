//! Exception events: what the card wants looked into, told by one bit of R1 and two bytes of EXT_CSD.

use emmc_regs::ext_csd::reg;

use super::Card;

/// URGENT_BKOPS has no enabling bit: it is always told.
const ALWAYS_TOLD: u8 = 1;

impl Card {
    /// EXCEPTION_EVENT: an event is there that the host wants to hear of.
    pub(super) fn has_exception(&self) -> bool {
        if !self.is_emmc() {
            return false;
        }
        let told = self.ext_csd_byte(reg::EXCEPTION_EVENTS_CTRL) | ALWAYS_TOLD;
        self.exception_events() & told != 0
    }

    /// EXCEPTION_EVENTS_STATUS now: what features noted there, and whether background operations are urgent (level 2,
    /// 3).
    pub(super) fn exception_events(&self) -> u8 {
        let noted = self.ext_csd_byte(reg::EXCEPTION_EVENTS_STATUS) & !ALWAYS_TOLD;
        let urgent = self.ext_csd_byte(reg::BKOPS_SUPPORT) & 1 == 1 && self.device.urgency() >= 2;
        noted | if urgent { ALWAYS_TOLD } else { 0 }
    }
}
