//! Whether memory and flash agree about the log.

use std::collections::BTreeSet;

use super::SlcFront;
use crate::nand::{BlockHealth, Nand};

impl SlcFront {
    /// Errors: what is wrong, in words.
    pub(super) fn audit_log(&self, nand: &Nand) -> Result<(), String> {
        let used: BTreeSet<u32> = self.log.full.iter().copied().chain(self.log.open).collect();
        let all: Vec<u32> = self.log.free.iter().copied().chain(used.iter().copied()).collect();
        let distinct: BTreeSet<u32> = all.iter().copied().collect();
        if distinct.len() != self.log.blocks() {
            return Err(format!("the log has a block twice: {all:?}"));
        }
        for &block in &all {
            let state = nand.block(block);
            if state.health != BlockHealth::Good || state.mode != nand.geometry().native.single_bit() {
                return Err(format!("block {block} of the log is {:?}, {:?}", state.health, state.mode));
            }
            if self.inner.blocks().contains(&block) {
                return Err(format!("block {block} of the log is in the main layer too"));
            }
        }
        if let Some(block) = self.log.free.iter().find(|&&block| nand.block(block).next_page != 0) {
            return Err(format!("block {block} of the log is free and not erased"));
        }
        if let Some(block) = self.log.open.filter(|&block| nand.block(block).next_page >= nand.pages_of(block)) {
            return Err(format!("block {block} of the log is open and full"));
        }
        for (unit, physical) in self.log.index.sorted() {
            // It may have stopped to read; then it is left out at the next read.
            if self.unsure.iter().any(|unsure| unsure.is_at(unit, physical) && !unsure.reads(nand)) {
                continue;
            }
            let block = nand.geometry().block_of(physical);
            if nand.logical(physical) != unit || !used.contains(&block) {
                return Err(format!("unit {unit} is not at {physical} in block {block} of the log"));
            }
            if unit >= self.inner.units() {
                return Err(format!("unit {unit} of the log lies beyond the region"));
            }
        }
        if self.log.buffer.len() > self.log.waiting_max() {
            return Err("more waits for the log than a row holds".into());
        }
        Ok(())
    }
}
