//! Reads: each flash page once per call; buffered units cost no time.

use emmc_units::Instant;

use super::PageFtl;
use crate::ftl::FtlError;
use crate::nand::{Geometry, NO_UNIT, Nand, NandError};

/// How far ahead of the copy bytes are fetched into the processor's cache. Unit: units.
const FETCHED_AHEAD: u32 = 2;
/// Bytes between the places that are fetched: the processor itself fetches what follows each of them.
const FETCHED_EVERY: usize = 512;

/// Fetches the bytes of a physical unit into the processor's cache while others are copied: units lie scattered in
/// memory, and waiting for each takes longer than its copy.
fn fetch(nand: &Nand, physical: u32) {
    let bytes = if physical == NO_UNIT { None } else { nand.unit_data(physical) };
    for byte in bytes.unwrap_or_default().iter().step_by(FETCHED_EVERY) {
        std::hint::black_box(*byte);
    }
}

impl PageFtl {
    pub(super) fn read_units(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        mut out: Option<&mut [u8]>,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let now = self.touch_map(nand, first, count, false, now)?;
        if count == 1 && out.is_none() {
            let physical = self.map.lookup(first);
            if physical == NO_UNIT || self.waiting(physical).is_some() {
                return Ok(now);
            }
            return self.read_pages(nand, first, &[(physical / self.geometry.units_per_page, 0)], now);
        }
        let unit_bytes = self.geometry.unit_bytes as usize;
        let mut in_flash = Vec::new();
        for index in 0..count {
            let physical = self.map.lookup(first + index);
            if out.is_some() && index + FETCHED_AHEAD < count {
                fetch(nand, self.map.lookup(first + index + FETCHED_AHEAD));
            }
            let target = out.as_mut().map(|out| &mut out[index as usize * unit_bytes..][..unit_bytes]);
            let waiting = if physical == NO_UNIT { None } else { self.waiting(physical) };
            match (waiting, target) {
                (None, target) if physical != NO_UNIT => {
                    in_flash.push((physical / self.geometry.units_per_page, index));
                    match (target, nand.unit_data(physical)) {
                        (Some(target), Some(bytes)) => target.copy_from_slice(bytes),
                        (Some(target), None) => target.fill(0),
                        (None, _) => {}
                    }
                }
                (Some((role, slot)), Some(target)) if self.keeps_data => {
                    target.copy_from_slice(self.frontiers[role].slot_bytes(slot, unit_bytes));
                }
                (_, Some(target)) => target.fill(0),
                (_, None) => {}
            }
        }
        if count > 1 {
            self.order_reads(&mut in_flash);
        }
        self.read_pages(nand, first, &in_flash, now)
    }

    /// In the order of the pages; where dies share a channel and have several planes, one page of each die after the
    /// other: the channel serves pages in the order of the calls, and a die's second page is ready only after its first
    /// one is transferred.
    fn order_reads(&self, pages: &mut [(u32, u32)]) {
        let Geometry { pages_per_block, dies, planes, channels, .. } = self.geometry;
        if planes == 1 || dies <= channels {
            return pages.sort_unstable();
        }
        let lanes = self.geometry.lanes();
        pages.sort_unstable_by_key(|&(page, index)| {
            let (block, page) = (page / pages_per_block, page % pages_per_block);
            let (row, lane) = (page / lanes, page % lanes);
            (block, row, lane % planes, lane / planes, index)
        });
    }

    /// Reads pages, given as numbers over the whole flash with the unit that wants them, equal ones together.
    fn read_pages(
        &mut self,
        nand: &mut Nand,
        first: u32,
        wanted: &[(u32, u32)],
        now: Instant,
    ) -> Result<Instant, FtlError> {
        let geometry = self.geometry;
        let mut done = now;
        for same in wanted.chunk_by(|a, b| a.0 == b.0) {
            let (page, index) = same[0];
            let (block, page) = (page / geometry.pages_per_block, page % geometry.pages_per_block);
            let bytes = same.len() as u32 * geometry.unit_bytes;
            done = match nand.read(block, page, bytes, now) {
                Ok(read) => done.max(read),
                Err(NandError::Uncorrectable { .. }) => return Err(FtlError::Uncorrectable { unit: first + index }),
                Err(error) => return Err(error.into()),
            };
            if let Some(refreshing) = self.refreshing.as_deref_mut() {
                refreshing.note_read(nand, block);
            }
        }
        Ok(done)
    }
}
