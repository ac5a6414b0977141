//! Secure write protection: what it holds while the RPMB's device configuration does not allow changes.
//!
//! CMD27 does not change the two bits of the CSD that protect the card, CMD6 not USER_WP and BOOT_WP, CMD28 and CMD29
//! no group, CMD42 does not force an erase; and boot areas stay protected over a power cycle. Absent on purpose: the
//! requests that switch it (`rpmb`).
//!
//! Source: JESD84-B51 clauses 6.6.22 and 7.4 (SECURE_WP_INFO), as mmc-utils describes them.

use emmc_regs::ext_csd::{EXT_CSD_BYTES, reg};

use super::Card;

const SUPPORT: u8 = 1;
const EN_STATUS: u8 = 2;

/// Whether it is on; absent if the card does not have it.
pub(super) fn state(ext_csd: &[u8; EXT_CSD_BYTES]) -> Option<bool> {
    let info = ext_csd[reg::SECURE_WP_INFO];
    (info & SUPPORT != 0).then_some(info & EN_STATUS != 0)
}

/// Switches it.
pub(super) fn set(ext_csd: &mut [u8; EXT_CSD_BYTES], is_on: bool) {
    let info = &mut ext_csd[reg::SECURE_WP_INFO];
    *info = if is_on { *info | EN_STATUS } else { *info & !EN_STATUS };
}

impl Card {
    /// Whether write protection stays as it is, whatever a host sends.
    pub(super) fn holds_write_protection(&self) -> bool {
        let is_on = state(&self.device.stored_registers().ext_csd) == Some(true);
        self.is_emmc() && is_on && !self.features.rpmb.allows_wp_changes()
    }
}
