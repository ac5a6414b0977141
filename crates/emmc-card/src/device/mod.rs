//! A card below its commands: areas, data path, cache, power, wear.
//!
//! Commands lead to [`Device::write`], [`Device::read`], [`Device::trim`] and [`Device::flush`]; a simulation calls
//! them directly, the command level (`card`) after the standard's rules. Absent on purpose: commands, states and the
//! rules of registers (`card`), and the clock: every call gets `now` as an argument.

mod age;
mod bus;
mod cache;
mod damage;
mod health;
mod image;
mod inspection;
mod missing;
mod op;
mod path;
mod queued;
mod source;
mod storage;
mod switch;

use emmc_regs::ext_csd::reg;
use emmc_units::Instant;

pub use bus::Bus;
pub use health::{EraseCounts, Health};
pub use image::ImageError;
pub(crate) use image::{DeviceImage, DeviceState};
pub use missing::{Beyond, Missing, Piece};
pub use op::{Area, HostDone, StorageError, WriteFlags};

use crate::ftl::{Durability, FtlError, TrimKind};
use crate::nand::{Geometry, Nand, StoredContent};
use crate::profile::{Layout, LayoutError, Partitioning, Profile, RegisterImage};
use path::{Path, WriteRequest};
use storage::Storage;

/// Options of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceOptions {
    /// What the flash model stores: the mapping only, recovery records, or content too.
    pub keep: StoredContent,
    /// Seed of the differences between specimens.
    pub seed: u64,
}

/// Why a profile cannot become a card.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The profile breaks a rule.
    #[error(transparent)]
    Profile(#[from] crate::profile::ProfileError),
    /// Its parts are inconsistent.
    #[error("profile {profile}: {error}")]
    Layout {
        /// The profile's name.
        profile: String,
        /// The inconsistency.
        error: LayoutError,
    },
}

/// A virtual card without its commands.
#[derive(Debug)]
pub struct Device {
    profile: Profile,
    options: DeviceOptions,
    registers: RegisterImage,
    partitioning: Partitioning,
    storage: Storage,
    path: Path,
    powered: bool,
    /// No spare block is left: writes are refused.
    worn_out: bool,
}

impl Device {
    /// A card fresh from the factory, powered.
    ///
    /// Errors: a profile that breaks a rule.
    pub fn new(profile: Profile, options: DeviceOptions) -> Result<Self, DeviceError> {
        profile.check()?;
        let layout_error = |error| DeviceError::Layout { profile: profile.name.clone(), error };
        let layout = Layout::factory(&profile, options.seed).map_err(layout_error)?;
        let geometry = Geometry::new(&profile.nand, layout.blocks, profile.ftl.unit_bytes);
        let nand = Nand::new(&profile.nand, geometry, options.seed).keeping(options.keep);
        let storage = Storage::new(nand, &profile.ftl, &layout);
        let path = Path::new(&profile.controller, &profile.ftl, &storage);
        let registers = RegisterImage::new(&profile);
        Ok(Self {
            registers,
            partitioning: Partitioning::default(),
            storage,
            path,
            powered: true,
            worn_out: false,
            profile,
            options,
        })
    }

    /// Its profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The flash, for inspection.
    pub fn nand(&self) -> &Nand {
        &self.storage.nand
    }

    /// Whether sectors store their content.
    pub fn keeps_data(&self) -> bool {
        self.storage.nand.keeps_data()
    }

    /// Sectors of an area; 0: no such area.
    pub fn sectors(&self, area: Area) -> u64 {
        self.storage.sectors(area)
    }

    /// The areas that exist.
    pub fn areas(&self) -> Vec<Area> {
        self.storage.areas()
    }

    /// The stored registers, mutable for the rules of the command level.
    pub(crate) fn registers_mut(&mut self) -> &mut RegisterImage {
        &mut self.registers
    }

    /// The stored registers.
    pub(crate) fn stored_registers(&self) -> &RegisterImage {
        &self.registers
    }

    /// The flash, for arming power cuts and fault injection.
    pub fn nand_mut(&mut self) -> &mut Nand {
        &mut self.storage.nand
    }

