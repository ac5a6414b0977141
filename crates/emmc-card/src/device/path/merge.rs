//! Two write paths: small writes, and streams whose merge unit is completed when another stream begins.
//!
//! A write that begins where the last one ended continues a stream. Any other write is a small one, up to a size, or
//! begins another stream: then the rest of the last stream's merge unit is copied, so that a lone write of s bytes
//! costs a whole unit S. Small writes leave the open unit as it is; if they have a log of sectors, the one after which
//! it is full completes a unit of its own. Absent on purpose: allocation units with logs (`ftl::segment`), which merge
//! below the map.

use std::ops::Range;

use emmc_units::{Instant, Nanos, SECTOR_BYTES};

use super::Path;
use super::read::read_whole;
use crate::device::op::{Area, StorageError};
use crate::device::storage::Storage;
use crate::ftl::{Durability, FtlError};
use crate::profile::Controller;

/// Places of what is missing of mapping units: of a small write, and of any other.
pub(super) const SMALL: usize = 0;
pub(super) const LARGE: usize = 1;

/// What small writes cost, and what is missing of mapping units.
#[derive(Clone, Copy, Debug)]
pub(super) struct SmallWrites {
    /// Up to this size; 0: there is one path.
    sectors: u64,
    overhead: Nanos,
    /// A page of their log; 0: it maps units.
    pub(super) page_sectors: u64,
    /// For each missing sector of a small write, and of others.
    missing: [Nanos; 2],
}

impl SmallWrites {
    pub(super) fn new(controller: &Controller) -> Self {
        let a_sector = |micros: f64| Nanos::from_micros_f64(micros / 2.0);
        Self {
            sectors: u64::from(controller.small_write_bytes) / SECTOR_BYTES,
            overhead: Nanos::from_micros_f64(controller.small_write_overhead_us),
            page_sectors: u64::from(controller.small_page_bytes) / SECTOR_BYTES,
            missing: [controller.small_write_missing_us_per_kib, controller.missing_us_per_kib].map(a_sector),
        }
    }
}

/// What a write is to the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A small write, which belongs to none.
    Small,
    /// It continues the open stream.
    Continues,
    /// It begins another stream.
    Begins,
}

/// A stream of writes.
#[derive(Clone, Copy, Debug)]
struct Stream {
    area: Area,
    next: u64,
    /// Written since it began.
    sectors: u64,
}

/// Sectors that were written in one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) area: Area,
    pub(super) first: u64,
    pub(super) end: u64,
}

impl Merging {
    /// A write goes on, or elsewhere.
    #[inline]
    pub(super) fn note(&mut self, area: Area, first: u64, end: u64) {
        self.last = Some(Written { area, first, end });
    }

    /// Whether a write begins where the last one ended.
    #[inline]
    pub(super) fn follows(&self, area: Area, lba: u64) -> bool {
        self.last.is_some_and(|last| (last.area, last.end) == (area, lba))
    }

    /// The last write that went on, or elsewhere.
    pub(super) fn last(&self) -> Option<Written> {
        self.last
    }
}

/// The open merge unit.
#[derive(Clone, Debug)]
pub(super) struct Merging {
    /// Sectors of a unit; 0: none is merged.
    unit_sectors: u64,
    /// Every write completes its unit.
    each_write: bool,
    /// Sectors of the log of small writes; 0: there is none.
    log_sectors: u64,
    /// Sectors in it.
    logged: u64,
    open: Option<Stream>,
    /// The last write that went on, or elsewhere; not one inside of it.
    last: Option<Written>,
}

impl Merging {
    pub(super) fn new(controller: &Controller) -> Self {
        Self {
            unit_sectors: u64::from(controller.merge_bytes) / SECTOR_BYTES,
            each_write: controller.merge_each_write,
            log_sectors: u64::from(controller.small_log_bytes) / SECTOR_BYTES,
            logged: 0,
            open: None,
            last: None,
        }
    }

    /// Power is lost, and what was open stays in parts.
    pub(super) fn forget(&mut self) {
        (self.open, self.last, self.logged) = (None, None, 0);
    }
}

impl Path {
    /// The firmware time of a write, and what it is to the streams.
    #[inline]
    pub(super) fn write_cost(&mut self, storage: &Storage, area: Area, lba: u64, sectors: u64) -> (Nanos, Kind) {
        let answer = self.cost_after(storage, self.merging.last, (area, lba, sectors));
        if !self.steps_back(area, lba) {
            self.merging.last = Some(Written { area, first: lba, end: lba + sectors });
        }
        answer
    }

    /// The same for a write that comes after `last`.
    #[inline]
    pub(super) fn cost_after(
        &self,
        storage: &Storage,
        last: Option<Written>,
        (area, lba, sectors): (Area, u64, u64),
    ) -> (Nanos, Kind) {
        if self.has_one_cost {
            return (self.one_cost(storage, (area, lba, sectors)), Kind::Begins);
        }
        let follows = last.is_some_and(|last| (last.area, last.end) == (area, lba));
        let is_closed = self.merging.each_write && sectors > self.small.sectors;
        let continues = !is_closed && self.merging.open.is_some_and(|open| (open.area, open.next) == (area, lba));
        let is_small = sectors <= self.small.sectors && !follows && !continues;
        let cost = match is_small {
            true => {
                let rests = self.rests_cost(storage, (area, lba, sectors));
                self.small.overhead + self.missing_cost(storage, SMALL, (area, lba, sectors)) + rests
            }
            false => self.write_overhead,
        };
        let kind = match (is_small, continues) {
            (true, _) => Kind::Small,
            (false, true) => Kind::Continues,
            (false, false) => Kind::Begins,
        };
        (cost, kind)
    }

