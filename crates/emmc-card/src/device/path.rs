//! The data path: firmware, bus, buffer and cache between host and translation layer, with their times.
//!
//! A transfer is split into chunks, so that the flash works on one while the bus transfers the next; the buffer holds
//! data in progress, and the bus waits when it is full. Both the command level and the simulation use it.

mod log_pages;
mod map_spans;
mod merge;
mod prepared;
mod read;
mod trim;
mod write;

use std::collections::VecDeque;

pub(crate) use write::WriteRequest;

use emmc_units::{Instant, Nanos, Rng};

use map_spans::MapSpans;
use merge::{Merging, SmallWrites};
use prepared::Prepared;

use super::bus::Bus;
use super::cache::VolatileCache;
use super::op::{Area, HostDone, StorageError};
use super::storage::Storage;
use crate::ftl::FtlError;
use crate::nand::Nand;
use crate::profile::{Controller, FtlConfig, Mapping};

/// State between requests; all of it is volatile.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) bus: Bus,
    pub(crate) cache: VolatileCache,
    /// Whether a layer has a single write frontier, so that closing the last chunk closes all.
    closes_together: bool,
    /// Whether a chunk that is shorter than the others may go elsewhere: to the SLC cache.
    splits_short: bool,
    /// CACHE_CTRL.
    pub(crate) cache_on: bool,
    /// Writes are acknowledged from a buffer that is always on, and programmed as soon as they fill a stripe.
    write_buffer: bool,
    /// Flash time for the map after each write from the write buffer, and when the last one ends.
    commit: Nanos,
    committed: Instant,
    /// When the last program from the write buffer ends.
    programmed: Instant,
    /// Copies hold up the next command.
    copies_alone: bool,
    read_overhead: Nanos,
    /// For each sector by which a read leaves its mapping units uncovered.
    read_missing: Nanos,
    write_overhead: Nanos,
    /// Variation of the firmware's times, as a share of 65536.
    spread: u64,
    small: SmallWrites,
    merging: Merging,
    /// All writes cost the same and belong to no stream, except for what is missing of mapping units.
    has_one_cost: bool,
    buffer_bytes: u64,
    read_ahead_sectors: u64,
    /// Every read starts a read-ahead.
    read_ahead_always: bool,
    map_spans: MapSpans,
    chunk_sectors: u64,
    batch_units: usize,
    bus_free: Instant,
    /// When the firmware is free for the next request.
    firmware_free: Instant,
    /// Units that were copied past the cache, not written by the host.
    copied: u64,
    /// Programs in progress from the buffer: end and bytes, in order of issue.
    under_way: VecDeque<(Instant, u64)>,
    under_way_bytes: u64,
    ahead: Option<Ahead>,
    /// Reads of queued tasks, fetched before their transfer.
    prepared: Prepared,
    last_read: Option<(Area, u64)>,
    /// The next request continues the last transfer: no command and no firmware time.
    pub(crate) goes_on: bool,
    unit: Vec<u8>,
}

/// Sectors read ahead.
#[derive(Clone, Debug)]
struct Ahead {
    area: Area,
    first: u64,
    end: u64,
    ready: Instant,
    /// Content, if the card stores it.
    bytes: Option<Vec<u8>>,
}

impl Ahead {
    fn has(&self, area: Area, first: u64, end: u64) -> bool {
        self.area == area && self.first <= first && end <= self.end
    }
}

