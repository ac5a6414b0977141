//! A worn-out part goes back to older copies of units, where it had no place for the newest.

use std::collections::BTreeSet;

use super::PageFtl;
use crate::ftl::trim_log::Trimmed;
use crate::ftl::unsure::Unsure;
use crate::nand::{BlockHealth, NO_UNIT, Nand, Survey};

impl PageFtl {
    /// No block is left to place units again: their previous copies are current, as after a power cut.
    pub(super) fn fall_back(&mut self, nand: &Nand, lost: impl Iterator<Item = u32>) {
        self.superseded.clear();
        for unit in lost {
            self.map.clear(unit);
            if self.fresh.contains(&unit) {
                continue;
            }
            if let Some(physical) = self.newest_copy(nand, unit) {
                self.map_back(unit, physical);
            }
        }
    }

    /// An older copy of a unit is current again. Its block may have been freed since.
    fn map_back(&mut self, unit: u32, physical: u32) {
        self.map.set(unit, physical);
        let block = self.map.block_of(physical);
        let is_victim = self.victims.contains(block);
        if is_victim {
            self.victims.remove(block);
        }
        if self.pool.reclaim(block) || is_victim {
            self.victims.insert(block, self.map.valid_in(block));
        }
    }

    /// The newest readable copy of a unit.
    fn newest_copy(&self, nand: &Nand, unit: u32) -> Option<u32> {
        let own = self.spec.blocks.iter().filter(|block| !self.log_blocks.contains(block));
        let good = own.filter(|&&block| nand.block(block).health == BlockHealth::Good);
        let copies = good.flat_map(|&block| {
            let first = self.geometry.first_unit(block, 0);
            (first..).zip(nand.spare(block)).filter(|&(_, &held)| held == unit).map(|(physical, _)| physical)
        });
        let ordered = copies.filter_map(|physical| {
            let place = (self.geometry.block_of(physical), self.geometry.page_of(physical));
            nand.order(place.0, place.1).map(|order| (order, physical))
        });
        ordered.max().map(|(_, physical)| physical)
    }

    /// After a recovery without a place for them: the units on doubtful pages.
    pub(super) fn find_unsure(&self, nand: &Nand, survey: &Survey, trims: &[Trimmed]) -> Vec<Unsure> {
        let per_page = self.geometry.units_per_page;
        let pages: BTreeSet<u32> = survey
            .pages
            .iter()
            .filter(|found| found.doubtful)
            .map(|found| self.geometry.first_unit(found.block, found.page))
            .collect();
        let places = pages.into_iter().flat_map(|first| first..first + per_page);
        let valid = places.filter(|&physical| self.map.is_valid(physical));
        Unsure::all(nand, survey, trims, valid.map(|physical| (nand.logical(physical), physical)))
    }

    /// Goes back to older copies where one has stopped to read since power came back.
    #[cold]
    pub(super) fn drop_unreadable(&mut self, nand: &Nand) {
        let mut unsure = std::mem::take(&mut self.unsure);
        unsure.retain_mut(|unsure| {
            if self.map.lookup(unsure.unit) != unsure.physical {
                return false;
            }
            if unsure.reads(nand) {
                return true;
            }
            let left = self.map.block_of(unsure.physical);
            let is_there = unsure.go_back(nand);
            let old = self.map.clear(unsure.unit);
            debug_assert_ne!(old, NO_UNIT, "it was mapped");
            self.victims.lower(left, self.map.valid_in(left));
            if is_there {
                self.map_back(unsure.unit, unsure.physical);
            }
            is_there
        });
        self.unsure = unsure;
    }
}