    /// The bus in its present mode.
    pub fn bus(&self) -> &Bus {
        &self.path.bus
    }

    /// The user's partitioning.
    pub fn partitioning(&self) -> &Partitioning {
        &self.partitioning
    }

    /// Partitions the card: erases every block and creates the regions again. All data is lost; the wear remains.
    /// `None`: power was lost, and it must be repeated.
    ///
    /// Errors: it does not fit; then nothing has changed.
    pub fn partition(&mut self, partitioning: Partitioning, now: Instant) -> Result<Option<Instant>, LayoutError> {
        let layout = Layout::new(&self.profile, &partitioning, self.options.seed)?;
        self.path.forget();
        self.path.forget_counts();
        let ready = self.storage.lay_out(&self.profile.ftl, &layout, now);
        match ready {
            Some(_) => self.partitioning = partitioning,
            None => self.powered = false,
        }
        Ok(ready)
    }

    /// The bus, for reading or setting the host's mode.
    pub(crate) fn bus_mut(&mut self) -> &mut Bus {
        &mut self.path.bus
    }

    /// The next read or write continues the last transfer: no command and no firmware time.
    pub(crate) fn go_on(&mut self) {
        self.path.goes_on = true;
    }

    /// The host stopped a read at `now`, before sector `end`: sectors fetched beyond are not transferred.
    pub(crate) fn stop_read(&mut self, area: Area, end: u64, now: Instant) {
        self.path.stop_read(area, end, now);
    }

    /// The busy signal ends at `now`, before the work that it stood for.
    pub(crate) fn end_busy(&mut self, now: Instant) {
        self.path.end_busy(now);
    }

    /// Whether it is read-only because no spare block is left.
    pub fn is_worn_out(&self) -> bool {
        self.worn_out
    }

    /// The durability of an uncached write to an area: WR_REL_SET, or more if the write requires it.
    fn durability(&self, area: Area, flags: WriteFlags) -> Durability {
        let bit = match area {
            Area::User => 0,
            Area::Gp(number) => 1 + number,
            Area::Boot(_) | Area::Rpmb => return Durability::Reliable,
        };
        if flags.reliable || self.registers.ext_csd[reg::WR_REL_SET] >> bit & 1 == 1 {
            Durability::Reliable
        } else {
            Durability::Flash
        }
    }

    /// Writes sectors.
    ///
    /// Shape: `data` is `sectors` x 512 bytes if the card stores data, else absent.
    /// Errors: out of range, worn out, power lost.
    #[inline]
    pub fn write(
        &mut self,
        area: Area,
        lba: u64,
        sectors: u32,
        flags: WriteFlags,
        data: Option<&[u8]>,
        now: Instant,
    ) -> Result<HostDone, StorageError> {
        self.writable()?;
        self.storage.nand.passed(now);
        if data.is_none() {
            if let Some(result) = self.path.write_one(&mut self.storage, (area, lba, sectors), flags, now) {
                return self.note(result);
            }
        }
        self.write_any(area, lba, sectors, flags, data, now)
    }

    /// Any other write than [`Path::write_one`].
    #[inline(never)]
    fn write_any(
        &mut self,
        area: Area,
        lba: u64,
        sectors: u32,
        flags: WriteFlags,
        data: Option<&[u8]>,
        now: Instant,
    ) -> Result<HostDone, StorageError> {
        let durability = self.durability(area, flags);
        let inverted = data.filter(|_| self.erases_to_ones()).map(op::inverted);
        let data = inverted.as_deref().or(data);
        let result =
            self.path.write(&mut self.storage, WriteRequest { area, lba, sectors, flags, durability }, data, now);
        self.note(result)
    }

    /// Reads sectors.
    ///
    /// Shape: `out` is `sectors` x 512 bytes if the card stores data, else absent.
    /// Errors: out of range, uncorrectable, power lost.
    pub fn read(
        &mut self,
        area: Area,
        lba: u64,
        sectors: u32,
        mut out: Option<&mut [u8]>,
        now: Instant,
    ) -> Result<HostDone, StorageError> {
        self.powered()?;
        let done = self.path.read(&mut self.storage, area, lba, sectors, out.as_deref_mut(), now)?;
        if let Some(out) = out.filter(|_| self.erases_to_ones()) {
            out.iter_mut().for_each(|byte| *byte = !*byte);
        }
        Ok(done)
    }

