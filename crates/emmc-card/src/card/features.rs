//! The features' state, and what a write to one of their registers does.
//!
//! Each feature's rules are in a file of its own and know nothing of the card; here they meet: access class (`access`),
//! then the feature's rule, then its effect.
//! Absent on purpose: the commands of features (`write_protect_groups`, `queue`, `streams`, ...).

use emmc_regs::ext_csd::EXT_CSD_BYTES;
use emmc_regs::r1::State;
use emmc_units::{Instant, Nanos};

use super::access::Reset;
use super::background::Background;
use super::ffu::Firmware;
use super::image::FeatureState;
use super::interrupt::Busy;
use super::legality::Phase;
use super::packed::Packed;
use super::partition::{self, Refused};
use super::power_notify::PowerLog;
use super::queue::CommandQueue;
use super::rpmb::Rpmb;
use super::streams::BootStream;
use super::switch::{SwitchError, is_meaningful};
use super::write_protect::WriteProtect;
use super::{
    Card, background, boot, cache_control, context, ffu, interrupt, power_notify, production, queue, write_protect,
};
use crate::device::StorageError;
use crate::ftl::FtlError;
use crate::profile::Layout;

/// What a switch takes that only changes a register. Assumed: traces of parts show tens of microseconds.
const PLAIN: Nanos = Nanos::from_micros(50);
/// What installing firmware takes. Assumed: OPERATION_CODES_TIMEOUT bounds it.
const INSTALL: Nanos = Nanos::from_millis(50);

const CMDQ_MODE_EN: u8 = 15;
const CLASS_6_CTRL: u8 = 59;
const PARTITION_SETTING_COMPLETED: u8 = 155;
const HPI_MGMT: u8 = 161;
const BKOPS_EN: u8 = 163;
const SANITIZE_START: u8 = 165;
const USER_WP: u8 = 171;
const BOOT_WP: u8 = 173;
const BOOT_BUS_CONDITIONS: u8 = 177;
const EXT_CSD_REV: usize = 192;
const SEC_FEATURE_SUPPORT: usize = 231;

/// What the features remember.
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
    /// What `prg` is about.
    pub(crate) busy: Busy,
    /// What the next `prg` will be about.
    pub(crate) next_busy: Busy,
    /// The committed partitioning has been carried out.
    is_partitioned: bool,
}

/// Bytes of EXT_CSD whose rules are a feature's.
fn is_feature(index: u8) -> bool {
    matches!(
        index,
        CMDQ_MODE_EN
            | production::ENABLEMENT
            | production::PRE_LOADING_DATA_SIZE..=25
            | ffu::MODE_OPERATION_CODES..=power_notify::POWER_OFF_NOTIFICATION
            | CLASS_6_CTRL
            | production::STATE
            | PARTITION_SETTING_COMPLETED
            | HPI_MGMT
            | BKOPS_EN..=SANITIZE_START
            | USER_WP
            | BOOT_WP
            | BOOT_BUS_CONDITIONS
    ) || context::is_configuration(index)
        || partition::is_setting(index)
}

impl Features {
    /// What survives power.
    pub(crate) fn to_state(&self) -> FeatureState {
        FeatureState {
            rpmb_key: self.rpmb.key(),
            rpmb_counter: self.rpmb.counter(),
            firmware: self.firmware.installed(),
            power_cycles: self.power.cycles,
            unannounced: self.power.unannounced,
            is_partitioned: self.is_partitioned,
        }
    }

    /// Brings it back.
    pub(crate) fn take_state(&mut self, state: FeatureState) {
        self.rpmb.restore(state.rpmb_key, state.rpmb_counter);
        self.firmware.restore(state.firmware);
        self.power = PowerLog { cycles: state.power_cycles, unannounced: state.unannounced };
        self.is_partitioned = state.is_partitioned;
    }
}

impl From<Refused> for SwitchError {
    fn from(_: Refused) -> Self {
        Self
    }
}

impl Card {
    /// A write to a feature's byte; absent: it is none.
    ///
    /// Errors: any rule broken; nothing has changed.
    pub(super) fn feature_switch(
        &mut self,
        index: u8,
        old: u8,
        new: u8,
        now: Instant,
    ) -> Result<Option<Instant>, SwitchError> {
        if !is_feature(index) {
            return Ok(None);
        }
        let rev = self.ext_csd_byte(EXT_CSD_REV);
        self.rules.check(index, old, new, rev).map_err(|_| SwitchError)?;
        if !is_meaningful(index, new) {
            return Err(SwitchError);
        }
        self.check_feature(index, old, new)?;
        let carried_out = self.carry_out(index, old, new, now);
        Ok(Some(self.done_or_failed(carried_out, now)))
    }

    /// The feature's own rule.
    fn check_feature(&self, index: u8, old: u8, new: u8) -> Result<(), Refused> {
        let ext_csd = &self.device.stored_registers().ext_csd;
        match index {
            CMDQ_MODE_EN => queue::check_mode(ext_csd, new & 1 == 1, None),
            ffu::MODE_OPERATION_CODES | ffu::MODE_CONFIG => ffu::check(ext_csd, index, new),
            cache_control::BARRIER_CTRL..=cache_control::CACHE_CTRL => cache_control::check(ext_csd, index, new),
            power_notify::POWER_OFF_NOTIFICATION => power_notify::check(ext_csd, new),
            // Dynamic capacity is not offered.
            CLASS_6_CTRL if new != 0 => Err(Refused),
            HPI_MGMT => interrupt::check(ext_csd, new),
            BKOPS_EN | background::BKOPS_START => background::check(ext_csd, index, new),
            SANITIZE_START if ext_csd[SEC_FEATURE_SUPPORT] >> 6 & 1 == 0 => Err(Refused),
            USER_WP => write_protect::check_user_wp(old, new),
            BOOT_WP => write_protect::write_boot_wp(&mut ext_csd.clone(), new),
            BOOT_BUS_CONDITIONS => boot::check_bus_conditions(ext_csd, new),
            production::ENABLEMENT | production::PRE_LOADING_DATA_SIZE..=25 | production::STATE => {
                production::check(ext_csd, index, new)
            }
            PARTITION_SETTING_COMPLETED => {
                partition::check(ext_csd, index, new)?;
                self.check_layout(new)
            }
            _ if context::is_configuration(index) => context::check(ext_csd, index, new),
            _ if partition::is_setting(index) => partition::check(ext_csd, index, new),
            _ => Ok(()),
        }
    }

