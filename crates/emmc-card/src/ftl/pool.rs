//! Blocks without data: free ones, used in turn or least worn first, and spares for bad blocks.
//!
//! Whether a free block is already erased, and when it may be erased, is up to the layer: a block can be returned dirty
//! and erased when it is taken. Absent on purpose: valid data (`map`); the layer that took a block keeps track of it.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::RegionSpec;
use crate::nand::{BlockHealth, Nand};

/// In which order free blocks are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeOrder {
    /// In the order of their return.
    InTurn,
    /// The least worn first; the lowest number of equal ones.
    LeastWorn,
}

/// Free blocks and spares of a region.
#[derive(Clone, Debug)]
pub struct Pool {
    order: TakeOrder,
    /// With the key by which they are taken: a running number, or the erase count.
    free: BTreeSet<(u64, u32)>,
    given: u64,
    /// Taken from the end.
    spares: Vec<u32>,
    spares_at_first: u32,
    /// Bad blocks without a replacement.
    unreplaced: u32,
    /// Spares used as free blocks until some are returned.
    borrowed: u32,
}

impl Pool {
    /// The blocks of a region: all free but for `spec.spares` at the end. Bad ones are replaced from the spares.
    pub fn new(spec: &RegionSpec, order: TakeOrder, nand: &Nand) -> Self {
        Self::with_blocks(&spec.blocks, spec.spares, order, nand)
    }

    /// Like [`Pool::new`], of blocks of which the last `spares` are spares.
    pub fn with_blocks(blocks: &[u32], spares: u32, order: TakeOrder, nand: &Nand) -> Self {
        let good = |block: &&u32| nand.block(**block).health == BlockHealth::Good;
        let (main, rest) = blocks.split_at(blocks.len() - (spares as usize).min(blocks.len()));
        let mut pool = Self {
            order,
            free: BTreeSet::new(),
            given: 0,
            spares: rest.iter().filter(good).rev().copied().collect(),
            spares_at_first: 0,
            unreplaced: 0,
            borrowed: 0,
        };
        for &block in main {
            let usable = if good(&&block) { Some(block) } else { pool.replacement() };
            if let Some(block) = usable {
                pool.give(block, nand.block(block).erase_count);
            }
        }
        pool.spares_at_first = pool.spares.len() as u32;
        pool
    }

    /// Free blocks.
    pub fn free(&self) -> u32 {
        self.free.len() as u32
    }

