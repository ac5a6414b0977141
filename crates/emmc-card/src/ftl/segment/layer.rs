//! The layer as the card sees it.

use emmc_units::Instant;

use super::copy::unreadable;
use super::{NO_BLOCK, SegmentFtl};
use crate::ftl::{Durability, Ftl, FtlError, FtlStats, TrimKind};
use crate::nand::{NO_UNIT, Nand};

impl Ftl for SegmentFtl {
    fn units(&self) -> u32 {
        self.spec.units
    }

    fn write(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        data: Option<&[u8]>,
        durability: Durability,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        self.careful = durability == Durability::Reliable;
        let size = nand.geometry().unit_bytes as usize;
        let (mut at, end) = (first, first + count);
        let (mut ready, mut done) = (now, now);
        while at < end {
            let count = (end - at).min(self.per_block - at % self.per_block);
            let part = data.map(|data| &data[(at - first) as usize * size..][..count as usize * size]);
            let (taken, begun, programmed) = self.write_part(nand, at, count, part, durability, ready)?;
            ready = begun;
            done = done.max(programmed);
            at += taken;
        }
        if durability != Durability::Buffered {
            // Earlier parts of the same command may wait in the logs of other AUs.
            done = done.max(self.program_all(nand, ready)?);
        }
        self.careful = false;
        Ok(done)
    }

    fn read(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        mut out: Option<&mut [u8]>,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let geometry = *nand.geometry();
        let size = geometry.unit_bytes as usize;
        let mut done = now;
        let mut index = 0;
        while index < count {
            let slot = self.map.lookup(first + index);
            let part = |at: u32| at as usize * size..(at + 1) as usize * size;
            let front = if slot == NO_UNIT { None } else { self.waiting(nand, slot) };
            if slot == NO_UNIT || front.is_some() {
                if let Some(out) = out.as_deref_mut() {
                    match front.and_then(|front| front.bytes(nand, slot)).filter(|bytes| !bytes.is_empty()) {
                        Some(bytes) => out[part(index)].copy_from_slice(bytes),
                        None => out[part(index)].fill(0),
                    }
                }
                index += 1;
                continue;
            }
            let page = slot / geometry.units_per_page;
            let same = |at: &u32| self.map.lookup(first + at) / geometry.units_per_page == page;
            let run = (index..count).take_while(same).count() as u32;
            let bytes = run * geometry.unit_bytes;
            let read = nand.read(geometry.block_of(slot), geometry.page_of(slot), bytes, now);
            done = done.max(read.map_err(|error| unreadable(error, first + index))?);
            if let Some(refresh) = &mut self.refresh {
                if refresh.is_worn_by_reads(nand, geometry.block_of(slot)) {
                    refresh.hurry();
                }
            }
            if let Some(out) = out.as_deref_mut() {
                for at in index..index + run {
                    match nand.unit_data(self.map.lookup(first + at)) {
                        Some(bytes) => out[part(at)].copy_from_slice(bytes),
                        None => out[part(at)].fill(0),
                    }
                }
            }
            index += run;
        }
        Ok(done)
    }

    /// Such a write takes a place of the AU's share of the shared logs; an AU that has used its share is merged.
    fn step_back(&mut self, nand: &mut Nand, unit: u32, now: Instant) -> Result<Instant, FtlError> {
        let au = self.au_of(unit);
        let taken = self.steps_back.get(&au).map_or(1, |taken| taken + 1);
        if self.steps_back_max == 0 || taken <= self.steps_back_max {
            if self.steps_back_max > 0 {
                self.steps_back.insert(au, taken);
            }
            return Ok(now);
        }
        self.stats.foreground_stalls += 1;
        self.merge(nand, au, now)
    }

    fn trim(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        kind: TrimKind,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        if kind == TrimKind::Discard && !self.trim_frees {
            return Ok(now);
        }
        let range = first..first + count;
        let held = range.clone().filter(|&unit| self.map.lookup(unit) != NO_UNIT).count();
        // A unit without a place may have been discarded, which has no record: a cut would restore it.
        if held == 0 && kind == TrimKind::Discard {
            return Ok(now);
        }
        let mut done = now;
        if kind == TrimKind::Trim {
            done = self.program_all(nand, now)?;
            done = self.record_trim(nand, range.clone(), done)?;
        }
        for unit in range.clone() {
            self.map.clear(unit);
        }
        self.stats.trimmed_units += held as u64;
        for au in self.au_of(range.start)..=self.au_of(range.end - 1) {
            done = self.forget_if_empty(nand, au, done)?;
        }
        Ok(done)
    }

    fn flush(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let done = self.program_all(nand, now)?;
        let done = done.max(self.whole_lines(nand, done)?).max(nand.quiet_at());
        self.mark_retiring(nand, done);
        Ok(done)
    }

    fn is_mapped(&self, unit: u32) -> bool {
        self.map.lookup(unit) != NO_UNIT
    }

    fn mapped_units(&self) -> u32 {
        self.map.mapped()
    }

    fn background(&mut self, nand: &mut Nand, now: Instant) -> Result<Option<Instant>, FtlError> {
        self.step(nand, now)
    }

    fn urgency(&self, nand: &Nand) -> u8 {
        let full = |front: &super::Frontier| front.room(nand) == 0;
        let logs = self.shared.len();
        let logs_used =
            self.shared_max > 0 && (logs > self.shared_max || logs == self.shared_max && self.shared.iter().all(full));
        match () {
            () if self.pool.free() < 2 => 3,
            () if logs_used => 2,
            () if self.open.len() >= self.open_max => 1,
            () => 0,
        }
    }

    fn purge(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        let mut done = self.program_all(nand, now)?;
        while !self.open.is_empty() {
            done = self.close(nand, 0, done)?;
        }
        while !self.shared.is_empty() {
            done = self.reclaim(nand, done)?;
        }
        for au in 0..self.homes.len() as u32 {
            let home = self.homes[au as usize];
            let held = |home| nand.spare(home).iter().filter(|&&unit| unit != NO_UNIT).count() as u32;
            if home != NO_BLOCK && held(home) != self.map.valid_in(home) {
                done = self.merge(nand, au, done)?;
            }
        }
        self.erase_free(nand, done)
    }

    fn recover(&mut self, nand: &mut Nand, now: Instant) -> Result<Instant, FtlError> {
        self.rebuild(nand, now)
    }

    fn valid_in(&self, block: u32) -> Option<u32> {
        (!self.meta.contains(&block)).then(|| self.map.valid_in(block))
    }

    fn spares(&self) -> (u32, u32) {
        self.pool.spares()
    }

    fn blocks(&self) -> &[u32] {
        &self.spec.blocks
    }

    fn stats(&self) -> &FtlStats {
        &self.stats
    }

    fn audit(&self, nand: &Nand) -> Result<(), String> {
        self.check(nand)
    }
}
