//! The state of the features, and the effects of resets, power and time on it.
//!
//! The rules of each feature are in its own file and do not depend on the card. Absent on purpose: the effect of a
//! write to their registers (`switch_rows`), and the commands of features (`queue`, `streams`, `write_protect_groups`,
//! ...).

use emmc_regs::ext_csd::EXT_CSD_BYTES;
use emmc_regs::r1::State;
use emmc_units::Instant;

use super::access::Reset;
use super::background::{self, Background};
use super::ffu::Firmware;
use super::image::FeatureState;
use super::interrupt::Busy;
use super::legality::Phase;
use super::packed::Packed;
use super::power_notify::PowerLog;
use super::queue::CommandQueue;
use super::rpmb::Rpmb;
use super::streams::{BootStream, RpmbArea};
use super::write_protect::WriteProtect;
use super::{Card, interrupt, partition, write_protect};
use crate::device::StorageError;
use crate::ftl::FtlError;

/// State of the features.
#[derive(Debug, Default)]
pub(crate) struct Features {
    pub(crate) protect: WriteProtect,
    pub(crate) rpmb: Rpmb,
    pub(crate) background: Background,
    pub(crate) queue: CommandQueue,
    pub(crate) firmware: Firmware,
    pub(crate) power: PowerLog,
    /// The header of a packed read, until its CMD18.
    pub(crate) packed_read: Option<Packed>,
    pub(crate) boot: BootStream,
    /// The reason for `prg`.
    pub(crate) busy: Busy,
    /// The reason for the next `prg`.
    pub(crate) next_busy: Busy,
    /// The committed partitioning is in effect.
    pub(super) is_partitioned: bool,
}

impl Features {
    /// What survives power.
    pub(crate) fn to_state(&self) -> FeatureState {
        FeatureState {
            rpmb: self.rpmb.persistent(),
            rpmb_counter: self.rpmb.counter(),
            firmware: self.firmware.installed(),
            power_cycles: self.power.cycles,
            unannounced: self.power.unannounced,
            is_partitioned: self.is_partitioned,
        }
    }

    /// Restores it.
    pub(crate) fn take_state(&mut self, state: FeatureState) {
        self.rpmb.restore(state.rpmb, state.rpmb_counter);
        self.firmware.restore(state.firmware);
        self.power = PowerLog { cycles: state.power_cycles, unannounced: state.unannounced };
        self.is_partitioned = state.is_partitioned;
    }
}

impl Card {
    /// A reset has changed the registers; the features follow.
    pub(super) fn reset_features(&mut self, reset: Reset) {
        self.clear_queue();
        let holds = self.holds_write_protection();
        let register: &mut [u8; EXT_CSD_BYTES] = &mut self.device.registers_mut().ext_csd;
        self.features.firmware.reset(register);
        self.features.rpmb.forget();
        self.features.background.stop();
        self.features.packed_read = None;
        self.features.boot = BootStream::default();
        (self.features.busy, self.features.next_busy) = (Busy::Other, Busy::Other);
        if reset == Reset::Power {
            write_protect::power_cycle_boot_wp(register, holds);
            self.features.protect.power_cycle();
            self.features.power.power_on();
        }
    }

    /// Power is lost: volatile state of the features is cleared.
    pub(super) fn features_power_off(&mut self, now: Instant) {
        self.features.rpmb.power_off(self.device.nand().off_since().map_or(now, |cut| cut.min(now)));
        self.features.power.power_off(&self.device.stored_registers().ext_csd);
        self.features.firmware.power_off(&mut self.device.registers_mut().ext_csd);
        self.features.background.stop();
    }

    /// Power is back and the layers have recovered at `now`: an interrupted write of RPMB is completed. Returns when.
    ///
    /// Errors: power lost; the next power-up starts again.
    pub(super) fn complete_rpmb(&mut self, now: Instant) -> Result<Instant, StorageError> {
        let mut store = RpmbArea { device: &mut self.device, now };
        self.features.rpmb.complete(&mut store)?;
        Ok(store.now)
    }

    /// Power is back and the layers have recovered at `now`: a new commit of the partitioning is performed, uncommitted
    /// settings are dropped. Returns when the card is ready.
    ///
    /// Errors: power lost; the next power-up starts again.
    pub(super) fn apply_partitioning(&mut self, now: Instant) -> Result<Instant, StorageError> {
        let register = &mut self.device.registers_mut().ext_csd;
        let Some(wanted) = partition::committed(register) else {
            for index in partition::settings() {
                self.rules.unburn(register, index);
            }
            return Ok(now);
        };
        if self.features.is_partitioned {
            return Ok(now);
        }
        // A commit is refused unless the flash can hold it.
        let Ok(laid_out) = self.device.partition(wanted, now) else { return Ok(now) };
        let ready = laid_out.ok_or(FtlError::PowerLost)?;
        self.features.is_partitioned = true;
        self.features.protect.forget();
        let sectors = self.device.sectors(crate::device::Area::User);
        partition::set_user_sectors(&mut self.device.registers_mut().ext_csd, sectors);
        Ok(ready)
    }

    /// Performs background work up to now.
    pub(super) fn settle_background(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Off | Phase::Inactive) || self.transfer.is_some() {
            return;
        }
        let manual = self.features.background.is_busy();
        match self.features.background.advance(&mut self.device, now) {
            Ok(Some(end)) => self.busy_until = end,
            Ok(None) if manual => self.busy_until = self.features.background.poll_timeout().unwrap_or(now),
            Ok(None) => {}
            Err(error) => {
                if manual || error.is_power_loss() {
                    self.note_error(&error);
                }
                self.busy_until = self.busy_until.min(now);
            }
        }
    }

    /// The host has been served at `now`: from then on the card may work on its own.
    pub(super) fn schedule_background(&mut self, now: Instant) {
        let rests = matches!(self.phase, Phase::In(State::Stby | State::Tran | State::Prg | State::Dis));
        // Nobody tells an SD card to flush: it empties its write buffer when it is idle.
        let works_alone = match self.is_emmc() {
            true => background::starts_alone(&self.device.stored_registers().ext_csd),
            false => self.device.has_write_buffer(),
        };
        if rests && self.transfer.is_none() && self.features.queue.is_empty() {
            self.features.background.idle(works_alone, now.max(self.busy_until));
        }
    }

    /// HPI: the current operation ends early, if possible.
    pub(super) fn interrupt(&mut self, now: Instant) {
        if self.phase != Phase::In(State::Prg) {
            return;
        }
        if self.features.background.is_busy() {
            self.busy_until = self.features.background.interrupt(now);
            return;
        }
        let register = &mut self.device.registers_mut().ext_csd;
        let interrupted = interrupt::interrupt(register, self.features.busy, self.busy_until, now);
        self.busy_until = interrupted.until;
        self.features.busy = Busy::Other;
        if let Some(sectors) = interrupted.programmed {
            interrupt::set_correctly_programmed(register, sectors);
        }
        self.device.end_busy(interrupted.until);
    }

    /// RPMB's write counter; absent: no key is programmed.
    pub fn rpmb_counter(&self) -> Option<u32> {
        self.features.rpmb.has_key().then(|| self.features.rpmb.counter())
    }

    /// When the next queued task after `now` becomes ready, if it will without the host.
    pub fn poll_queue(&self, now: Instant) -> Option<Instant> {
        self.features.queue.poll_timeout(now)
    }
}