    /// The firmware time of a write where all cost the same.
    #[inline]
    pub(super) fn one_cost(&self, storage: &Storage, range: (Area, u64, u64)) -> Nanos {
        self.write_overhead + self.missing_cost(storage, LARGE, range)
    }

    /// What the sectors cost that a write leaves uncovered of its mapping units, by its path.
    #[inline]
    pub(super) fn missing_cost(&self, storage: &Storage, path: usize, (area, lba, sectors): (Area, u64, u64)) -> Nanos {
        let missing = self.small.missing[path];
        if missing > Nanos::ZERO { missing * self.missing_sectors(storage, area, lba, sectors) } else { missing }
    }

    /// Whether a write begins inside the last one. A host that has filled the rest of a block with zeros does that.
    #[inline]
    pub(super) fn steps_back(&self, area: Area, lba: u64) -> bool {
        self.merging.last.is_some_and(|last| last.area == area && last.first < lba && lba < last.end)
    }

    /// Sectors that the first and the last mapping unit of a range have outside of it.
    pub(super) fn missing_sectors(&self, storage: &Storage, area: Area, lba: u64, sectors: u64) -> u64 {
        let head = storage.run(area, lba, 1).head;
        let tail = storage.run(area, lba + sectors - 1, 1).tail;
        u64::from(head + tail)
    }

    /// A write belongs to the open stream, or begins one: then the last one's unit is completed first. Returns when the
    /// data can come.
    #[inline]
    pub(super) fn follow_stream(
        &mut self,
        storage: &mut Storage,
        (area, lba, sectors): (Area, u64, u64),
        kind: Kind,
        now: Instant,
    ) -> Result<Instant, StorageError> {
        if self.merging.unit_sectors == 0 {
            return Ok(now);
        }
        if kind == Kind::Small {
            return self.fill_small_log(storage, (area, lba, sectors), now);
        }
        if kind != Kind::Begins {
            if let Some(open) = self.merging.open.as_mut().filter(|open| (open.area, open.next) == (area, lba)) {
                open.next += sectors;
                open.sectors += sectors;
            }
            return Ok(now);
        }
        let last = self.merging.open.replace(Stream { area, next: lba + sectors, sectors });
        match last {
            Some(last) if last.sectors < self.merging.unit_sectors => self.complete_unit(storage, last, now),
            _ => Ok(now),
        }
    }

    /// Counts a small write; if the log is full with it, its unit is completed. Returns when the data can come.
    #[inline]
    fn fill_small_log(
        &mut self,
        storage: &mut Storage,
        (area, lba, sectors): (Area, u64, u64),
        now: Instant,
    ) -> Result<Instant, StorageError> {
        let merging = &mut self.merging;
        merging.logged += sectors;
        if merging.log_sectors == 0 || merging.logged < merging.log_sectors {
            return Ok(now);
        }
        merging.logged = 0;
        self.complete_unit(storage, Stream { area, next: lba + sectors, sectors }, now)
    }

    /// Copies the rest of a stream's merge unit; returns when it is in flash.
    #[inline(never)]
    fn complete_unit(&mut self, storage: &mut Storage, last: Stream, now: Instant) -> Result<Instant, StorageError> {
        while self.cache.len() > 0 {
            self.drain(storage, self.batch_units, now)?;
        }
        let unit_sectors = u64::from(storage.unit_sectors());
        let first = last.next.next_multiple_of(unit_sectors);
        let rest = (self.merging.unit_sectors - last.sectors) / unit_sectors * unit_sectors;
        let end = (first + rest).min(storage.sectors(last.area) / unit_sectors * unit_sectors);
        let (mut at, mut done) = (first, now.max(self.programmed));
        while at < end {
            let run = storage.run(last.area, at, self.chunk_left(at).min(end - at));
            at += run.sectors;
            done = done.max(self.copy_units(storage, run.region, run.unit..run.unit + run.units, now)?);
        }
        let Storage { nand, regions, .. } = storage;
        for region in regions {
            done = done.max(region.ftl.flush(nand, now)?);
        }
        Ok(done)
    }

    /// Copies units that hold data, those that are adjacent together, so that a page is read once; one that cannot be
    /// read stays where it is.
    pub(super) fn copy_units(
        &mut self,
        storage: &mut Storage,
        region: u8,
        units: Range<u32>,
        now: Instant,
    ) -> Result<Instant, StorageError> {
        let Storage { nand, regions, .. } = storage;
        let ftl = regions[usize::from(region)].ftl.as_mut();
        let (mut done, mut first) = (now, units.start);
        while first < units.end {
            let count = (first..units.end).take_while(|unit| ftl.is_mapped(*unit)).count() as u32;
            if count == 0 {
                first += 1;
                continue;
            }
            let mut content = nand.keeps_data().then(|| vec![0; count as usize * self.unit.len()]);
            match read_whole(ftl, nand, first..first + count, content.as_deref_mut(), now) {
                Ok(read) => {
                    let written = ftl.write(nand, first, count, content.as_deref(), Durability::Buffered, read)?;
                    done = done.max(written);
                    self.copied += u64::from(count);
                }
                Err(FtlError::Uncorrectable { .. }) if count > 1 => {
                    for unit in first..first + count {
                        done = done.max(self.copy_units(storage, region, unit..unit + 1, now)?);
                    }
                    return Ok(done.max(self.copy_units(storage, region, first + count..units.end, now)?));
                }
                Err(FtlError::Uncorrectable { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            first += count;
        }
        Ok(done)
    }
}
