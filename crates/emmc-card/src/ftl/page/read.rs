//! Reads: each flash page once per call; buffered units cost no time.

use emmc_units::Instant;

use super::PageFtl;
use crate::ftl::FtlError;
use crate::nand::{Content, Geometry, NO_UNIT, Nand, NandError};

/// How far ahead of the copy bytes are fetched into the processor's cache: units lie scattered in memory, and waiting
/// for each takes longer than its copy. Unit: units.
const FETCHED_AHEAD: usize = 8;

impl PageFtl {
    pub(super) fn read_units(
        &mut self,
        nand: &mut Nand,
        first: u32,
        count: u32,
        out: Option<&mut [u8]>,
        now: Instant,
    ) -> Result<Instant, FtlError> {
        if !self.unsure.is_empty() {
            self.drop_unreadable(nand);
        }
        let now = self.touch_map(nand, first, count, false, now)?;
        if count == 1 && out.is_none() {
            let physical = self.map.lookup(first);
            if physical == NO_UNIT || self.waiting(physical).is_some() {
                return Ok(now);
            }
            return self.read_pages(nand, first, &[(physical / self.geometry.units_per_page, 0)], now);
        }
        let mut in_flash = Vec::with_capacity(count as usize);
        for index in 0..count {
            let physical = self.map.lookup(first + index);
            if physical != NO_UNIT && self.waiting(physical).is_none() {
                in_flash.push((physical / self.geometry.units_per_page, index));
            }
        }
        if let Some(out) = out {
            self.copy_units(nand, first, out);
        }
        if count > 1 {
            self.order_reads(&mut in_flash);
        }
        self.read_pages(nand, first, &in_flash, now)
    }

    /// Copies the bytes of units. First it looks where all of them are, so that these loads overlap.
    fn copy_units(&mut self, nand: &Nand, first: u32, out: &mut [u8]) {
        let unit_bytes = self.geometry.unit_bytes as usize;
        let mut places = std::mem::take(&mut self.read_places);
        let count = (out.len() / unit_bytes) as u32;
        places.extend((first..first + count).map(|unit| match self.map.lookup(unit) {
            NO_UNIT => (None, Content::NONE),
            physical => match self.waiting(physical) {
                None => (None, nand.content_of(physical)),
                waiting => (waiting, Content::NONE),
            },
        }));
        places.iter().take(FETCHED_AHEAD).for_each(|(_, content)| nand.prefetch(*content));
        for (index, (target, (waiting, content))) in out.chunks_exact_mut(unit_bytes).zip(&places).enumerate() {
            if let Some((_, later)) = places.get(index + FETCHED_AHEAD) {
                nand.prefetch(*later);
            }
            match (*waiting, nand.bytes_of(*content)) {
                (Some((role, slot)), _) if self.keeps_data => {
                    target.copy_from_slice(self.frontiers[role].slot_bytes(slot, unit_bytes));
                }
                (None, Some(bytes)) => target.copy_from_slice(bytes),
                _ => target.fill(0),
            }
        }
        places.clear();
        self.read_places = places;
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
