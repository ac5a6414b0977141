//! Refresh of page-mapped blocks: in idle time, and in steps beside reads if those are the reason.

use emmc_units::Instant;

use super::PageFtl;
use super::steps::Reason;
use crate::ftl::FtlError;
use crate::ftl::refresh::Refresh;
use crate::nand::Nand;

/// Which blocks are to be refreshed.
#[derive(Clone, Debug)]
pub(super) struct Refreshing {
    pub(super) when: Refresh,
    /// Blocks that were read too often.
    pub(super) read_often: Vec<u32>,
}

impl Refreshing {
    /// A block was read.
    pub(super) fn note_read(&mut self, nand: &Nand, block: u32) {
        if self.when.is_worn_by_reads(nand, block) && !self.read_often.contains(&block) {
            self.read_often.push(block);
        }
    }
}

impl PageFtl {
    /// Takes a block that is to be refreshed as the next victim, and returns whether there is one. Not while blocks are
    /// short: a refresh takes one before it frees one.
    pub(super) fn begin_refresh(&mut self, nand: &Nand, searches: bool, now: Instant) -> bool {
        let Some(refreshing) = &mut self.refreshing else { return false };
        if self.worn_out || self.in_progress.is_some() || self.pool.free() <= self.low_blocks + 1 {
            return false;
        }
        let victims = &self.victims;
        let often = std::mem::take(&mut refreshing.read_often);
        // Open blocks, and those that are collected, are no candidates.
        let mut found = often.iter().copied().find(|&block| victims.contains(block));
        refreshing.read_often = often.into_iter().filter(|block| Some(*block) != found).collect();
        if found.is_none() && searches {
            let blocks = self.spec.blocks.iter().copied().filter(|&block| victims.contains(block));
            found = refreshing.when.search(nand, blocks, now);
        }
        let Some(block) = found else { return false };
        self.victims.remove(block);
        self.begin(block, Reason::Refresh);
        true
    }

    /// After a host read: a stripe of a block that was read too often is copied. The next request finds the flash busy.
    pub(super) fn refresh_beside(&mut self, nand: &mut Nand, now: Instant) -> Result<(), FtlError> {
        let has_work = self.refreshing.as_ref().is_some_and(|refreshing| !refreshing.read_often.is_empty());
        if !(has_work && self.begin_refresh(nand, false, now) || self.is_refreshing()) {
            return Ok(());
        }
        let stripe = self.frontiers[self.roles.gc].slots.len() as u64;
        let units = stripe.min(self.places_for_copies()) as u32;
        if units == 0 {
            return Ok(());
        }
        match self.step(nand, units, now) {
            // What cannot be read is reported to the host that asks for it.
            Err(FtlError::Uncorrectable { .. }) => self.give_up_victim(),
            result => {
                let done = result?;
                if self.roles.gc == self.roles.cold {
                    self.copied_beside = self.copied_beside.max(done);
                }
            }
        }
        Ok(())
    }
}
