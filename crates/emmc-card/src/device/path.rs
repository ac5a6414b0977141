//! The data path: firmware, bus, buffer and cache between host and translation layer, in time.
//!
//! A transfer is cut into chunks, so that the flash works on the first while the bus carries the next; the buffer holds
//! what is under way, and the bus waits when it is full. Both the command level and the simulation come through here.

use std::collections::VecDeque;

use emmc_units::{Instant, Nanos};

use super::bus::Bus;
use super::cache::{Dirty, VolatileCache};
use super::op::{Area, HostDone, StorageError, WriteFlags};
use super::storage::{Run, Storage};
use crate::ftl::{Durability, FtlError, TrimKind};
use crate::nand::Nand;
use crate::profile::Controller;

/// What the path remembers between requests; all of it is lost with power.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) bus: Bus,
    pub(crate) cache: VolatileCache,
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
    ahead: Option<Ahead>,
    last_read: Option<(Area, u64)>,
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
    pub(crate) fn new(controller: &Controller, storage: &Storage) -> Self {
        let geometry = storage.nand.geometry();
        let stripe = geometry.page_bytes() * geometry.lanes();
        let unit_bytes = geometry.unit_bytes;
        Self {
            bus: Bus::new(controller.bus.unwrap_or(controller.bus_max)),
            cache: VolatileCache::new((controller.cache_bytes / unit_bytes) as usize),
            cache_on: false,
            read_overhead: Nanos::from_micros_f64(controller.read_overhead_us),
            write_overhead: Nanos::from_micros_f64(controller.write_overhead_us),
            buffer_bytes: u64::from(controller.buffer_bytes.max(stripe)),
            read_ahead_sectors: u64::from(controller.read_ahead_bytes / 512),
            chunk_sectors: u64::from(stripe.max(32 << 10) / 512),
            batch_units: (stripe / unit_bytes) as usize,
            bus_free: Instant::START,
            firmware_free: Instant::START,
            under_way: VecDeque::new(),
            under_way_bytes: 0,
            ahead: None,
            last_read: None,
            unit: vec![0; unit_bytes as usize],
        }
    }

    /// Everything in memory is gone: power went.
    pub(crate) fn forget(&mut self) {
        self.cache.clear();
        self.cache_on = false;
        self.under_way.clear();
        self.under_way_bytes = 0;
        self.ahead = None;
        self.last_read = None;
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

    /// The host's write of sectors; `data` where payload is simulated.
    pub(crate) fn write(
        &mut self,
        storage: &mut Storage,
        area: Area,
        lba: u64,
        sectors: u32,
        flags: WriteFlags,
        durability: Durability,
        data: Option<&[u8]>,
        now: Instant,
    ) -> Result<HostDone, StorageError> {
        storage.check(area, lba, u64::from(sectors))?;
        if self.ahead.is_some_and(|ahead| ahead.area == area && lba < ahead.end && lba + u64::from(sectors) > ahead.first)
        {
            self.ahead = None;
        }
        let cached = self.cache_on && !flags.reliable && !flags.force;
        let mut arrived = now.max(self.firmware_free) + self.bus.command() + self.write_overhead;
        self.firmware_free = arrived;
        arrived = arrived.max(self.bus_free);
        let (mut at, end) = (lba, lba + u64::from(sectors));
        let mut done = arrived;
        while at < end {
            // Cut at multiples of the chunk, so that whole pages go to whole pages.
            let chunk = (self.chunk_sectors - at % self.chunk_sectors).min(end - at);
            let run = storage.run(area, at, chunk);
            let bytes = run.sectors * 512;
            arrived = self.reserve(bytes, arrived) + self.bus.write(run.sectors as u32);
            let part = data.map(|data| &data[((at - lba) * 512) as usize..][..bytes as usize]);
            let is_last = at + run.sectors == end;
            if cached {
                done = done.max(self.write_cached(storage, &run, part, arrived)?);
            } else {
                self.cache_past(storage, &run, arrived)?;
                let durability = if is_last || durability == Durability::Reliable { durability } else { Durability::Buffered };
                let written = self.write_run(storage, &run, part, durability, arrived)?;
                self.under_way.push_back((written, bytes));
                self.under_way_bytes += bytes;
                done = done.max(written);
            }
            at += run.sectors;
        }
        self.bus_free = arrived;
        let done = if cached { done.max(arrived) } else { done };
        Ok(HostDone { transferred: arrived, done })
    }

    /// Writes a run straight to its layer, reading and merging units that it covers only in part.
    fn write_run(
        &mut self,
        storage: &mut Storage,
        run: &Run,
        data: Option<&[u8]>,
        durability: Durability,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let Storage { nand, regions, .. } = storage;
        let ftl = regions[usize::from(run.region)].ftl.as_mut();
        if run.head == 0 && run.tail == 0 {
            return ftl.write(nand, run.unit, run.units, data, durability, now);
        }
        let unit_bytes = self.unit.len();
        let mut whole = data.map(|_| vec![0; run.units as usize * unit_bytes]);
        let mut ready = now;
        let last = run.units - 1;
        let edges = [(0, run.head > 0 || run.units == 1 && run.tail > 0), (last, run.units > 1 && run.tail > 0)];
        for (unit, partial) in edges {
            if partial {
                let out = whole.as_mut().map(|whole| &mut whole[unit as usize * unit_bytes..][..unit_bytes]);
                ready = ready.max(ftl.read(nand, run.unit + unit, 1, out, now)?);
            }
        }
        if let (Some(whole), Some(data)) = (&mut whole, data) {
            whole[run.head as usize * 512..][..data.len()].copy_from_slice(data);
        }
        ftl.write(nand, run.unit, run.units, whole.as_deref(), durability, ready)
    }

    /// Takes a run into the cache; answers when it is there.
    fn write_cached(
        &mut self,
        storage: &mut Storage,
        run: &Run,
        data: Option<&[u8]>,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let unit_bytes = self.unit.len();
        let mut ready = now;
        for index in 0..run.units {
            if self.cache.is_full() {
                ready = self.drain(storage, self.batch_units, ready)?;
            }
            let head = if index == 0 { run.head as usize * 512 } else { 0 };
            let tail = if index + 1 == run.units { run.tail as usize * 512 } else { 0 };
            let unit = run.unit + index;
            let mut content = data.map(|_| vec![0; unit_bytes].into_boxed_slice());
            if head > 0 || tail > 0 {
                ready = self.read_unit(storage, run.region, unit, content.as_deref_mut(), ready)?;
            }
            if let (Some(content), Some(data)) = (&mut content, data) {
                let from = (index as usize * unit_bytes + head) - run.head as usize * 512;
                let length = unit_bytes - head - tail;
                content[head..head + length].copy_from_slice(&data[from..from + length]);
            }
            self.cache.put(Dirty { region: run.region, unit, data: content });
        }
        Ok(ready)
    }

    /// One unit, from the cache or from flash.
    fn read_unit(
        &self,
        storage: &mut Storage,
        region: u8,
        unit: u32,
        out: Option<&mut [u8]>,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        if let Some(dirty) = self.cache.find(region, unit) {
            if let (Some(out), Some(data)) = (out, &dirty.data) {
                out.copy_from_slice(data);
            }
            return Ok(now);
        }
        storage.regions[usize::from(region)].ftl.read(&mut storage.nand, unit, 1, out, now)
    }

    /// Sends the oldest `units` of the cache to flash; answers when they have left it.
    pub(crate) fn drain(&mut self, storage: &mut Storage, units: usize, now: Instant) -> Result<Instant, FtlError> {
        let unit_bytes = self.unit.len() as u64;
        let units = units.min(self.cache.len());
        let now = self.reserve(unit_bytes * units as u64, now);
        let mut done = now;
        for _ in 0..units {
            let Some(dirty) = self.cache.take_oldest() else { break };
            let ftl = storage.regions[usize::from(dirty.region)].ftl.as_mut();
            let data = dirty.data.as_deref();
            done = done.max(ftl.write(&mut storage.nand, dirty.unit, 1, data, Durability::Buffered, now)?);
        }
        self.under_way.push_back((done, unit_bytes * units as u64));
        self.under_way_bytes += unit_bytes * units as u64;
        Ok(now)
    }

    /// Before a run is written past the cache: what waits there of its edge units must not be lost or come later.
    fn cache_past(&mut self, storage: &mut Storage, run: &Run, now: Instant) -> Result<(), FtlError> {
        let last = run.unit + run.units - 1;
        for (unit, partial) in [(run.unit, run.head > 0 || run.tail > 0), (last, run.tail > 0)] {
            if partial && self.cache.find(run.region, unit).is_some() {
                self.drain(storage, self.cache.len(), now)?;
            }
        }
        self.cache.forget(run.region, run.unit, run.units);
        Ok(())
    }

    /// The host's read of sectors into `out`, where payload is simulated.
    pub(crate) fn read(
        &mut self,
        storage: &mut Storage,
        area: Area,
        lba: u64,
        sectors: u32,
        mut out: Option<&mut [u8]>,
        now: Instant,
    ) -> Result<HostDone, StorageError> {
        storage.check(area, lba, u64::from(sectors))?;
        let start = now.max(self.firmware_free) + self.bus.command();
        let asked = start + self.read_overhead;
        self.firmware_free = start;
        let (mut at, end) = (lba, lba + u64::from(sectors));
        let mut bus = self.bus_free.max(start);
        while at < end {
            let chunk = (self.chunk_sectors - at % self.chunk_sectors).min(end - at);
            let run = storage.run(area, at, chunk);
            let bytes = (run.sectors * 512) as usize;
            let part = out.as_mut().map(|out| &mut out[((at - lba) * 512) as usize..][..bytes]);
            let known = self.ahead.filter(|ahead| ahead.area == area && ahead.first <= at && at + run.sectors <= ahead.end);
            let ready = match (known, part) {
                (Some(ahead), None) => ahead.ready.max(start),
                // The content is read again without asking for the time that was paid already.
                (Some(ahead), Some(part)) => {
                    self.read_run(storage, &run, Some(part), asked)?;
                    ahead.ready.max(start)
                }
                (None, part) => self.read_run(storage, &run, part, asked)?,
            };
            bus = bus.max(ready) + self.bus.read(run.sectors as u32);
            at += run.sectors;
        }
        self.bus_free = bus;
        self.look_ahead(storage, area, lba, end, bus)?;
        Ok(HostDone { transferred: bus, done: bus })
    }

    /// After a read that went on where the last one ended: the next sectors are read into memory.
    fn look_ahead(&mut self, storage: &mut Storage, area: Area, lba: u64, end: u64, now: Instant) -> Result<(), FtlError> {
        let sequential = self.last_read.replace((area, end)) == Some((area, lba));
        if self.read_ahead_sectors == 0 {
            return Ok(());
        }
        if !sequential {
            self.ahead = None;
            return Ok(());
        }
        let known_to = self.ahead.filter(|ahead| ahead.area == area && ahead.end > end).map_or(end, |ahead| ahead.end);
        let size = storage.sectors(area);
        if known_to > end || end >= size {
            return Ok(());
        }
        let sectors = self.read_ahead_sectors.min(size - end);
        let (mut at, mut ready) = (end, now);
        while at < end + sectors {
            let run = storage.run(area, at, end + sectors - at);
            ready = ready.max(self.read_run(storage, &run, None, now)?);
            at += run.sectors;
        }
        self.ahead = Some(Ahead { area, first: end, end: end + sectors, ready });
        Ok(())
    }

    /// Reads a run; units that wait in the cache come from there.
    fn read_run(
        &mut self,
        storage: &mut Storage,
        run: &Run,
        out: Option<&mut [u8]>,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let simple = run.head == 0 && run.tail == 0 || out.is_none();
        if self.cache.len() == 0 && simple {
            let Storage { nand, regions, .. } = storage;
            return regions[usize::from(run.region)].ftl.read(nand, run.unit, run.units, out, now);
        }
        let unit_bytes = self.unit.len();
        let mut whole = out.as_ref().map(|_| vec![0; run.units as usize * unit_bytes]);
        let mut ready = now;
        for index in 0..run.units {
            let part = whole.as_mut().map(|whole| &mut whole[index as usize * unit_bytes..][..unit_bytes]);
            ready = ready.max(self.read_unit(storage, run.region, run.unit + index, part, now)?);
        }
        if let (Some(out), Some(whole)) = (out, whole) {
            out.copy_from_slice(&whole[run.head as usize * 512..][..out.len()]);
        }
        Ok(ready)
    }

    /// Gives up sectors. Edges that are no whole unit are overwritten with zeros where they must read as erased.
    pub(crate) fn trim(
        &mut self,
        storage: &mut Storage,
        area: Area,
        lba: u64,
        sectors: u64,
        kind: TrimKind,
        now: Instant,
    ) -> Result<HostDone, StorageError> {
        storage.check(area, lba, sectors)?;
        self.ahead = None;
        let start = now.max(self.firmware_free) + self.bus.command() + self.write_overhead;
        self.firmware_free = start;
        let mut done = start;
        let unit_sectors = u64::from(storage.unit_sectors());
        let (mut at, end) = (lba, lba + sectors);
        while at < end {
            let mut run = storage.run(area, at, end - at);
            if run.head > 0 || run.sectors < unit_sectors {
                run = storage.run(area, at, (unit_sectors - u64::from(run.head)).min(end - at));
                done = done.max(self.trim_edge(storage, &run, kind, done)?);
            } else {
                let units = (run.sectors / unit_sectors) as u32;
                self.cache.forget(run.region, run.unit, units);
                let Storage { nand, regions, .. } = storage;
                done = done.max(regions[usize::from(run.region)].ftl.trim(nand, run.unit, units, kind, done)?);
                run.sectors = u64::from(units) * unit_sectors;
            }
            at += run.sectors;
        }
        Ok(HostDone { transferred: start, done })
    }

    fn trim_edge(&mut self, storage: &mut Storage, run: &Run, kind: TrimKind, now: Instant) -> Result<Instant, FtlError> {
        let mapped = storage.regions[usize::from(run.region)].ftl.is_mapped(run.unit);
        let cached = self.cache.find(run.region, run.unit).is_some();
        if kind == TrimKind::Discard || !mapped && !cached {
            return Ok(now);
        }
        self.cache_past(storage, run, now)?;
        let keeps_data = storage.nand.keeps_data();
        let zeros = keeps_data.then(|| vec![0; (run.sectors * 512) as usize]);
        self.write_run(storage, run, zeros.as_deref(), Durability::Reliable, now)
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
