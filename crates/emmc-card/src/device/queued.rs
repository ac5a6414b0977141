//! Queued tasks before their transfer: what the command queue has the device do.

use emmc_units::Instant;

use super::Device;
use super::op::{Area, StorageError};

impl Device {
    /// Fetches a queued read into the buffer, before its transfer. Returns when its first chunk is there; `None`: the
    /// buffer has no room before another transfer ends.
    ///
    /// Errors: out of range, power lost.
    pub fn prepare_read(
        &mut self,
        area: Area,
        lba: u64,
        sectors: u32,
        now: Instant,
    ) -> Result<Option<Instant>, StorageError> {
        self.powered()?;
        self.path.prepare_read(&mut self.storage, area, lba, sectors, now)
    }

    /// The firmware takes a queued write, before its transfer. Returns when the data can come.
    ///
    /// Errors: out of range, worn out, power lost.
    pub fn prepare_write(&mut self, area: Area, lba: u64, sectors: u32, now: Instant) -> Result<Instant, StorageError> {
        self.writable()?;
        self.path.prepare_write(&self.storage, area, lba, sectors, now)
    }

    /// A queued write has ended, transferred or not.
    pub(crate) fn drop_prepared_write(&mut self, area: Area, lba: u64) {
        self.path.drop_prepared_write(area, lba);
    }

    /// A queued read has ended, transferred or not: what was fetched for it is dropped.
    pub fn drop_prepared(&mut self, area: Area, lba: u64, sectors: u32) {
        self.path.drop_prepared(area, lba, lba + u64::from(sectors));
    }

    /// Everything that was fetched for queued reads is dropped.
    pub(crate) fn drop_all_prepared(&mut self) {
        self.path.drop_all_prepared();
    }
}
