//! Reads: from the cache, from flash, or from read-ahead data.

use emmc_units::{Instant, Nanos};

use super::{Ahead, Path};
use crate::device::op::{Area, HostDone, StorageError};
use crate::device::storage::{Run, Storage};
use crate::ftl::FtlError;

impl Path {
    /// Reads sectors into `out`, if payload is simulated.
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
        let (command, overhead) = match std::mem::take(&mut self.goes_on) {
            true => (Nanos::ZERO, Nanos::ZERO),
            false => (self.bus.command(), self.read_overhead),
        };
        // The firmware has done its work for a queued read when it fetched that.
        let overhead = if self.prepared.find(area, lba, lba + 1, None).is_some() { Nanos::ZERO } else { overhead };
        let start = now.max(self.firmware_free) + command;
        let asked = start + overhead;
        self.firmware_free = start;
        let (mut at, end) = (lba, lba + u64::from(sectors));
        let mut bus = self.bus_free.max(start);
        while at < end {
            let chunk = (self.chunk_sectors - at % self.chunk_sectors).min(end - at);
            let run = storage.run(area, at, chunk);
            let bytes = (run.sectors * 512) as usize;
            let mut part = out.as_mut().map(|out| &mut out[((at - lba) * 512) as usize..][..bytes]);
            let known =
                self.ahead.filter(|ahead| ahead.area == area && ahead.first <= at && at + run.sectors <= ahead.end);
            let prepared = self.prepared.find(area, at, at + run.sectors, part.as_deref_mut());
            let ready = match (known, part) {
                _ if prepared.is_some() => prepared.unwrap_or(start).max(start),
                (Some(ahead), None) => ahead.ready.max(start),
                // The content is read again without the time, which is already included.
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
        self.prepared.drop_transferred(area, lba, end);
        self.look_ahead(storage, area, lba, end, bus)?;
        Ok(HostDone { transferred: bus, done: bus })
    }

    /// The host needs no more of a read than the sectors before `end`: the bus is free, and the next read may continue
    /// there.
    pub(crate) fn stop_read(&mut self, area: Area, end: u64, now: Instant) {
        self.bus_free = self.bus_free.min(now);
        self.last_read = Some((area, end));
    }

    /// After a sequential read: the next sectors are read ahead.
    fn look_ahead(
        &mut self,
        storage: &mut Storage,
        area: Area,
        lba: u64,
        end: u64,
        now: Instant,
    ) -> Result<(), FtlError> {
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

    /// Reads a run; cached units come from the cache.
    pub(super) fn read_run(
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

    /// One unit, from the cache or from flash.
    pub(super) fn read_unit(
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
}
