//! Trims: whole units are deallocated, edges are overwritten.

use emmc_units::Instant;

use super::Path;
use crate::device::op::{Area, HostDone, StorageError};
use crate::device::storage::{Run, Storage};
use crate::ftl::{Durability, FtlError, TrimKind};

impl Path {
    /// Trims sectors. Partial units at the edges are overwritten with zeros if they must read as erased.
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
        self.prepared.drop_range(area, lba, lba + sectors);
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

    fn trim_edge(
        &mut self,
        storage: &mut Storage,
        run: &Run,
        kind: TrimKind,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let mapped = storage.regions[usize::from(run.region)].ftl.is_mapped(run.unit);
        let cached = self.cache.find(run.region, run.unit).is_some();
        if kind == TrimKind::Discard {
            return Ok(now);
        }
        if !mapped && !cached {
            // Perhaps discarded, so that a power cut may bring it back: all of it reads as erased and is to stay so.
            let Storage { nand, regions, .. } = storage;
            return regions[usize::from(run.region)].ftl.trim(nand, run.unit, 1, kind, now);
        }
        self.cache_past(storage, run, now)?;
        let keeps_data = storage.nand.keeps_data();
        let zeros = keeps_data.then(|| vec![0; (run.sectors * 512) as usize]);
        self.write_run(storage, run, zeros.as_deref(), Durability::Reliable, now)
    }
}
