//! Writes: chunk by chunk over the bus, into the cache or to flash.

use emmc_units::{Instant, Nanos};

use super::Path;
use super::merge::{Kind, LARGE};
use super::read::read_whole;
use crate::device::cache::Dirty;
use crate::device::op::{Area, HostDone, StorageError, WriteFlags};
use crate::device::storage::{Run, Storage};
use crate::ftl::{Durability, FtlError};

/// Units of the cache that are written in one call.
const BATCH_UNITS: usize = 16;
/// Places in the cache at which units are announced to their layer: early enough that their map entries have come when
/// they are used, and what these point at.
const SOON_UNITS: usize = 48;
const NEXT_UNITS: usize = 16;

/// A write request of the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteRequest {
    pub(crate) area: Area,
    pub(crate) lba: u64,
    pub(crate) sectors: u32,
    pub(crate) flags: WriteFlags,
    /// Its durability if it bypasses the cache.
    pub(crate) durability: Durability,
}

impl Path {
    /// The most frequent request: one whole unit, without content, into the cache of a card whose writes all cost the
    /// same. These are the steps of [`Path::write`] without those that such a request does not take. `None`: it is
    /// another one.
    #[inline]
    pub(crate) fn write_one(
        &mut self,
        storage: &mut Storage,
        (area, lba, sectors): (Area, u64, u32),
        flags: WriteFlags,
        now: Instant,
    ) -> Option<Result<HostDone, StorageError>> {
        let is_cached = self.cache_on && !self.write_buffer && !flags.reliable && !flags.force;
        let is_plain = self.has_one_cost && !self.copies_alone && !self.goes_on && self.ahead.is_none();
        if !is_cached || !is_plain || !self.prepared.has_no_reads() || self.steps_back(area, lba) {
            return None;
        }
        let (region, unit) = storage.whole_unit(area, lba, sectors)?;
        self.merging.note(area, lba, lba + u64::from(sectors));
        let taken = self.prepared.take_write(area, lba, sectors.into());
        let mut arrived = now + self.bus.command();
        if !taken {
            self.firmware_free =
                now.max(self.firmware_free) + (self.bus.command() + self.stray(self.write_overhead, lba, now));
            arrived = self.firmware_free;
        }
        arrived = self.reserve(u64::from(sectors) * 512, arrived.max(self.bus_free)) + self.bus.write(sectors);
        let mut done = arrived;
        if self.cache.is_full() {
            match self.drain(storage, self.batch_units, arrived) {
                Ok(drained) => done = drained,
                Err(error) => return Some(Err(error.into())),
            }
        }
        self.cache.put(Dirty { region, unit, data: None, is_rest: false });
        self.bus_free = done;
        Some(Ok(HostDone { transferred: arrived, done }))
    }

