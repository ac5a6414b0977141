//! Units that a power cut may have interrupted, and that found no other place: the part is worn out.
//!
//! Such a unit reads now, and may stop to. It was not acknowledged then, so its older copy counts: the next one in the
//! log that is not void, else that of the main layer. Neither is given up while it may be needed.

use std::collections::BTreeSet;

use super::recover::{newest_voids, void_order};
use super::{Nand, SlcFront};
use crate::ftl::trim_log::Trimmed;
use crate::nand::{NO_UNIT, Survey};

/// A unit whose copy in the log may stop to read.
#[derive(Clone, Debug)]
pub(super) struct Unsure {
    unit: u32,
    /// Where it is in the log.
    physical: u32,
    /// Its older copies there, the newest last.
    older: Vec<u32>,
}

impl Unsure {
    pub(super) fn is_at(&self, unit: u32, physical: u32) -> bool {
        (self.unit, self.physical) == (unit, physical)
    }
}

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
        let left = units.filter(|&(unit, physical)| index.get(unit) == Some(physical));
        let mut all: Vec<_> = left.map(|(unit, physical)| Unsure { unit, physical, older: Vec::new() }).collect();
        if all.is_empty() {
            return all;
        }
        let voids = newest_voids(trims);
        for found in &survey.pages {
            let first = nand.geometry().first_unit(found.block, found.page);
            for (&unit, physical) in nand.page_units(found.block, found.page).iter().zip(first..) {
                let counts = unit != NO_UNIT && void_order(&voids, unit) < found.order;
                let known = all.iter_mut().find(|unsure| unsure.unit == unit && unsure.physical != physical);
                if let Some(unsure) = known.filter(|_| counts) {
                    unsure.older.push(physical);
                }
            }
        }
        all
    }

    /// Goes back to older copies where one has stopped to read since power came back.
    pub(super) fn drop_unreadable(&mut self, nand: &Nand) {
        let index = &mut self.log.index;
        self.unsure.retain_mut(|unsure| {
            if index.get(unsure.unit) != Some(unsure.physical) {
                return false;
            }
            while nand.logical(unsure.physical) != unsure.unit {
                let Some(older) = unsure.older.pop() else {
                    index.remove(unsure.unit);
                    return false;
                };
                unsure.physical = older;
                index.set(unsure.unit, older);
            }
            true
        });
    }

    /// Whether a block of the log holds an older copy that may become the newest one that reads.
    pub(super) fn may_be_needed(&self, nand: &Nand, block: u32) -> bool {
        let unsure = self.unsure.iter().filter(|unsure| self.log.index.get(unsure.unit) == Some(unsure.physical));
        unsure.flat_map(|unsure| &unsure.older).any(|&older| nand.geometry().block_of(older) == block)
    }
}
