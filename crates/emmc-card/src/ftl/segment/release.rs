//! Blocks: taken and erased, given back, retired.

use emmc_units::Instant;

use super::{NO_BLOCK, SegmentFtl};
use crate::ftl::FtlError;
use crate::nand::{NO_UNIT, Nand, NandError};

impl SegmentFtl {
    /// An erased block.
    ///
    /// Errors: [`FtlError::WornOut`] when there is none.
    pub(super) fn take(&mut self, nand: &mut Nand, mut now: Instant) -> Result<(u32, Instant), FtlError> {
        loop {
            // Blocks that nothing needs first; then, while recovering, those behind the oldest doubt.
            let free = self.pool.iter().filter(|&block| !self.backs_waiting(nand, block));
            let Some(wanted) = free.min_by_key(|&block| self.doubt(block)) else {
                let waiting =
                    self.open.iter().map(|open| &open.log).chain(&self.shared).any(|front| front.is_waiting());
                if self.pool.free() == 0 || !waiting {
                    return Err(FtlError::WornOut);
                }
                now = self.program_all(nand, now)?;
                continue;
            };
            let Some(block) = self.pool.take_where(|block| block == wanted) else { return Err(FtlError::WornOut) };
            match self.erase(nand, block, now)? {
                Some(erased) => return Ok((block, erased)),
                None => continue,
            }
        }
    }

    /// Erases a block if something was programmed into it. `None`: it went bad, and a spare stands in if there is one.
    pub(super) fn erase(&mut self, nand: &mut Nand, block: u32, now: Instant) -> Result<Option<Instant>, FtlError> {
        if nand.block(block).next_page == 0 {
            return Ok(Some(now));
        }
        match nand.erase(block, now) {
            Ok(done) => Ok(Some(done)),
            Err(NandError::EraseFailed { .. }) => {
                self.stats.replaced_blocks += u64::from(self.pool.retire(nand));
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a free block may have the only programmed copy of a unit whose newer one waits in memory.
    pub(super) fn backs_waiting(&self, nand: &Nand, block: u32) -> bool {
        let any = self.open.iter().map(|open| &open.log).chain(&self.shared).any(|front| front.is_waiting());
        let waits = |&unit: &u32| unit != NO_UNIT && self.waiting(nand, self.map.lookup(unit)).is_some();
        any && nand.spare(block).iter().any(waits)
    }

    /// The newest of the doubtful pages behind which a free block has the copy that would count.
    fn doubt(&self, block: u32) -> Option<u64> {
        self.doubted.values().filter(|(_, backing)| *backing == block).map(|(order, _)| *order).max()
    }

    /// Gives back a block that holds nothing valid; one in which a program failed goes out of use.
    pub(super) fn release(&mut self, nand: &mut Nand, block: u32) {
        if block == NO_BLOCK {
            return;
        }
        debug_assert_eq!(self.map.valid_in(block), 0, "block {block} is given back with valid units");
        if self.failing.remove(&block) {
            nand.mark_bad(block);
            self.stats.replaced_blocks += u64::from(self.pool.retire(nand));
        } else {
            self.pool.give(block, nand.block(block).erase_count);
        }
    }
}