impl Path {
    pub(crate) fn new(controller: &Controller, config: &FtlConfig, storage: &Storage) -> Self {
        let geometry = storage.nand.geometry();
        let stripe = geometry.page_bytes() * geometry.lanes();
        let unit_bytes = geometry.unit_bytes;
        let batch_units = (stripe / unit_bytes) as usize;
        let write_buffer = controller.write_buffer_bytes > 0;
        // A stripe is programmed while the next one arrives.
        let cached_units = match write_buffer {
            true => ((controller.write_buffer_bytes / unit_bytes) as usize).max(2 * batch_units),
            false => (controller.cache_bytes / unit_bytes) as usize,
        };
        Self {
            closes_together: config.mapping == Mapping::Page,
            splits_short: config.slc_cache.is_some(),
            bus: Bus::clocked(controller.bus(), controller.bus_clock_hz()),
            cache: VolatileCache::new(cached_units),
            cache_on: write_buffer,
            write_buffer,
            commit: Nanos::from_micros_f64(controller.commit_us),
            committed: Instant::START,
            programmed: Instant::START,
            copies_alone: controller.copies_alone,
            read_overhead: Nanos::from_micros_f64(controller.read_overhead_us),
            read_missing: Nanos::from_micros_f64(controller.read_missing_us_per_kib / 2.0),
            write_overhead: Nanos::from_micros_f64(controller.write_overhead_us),
            spread: (controller.time_spread * 65536.0) as u64,
            has_one_cost: controller.small_write_bytes == 0 && controller.merge_bytes == 0,
            small: SmallWrites::new(controller),
            merging: Merging::new(controller),
            buffer_bytes: u64::from(match write_buffer {
                true => controller.write_buffer_bytes.max(2 * stripe),
                false => controller.buffer_bytes.max(stripe),
            }),
            read_ahead_sectors: u64::from(controller.read_ahead_bytes / 512),
            chunk_sectors: u64::from(stripe.max((8 * unit_bytes).min(32 << 10)) / 512),
            read_ahead_always: controller.read_ahead_always,
            map_spans: MapSpans::new(controller),
            batch_units,
            bus_free: Instant::START,
            firmware_free: Instant::START,
            copied: 0,
            under_way: VecDeque::new(),
            under_way_bytes: 0,
            ahead: None,
            prepared: Prepared::default(),
            last_read: None,
            goes_on: false,
            unit: vec![0; unit_bytes as usize],
        }
    }

    /// Units that the path wrote to the layers again: of merge units, and of pages of the log.
    pub(crate) fn written_again(&self) -> u64 {
        self.copied + self.cache.rests
    }

    /// The layers' counters begin again.
    pub(crate) fn forget_counts(&mut self) {
        (self.copied, self.cache.rests) = (0, 0);
    }

    /// Drops all volatile state: power was lost.
    pub(crate) fn forget(&mut self) {
        self.cache.clear();
        self.cache_on = self.write_buffer;
        self.merging.forget();
        self.map_spans.forget();
        (self.committed, self.programmed) = (Instant::START, Instant::START);
        self.under_way.clear();
        self.under_way_bytes = 0;
        self.ahead = None;
        self.prepared.clear();
        self.last_read = None;
        self.goes_on = false;
        self.bus_free = Instant::START;
    }

    /// A time of the firmware for a command that comes at `now`, with its variation: the same again at the same time.
    #[inline]
    fn stray(&self, time: Nanos, lba: u64, now: Instant) -> Nanos {
        if self.spread == 0 {
            return time;
        }
        let draw = Rng::new(now.0 ^ lba.wrapping_mul(0x9e37_79b9_7f4a_7c15)).next_u64() >> 48;
        let part = (time.0 * self.spread) >> 16;
        Nanos(time.0 - part + ((part * draw) >> 15))
    }

    /// The data lines are free at `now` at the latest: an interruption ended the busy signal.
    pub(crate) fn end_busy(&mut self, now: Instant) {
        self.bus_free = self.bus_free.min(now);
    }

    /// Makes space for `bytes` in the buffer; returns when there is enough.
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

    /// Flushes everything to flash.
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
        done = done.max(self.programmed).max(self.committed);
        self.under_way.clear();
        self.under_way_bytes = 0;
        let Storage { nand, regions, .. } = storage;
        for region in regions {
            done = done.max(region.ftl.flush(nand, start)?);
        }
        Ok(HostDone { transferred: start, done })
    }

    /// One step of background work over all regions, the cache first; `None` if there is none.
    pub(crate) fn background(&mut self, storage: &mut Storage, now: Instant) -> Result<Option<Instant>, FtlError> {
        if self.cache.len() > 0 {
            self.drain(storage, self.batch_units, now)?;
            // Nobody tells an SD card to flush, so it does that by itself.
            if self.write_buffer && self.cache.len() == 0 {
                let Storage { nand, regions, .. } = storage;
                for region in regions {
                    region.ftl.flush(nand, now)?;
                }
            }
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
