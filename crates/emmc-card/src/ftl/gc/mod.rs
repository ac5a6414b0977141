//! Victim selection: the candidate blocks, and the policies.
//!
//! A policy sees blocks and their valid units only; the layer processes the victim. Absent on purpose: free blocks
//! (`pool`), and the copying.

mod bounds;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::Range;

use super::map::Map;
use crate::profile::GcPolicy;
use bounds::Bounds;
use emmc_units::Rng;

/// The candidate blocks.
#[derive(Clone, Debug)]
pub struct Victims {
    policy: GcPolicy,
    first_block: u32,
    /// Position of each block in `dense`; [`ABSENT`]: not a candidate.
    position: Vec<u32>,
    dense: Vec<u32>,
    /// In closing order; maintained only for policies that use it.
    queue: VecDeque<u32>,
    /// When each block was closed, in closings.
    closed_at: Vec<u64>,
    closings: u64,
    bounds: Bounds,
    units_per_block: u32,
    rng: Rng,
}

const ABSENT: u32 = u32::MAX;

impl Victims {
    /// No candidates yet, for blocks within a range of `units_per_block` units each.
    pub fn new(policy: GcPolicy, blocks: Range<u32>, units_per_block: u32, seed: u64) -> Self {
        let count = (blocks.end - blocks.start) as usize;
        Self {
            policy,
            first_block: blocks.start,
            position: vec![ABSENT; count],
            dense: Vec::with_capacity(count),
            queue: VecDeque::new(),
            closed_at: vec![0; count],
            closings: 0,
            bounds: Bounds::new(count),
            units_per_block,
            rng: Rng::new(seed),
        }
    }

    /// Adds a candidate.
    pub fn insert(&mut self, block: u32, valid: u32) {
        let slot = self.slot(block);
        debug_assert_eq!(self.position[slot], ABSENT, "block {block} is there already");
        self.position[slot] = self.dense.len() as u32;
        self.dense.push(block);
        self.closings += 1;
        self.closed_at[slot] = self.closings;
        if self.is_ordered() {
            self.queue.push_back(block);
        }
        self.bounds.lower(slot, valid);
    }

    /// A unit of a block has become invalid; `valid` is its new count. Called for all blocks.
    #[inline]
    pub fn lower(&mut self, block: u32, valid: u32) {
        self.bounds.lower(self.slot(block), valid);
    }

    /// Whether a block is a candidate.
    pub fn contains(&self, block: u32) -> bool {
        self.position[self.slot(block)] != ABSENT
    }

    /// The candidates, in no meaningful order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.dense.iter().copied()
    }

    /// Removes and returns the victim of the policy.
    pub fn pick(&mut self, map: &Map) -> Option<u32> {
        let block = match self.policy {
            GcPolicy::Greedy => self.emptiest(map)?,
            GcPolicy::Fifo => self.queue.front().copied()?,
            GcPolicy::DChoices(count) => self.best_of_random(count.max(1), map)?,
            GcPolicy::Windowed(width) => {
                let window = self.queue.iter().take(width.max(1) as usize);
                window.copied().min_by_key(|&block| map.valid_in(block))?
            }
            GcPolicy::CostBenefit => self.most_benefit(map)?,
        };
        self.remove(block);
        Some(block)
    }

    /// The block with the fewest valid units, under every policy; it stays a candidate.
    pub fn emptiest(&mut self, map: &Map) -> Option<u32> {
        let (first, position) = (self.first_block, &self.position);
        let valid = |slot: usize| (position[slot] != ABSENT).then(|| map.valid_in(first + slot as u32));
        self.bounds.least(valid).map(|slot| first + slot as u32)
    }

    /// Removes a block that was chosen elsewhere.
    pub fn remove(&mut self, block: u32) {
        let slot = self.slot(block);
        let position = std::mem::replace(&mut self.position[slot], ABSENT);
        self.dense.swap_remove(position as usize);
        if let Some(&moved) = self.dense.get(position as usize) {
            let moved = self.slot(moved);
            self.position[moved] = position;
        }
        if self.is_ordered() {
            // Near the front for all that the policies take.
            let at = self.queue.iter().position(|&other| other == block);
            at.and_then(|at| self.queue.remove(at));
        }
    }

    fn best_of_random(&mut self, count: u32, map: &Map) -> Option<u32> {
        let mut best = None;
        for _ in 0..count {
            let index = self.rng.below(self.dense.len() as u64) as usize;
            let block = *self.dense.get(index)?;
            let valid = map.valid_in(block);
            if best.is_none_or(|(least, _)| valid < least) {
                best = Some((valid, block));
            }
        }
        best.map(|(_, block)| block)
    }

    /// Age times free share over valid share; age counts closings since the block was closed.
    fn most_benefit(&self, map: &Map) -> Option<u32> {
        let worth = |block: u32| {
            let valid = u64::from(map.valid_in(block));
            let age = self.closings + 1 - self.closed_at[self.slot(block)];
            // Nothing to copy is worth more than anything; the older of equals first.
            let free = u64::from(self.units_per_block).saturating_sub(valid);
            if valid == 0 { f64::MAX } else { (age * free) as f64 / valid as f64 }
        };
        let candidates = self.dense.iter().map(|&block| (worth(block), block));
        candidates.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1))).map(|(_, block)| block)
    }

    fn is_ordered(&self) -> bool {
        matches!(self.policy, GcPolicy::Fifo | GcPolicy::Windowed(_))
    }

    #[inline]
    fn slot(&self, block: u32) -> usize {
        (block - self.first_block) as usize
    }
}
