//! Switches of a powered card: its volatile cache.

use emmc_regs::CardKind;
use emmc_regs::ext_csd::reg;
use emmc_units::Instant;

use super::Device;
use super::op::StorageError;

impl Device {
    /// Switches the volatile cache; switching it off flushes it. `false`: the card has none.
    ///
    /// Errors: as [`Device::flush`].
    pub fn set_cache(&mut self, on: bool, now: Instant) -> Result<bool, StorageError> {
        if self.path.cache_on && !on {
            self.flush(now)?;
        }
        if self.has_write_buffer() {
            return Ok(!on);
        }
        let has_cache = self.profile.controller.cache_bytes >= self.profile.ftl.unit_bytes;
        self.path.cache_on = on && has_cache;
        Ok(has_cache || !on)
    }

    /// The same as a host does it: an eMMC's register says so too.
    ///
    /// Errors: as [`Device::flush`].
    pub fn switch_cache(&mut self, on: bool, now: Instant) -> Result<(), StorageError> {
        if self.set_cache(on, now)? && self.profile.kind == CardKind::Emmc {
            self.registers.ext_csd[reg::CACHE_CTRL] = u8::from(on);
        }
        Ok(())
    }

    /// Whether writes are acknowledged from a buffer that cannot be switched off, as on some SD cards.
    pub fn has_write_buffer(&self) -> bool {
        self.profile.controller.write_buffer_bytes > 0
    }
}
