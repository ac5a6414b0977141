//! What must be true between memory and flash.

use std::collections::BTreeMap;

use super::{NO_BLOCK, SegmentFtl};
use crate::nand::{BlockHealth, NO_UNIT, Nand};

impl SegmentFtl {
    /// Checks every invariant.
    ///
    /// Errors: what is wrong, in words.
    pub(super) fn check(&self, nand: &Nand) -> Result<(), String> {
        self.map.audit()?;
        let owners = self.owners()?;
        self.check_units(nand, &owners)?;
        for (&block, &owner) in &owners {
            let (health, valid) = (nand.block(block).health, self.map_count(block, owner));
            if valid > 0 && matches!(owner, Owner::Free | Owner::Spare | Owner::Retiring) {
                return Err(format!("block {block} is free and has {valid} valid units"));
            }
            if health != BlockHealth::Good && matches!(owner, Owner::Free | Owner::Spare) {
                return Err(format!("block {block} is free and {health:?}"));
            }
        }
        let lost = |block: &&u32| nand.block(**block).health == BlockHealth::Good && !owners.contains_key(*block);
        if let Some(block) = self.spec.blocks.iter().find(lost) {
            return Err(format!("block {block} is good and belongs to nothing"));
        }
        if self.open.len() > self.open_max || self.shared.len() > self.shared_most().max(self.shared_found) {
            return Err(format!("{} AUs are open, {} shared logs", self.open.len(), self.shared.len()));
        }
        if self.shared.iter().rev().skip(1).any(super::Frontier::is_waiting) {
            return Err("units wait in a shared log that is written no more".into());
        }
        if let Some(unit) = self.forgotten(nand) {
            return Err(format!("unit {unit} is in the log that is reclaimed, and its AU would not be merged"));
        }
        match self.open.iter().find(|open| open.in_order && !self.is_ordered(nand, open)) {
            Some(open) => Err(format!("the log of AU {} is said to be in order", open.au)),
            None => Ok(()),
        }
    }

    fn map_count(&self, block: u32, owner: Owner) -> u32 {
        if matches!(owner, Owner::Meta) { 0 } else { self.map.valid_in(block) }
    }

    /// Every block once.
    fn owners(&self) -> Result<BTreeMap<u32, Owner>, String> {
        let homes = self.homes.iter().zip(0..).filter(|(home, _)| **home != NO_BLOCK);
        let all = homes.map(|(&home, au)| (home, Owner::Au(au)));
        let all = all.chain(self.open.iter().map(|open| (open.log.block, Owner::Au(open.au))));
        let strays =
            self.strays.iter().flat_map(|(&au, blocks)| blocks.iter().map(move |&block| (block, Owner::Au(au))));
        let all = all.chain(strays);
        let all = all.chain(self.shared.iter().map(|front| (front.block, Owner::Shared)));
        let all = all.chain(self.pool.iter().map(|block| (block, Owner::Free)));
        let all = all.chain(self.pool.spare_blocks().iter().map(|&block| (block, Owner::Spare)));
        let all = all.chain(self.meta.iter().map(|&block| (block, Owner::Meta)));
        let all = all.chain(self.retiring.iter().map(|&block| (block, Owner::Retiring)));
        let mut owners = BTreeMap::new();
        for (block, owner) in all {
            if let Some(other) = owners.insert(block, owner) {
                return Err(format!("block {block} belongs to {other:?} and to {owner:?}"));
            }
        }
        Ok(owners)
    }

    /// Each mapped unit is in a block of its AU or in a shared log, and the spare areas of the flash agree.
    fn check_units(&self, nand: &Nand, owners: &BTreeMap<u32, Owner>) -> Result<(), String> {
        for unit in 0..self.spec.units {
            let slot = self.map.lookup(unit);
            if slot == NO_UNIT {
                continue;
            }
            let block = self.map.block_of(slot);
            let fits = match owners.get(&block) {
                Some(Owner::Au(au)) => *au == self.au_of(unit),
                Some(Owner::Shared) => true,
                _ => false,
            };
            if !fits {
                return Err(format!("unit {unit} lies in block {block}, which is {:?}", owners.get(&block)));
            }
            let waits = self.waiting(nand, slot).is_some();
            if !waits && (nand.geometry().page_of(slot) >= nand.block(block).next_page || nand.logical(slot) != unit) {
                return Err(format!("unit {unit} is at {slot}, where the flash has {}", nand.logical(slot)));
            }
        }
        Ok(())
    }

    /// Whether a log really is an ordered beginning of its AU.
    fn is_ordered(&self, nand: &Nand, open: &super::Open) -> bool {
        let next = open.last.map_or(0, |last| last + 1);
        let geometry = nand.geometry();
        let slots = geometry.first_unit(open.log.block, 0)..geometry.first_unit(open.log.block + 1, 0);
        let mut before = None;
        let ascends = self.range(open.au, 0, next).filter(|&unit| slots.contains(&self.map.lookup(unit))).all(|unit| {
            let slot = Some(self.map.lookup(unit));
            std::mem::replace(&mut before, slot) < slot
        });
        ascends && self.valid_outside(nand, open.au, 0, next, open.log.block).is_empty()
    }
}

/// Who has a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// As home or log.
    Au(u32),
    Shared,
    Free,
    Spare,
    /// The log of trims.
    Meta,
    /// A program failed in it, and it is not marked bad yet.
    Retiring,
}