    /// The flash must be able to hold what is about to be committed.
    fn check_layout(&self, completed: u8) -> Result<(), Refused> {
        let mut ext_csd = self.device.stored_registers().ext_csd;
        ext_csd[usize::from(PARTITION_SETTING_COMPLETED)] = completed;
        let Some(wanted) = partition::committed(&ext_csd) else { return Ok(()) };
        Layout::new(self.device.profile(), &wanted, 0).map(|_| ()).map_err(|_| Refused)
    }

    /// Keeps the byte and does what it asks for; answers when that is done.
    ///
    /// Errors: worn out, power lost.
    fn carry_out(&mut self, index: u8, old: u8, new: u8, now: Instant) -> Result<Instant, StorageError> {
        self.store(index, old, new);
        match index {
            CMDQ_MODE_EN if new & 1 == 0 => self.features.queue.clear(),
            ffu::MODE_OPERATION_CODES => {
                let register = &mut self.device.registers_mut().ext_csd;
                self.features.firmware.operate(register, new);
                return Ok(now + INSTALL);
            }
            cache_control::FLUSH_CACHE | cache_control::CACHE_CTRL => {
                self.features.next_busy = Busy::Flush;
                return Ok(cache_control::carry_out(&mut self.device, index, new, now)?.max(now + PLAIN));
            }
            power_notify::POWER_OFF_NOTIFICATION => {
                if power_notify::is_interruptible(new) {
                    self.features.next_busy = Busy::PowerOff;
                }
                return Ok(power_notify::carry_out(&mut self.device, new, now)?.max(now + PLAIN));
            }
            background::BKOPS_START => {
                self.features.next_busy = Busy::Background;
                self.features.background.start(now);
                return Ok(now);
            }
            SANITIZE_START => {
                self.features.next_busy = Busy::Sanitize;
                return self.device.purge(now);
            }
            BOOT_WP => {
                // The rule was checked; this sets BOOT_WP_STATUS.
                let _ = write_protect::write_boot_wp(&mut self.device.registers_mut().ext_csd, new);
            }
            _ => {}
        }
        Ok(now + PLAIN)
    }

    /// A reset has put the register back; the features follow.
    pub(super) fn reset_features(&mut self, reset: Reset) {
        let register: &mut [u8; EXT_CSD_BYTES] = &mut self.device.registers_mut().ext_csd;
        self.features.firmware.reset(register);
        self.features.rpmb.forget();
        self.features.queue.clear();
        self.features.background.stop();
        self.features.packed_read = None;
        self.features.boot = BootStream::default();
        (self.features.busy, self.features.next_busy) = (Busy::Other, Busy::Other);
        if reset == Reset::Power {
            write_protect::power_cycle_boot_wp(register);
            self.features.protect.power_cycle();
            self.features.power.power_on();
        }
    }

    /// Power goes: what a feature held in memory is gone.
    pub(super) fn features_power_off(&mut self) {
        self.features.power.power_off(&self.device.stored_registers().ext_csd);
        self.features.firmware.power_off();
        self.features.background.stop();
    }

    /// Power is back and the layers have recovered at `now`: a new commit of the partitioning is carried out, settings
    /// without one are forgotten. Answers when the card is ready.
    ///
    /// Errors: power lost; the next power-up begins anew.
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
        // The commit was refused unless the flash can hold it.
        let Ok(laid_out) = self.device.partition(wanted, now) else { return Ok(now) };
        let ready = laid_out.ok_or(FtlError::PowerLost)?;
        self.features.is_partitioned = true;
        self.features.protect.forget();
        let sectors = self.device.sectors(crate::device::Area::User);
        partition::set_user_sectors(&mut self.device.registers_mut().ext_csd, sectors);
        Ok(ready)
    }

    /// Background work as far as time has come.
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

    /// The host has been served at `now`: from then on the card may work of its own.
    pub(super) fn schedule_background(&mut self, now: Instant) {
        let rests = matches!(self.phase, Phase::In(State::Stby | State::Tran | State::Prg | State::Dis));
        if self.is_emmc() && rests && self.transfer.is_none() && self.features.queue.is_empty() {
            let from = now.max(self.busy_until);
            self.features.background.idle(&self.device.stored_registers().ext_csd, from);
        }
    }

    /// HPI: what keeps the card busy ends early, if it can.
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
    }

    /// RPMB's write counter; absent: no key is programmed.
    pub fn rpmb_counter(&self) -> Option<u32> {
        self.features.rpmb.has_key().then(|| self.features.rpmb.counter())
    }

    /// When the next queued task after `now` becomes ready, if one will without the host.
    pub fn poll_queue(&self, now: Instant) -> Option<Instant> {
        self.features.queue.poll_timeout(now)
    }
}
