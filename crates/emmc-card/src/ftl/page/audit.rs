//! Checks memory against flash.

use std::collections::BTreeMap;

use super::PageFtl;
use super::frontier::NO_BLOCK;
use crate::nand::{BlockHealth, NO_UNIT, Nand};

impl PageFtl {
    pub(super) fn check_all(&self, nand: &Nand) -> Result<(), String> {
        self.map.audit()?;
        self.check_units(nand)?;
        self.check_blocks(nand)?;
        self.mapping_cache.as_ref().map_or(Ok(()), |cache| cache.audit(nand))?;
        match nand.counters().violations {
            0 => Ok(()),
            count => Err(format!("the contract of the flash was broken {count} times")),
        }
    }

    /// Each mapped unit is in a page that holds it, or in memory.
    fn check_units(&self, nand: &Nand) -> Result<(), String> {
        for unit in 0..self.map.units() {
            let physical = self.map.lookup(unit);
            if physical == NO_UNIT {
                continue;
            }
            let found = match self.waiting(physical) {
                Some((role, slot)) => self.frontiers[role].slots[slot],
                None => nand.logical(physical),
            };
            // It may have stopped to read; then it is left out at the next read.
            let is_unsure = || self.unsure.iter().any(|unsure| unsure.is_at(unit, physical));
            if found != unit && !is_unsure() {
                return Err(format!("unit {unit} lies at {physical}, which holds {found}"));
            }
        }
        Ok(())
    }

    /// Every block has exactly one role: free, spare, open, full, in progress, failing, in the trim log, or bad.
    fn check_blocks(&self, nand: &Nand) -> Result<(), String> {
        let mut places: BTreeMap<u32, Vec<&str>> = self.spec.blocks.iter().map(|&block| (block, Vec::new())).collect();
        let open = self.frontiers.iter().map(|frontier| frontier.block).filter(|&block| block != NO_BLOCK);
        let named = (self.pool.iter().map(|block| (block, "free")))
            .chain(self.pool.spare_blocks().iter().map(|&block| (block, "spare")))
            .chain(open.map(|block| (block, "open")))
            .chain(self.victims.iter().map(|block| (block, "full")))
            .chain(self.in_progress.iter().map(|victim| (victim.block, "in progress")))
            .chain(self.failing.iter().map(|&block| (block, "failing")))
            .chain(self.log_blocks.iter().map(|&block| (block, "log")));
        for (block, name) in named {
            places.get_mut(&block).ok_or_else(|| format!("block {block} is not the region's"))?.push(name);
        }
        for (&block, names) in &places {
            let is_good = nand.block(block).health == BlockHealth::Good;
            let is_known = match names.as_slice() {
                ["log"] => true,
                [_] => is_good,
                [] => !is_good,
                _ => false,
            };
            if !is_known {
                return Err(format!("block {block} ({:?}) is {names:?}", nand.block(block).health));
            }
            let holds_none = matches!(names.as_slice(), ["free" | "spare" | "log"] | []);
            if holds_none && self.map.valid_in(block) > 0 {
                return Err(format!("block {block} is {names:?} and holds {} valid units", self.map.valid_in(block)));
            }
        }
        Ok(())
    }
}
