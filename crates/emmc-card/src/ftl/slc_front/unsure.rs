//! Units of the log that a power cut may have interrupted, on a worn-out part: their older copies, in the log, else in
//! the main layer, are kept while they may be needed.

use std::collections::BTreeSet;

use super::{Nand, SlcFront};
use crate::ftl::trim_log::Trimmed;
use crate::ftl::unsure::Unsure;
use crate::nand::Survey;

impl SlcFront {
    /// The doubtful units that are still where the cut has left them.
    pub(super) fn find_unsure(
        &self,
        nand: &Nand,
        survey: &Survey,
        trims: &[Trimmed],
        doubtful: &BTreeSet<u32>,
    ) -> Vec<Unsure> {
        let index = &self.log.index;
        let units = doubtful.iter().map(|&physical| (nand.logical(physical), physical));
        Unsure::all(nand, survey, trims, units.filter(|&(unit, physical)| index.get(unit) == Some(physical)))
    }

    /// Goes back to older copies where one has stopped to read since power came back.
    pub(super) fn drop_unreadable(&mut self, nand: &Nand) {
        let index = &mut self.log.index;
        self.unsure.retain_mut(|unsure| {
            if index.get(unsure.unit) != Some(unsure.physical) {
                return false;
            }
            if unsure.reads(nand) {
                return true;
            }
            let is_there = unsure.go_back(nand);
            if is_there {
                index.set(unsure.unit, unsure.physical);
            } else {
                index.remove(unsure.unit);
            }
            is_there
        });
    }

    /// Whether a block of the log holds an older copy that may become the newest one that reads.
    pub(super) fn may_be_needed(&self, nand: &Nand, block: u32) -> bool {
        let unsure = self.unsure.iter().filter(|unsure| self.log.index.get(unsure.unit) == Some(unsure.physical));
        unsure.flat_map(|unsure| &unsure.older).any(|&older| nand.geometry().block_of(older) == block)
    }
}
