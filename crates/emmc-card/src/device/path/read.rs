//! Reads: from the cache, from flash, or from read-ahead data.

use std::ops::Range;

use emmc_units::{Instant, Nanos, SECTOR_BYTES};

use super::{Ahead, Path};
use crate::device::Device;
use crate::device::op::{Area, HostDone, StorageError};
use crate::device::storage::{Run, Storage};
use crate::ftl::{Ftl, FtlError};
use crate::nand::Nand;

/// A shorter read starts no read-ahead. Source: cards on which random reads of 4 KiB take longer than those of 2 KiB
/// and of 16 KiB.
const READ_AHEAD_SECTORS_MIN: u64 = 8;

impl Device {
    /// The places that will be read soon; without effect on the card. Unit: bytes.
    pub fn foresee_reads(&self, area: Area, offsets_bytes: &[u64]) {
        Path::foresee_reads(&self.storage, area, offsets_bytes);
    }
}

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
        let (mut at, end) = (lba, lba + u64::from(sectors));
        let busy = now.max(self.firmware_free);
        let (mut start, overhead) = match std::mem::take(&mut self.goes_on) {
            true => (busy, Nanos::ZERO),
            // The firmware has done its work for a queued read when it fetched that: its transfer does not wait while
            // the firmware takes a later task.
            false if self.prepared.find(area, lba, lba + 1, None).is_some() => (now + self.bus.command(), Nanos::ZERO),
            false => {
                let firmware = self.read_firmware(storage, area, lba, end);
                (busy + self.bus.command(), self.stray(firmware, lba, now))
            }
        };
        // A read-ahead that every read starts is not aborted for a read elsewhere.
        if let Some(ahead) =
            self.ahead.as_ref().filter(|ahead| self.read_ahead_always && !ahead.has(area, lba, lba + 1))
        {
            start = start.max(ahead.ready);
        }
        let asked = start + overhead;
        if overhead > Nanos::ZERO {
            self.firmware_free = asked;
        }
        let mut bus = self.bus_free.max(start);
        let mut fetched = asked;
        while at < end {
            let chunk = self.chunk_left(at).min(end - at);
            let run = storage.run(area, at, chunk);
            let bytes = (run.sectors * 512) as usize;
            let mut part = out.as_mut().map(|out| &mut out[((at - lba) * 512) as usize..][..bytes]);
            let ready = match self.prepared.find(area, at, at + run.sectors, part.as_deref_mut()) {
                Some(ready) => ready.max(start),
                None => match self.ahead.as_ref().filter(|ahead| ahead.has(area, at, at + run.sectors)) {
                    Some(ahead) => {
                        if let (Some(part), Some(known)) = (part, &ahead.bytes) {
                            part.copy_from_slice(&known[((at - ahead.first) * 512) as usize..][..bytes]);
                        }
                        ahead.ready.max(asked)
                    }
                    None => self.read_run(storage, &run, part, asked)?,
                },
            };
            fetched = fetched.max(ready);
            bus = bus.max(ready) + self.bus.read(run.sectors as u32);
            at += run.sectors;
        }
        self.bus_free = bus;
        self.prepared.drop_transferred(area, lba, end);
        self.look_ahead(storage, area, lba, end, fetched)?;
        Ok(HostDone { transferred: bus, done: bus })
    }

    /// Announces the units of reads that come soon to their layer; all are taken to be in the first one's region.
    fn foresee_reads(storage: &Storage, area: Area, offsets_bytes: &[u64]) {
        let mut soon = [0; 64];
        let inside = offsets_bytes.iter().filter(|offset| storage.check(area, **offset / SECTOR_BYTES, 1).is_ok());
        let runs = inside.map(|offset| storage.run(area, offset / SECTOR_BYTES, 1));
        let mut region = None;
        let of_region = runs.filter(|run| *region.get_or_insert(run.region) == run.region);
        let count = soon.iter_mut().zip(of_region).map(|(slot, run)| *slot = run.unit).count();
        if let Some(region) = region {
            storage.regions[usize::from(region)].ftl.foresee(&soon[..count], &[]);
        }
    }

    /// The host needs no more of a read than the sectors before `end`: the bus is free, and the next read may continue
    /// there.
    pub(crate) fn stop_read(&mut self, area: Area, end: u64, now: Instant) {
        self.bus_free = self.bus_free.min(now);
        self.last_read = Some((area, end));
    }

    /// After a sequential read, or every one: the next sectors are read ahead, as soon as the flash has given the last.
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
        let is_long = end - lba >= u64::from(storage.unit_sectors()).min(READ_AHEAD_SECTORS_MIN);
        if !(sequential || self.read_ahead_always && is_long) {
            self.ahead = None;
            return Ok(());
        }
        let size = storage.sectors(area);
        if self.ahead.as_ref().is_some_and(|ahead| ahead.area == area && (ahead.first..ahead.end).contains(&end))
            || end >= size
        {
            return Ok(());
        }
        let sectors = self.read_ahead_sectors.min(size - end);
        let mut bytes = storage.nand.keeps_data().then(|| vec![0; (sectors * 512) as usize]);
        let (mut at, mut ready) = (end, now);
        while at < end + sectors {
            let run = storage.run(area, at, end + sectors - at);
            let part =
                bytes.as_mut().map(|bytes| &mut bytes[((at - end) * 512) as usize..][..(run.sectors * 512) as usize]);
            match self.read_run(storage, &run, part, now) {
                Ok(read) => ready = ready.max(read),
                // No command has asked for it yet. The one that does reports the error.
                Err(FtlError::Uncorrectable { .. }) => {
                    self.ahead = None;
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
            at += run.sectors;
        }
        self.ahead = Some(Ahead { area, first: end, end: end + sectors, ready, bytes });
        Ok(())
    }

    /// The firmware's time of a read.
    pub(super) fn read_firmware(&mut self, storage: &Storage, area: Area, lba: u64, end: u64) -> Nanos {
        let missing = match self.read_missing > Nanos::ZERO {
            true => self.read_missing * self.missing_sectors(storage, area, lba, end - lba),
            false => Nanos::ZERO,
        };
        self.read_overhead + missing + self.map_spans.load(area, lba, end)
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
            return read_whole(
                regions[usize::from(run.region)].ftl.as_mut(),
                nand,
                run.unit..run.unit + run.units,
                out,
                now,
            );
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
        let ftl = storage.regions[usize::from(region)].ftl.as_mut();
        read_whole(ftl, &mut storage.nand, unit..unit + 1, out, now)
    }
}

/// Reads units from their layer.
///
/// Errors: the layer's; a unit whose stored bytes are lost.
pub(super) fn read_whole(
    ftl: &mut dyn Ftl,
    nand: &mut Nand,
    units: Range<u32>,
    mut out: Option<&mut [u8]>,
    now: Instant,
) -> Result<Instant, FtlError> {
    let done = ftl.read(nand, units.start, units.len() as u32, out.as_deref_mut(), now)?;
    match out.and_then(|out| nand.find_lost(out)) {
        Some(index) => Err(FtlError::Uncorrectable { unit: units.start + index }),
        None => Ok(done),
    }
}
