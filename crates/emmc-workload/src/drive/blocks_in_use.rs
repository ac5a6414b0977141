//! Random writes mixed with trims of blocks in use: the model of Frankie, Hughes and Kreutz-Delgado (arXiv 1210.5975),
//! in which the share in use settles at (1 - 2q) / (1 - q).

use emmc_units::Rng;

use super::TWO_TO_64;

const NOWHERE: u32 = u32::MAX;

/// The blocks in use, for uniform sampling.
#[derive(Clone, Debug)]
pub(crate) struct BlocksInUse {
    blocks: Vec<u32>,
    /// The index of each block in that list.
    places: Vec<u32>,
    /// Probability of a trim, of 2^64.
    threshold: u64,
}

impl BlocksInUse {
    /// No blocks are in use yet.
    pub(crate) fn new(blocks: u64, trim_share: f64) -> Self {
        let threshold = (trim_share * TWO_TO_64) as u64;
        Self { blocks: Vec::with_capacity(blocks as usize), places: vec![NOWHERE; blocks as usize], threshold }
    }

    /// Adds a block in use.
    pub(crate) fn add(&mut self, block: u64) {
        if self.places[block as usize] == NOWHERE {
            self.places[block as usize] = self.blocks.len() as u32;
            self.blocks.push(block as u32);
        }
    }

    /// Whether the next request is a trim, and its block; updates the blocks in use.
    #[inline]
    pub(crate) fn next(&mut self, rng: &mut Rng) -> (bool, u64) {
        if rng.next_u64() < self.threshold && !self.blocks.is_empty() {
            let place = rng.below(self.blocks.len() as u64) as usize;
            let block = self.blocks.swap_remove(place);
            self.places[block as usize] = NOWHERE;
            if let Some(&moved) = self.blocks.get(place) {
                self.places[moved as usize] = place as u32;
            }
            return (true, u64::from(block));
        }
        let block = rng.below(self.places.len() as u64);
        self.add(block);
        (false, block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mapped_ranges_are_trimmed_and_the_share_settles() {
        let (blocks, q) = (10_000, 0.2);
        let mut in_use = BlocksInUse::new(blocks, q);
        let mut held = vec![false; blocks as usize];
        let mut rng = Rng::new(8);
        let (mut trims, mut sum) = (0u64, 0u64);
        for request in 0..400_000u64 {
            match in_use.next(&mut rng) {
                (false, block) => held[block as usize] = true,
                (true, block) => {
                    assert!(std::mem::take(&mut held[block as usize]), "request {request}");
                    trims += 1;
                }
            }
            if request >= 200_000 {
                sum += in_use.blocks.len() as u64;
            }
        }
        assert_eq!(in_use.blocks.len(), held.iter().filter(|held| **held).count());
        assert!((78_700..81_300).contains(&trims), "{trims}");
        let share = sum as f64 / 200_000.0 / blocks as f64;
        let settled = (1.0 - 2.0 * q) / (1.0 - q);
        assert!((share - settled).abs() < 0.005, "{share} against {settled}");
    }
}
