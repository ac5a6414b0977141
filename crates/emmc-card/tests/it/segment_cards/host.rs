//! The host of the runs: one thread, one request at a time, split as Linux splits them.

use emmc_card::device::{Area, Device, DeviceOptions, WriteFlags};
use emmc_card::nand::StoredContent;
use emmc_card::profile::Profile;
use emmc_units::{Instant, Nanos};

/// The largest request of the MMC block driver on those hosts.
const REQUEST_BYTES: u64 = 512 << 10;

pub(crate) fn named(profile: &str) -> Profile {
    let text = std::fs::read_to_string(format!("{}/profiles/{profile}.toml", env!("CARGO_MANIFEST_DIR"))).unwrap();
    Profile::from_toml(&text).unwrap()
}

pub(crate) struct Host {
    device: Device,
    pub(crate) now: Instant,
    /// What the host itself needs for writes of several requests, as a multiple of the square of their number.
    pub(crate) many_requests: Nanos,
}

impl Host {
    pub(crate) fn new(profile: &str) -> Self {
        Self::with(named(profile))
    }

    pub(crate) fn with(profile: Profile) -> Self {
        let device = Device::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 }).unwrap();
        Self { device, now: Instant::START, many_requests: Nanos::ZERO }
    }

    /// O_DIRECT and O_SYNC: back when the card is done.
    pub(crate) fn write(&mut self, at: u64, bytes: u64) {
        let requests = bytes.div_ceil(REQUEST_BYTES);
        for request in 0..requests {
            let first = at + request * REQUEST_BYTES;
            let length = (at + bytes - first).min(REQUEST_BYTES);
            let (lba, sectors) = (first / 512, (length / 512) as u32);
            let done = self.device.write(Area::User, lba, sectors, WriteFlags::default(), None, self.now).unwrap();
            self.now = done.done;
        }
        self.now = self.now + self.many_requests * (requests * requests - 1);
    }

    pub(crate) fn read(&mut self, at: u64, bytes: u64) {
        for first in (at..at + bytes).step_by(REQUEST_BYTES as usize) {
            let length = (at + bytes - first).min(REQUEST_BYTES);
            self.now = self.device.read(Area::User, first / 512, (length / 512) as u32, None, self.now).unwrap().done;
        }
    }

    /// A card in use: the range of the run was written before.
    pub(crate) fn fill(&mut self, from: u64, bytes: u64) {
        (from..from + bytes).step_by(4 << 20).for_each(|at| self.write(at, bytes.min(4 << 20)));
    }

    pub(crate) fn audit(&self) {
        self.device.audit().unwrap();
        assert_eq!(self.device.nand().counters().violations, 0);
    }
}