    /// Writes sectors; `data` if payload is simulated.
    pub(crate) fn write(
        &mut self,
        storage: &mut Storage,
        request: WriteRequest,
        data: Option<&[u8]>,
        now: Instant,
    ) -> Result<HostDone, StorageError> {
        let WriteRequest { area, lba, sectors, flags, durability } = request;
        storage.check(area, lba, u64::from(sectors))?;
        if self
            .ahead
            .as_ref()
            .is_some_and(|ahead| ahead.area == area && lba < ahead.end && lba + u64::from(sectors) > ahead.first)
        {
            self.ahead = None;
        }
        self.prepared.drop_range(area, lba, lba + u64::from(sectors));
        let cached = self.cache_on && !flags.reliable && !flags.force;
        let steps_back = self.steps_back(area, lba);
        let follows = self.merging.follows(area, lba);
        let (cost, kind) = self.write_cost(storage, area, lba, sectors.into());
        let goes_on = std::mem::take(&mut self.goes_on);
        let mut arrived = if !goes_on && self.prepared.take_write(area, lba, sectors.into()) {
            // The firmware has done its work for a queued write when it took that.
            now + self.bus.command()
        } else {
            let overhead = if goes_on { Nanos::ZERO } else { self.bus.command() + self.stray(cost, lba, now) };
            self.firmware_free = now.max(self.firmware_free) + overhead;
            self.firmware_free
        };
        arrived = arrived.max(self.bus_free);
        if kind != Kind::Small && !self.has_one_cost {
            let missing = self.missing_cost(storage, LARGE, (area, lba, sectors.into()));
            // There is one buffer for the map of a stream: data elsewhere waits until that is in flash. So does a write
            // that keeps a part of its units, which are in flash only then.
            if !follows || missing > Nanos::ZERO {
                arrived = arrived.max(self.committed) + missing;
                self.firmware_free = self.firmware_free.max(arrived);
            }
        }
        arrived = self.follow_stream(storage, (area, lba, sectors.into()), kind, arrived)?;
        if steps_back {
            let run = storage.run(area, lba, 1);
            let Storage { nand, regions, .. } = storage;
            arrived = regions[usize::from(run.region)].ftl.step_back(nand, run.unit, arrived)?;
        }
        let copied = self.copies(storage);
        let (mut at, end) = (lba, lba + u64::from(sectors));
        let mut done = arrived;
        if kind == Kind::Small {
            for rest in self.rests(storage, (area, lba, sectors.into())) {
                done = done.max(self.write_rest(storage, area, rest, cached, arrived)?);
            }
        }
        // The page is programmed as a whole: not before its rest has been read.
        let rest_read = done;
        let mut first_region = None;
        let mut is_apart = false;
        while at < end {
            // Split at multiples of the chunk, so that whole pages go to whole pages.
            let chunk = if storage.is_in_one_unit(at, end) { end - at } else { self.chunk_left(at).min(end - at) };
            let run = storage.run(area, at, chunk);
            let bytes = run.sectors * 512;
            arrived = self.reserve(bytes, arrived) + self.bus.write(run.sectors as u32);
            let part = data.map(|data| &data[((at - lba) * 512) as usize..][..bytes as usize]);
            let is_last = at + run.sectors == end;
            if cached {
                done = done.max(self.write_cached(storage, &run, part, arrived)?);
                if self.write_buffer {
                    self.program_full(storage, bytes, arrived.max(rest_read))?;
                }
            } else {
                let drained = self.cache_past(storage, &run, arrived)?;
                if at > lba {
                    // What was drained may have filled the page in which earlier chunks waited.
                    done = done.max(drained);
                }
                // The last chunk closes the pages and word lines of all of them, where they lie together.
                let durability = if is_last { durability } else { Durability::Buffered };
                let written = self.write_run(storage, &run, part, durability, arrived)?;
                let is_short = run.sectors < self.chunk_sectors;
                is_apart |= *first_region.get_or_insert(run.region) != run.region
                    || !self.closes_together
                    || self.splits_short && is_short;
                self.under_way.push_back((written, bytes));
                self.under_way_bytes += bytes;
                done = done.max(written);
            }
            at += run.sectors;
        }
        // Small writes go to a log whose pages hold their map.
        if cached && self.write_buffer && kind != Kind::Small && self.commit > Nanos::ZERO {
            self.committed = self.committed.max(self.programmed).max(arrived) + self.commit;
        }
        if is_apart && u64::from(sectors) > self.chunk_left(lba) && durability != Durability::Buffered {
            let Storage { nand, regions, .. } = storage;
            for region in regions {
                done = done.max(region.ftl.flush(nand, arrived)?);
            }
        }
        let done = if cached { done.max(arrived) } else { done };
        // Busy is signalled on a data line: the transfer of another task waits for its end.
        self.bus_free = done;
        if self.copies(storage) > copied {
            self.firmware_free = self.firmware_free.max(done).max(self.programmed);
        }
        Ok(HostDone { transferred: arrived, done })
    }

    /// Units copied so far, if that holds up the next command.
    fn copies(&self, storage: &Storage) -> u64 {
        if !self.copies_alone {
            return 0;
        }
        storage.regions.iter().map(|region| region.ftl.stats().copied_units).sum()
    }

    /// Sectors from `at` to the end of its chunk.
    pub(super) fn chunk_left(&self, at: u64) -> u64 {
        self.chunk_sectors - at % self.chunk_sectors
    }

