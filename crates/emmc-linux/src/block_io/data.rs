//! Memory that requests read into and write from: page by page what no card can shrink or has seen before.
//!
//! It is filled once from a seed. On the way to a write only eight bytes of each page change, to a number that is never
//! used twice, so that no two pages that are written are the same: enough against cards that find duplicates, at next
//! to no cost.

use std::io;

use emmc_units::Rng;
use memmap2::{Advice, MmapMut};

/// What direct I/O and a page of flash agree on. Unit: bytes.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Page-aligned memory full of random bytes.
///
/// Errors: there is not so much memory.
pub(crate) fn random(bytes: usize, seed: u64) -> io::Result<MmapMut> {
    let mut map = zeros(bytes)?;
    let mut rng = Rng::new(seed);
    for word in map.chunks_exact_mut(8) {
        word.copy_from_slice(&rng.next_u64().to_ne_bytes());
    }
    Ok(map)
}

/// Page-aligned memory, nothing in it.
///
/// Errors: there is not so much memory.
pub(crate) fn zeros(bytes: usize) -> io::Result<MmapMut> {
    let map = MmapMut::map_anon(bytes.max(1).next_multiple_of(PAGE_BYTES))?;
    // Fewer pages to look up for each request; a kernel that cannot does without.
    let _ = map.advise(Advice::HugePage);
    Ok(map)
}

/// Numbers that are used once each.
#[derive(Clone, Debug)]
pub(crate) struct Stamp(u64);

impl Stamp {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// An odd factor goes through all numbers before it repeats one.
    #[inline]
    pub(super) fn take(&mut self) -> [u8; 8] {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.to_ne_bytes()
    }

    /// Makes every page of some data one that was never written before.
    pub(crate) fn mark(&mut self, data: &mut [u8]) {
        for page in data.chunks_mut(PAGE_BYTES) {
            if let Some(place) = page.first_chunk_mut::<8>() {
                *place = self.take();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_pages_are_the_same_and_none_can_be_shrunk() {
        let mut data = random(64 * PAGE_BYTES, 5).unwrap();
        let mut stamp = Stamp::new(5);
        let mut seen = HashSet::new();
        for _ in 0..20 {
            stamp.mark(&mut data);
            assert!(data.chunks(PAGE_BYTES).all(|page| seen.insert(page.to_vec())));
        }
        let mut counts = [0u32; 256];
        data.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        // 1024 of each, give or take six deviations.
        assert!(counts.iter().all(|count| (832..1216).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_length_that_is_no_page_is_rounded_up() {
        assert_eq!([0, 1, 4096, 5000].map(|bytes| zeros(bytes).unwrap().len()), [4096, 4096, 4096, 8192]);
    }
}
