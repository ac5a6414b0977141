//! A permutation of the numbers below a bound, computed rather than stored.

/// Rounds of the Feistel network; four make every bit depend on every other.
const ROUNDS: u64 = 4;

/// Permutes the numbers of a range.
///
/// A Feistel network over the next even number of bits; results beyond the bound are permuted again until they fall
/// inside (cycle walking), which keeps it one to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scramble {
    bound: u64,
    half_bits: u32,
    seed: u64,
}

impl Scramble {
    /// A permutation of the numbers below `bound`.
    pub fn new(bound: u64, seed: u64) -> Self {
        let bits = u64::BITS - bound.saturating_sub(1).leading_zeros();
        Self { bound, half_bits: bits.div_ceil(2).max(1), seed }
    }

    /// The image of `number`, which is below the bound.
    #[inline]
    pub fn of(&self, number: u64) -> u64 {
        let mut number = number;
        loop {
            number = self.once(number);
            if number < self.bound {
                return number;
            }
        }
    }

    #[inline]
    fn once(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ mix(right ^ self.seed.rotate_left(16 * round as u32)) & mask);
        }
        left << self.half_bits | right
    }
}

/// The finaliser of splitmix64.
#[inline]
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_own_place() {
        for bound in [1, 2, 3, 100, 256, 1000, 4097] {
            let scramble = Scramble::new(bound, 11);
            let mut places: Vec<u64> = (0..bound).map(|number| scramble.of(number)).collect();
            let moved = (0..bound).filter(|number| places[*number as usize] != *number).count() as u64;
            assert!(moved * 4 >= bound * 3 || bound < 100, "{bound}: {moved} moved");
            places.sort_unstable();
            assert_eq!(places, (0..bound).collect::<Vec<_>>(), "{bound}");
        }
        assert_ne!(Scramble::new(1000, 1).of(7), Scramble::new(1000, 2).of(7));
    }
}
