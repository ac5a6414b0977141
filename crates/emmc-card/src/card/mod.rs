//! The controller: commands, responses, states and registers of a card, after the standard.
//!
//! [`Card`] is driven from outside: `handle_*` takes the host's actions at an instant, `poll_*` returns the card's
//! output. Storage goes through [`Device`]; the rules above it are here, one file each: `legality` legal commands by
//! state, `dispatch` from a command to its implementation, `access` write permission of EXT_CSD bits, `switch` the
//! effect of such writes, the rest a feature each. Absent on purpose: electrical signalling, SPI mode, streams (CMD11,
//! CMD20) and I/O mode (CMD39, CMD40), which no eMMC part has; and a clock: the host passes the time.

mod access;
mod address;
mod adopt;
mod background;
mod boot;
mod bus_mode;
mod cache_control;
mod context;
mod direct_access;
mod dispatch;
mod erase;
mod exception;
mod features;
mod ffu;
mod identify;
mod image;
mod interrupt;
mod legality;
mod lock;
mod packed;
mod partition;
mod power;
mod power_notify;
mod production;
mod queue;
mod read;
mod register_programming;
mod reply;
mod rpmb;
mod sd;
mod secure_write_protect;
mod sleep;
mod status;
mod streams;
mod switch;
mod switch_rows;
mod transfer;
mod vendor;
mod write;
mod write_protect;
mod write_protect_groups;

use emmc_regs::CardKind;
use emmc_regs::command::SetBlockCount;
use emmc_regs::ext_csd::{EXT_CSD_BYTES, Field, reg};
use emmc_regs::r1::{R1, State};
use emmc_units::{Instant, Nanos};

use crate::device::{Area, Device, DeviceError, DeviceOptions, StorageError};
use crate::ftl::FtlError;
use crate::profile::{Profile, RegisterImage};
use access::AccessRules;
use bus_mode::Interface;
use erase::EraseSequence;
use features::Features;
use image::CardState;
use legality::Phase;
use lock::Lock;
use sd::SdState;
use status::Status;
use transfer::Transfer;

pub use background::IDLE_AFTER;
pub use ffu::firmware_image;
pub use image::{Part, Rest};
pub use queue::PREPARATION;
pub use reply::{DataBlock, DataPhase, DataStatus, Reply};
pub use vendor::vendor_replies;

/// A virtual card with its commands.
#[derive(Debug)]
pub struct Card {
    device: Device,
    kind: CardKind,
    phase: Phase,
    status: Status,
    rca: u16,
    /// End of initialization, as reported by CMD1.
    initialized_at: Instant,
    /// End of programming; used in `prg` and `dis`.
    busy_until: Instant,
    rules: AccessRules,
    interface: Interface,
    /// The clock of the host's controller; absent: the profile's board has its own. Unit: Hz.
    host_hz: Option<u64>,
    /// CMD16.
    block_len: u32,
    /// CMD23, for the command that follows it.
    block_count: Option<SetBlockCount>,
    /// Whether the last command was CMD55.
    after_app_cmd: bool,
    erase: EraseSequence,
    lock: Lock,
    transfer: Option<Transfer>,
    /// The buffer of the last transfer, for reuse.
    spare: Vec<u8>,
    /// The pattern of CMD19, for CMD14.
    test_pattern: Vec<u8>,
    /// The last time from CMD49.
    host_time: Option<Box<[u8]>>,
    features: Features,
    sd: SdState,
    /// The recorded state, if changes are recorded.
    recorded: Option<CardState>,
}

impl Card {
    /// A card fresh from the factory, powered at [`Instant::START`].
    ///
    /// Errors: a profile that breaks a rule.
    pub fn new(profile: Profile, options: DeviceOptions) -> Result<Self, DeviceError> {
        Ok(Self::over(Device::new(profile, options)?))
    }

    /// A card over a powered device, in the state after power-up.
    fn over(device: Device) -> Self {
        let factory = RegisterImage::new(device.profile()).ext_csd;
        let mut card = Self {
            kind: device.profile().kind,
            device,
            phase: Phase::PreIdle,
            status: Status::default(),
            rca: 1,
            initialized_at: Instant::START,
            busy_until: Instant::START,
            rules: AccessRules::new(factory),
            interface: Interface::default(),
            host_hz: None,
            block_len: 512,
            block_count: None,
            after_app_cmd: false,
            erase: EraseSequence::default(),
            lock: Lock::default(),
            transfer: None,
            spare: Vec::new(),
            test_pattern: Vec::new(),
            host_time: None,
            features: Features::default(),
            sd: SdState::default(),
            recorded: None,
        };
        card.start(access::Reset::Power, Instant::START);
        card
    }