    /// ERASED_MEM_CONT. The layers below erase to zeros: for ones, all content is inverted on its way.
    fn erases_to_ones(&self) -> bool {
        self.registers.ext_csd[reg::ERASED_MEM_CONT] & 1 == 1
    }

    /// Trims sectors.
    ///
    /// Errors: out of range, worn out, power lost.
    pub fn trim(
        &mut self,
        area: Area,
        lba: u64,
        sectors: u64,
        kind: TrimKind,
        now: Instant,
    ) -> Result<HostDone, StorageError> {
        self.writable()?;
        let result = self.path.trim(&mut self.storage, area, lba, sectors, kind, now);
        self.note(result)
    }

    /// Flushes all volatile data to flash.
    ///
    /// Errors: worn out, power lost.
    pub fn flush(&mut self, now: Instant) -> Result<HostDone, StorageError> {
        self.powered()?;
        let result = self.path.flush(&mut self.storage, now);
        self.note(result)
    }

    /// One bounded step of background work; `None` if there is none.
    ///
    /// Errors: worn out, power lost.
    pub fn background(&mut self, now: Instant) -> Result<Option<Instant>, StorageError> {
        self.writable()?;
        let result = self.path.background(&mut self.storage, now).map_err(StorageError::from);
        self.note(result)
    }

    /// Physically removes all invalid data (sanitize).
    ///
    /// Errors: worn out, power lost.
    pub fn purge(&mut self, now: Instant) -> Result<Instant, StorageError> {
        let mut done = self.flush(now)?.done;
        let Storage { nand, regions, .. } = &mut self.storage;
        for region in regions {
            done = done.max(region.ftl.purge(nand, done)?);
        }
        Ok(done)
    }

    /// Power is lost at `now`, with all volatile data.
    pub fn power_off(&mut self, now: Instant) {
        self.powered = false;
        self.path.forget();
        self.storage.nand.power_off(now);
    }

    /// Power returns: the layers rebuild themselves from flash. Returns when the card is ready.
    ///
    /// Errors: power lost again, at an armed cut.
    pub fn power_on(&mut self, now: Instant) -> Result<Instant, StorageError> {
        // Power may have been lost in the middle of a request, without `power_off`.
        self.path.forget();
        self.storage.nand.power_on(now);
        let mut ready = now;
        let Storage { nand, regions, .. } = &mut self.storage;
        for region in regions {
            ready = ready.max(region.ftl.recover(nand, now)?);
        }
        self.powered = true;
        Ok(ready)
    }

    /// Wear, bad blocks and spares.
    pub fn health(&self) -> Health {
        Health::of(&self.storage, &self.profile.nand)
    }

    /// The registers as a host would read them now.
    pub fn registers(&self) -> RegisterImage {
        let mut image = self.registers.clone();
        if self.profile.kind == emmc_regs::CardKind::Emmc {
            let health = self.health();
            image.ext_csd[reg::BKOPS_STATUS] = self.urgency();
            image.ext_csd[reg::PRE_EOL_INFO] = health.pre_eol_info();
            image.ext_csd[reg::DEVICE_LIFE_TIME_EST_TYP_A] = health.life_time_a();
            image.ext_csd[reg::DEVICE_LIFE_TIME_EST_TYP_B] = health.life_time_b();
        }
        image
    }

    #[inline]
    fn powered(&self) -> Result<(), StorageError> {
        if self.powered { Ok(()) } else { Err(FtlError::PowerLost.into()) }
    }

    #[inline]
    fn writable(&self) -> Result<(), StorageError> {
        self.powered()?;
        if self.worn_out { Err(FtlError::WornOut.into()) } else { Ok(()) }
    }

    /// Updates the card's state after an error.
    #[inline]
    fn note<T>(&mut self, result: Result<T, StorageError>) -> Result<T, StorageError> {
        if let Err(StorageError::Ftl(error)) = &result {
            self.worn_out |= *error == FtlError::WornOut;
            self.powered &= *error != FtlError::PowerLost;
        }
        result
    }
}
