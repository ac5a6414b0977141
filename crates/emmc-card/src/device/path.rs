//! The data path: firmware, bus, buffer and cache between host and translation layer, in time.
//!
//! A transfer is cut into chunks, so that the flash works on the first while the bus carries the next; the buffer holds
//! what is under way, and the bus waits when it is full. Both the command level and the simulation come through here.

mod read;
mod trim;
mod write;

use std::collections::VecDeque;

pub(crate) use write::WriteRequest;

use emmc_units::{Instant, Nanos};

use super::bus::Bus;
use super::cache::VolatileCache;
use super::op::{Area, HostDone, StorageError};
use super::storage::Storage;
use crate::ftl::FtlError;
use crate::nand::Nand;
use crate::profile::{Controller, FtlConfig, Mapping};

/// What the path remembers between requests; all of it is lost with power.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) bus: Bus,
    pub(crate) cache: VolatileCache,
    /// Whether a layer has one place for all that is written, so that what closes the last chunk closes all.
    closes_together: bool,
    /// Whether a chunk shorter than the others may go elsewhere: to the SLC cache.
    splits_short: bool,
    /// CACHE_CTRL.
    pub(crate) cache_on: bool,
    read_overhead: Nanos,
    write_overhead: Nanos,
    buffer_bytes: u64,
    read_ahead_sectors: u64,
    chunk_sectors: u64,
    batch_units: usize,
    bus_free: Instant,
    /// When the firmware can take up the next request.
    firmware_free: Instant,
    /// Programs under way from the buffer: end and bytes, in order of issue.
    under_way: VecDeque<(Instant, u64)>,
    under_way_bytes: u64,
    /// Units at the head of the cache that their layer has been told of.
    foreseen: usize,
    ahead: Option<Ahead>,
    last_read: Option<(Area, u64)>,
    /// The next request goes on with the last one's transfer: no command is sent and no firmware works for it.
    pub(crate) goes_on: bool,
    unit: Vec<u8>,
}

/// Sectors read before they were asked for.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    area: Area,
    first: u64,
    end: u64,
    ready: Instant,
}

impl Path {
    pub(crate) fn new(controller: &Controller, config: &FtlConfig, storage: &Storage) -> Self {
        let geometry = storage.nand.geometry();
        let stripe = geometry.page_bytes() * geometry.lanes();
        let unit_bytes = geometry.unit_bytes;
        Self {
            closes_together: config.mapping == Mapping::Page,
            splits_short: config.slc_cache.is_some(),
            bus: Bus::clocked(controller.bus(), controller.bus_clock_hz()),
            cache: VolatileCache::new((controller.cache_bytes / unit_bytes) as usize),
            cache_on: false,
            read_overhead: Nanos::from_micros_f64(controller.read_overhead_us),
            write_overhead: Nanos::from_micros_f64(controller.write_overhead_us),
            buffer_bytes: u64::from(controller.buffer_bytes.max(stripe)),
            read_ahead_sectors: u64::from(controller.read_ahead_bytes / 512),
            chunk_sectors: u64::from(stripe.max((8 * unit_bytes).min(32 << 10)) / 512),
            batch_units: (stripe / unit_bytes) as usize,
            bus_free: Instant::START,
            firmware_free: Instant::START,
            under_way: VecDeque::new(),
            under_way_bytes: 0,
            foreseen: 0,
            ahead: None,
            last_read: None,
            goes_on: false,
            unit: vec![0; unit_bytes as usize],
        }
    }

    /// Everything in memory is gone: power went.
    pub(crate) fn forget(&mut self) {
        self.cache.clear();
        self.foreseen = 0;
        self.cache_on = false;
        self.under_way.clear();
        self.under_way_bytes = 0;
        self.ahead = None;
        self.last_read = None;
        self.goes_on = false;
    }

    /// Makes room for `bytes` in the buffer; answers when there is.
    #[inline]
    fn reserve(&mut self, bytes: u64, mut now: Instant) -> Instant {
        while let Some(&(done, held)) = self.under_way.front() {
            if done > now && self.under_way_bytes + bytes <= self.buffer_bytes {
                break;
            }
            now = now.max(done);
            self.under_way_bytes -= held;
            self.under_way.pop_front();
        }
        now
    }

    /// Brings everything to flash.
    pub(crate) fn flush(&mut self, storage: &mut Storage, now: Instant) -> Result<HostDone, StorageError> {
        let start = now.max(self.firmware_free) + self.bus.command();
        self.firmware_free = start;
        let mut done = start;
        while self.cache.len() > 0 {
            done = done.max(self.drain(storage, self.batch_units, done)?);
        }
        for &(ends, _) in &self.under_way {
            done = done.max(ends);
        }
        self.under_way.clear();
        self.under_way_bytes = 0;
        let Storage { nand, regions, .. } = storage;
        for region in regions {
            done = done.max(region.ftl.flush(nand, start)?);
        }
        Ok(HostDone { transferred: start, done })
    }

    /// One step of background work over all regions, the cache first; `None` when nothing is to do.
    pub(crate) fn background(&mut self, storage: &mut Storage, now: Instant) -> Result<Option<Instant>, FtlError> {
        if self.cache.len() > 0 {
            self.drain(storage, self.batch_units, now)?;
            return Ok(Some(quiet(&storage.nand, now)));
        }
        let Storage { nand, regions, .. } = storage;
        for region in regions {
            if let Some(done) = region.ftl.background(nand, now)? {
                return Ok(Some(done));
            }
        }
        Ok(None)
    }
}

fn quiet(nand: &Nand, now: Instant) -> Instant {
    nand.quiet_at().max(now)
}