    /// The free blocks in the order in which they will be taken.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.free.iter().map(|&(_, block)| block)
    }

    /// Takes the next block.
    pub fn take(&mut self) -> Option<u32> {
        self.free.pop_first().map(|(_, block)| block)
    }

    /// Takes the next suitable block.
    pub fn take_where(&mut self, will_do: impl Fn(u32) -> bool) -> Option<u32> {
        let found = self.free.iter().find(|(_, block)| will_do(*block)).copied()?;
        self.free.remove(&found);
        Some(found.1)
    }

    /// Takes the most worn suitable block; the lowest number of equal ones.
    pub fn take_most_worn(&mut self, nand: &Nand, will_do: impl Fn(u32) -> bool) -> Option<u32> {
        let suitable = self.free.iter().filter(|(_, block)| will_do(*block)).copied();
        let found = suitable.min_by_key(|&(_, block)| (Reverse(nand.block(block).erase_count), block))?;
        self.free.remove(&found);
        Some(found.1)
    }

    /// Uses a spare as a free block if none is left: the next returned block becomes the spare. Returns whether there
    /// was one.
    pub fn borrow_spare(&mut self, nand: &Nand) -> bool {
        let Some(block) = self.spares.pop() else { return false };
        self.add_free(block, nand.block(block).erase_count);
        self.borrowed += 1;
        true
    }

    /// For recovery: replaces the set of free blocks; the spares stay.
    pub fn reset(&mut self, free: impl Iterator<Item = u32>, nand: &Nand) {
        self.free.clear();
        self.borrowed = 0;
        for block in free.filter(|block| !self.spares.contains(block)).collect::<Vec<_>>() {
            self.give(block, nand.block(block).erase_count);
        }
    }

    /// For recovery: spares that are in use are lent. A returned spare may hold current data again, when its
    /// replacement was lost.
    pub fn lend_spares(&mut self, in_use: impl Fn(u32) -> bool) {
        let before = self.spares.len();
        self.spares.retain(|&block| !in_use(block));
        self.borrowed += (before - self.spares.len()) as u32;
    }

    /// Returns a block without valid data.
    pub fn give(&mut self, block: u32, erase_count: u32) {
        if self.borrowed > 0 {
            self.borrowed -= 1;
            self.spares.push(block);
            return;
        }
        self.add_free(block, erase_count);
    }

    /// Takes back a block that holds current data again. Returns whether it was free or a spare.
    pub fn reclaim(&mut self, block: u32) -> bool {
        if let Some(entry) = self.free.iter().find(|&&(_, free)| free == block).copied() {
            return self.free.remove(&entry);
        }
        let spares = self.spares.len();
        self.spares.retain(|&spare| spare != block);
        let lent = (spares - self.spares.len()) as u32;
        self.borrowed += lent;
        lent > 0
    }

    fn add_free(&mut self, block: u32, erase_count: u32) {
        self.given += 1;
        let key = match self.order {
            TakeOrder::InTurn => self.given,
            TakeOrder::LeastWorn => u64::from(erase_count),
        };
        self.free.insert((key, block));
    }

    /// A taken block has become bad: a spare becomes free instead. Returns whether there was one.
    pub fn retire(&mut self, nand: &Nand) -> bool {
        let spare = self.replacement();
        if let Some(block) = spare {
            self.add_free(block, nand.block(block).erase_count);
        }
        spare.is_some()
    }

    /// Spares left, and spares at first (the factory's bad blocks already replaced).
    pub fn spares(&self) -> (u32, u32) {
        (self.spares.len() as u32, self.spares_at_first)
    }

    /// The spares that are left.
    pub fn spare_blocks(&self) -> &[u32] {
        &self.spares
    }

    /// Bad blocks without a replacement: by how much the region has shrunk.
    pub fn unreplaced(&self) -> u32 {
        self.unreplaced
    }

    fn replacement(&mut self) -> Option<u32> {
        let spare = self.spares.pop();
        self.unreplaced += u32::from(spare.is_none());
        spare
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nand::{CellMode, Geometry};
    use crate::profile::{CellConfig, Failures, NandConfig};
    use emmc_units::Instant;

    fn nand() -> Nand {
        let config = NandConfig {
            cell: CellMode::Slc,
            channels: 1,
            dies: 1,
            planes: 1,
            page_bytes: 4096,
            pages_per_block: 4,
            blocks: None,
            over_provisioning: 0.1,
            spare_blocks: 2,
            factory_bad_blocks: 0,
            channel_mb_s: 100.0,
            cached_program: true,
            multi_plane: true,
            multi_plane_read: false,
            native: CellConfig {
                read_us: 25.0,
                program_us: vec![200.0],
                erase_ms: 2.0,
                endurance: 1000,
                time_spread: 0.0,
                endurance_spread: 0.0,
            },
            slc: None,
            failures: Failures::default(),
            ageing: None,
        };
        Nand::new(&config, Geometry::new(&config, 8, 4096), 1)
    }

    #[test]
    fn a_reclaimed_block_is_neither_free_nor_spare() {
        let nand = nand();
        let mut pool = Pool::with_blocks(&[3, 1, 2, 7], 1, TakeOrder::InTurn, &nand);
        assert!(pool.reclaim(1));
        assert!(!pool.reclaim(1));
        assert_eq!(pool.iter().collect::<Vec<_>>(), [3, 2]);
        // The spare counts as lent: the next block that is returned takes its place.
        assert!(pool.reclaim(7));
        assert_eq!(pool.spares().0, 0);
        pool.give(1, 0);
        assert_eq!((pool.free(), pool.spare_blocks()), (2, &[1][..]));
    }

    #[test]
    fn first_in_first_out_follows_the_sequence_of_release() {
        let nand = nand();
        let mut pool = Pool::with_blocks(&[3, 1, 2, 7], 1, TakeOrder::InTurn, &nand);
        assert_eq!(pool.take(), Some(3));
        pool.give(3, 0);
        assert_eq!([pool.take(), pool.take(), pool.take(), pool.take()], [Some(1), Some(2), Some(3), None]);
        assert_eq!(pool.spares(), (1, 1));
    }

    #[test]
    fn the_least_worn_suitable_block_is_taken_first() {
        let mut nand = nand();
        for _ in 0..3 {
            nand.erase(1, Instant::START).unwrap();
        }
        nand.erase(2, Instant::START).unwrap();
        let mut pool = Pool::with_blocks(&[1, 2, 3], 0, TakeOrder::LeastWorn, &nand);
        assert_eq!(pool.iter().collect::<Vec<_>>(), [3, 2, 1]);
        assert_eq!(pool.take_where(|block| block != 3), Some(2));
        assert_eq!(pool.take_where(|block| block == 2), None);
        assert_eq!([pool.take(), pool.take(), pool.take()], [Some(3), Some(1), None]);
    }

    #[test]
    fn spares_replace_bad_blocks_until_none_is_left() {
        let nand = nand();
        let mut pool = Pool::with_blocks(&[0, 1, 2, 3, 4], 2, TakeOrder::InTurn, &nand);
        assert_eq!(pool.take(), Some(0));
        assert!(pool.retire(&nand));
        assert_eq!((pool.spares(), pool.free()), ((1, 2), 3));
        assert_eq!(pool.iter().collect::<Vec<_>>(), [1, 2, 3]);
        assert!(pool.retire(&nand));
        assert!(!pool.retire(&nand));
        assert_eq!((pool.spares(), pool.free(), pool.unreplaced()), ((0, 2), 4, 1));
    }

    #[test]
    fn a_borrowed_spare_is_replaced_by_the_next_block() {
        let nand = nand();
        let mut pool = Pool::with_blocks(&[0, 1], 1, TakeOrder::InTurn, &nand);
        assert_eq!((pool.take(), pool.take()), (Some(0), None));
        assert!(pool.borrow_spare(&nand) && !pool.borrow_spare(&nand));
        assert_eq!((pool.take(), pool.spares()), (Some(1), (0, 1)));
        pool.give(0, 0);
        assert_eq!((pool.free(), pool.spare_blocks()), (0, [0].as_slice()));
        pool.give(1, 0);
        assert_eq!(pool.take(), Some(1));
    }

    #[test]
    fn a_reset_restores_the_spares() {
        let nand = nand();
        let mut pool = Pool::with_blocks(&[0, 1, 2, 3], 1, TakeOrder::LeastWorn, &nand);
        pool.take();
        pool.reset([3, 2, 0].into_iter(), &nand);
        assert_eq!((pool.iter().collect::<Vec<_>>(), pool.spares()), (vec![0, 2], (1, 1)));
    }
}