    /// The device below the command level.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The same, mutable: for inspection, ageing, fault injection. The caller is responsible for data written below the
    /// command level.
    pub fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }

    /// The state as in CURRENT_STATE; absent without power, before CMD0 or CMD1, and after CMD15.
    pub fn state(&mut self, now: Instant) -> Option<State> {
        self.settle(now);
        match self.phase {
            Phase::In(state) => Some(state),
            Phase::Off | Phase::PreIdle | Phase::Inactive => None,
        }
    }

    /// The next instant at which the card changes without a command; absent: it waits for the host.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let busy = matches!(self.phase, Phase::In(State::Prg | State::Dis)).then_some(self.busy_until);
        busy.into_iter().chain(self.features.background.poll_timeout()).min()
    }

    /// Time has advanced to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.settle(now);
    }

    /// Ends operations that are over at `now`.
    fn settle(&mut self, now: Instant) {
        self.settle_background(now);
        if now >= self.busy_until {
            match self.phase {
                Phase::In(State::Prg) => self.phase = Phase::In(State::Tran),
                Phase::In(State::Dis) => self.phase = Phase::In(State::Stby),
                _ => {}
            }
        }
    }

    /// The stored EXT_CSD, mutable.
    fn ext_csd(&mut self) -> &mut [u8; EXT_CSD_BYTES] {
        &mut self.device.registers_mut().ext_csd
    }

    /// The first byte of a stored field of EXT_CSD.
    fn ext_csd_byte(&self, field: &Field) -> u8 {
        self.kept()[field]
    }

    /// The stored EXT_CSD.
    fn kept(&self) -> &[u8; EXT_CSD_BYTES] {
        &self.device.stored_registers().ext_csd
    }

    /// The accessed area: PARTITION_CONFIG's access bits.
    fn area(&self) -> Area {
        match self.kind {
            CardKind::Sd => Area::User,
            CardKind::Emmc => Area::selected(self.ext_csd_byte(reg::PARTITION_CONFIG)),
        }
    }

    /// The status for a response: pending error bits, the state at the command's arrival, and current conditions.
    fn r1(&mut self) -> R1 {
        let state = match self.phase {
            Phase::In(state) => state,
            Phase::Off | Phase::PreIdle | Phase::Inactive => State::Idle,
        };
        let mut r1 = self.status.take().with(R1::in_state(state));
        let flags = [
            (R1::READY_FOR_DATA, !matches!(state, State::Prg | State::Dis)),
            (R1::IS_LOCKED, self.lock.is_locked()),
            (R1::EXCEPTION_EVENT, self.has_exception()),
            (R1::APP_CMD, self.after_app_cmd),
        ];
        for (flag, is_set) in flags {
            if is_set {
                r1 = r1.with(flag);
            }
        }
        r1
    }

    /// The card programs until `done`.
    fn program_until(&mut self, done: Instant) {
        self.phase = Phase::In(State::Prg);
        self.busy_until = done;
        self.features.busy = std::mem::take(&mut self.features.next_busy);
    }

    /// Converts an error from below to status bits; a lost supply switches the card off.
    fn note_error(&mut self, error: &StorageError) {
        match error {
            StorageError::OutOfRange { .. } => self.status.raise(R1::OUT_OF_RANGE),
            StorageError::Ftl(FtlError::WornOut) => self.status.raise(R1::ERROR),
            StorageError::Ftl(FtlError::Uncorrectable { .. }) => self.status.raise(R1::ECC_FAILED),
            StorageError::Ftl(FtlError::PowerLost) => self.phase = Phase::Off,
        }
    }

    /// The end of an operation that may have failed; a failed one ends immediately.
    fn done_or_failed(&mut self, result: Result<Instant, StorageError>, now: Instant) -> Instant {
        result.unwrap_or_else(|error| {
            self.note_error(&error);
            now
        })
    }

    /// The time of a block of `bytes` bytes on the bus.
    fn bus_time(&self, bytes: usize) -> Nanos {
        self.device.bus().read(bytes.div_ceil(512) as u32)
    }
}
