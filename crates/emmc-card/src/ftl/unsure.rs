//! Units that a power cut may have interrupted, and that found no other place: the part is worn out.
//!
//! Such a unit reads now, and may stop to. Then it was not acknowledged, and its older copy counts: a layer goes back
//! to it, and keeps it while it may be needed.

use super::trim_log::{TrimOrders, Trimmed};
use crate::nand::{NO_UNIT, Nand, Survey};

/// A unit whose newest copy may stop to read.
#[derive(Clone, Debug)]
pub(super) struct Unsure {
    pub(super) unit: u32,
    /// Where its copy is.
    pub(super) physical: u32,
    /// Its older copies, the newest last.
    pub(super) older: Vec<u32>,
}

impl Unsure {
    /// Units and where they are, with the older copies that a survey has found and no trim has undone.
    pub(super) fn all(
        nand: &Nand,
        survey: &Survey,
        trims: &[Trimmed],
        units: impl Iterator<Item = (u32, u32)>,
    ) -> Vec<Self> {
        let mut all: Vec<_> = units.map(|(unit, physical)| Self { unit, physical, older: Vec::new() }).collect();
        if all.is_empty() {
            return all;
        }
        let trims = TrimOrders::new(trims);
        for found in &survey.pages {
            let first = nand.geometry().first_unit(found.block, found.page);
            for (&unit, physical) in nand.page_units(found.block, found.page).iter().zip(first..) {
                let counts = unit != NO_UNIT && trims.of(unit) < found.order;
                let known = all.iter_mut().find(|unsure| unsure.unit == unit && unsure.physical != physical);
                if let Some(unsure) = known.filter(|_| counts) {
                    unsure.older.push(physical);
                }
            }
        }
        all
    }

    pub(super) fn is_at(&self, unit: u32, physical: u32) -> bool {
        (self.unit, self.physical) == (unit, physical)
    }

    /// Whether its copy reads.
    pub(super) fn reads(&self, nand: &Nand) -> bool {
        nand.logical(self.physical) == self.unit
    }

    /// Goes back to the newest older copy that reads; `false`: there is none.
    pub(super) fn go_back(&mut self, nand: &Nand) -> bool {
        while let Some(older) = self.older.pop() {
            self.physical = older;
            if self.reads(nand) {
                return true;
            }
        }
        false
    }
}
