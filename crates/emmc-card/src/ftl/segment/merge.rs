//! Closing an AU: switch, partial and full merges.

use emmc_units::Instant;

use super::copy::Copied;
use super::place::Place;
use super::recover::merge_stamp;
use super::{NO_BLOCK, SegmentFtl};
use crate::ftl::FtlError;
use crate::nand::Nand;

/// A block in which programs fail is erased and used again at most this number of times during one merge.
const FAILED_BLOCK_TRIES: u32 = 8;

impl SegmentFtl {
    /// Closes an open AU in the cheapest way that its log allows.
    pub(super) fn close(&mut self, nand: &mut Nand, index: usize, now: Instant) -> Result<Instant, FtlError> {
        let au = self.open[index].au;
        if !self.open[index].in_order || self.failing.contains(&self.open[index].log.block) {
            return self.merge(nand, au, now);
        }
        let next = self.open[index].last.map_or(0, |last| last + 1);
        let rest = self.valid_outside(nand, au, next, self.per_block, self.open[index].log.block);
        let log = &self.open[index].log;
        // What waits pads its page, unless the rest fills it.
        let fits = rest.len() as u32 <= log.room(nand);
        let at_risk = self.careful && log.splits_line(nand);
        if !fits || at_risk && (log.is_waiting() || !rest.is_empty()) {
            return self.merge(nand, au, now);
        }
        let mut done = now;
        if !rest.is_empty() {
            match self.extend(nand, index, &rest, now)? {
                Some(copied) => done = copied,
                None => return Ok(done.max(nand.quiet_at())),
            }
        }
        if self.open[index].log.is_waiting() {
            let (programmed, still) = self.program(nand, Place::Open(index), done)?;
            done = done.max(programmed);
            if !still {
                return Ok(done);
            }
        }
        if rest.is_empty() {
            self.stats.switch_merges += u64::from(self.homes[au as usize] != NO_BLOCK);
        } else {
            self.stats.partial_merges += 1;
        }
        let open = self.open.remove(index);
        let home = std::mem::replace(&mut self.homes[au as usize], open.log.block);
        for block in self.strays.remove(&au).unwrap_or_default().into_iter().chain([home]) {
            done = self.release(nand, block, done)?;
        }
        Ok(done)
    }

    /// Full merge: copies all valid units of an AU, open or not, to a new block.
    pub(super) fn merge(&mut self, nand: &mut Nand, au: u32, now: Instant) -> Result<Instant, FtlError> {
        let units = self.valid_units(au);
        self.steps_back.remove(&au);
        let mut done = now;
        let (mut again, mut tries) = (None, 0);
        let home = loop {
            if units.is_empty() {
                break NO_BLOCK;
            }
            let (block, ready) = match again.take() {
                Some(erased) => erased,
                None => self.take(nand, done)?,
            };
            nand.set_stamp(block, merge_stamp(units.len() as u32));
            let before: Vec<u32> = units.iter().map(|&unit| self.map.lookup(unit)).collect();
            match self.copy(nand, block, &units, ready)? {
                Copied::Whole(copied) => {
                    done = copied;
                    self.stats.full_merges += 1;
                    break block;
                }
                Copied::Failed(_) => {
                    // As if it had not started: the source copies are current.
                    for (&unit, slot) in units.iter().zip(before) {
                        if self.map.lookup(unit) != slot {
                            self.map.set(unit, slot);
                        }
                    }
                    done = ready.max(nand.quiet_at());
                    tries += 1;
                    if self.is_last(tries) {
                        again = self.erase_failed(nand, block, done)?;
                    } else {
                        done = self.release(nand, block, done)?;
                    }
                }
            }
        };
        let mut spent = self.strays.remove(&au).unwrap_or_default();
        spent.push(self.homes[au as usize]);
        if let Some(index) = self.open_index(au) {
            spent.push(self.open.remove(index).log.block);
        }
        self.homes[au as usize] = home;
        for block in spent {
            done = self.release(nand, block, done)?;
        }
        Ok(done)
    }

    /// Whether a block in which a program failed must be used again: no other is left, and units may be in doubt.
    fn is_last(&self, tries: u32) -> bool {
        tries < FAILED_BLOCK_TRIES && self.pool.free() == 0 && self.pool.spares().0 == 0
    }

    /// Erases a block in which a program failed. It is retired when it is released. `None`: it does not erase either.
    fn erase_failed(&mut self, nand: &mut Nand, block: u32, now: Instant) -> Result<Option<(u32, Instant)>, FtlError> {
        let erased = self.erase(nand, block, now)?;
        if erased.is_none() {
            self.failing.remove(&block);
        }
        Ok(erased.map(|done| (block, done)))
    }
}