    /// Writes a run directly to its layer; reads and merges units that it covers only partly.
    pub(super) fn write_run(
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
                let unit = run.unit + unit;
                ready = ready.max(read_whole(ftl, nand, unit..unit + 1, out, now)?);
            }
        }
        if let (Some(whole), Some(data)) = (&mut whole, data) {
            whole[run.head as usize * 512..][..data.len()].copy_from_slice(data);
        }
        ftl.write(nand, run.unit, run.units, whole.as_deref(), durability, ready)
    }

    /// Programs what fills stripes of the write buffer, to which `bytes` have come.
    pub(super) fn program_full(&mut self, storage: &mut Storage, bytes: u64, now: Instant) -> Result<(), FtlError> {
        while self.cache.len() >= self.batch_units {
            self.drain(storage, self.batch_units, now)?;
        }
        self.under_way.push_back((self.programmed, bytes));
        self.under_way_bytes += bytes;
        Ok(())
    }

    /// Adds a run to the cache; returns when it is there.
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
            self.cache.put(Dirty { region: run.region, unit, data: content, is_rest: false });
        }
        Ok(ready)
    }

    /// Writes the oldest `units` of the cache to flash; returns when they have left it.
    pub(crate) fn drain(&mut self, storage: &mut Storage, units: usize, now: Instant) -> Result<Instant, FtlError> {
        let unit_bytes = self.unit.len() as u64;
        let units = units.min(self.cache.len());
        let now = match self.write_buffer {
            // The data holds its place in the buffer since it came.
            true => now.max(self.committed),
            false => self.reserve(unit_bytes * units as u64, now),
        };
        let mut done = now;
        if self.write_buffer {
            self.programmed = self.programmed.max(self.program_runs(storage, units, now)?);
            return Ok(now);
        }
        if storage.nand.keeps_data() {
            for _ in 0..units {
                let Some(dirty) = self.cache.take_oldest() else { break };
                let ftl = storage.regions[usize::from(dirty.region)].ftl.as_mut();
                let data = dirty.data.as_deref();
                done = done.max(ftl.write(&mut storage.nand, dirty.unit, 1, data, Durability::Buffered, now)?);
            }
        } else {
            done = self.drain_numbers(storage, units, now)?;
        }
        self.under_way.push_back((done, unit_bytes * units as u64));
        self.under_way_bytes += unit_bytes * units as u64;
        Ok(now)
    }

    /// Writes the oldest `units` of the write buffer, neighbours together; returns when they are programmed.
    fn program_runs(&mut self, storage: &mut Storage, units: usize, now: Instant) -> Result<Instant, FtlError> {
        let oldest: Vec<Dirty> = (0..units).map_while(|_| self.cache.take_oldest()).collect();
        let mut done = now;
        for run in oldest.chunk_by(|a, b| a.region == b.region && a.unit + 1 == b.unit) {
            let data: Option<Vec<u8>> =
                run.iter().map(|dirty| dirty.data.as_deref()).collect::<Option<Vec<_>>>().map(|parts| parts.concat());
            let ftl = storage.regions[usize::from(run[0].region)].ftl.as_mut();
            let (first, count) = (run[0].unit, run.len() as u32);
            done = done.max(ftl.write(&mut storage.nand, first, count, data.as_deref(), Durability::Buffered, now)?);
        }
        Ok(done)
    }

    /// Writes the oldest `units` of a cache without content to flash, those of a region in one call.
    fn drain_numbers(&mut self, storage: &mut Storage, units: usize, now: Instant) -> Result<Instant, FtlError> {
        let [mut batch, mut soon, mut next] = [[0; BATCH_UNITS]; 3];
        let (mut done, mut left) = (now, units);
        while left > 0 {
            let Some((region, _)) = self.cache.oldest(1).next() else { break };
            let ftl = storage.regions[usize::from(region)].ftl.as_mut();
            // What enters the window of units that leave soon, and that of those that leave next.
            let count = left.min(BATCH_UNITS);
            let (soon, next) = (&mut soon[..count], &mut next[..count]);
            let (far, near) =
                (self.cache.numbers(SOON_UNITS, region, soon), self.cache.numbers(NEXT_UNITS, region, next));
            ftl.foresee(&soon[..far], &next[..near]);
            let count = self.cache.numbers(0, region, &mut batch[..count]).max(1);
            let (tried, written) = ftl.write_each(&mut storage.nand, &batch[..count], now);
            self.cache.drop_oldest(tried);
            done = done.max(written?);
            left -= count;
        }
        Ok(done)
    }

    /// Before a run bypasses the cache: cached data of its edge units must not be lost or written later. Returns when
    /// what had to leave the cache is in flash.
    pub(super) fn cache_past(&mut self, storage: &mut Storage, run: &Run, now: Instant) -> Result<Instant, FtlError> {
        let mut done = now;
        let last = run.unit + run.units - 1;
        for (unit, partial) in [(run.unit, run.head > 0 || run.tail > 0), (last, run.tail > 0)] {
            if partial && self.cache.find(run.region, unit).is_some() {
                self.drain(storage, self.cache.len(), now)?;
                done = done.max(self.programmed).max(self.under_way.back().map_or(now, |&(end, _)| end));
            }
        }
        self.cache.forget(run.region, run.unit, run.units);
        Ok(done)
    }
}
