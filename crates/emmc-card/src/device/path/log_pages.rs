//! Pages of the log of small writes: one that covers less of a page reads the rest of it and writes it again.
//!
//! The read costs the firmware's time of a read, and the flash's. The rest is as volatile as the host's data beside it:
//! it waits in the same cache, and until it is programmed the copy before counts. It wears the card, but is no data of
//! the host.

use std::ops::Range;

use emmc_units::{Instant, Nanos};

use super::Path;
use crate::device::cache::Dirty;
use crate::device::op::{Area, StorageError};
use crate::device::storage::{Run, Storage};
use crate::ftl::FtlError;

/// A part of a page that a write leaves uncovered. Unit: sectors of an area.
pub(super) type Rest = Range<u64>;

impl Path {
    /// What a write leaves of the pages of the log: before it, and after it.
    pub(super) fn rests(&self, storage: &Storage, (area, lba, sectors): (Area, u64, u64)) -> [Rest; 2] {
        let (page, end) = (self.small.page_sectors, lba + sectors);
        match page {
            0 => [lba..lba, end..end],
            _ => [lba / page * page..lba, end..end.next_multiple_of(page).min(storage.sectors(area))],
        }
    }

    /// The firmware time to read the pages of which a small write leaves a part. What is in the buffer is free.
    pub(super) fn rests_cost(&self, storage: &Storage, (area, lba, sectors): (Area, u64, u64)) -> Nanos {
        let page = self.small.page_sectors;
        if page == 0 {
            return Nanos::ZERO;
        }
        let rests = self.rests(storage, (area, lba, sectors));
        let [before, after] = rests.map(|rest| u64::from(self.is_in_flash(storage, area, rest)));
        let is_one_page = lba / page == (lba + sectors - 1) / page;
        let pages = if is_one_page { before.max(after) } else { before + after };
        self.read_overhead * pages
    }

    /// Whether the latest content of a unit of these sectors is in flash.
    fn is_in_flash(&self, storage: &Storage, area: Area, rest: Rest) -> bool {
        runs(storage, area, rest).any(|run| {
            let ftl = &storage.regions[usize::from(run.region)].ftl;
            let mut units = run.unit..run.unit + run.units;
            units.any(|unit| ftl.is_mapped(unit) && self.cache.find(run.region, unit).is_none())
        })
    }

    /// Writes a part of a page again, without the units of which a part is written; returns when it has been read.
    pub(super) fn write_rest(
        &mut self,
        storage: &mut Storage,
        area: Area,
        rest: Rest,
        is_cached: bool,
        now: Instant,
    ) -> Result<Instant, StorageError> {
        let mut done = now;
        let all: Vec<Run> = runs(storage, area, rest).collect();
        for run in all {
            let first = run.unit + u32::from(run.head > 0);
            let units = first..run.unit + run.units - u32::from(run.tail > 0);
            done = done.max(match is_cached {
                true => self.cache_units(storage, run.region, units, now)?,
                false => self.copy_uncached(storage, run.region, units, now)?,
            });
        }
        Ok(done)
    }

    /// Copies units of which the cache has nothing later.
    fn copy_uncached(
        &mut self,
        storage: &mut Storage,
        region: u8,
        units: Range<u32>,
        now: Instant,
    ) -> Result<Instant, StorageError> {
        if self.cache.len() == 0 {
            return self.copy_units(storage, region, units, now);
        }
        let mut done = now;
        for unit in units {
            if self.cache.find(region, unit).is_none() {
                done = done.max(self.copy_units(storage, region, unit..unit + 1, now)?);
            }
        }
        Ok(done)
    }

    /// Reads units into the cache if they hold data; one that cannot be read stays where it is.
    fn cache_units(
        &mut self,
        storage: &mut Storage,
        region: u8,
        units: Range<u32>,
        now: Instant,
    ) -> Result<Instant, StorageError> {
        let (mut done, mut bytes) = (now, 0);
        for unit in units {
            let is_mapped = storage.regions[usize::from(region)].ftl.is_mapped(unit);
            if !is_mapped || self.cache.find(region, unit).is_some() {
                continue;
            }
            let mut data = storage.nand.keeps_data().then(|| vec![0; self.unit.len()].into_boxed_slice());
            match self.read_unit(storage, region, unit, data.as_deref_mut(), now) {
                Ok(read) => done = done.max(read),
                Err(FtlError::Uncorrectable { .. }) => continue,
                Err(error) => return Err(error.into()),
            }
            if self.cache.is_full() {
                done = done.max(self.drain(storage, self.batch_units, done)?);
            }
            self.cache.put(Dirty { region, unit, data, is_rest: true });
            bytes += self.unit.len() as u64;
        }
        if self.write_buffer && bytes > 0 {
            self.program_full(storage, bytes, done)?;
        }
        Ok(done)
    }
}

/// The runs of a range of an area.
fn runs(storage: &Storage, area: Area, range: Rest) -> impl Iterator<Item = Run> + '_ {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let run = (at < range.end).then(|| storage.run(area, at, range.end - at))?;
        at += run.sectors;
        Some(run)
    })
}
