//! Power, reset, and their effect on the card's state.

use emmc_regs::CardKind;
use emmc_regs::ext_csd::reg;
use emmc_units::{Instant, Nanos};

use super::access::Reset;
use super::bus_mode::Interface;
use super::legality::Phase;
use super::transfer::Transfer;
use super::{Card, EraseSequence, boot};
use crate::device::StorageError;

/// From power-up to the end of initialization, without the recovery of the translation layer.
///
/// Assumed: boot logs of parts show a few tens of milliseconds; the standard allows a second.
const INITIALIZATION: Nanos = Nanos::from_millis(20);
/// The same after CMD0.
///
/// Assumed: firmware is loaded already.
const REINITIALIZATION: Nanos = Nanos::from_millis(1);

impl Card {
    /// Power is lost at `now`.
    pub fn power_off(&mut self, now: Instant) {
        self.features_power_off(now);
        self.device.power_off(now);
        self.phase = Phase::Off;
        self.transfer = None;
    }

    /// Power returns; returns the end of initialization.
    ///
    /// Errors: power lost again, at an armed cut.
    pub fn power_on(&mut self, now: Instant) -> Result<Instant, StorageError> {
        self.phase = Phase::Off;
        let recovered = self.device.power_on(now)?;
        let recovered = if self.is_emmc() { self.apply_partitioning(recovered)? } else { recovered };
        let recovered = self.complete_rpmb(recovered)?;
        self.start(Reset::Power, recovered);
        self.initialized_at = recovered + INITIALIZATION;
        Ok(self.initialized_at)
    }

    /// RST_n is asserted and released: effective if RST_n_FUNCTION enables it, as a short power loss.
    ///
    /// Errors: power lost, at an armed cut.
    pub fn hardware_reset(&mut self, now: Instant) -> Result<(), StorageError> {
        let enabled = self.kind == CardKind::Emmc && self.ext_csd_byte(reg::RST_n_FUNCTION) & 3 == 1;
        if enabled && self.phase != Phase::Off {
            self.power_off(now);
            self.power_on(now)?;
        }
        Ok(())
    }

    /// CMD0: volatile state is cleared, but not power and not the cache.
    pub(super) fn software_reset(&mut self, now: Instant) {
        let flushed = self.device.set_cache(false, now).map(|_| now);
        let ready = self.done_or_failed(flushed, now);
        if self.phase != Phase::Off {
            self.start(Reset::Software, ready);
            self.initialized_at = self.initialized_at.max(ready + REINITIALIZATION);
        }
    }

    /// Registers and states after a reset; the card waits for CMD1 or a boot request.
    pub(super) fn start(&mut self, reset: Reset, now: Instant) {
        self.phase = Phase::PreIdle;
        self.status.clear();
        self.rca = 1;
        self.busy_until = now;
        self.block_len = 512;
        self.block_count = None;
        self.after_app_cmd = false;
        self.erase = EraseSequence::default();
        self.lock.reset();
        self.transfer = None::<Transfer>;
        self.test_pattern.clear();
        // A card that has booted may keep the boot mode until power is lost.
        let stays = reset == Reset::Software
            && self.features.boot.has_run
            && boot::keeps_bus(&self.device.stored_registers().ext_csd);
        if !stays {
            self.interface = Interface::default();
        }
        if self.kind == CardKind::Emmc {
            let register = &mut self.device.registers_mut().ext_csd;
            self.rules.reset(register, reset);
            if reset == Reset::Power && register[reg::USE_NATIVE_SECTOR] & 1 == 1 {
                register[reg::DATA_SECTOR_SIZE] = register[reg::NATIVE_SECTOR_SIZE];
            }
            self.reset_features(reset);
        } else {
            self.reset_sd(reset == Reset::Power);
        }
        self.apply_interface();
    }
}
