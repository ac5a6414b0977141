//! An area as a file: any offset and any length, over whole sectors.

use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant as Wall;

use emmc_units::Instant;
use fuser::Errno;

use crate::block::{Block, BlockError, Export, Request};

const SECTOR_BYTES: u64 = 512;
/// Longest single read or write: the longest request that the kernel sends here. Unit: bytes.
const STEP_BYTES: u64 = 1 << 20;

/// When a reply is due, by both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) wall: Wall,
    pub(super) at: Instant,
}

/// The result, and when the reply is due; `None`: now.
pub(super) type Done<T> = Result<(T, Option<Due>), Errno>;

/// An area.
pub(super) struct Volume {
    block: Arc<dyn Block>,
    pub(super) export: Export,
    /// Locked exclusively while parts of sectors change: these are read, modified and written back.
    sectors: RwLock<()>,
}

impl Volume {
    pub(super) fn new(block: Arc<dyn Block>, export: Export) -> Self {
        Self { block, export, sectors: RwLock::new(()) }
    }

    /// Reads up to `bytes`: less at the end of the area, none beyond it.
    pub(super) fn read(&self, offset: u64, bytes: u64) -> Done<Vec<u8>> {
        let Some(range) = self.inside(offset, bytes) else { return Ok((Vec::new(), None)) };
        let whole = outward(&range);
        let mut data = vec![0; (whole.end - whole.start) as usize];
        let at = self.submit(Request::Read { offset: whole.start, into: &mut data })?;
        data.truncate((range.end - whole.start) as usize);
        data.drain(..(range.start - whole.start) as usize);
        Ok((data, self.due(at)))
    }

    /// Writes the bytes that fit before the end; returns their number.
    pub(super) fn write(&self, offset: u64, data: &[u8]) -> Done<u32> {
        let Some(range) = self.inside(offset, data.len() as u64) else {
            return if data.is_empty() { Ok((0, None)) } else { Err(Errno::ENOSPC) };
        };
        let data = &data[..(range.end - range.start) as usize];
        let at = if is_whole(&range) {
            let _shared = self.sectors.read().unwrap_or_else(PoisonError::into_inner);
            self.submit(Request::Write { offset, data, through: false })?
        } else {
            self.change(&range, |bytes| bytes.copy_from_slice(data))?
        };
        Ok((data.len() as u32, self.due(at)))
    }

    /// Deallocates bytes, so that they read as zeros.
    ///
    /// In an area whose erased bytes read as ones, zeros are written instead: a punched hole must read as zeros.
    pub(super) fn punch(&self, offset: u64, bytes: u64) -> Done<()> {
        self.clear(offset, bytes, self.export.erased_byte == 0)
    }

    /// Makes bytes zeros.
    pub(super) fn zero(&self, offset: u64, bytes: u64) -> Done<()> {
        self.clear(offset, bytes, false)
    }

    /// Everything written before is on flash afterwards.
    pub(super) fn flush(&self) -> Done<()> {
        let at = self.submit(Request::Flush)?;
        Ok(((), self.due(at)))
    }

    /// The first data or hole at `offset` or after it; `None` beyond the last.
    pub(super) fn seek(&self, offset: u64, data: bool) -> Result<Option<u64>, Errno> {
        let size = self.export.size_bytes;
        if offset >= size {
            return Ok(None);
        }
        // A hole reads as zeros; ranges that read as ones count as data.
        if self.export.erased_byte != 0 {
            return Ok(if data { Some(offset) } else { Some(size) });
        }
        let mut from = offset - offset % SECTOR_BYTES;
        while from < size {
            let until = size.min(from + 64 * STEP_BYTES);
            let runs = self.block.mapped(self.export.area, from..until).map_err(errno)?;
            if let Some(run) = runs.iter().find(|run| run.mapped == data) {
                return Ok(Some(run.range.start.max(offset)));
            }
            from = until;
        }
        // Every file has a hole at its end.
        Ok((!data).then_some(size))
    }

    fn clear(&self, offset: u64, bytes: u64, trim: bool) -> Done<()> {
        let Some(range) = self.inside(offset, bytes) else { return Ok(((), None)) };
        let whole = inward(&range);
        let mut at = Instant::START;
        if whole.is_empty() {
            at = self.change(&range, |bytes| bytes.fill(0))?;
        } else {
            let (offset, bytes) = (whole.start, whole.end - whole.start);
            {
                let _shared = self.sectors.read().unwrap_or_else(PoisonError::into_inner);
                let request = if trim {
                    Request::Trim { offset, bytes }
                } else {
                    Request::Zero { offset, bytes, through: false }
                };
                at = at.max(self.submit(request)?);
            }
            for edge in [range.start..whole.start, whole.end..range.end] {
                if !edge.is_empty() {
                    at = at.max(self.change(&edge, |bytes| bytes.fill(0))?);
                }
            }
        }
        Ok(((), self.due(at)))
    }

    /// Reads the sectors of a range, modifies the range in them and writes them back.
    fn change(&self, range: &Range<u64>, act: impl FnOnce(&mut [u8])) -> Result<Instant, Errno> {
        let _alone = self.sectors.write().unwrap_or_else(PoisonError::into_inner);
        let whole = outward(range);
        let mut data = vec![0; (whole.end - whole.start) as usize];
        let read = self.submit(Request::Read { offset: whole.start, into: &mut data })?;
        act(&mut data[(range.start - whole.start) as usize..(range.end - whole.start) as usize]);
        let written = self.submit(Request::Write { offset: whole.start, data: &data, through: false })?;
        Ok(read.max(written))
    }

    fn submit(&self, request: Request<'_>) -> Result<Instant, Errno> {
        self.block.submit(self.export.area, request).map_err(errno)
    }

    fn due(&self, at: Instant) -> Option<Due> {
        Some(Due { wall: self.block.due(at)?, at })
    }

    /// The part inside the area; `None`: no part is.
    fn inside(&self, offset: u64, bytes: u64) -> Option<Range<u64>> {
        let range = offset..offset.saturating_add(bytes).min(self.export.size_bytes);
        (!range.is_empty()).then_some(range)
    }
}

fn is_whole(range: &Range<u64>) -> bool {
    range.start % SECTOR_BYTES == 0 && range.end % SECTOR_BYTES == 0
}

/// The sectors that a range touches. Areas are whole sectors, so the result stays inside.
fn outward(range: &Range<u64>) -> Range<u64> {
    range.start - range.start % SECTOR_BYTES..range.end.div_ceil(SECTOR_BYTES) * SECTOR_BYTES
}

/// The sectors that a range covers completely; empty if none.
fn inward(range: &Range<u64>) -> Range<u64> {
    let start = range.start.div_ceil(SECTOR_BYTES) * SECTOR_BYTES;
    start..(range.end - range.end % SECTOR_BYTES).max(start)
}

fn errno(error: BlockError) -> Errno {
    match error {
        BlockError::OutOfRange { .. } | BlockError::Misaligned { .. } => Errno::EINVAL,
        BlockError::ReadOnly => Errno::EROFS,
        BlockError::PowerLost => Errno::ENODEV,
        BlockError::Medium(_) | BlockError::Store(_) => Errno::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_whole_sectors_inside_the_volume() {
        assert_eq!(outward(&(513..1024)), 512..1024);
        assert_eq!(outward(&(0..1)), 0..512);
        assert_eq!(inward(&(1..2000)), 512..1536);
        assert!(inward(&(1..511)).is_empty());
        assert!(inward(&(513..1023)).is_empty());
        assert!(is_whole(&(512..1024)) && !is_whole(&(512..1000)));
    }
}
