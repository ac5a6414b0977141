//! Lower bounds of valid units, per group of blocks: finds the emptiest block without sorting.
//!
//! Each overwrite makes one block emptier. Lists of blocks by valid units would touch five cache lines each time; a
//! bound per group costs one comparison. A bound is never above the true value; a search scans groups, lowest bound
//! first, and raises their bounds to the values found.

/// Blocks of a group: one pass over it costs less than a cache miss.
const GROUP: usize = 64;

/// Bounds over blocks numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    least: Vec<u32>,
    blocks: usize,
    /// The group and the slot where the next search starts, so that equal blocks wear evenly.
    start: usize,
    after: usize,
}

impl Bounds {
    pub(super) fn new(blocks: usize) -> Self {
        Self { least: vec![u32::MAX; blocks.div_ceil(GROUP)], blocks, start: 0, after: 0 }
    }

    /// A block may hold as few as `valid`.
    #[inline]
    pub(super) fn lower(&mut self, slot: usize, valid: u32) {
        let bound = &mut self.least[slot / GROUP];
        *bound = (*bound).min(valid);
    }

    /// A block with the least that `valid` answers, of equals the first after the one found last; `None` answers do not
    /// take part.
    pub(super) fn least(&mut self, valid: impl Fn(usize) -> Option<u32>) -> Option<usize> {
        loop {
            let bound = self.least.iter().copied().min().filter(|&bound| bound != u32::MAX)?;
            let group = self.first_of(bound)?;
            let slots = group * GROUP..self.blocks.min((group + 1) * GROUP);
            let in_turn = |slot: usize| slot.wrapping_sub(self.after) % GROUP;
            let best = slots.map(|slot| (valid(slot).unwrap_or(u32::MAX), in_turn(slot), slot)).min()?;
            self.least[group] = best.0;
            if best.0 == bound {
                (self.start, self.after) = (group + 1, best.2 + 1);
                return Some(best.2);
            }
        }
    }

    fn first_of(&self, bound: u32) -> Option<usize> {
        let start = self.start.min(self.least.len());
        let later = self.least[start..].iter().position(|&other| other == bound).map(|index| start + index);
        later.or_else(|| self.least[..start].iter().position(|&other| other == bound))
    }
}
