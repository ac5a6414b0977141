//! Memory for reads and writes: pages that no card can compress or deduplicate.
//!
//! It is filled once from a seed. Before each write only eight bytes of each page change, to a number that is never
//! used twice, so that no two written pages are equal: enough against deduplication, at almost no cost.

use std::io;

use emmc_units::Rng;
use memmap2::{Advice, MmapMut};

/// Alignment for direct I/O and flash pages. Unit: bytes.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Page-aligned memory with random bytes.
///
/// Errors: not enough memory.
pub(crate) fn random(bytes: usize, seed: u64) -> io::Result<MmapMut> {
    let mut map = zeros(bytes)?;
    let mut rng = Rng::new(seed);
    for word in map.chunks_exact_mut(8) {
        word.copy_from_slice(&rng.next_u64().to_ne_bytes());
    }
    Ok(map)
}

/// Page-aligned zeroed memory.
///
/// Errors: not enough memory.
pub(crate) fn zeros(bytes: usize) -> io::Result<MmapMut> {
    let map = MmapMut::map_anon(bytes.max(1).next_multiple_of(PAGE_BYTES))?;
    // Huge pages: fewer pages to look up for each request; optional.
    let _ = map.advise(Advice::HugePage);
    Ok(map)
}

/// Numbers that never repeat.
#[derive(Clone, Debug)]
pub(crate) struct Stamp(u64);

impl Stamp {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Multiples of an odd number go through all values before one repeats.
    #[inline]
    pub(super) fn take(&mut self) -> [u8; 8] {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.to_ne_bytes()
    }

    /// Makes every page of some data unique.
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
    fn pages_differ_and_cannot_be_compressed() {
        let mut data = random(64 * PAGE_BYTES, 5).unwrap();
        let mut stamp = Stamp::new(5);
        let mut seen = HashSet::new();
        for _ in 0..20 {
            stamp.mark(&mut data);
            assert!(data.chunks(PAGE_BYTES).all(|page| seen.insert(page.to_vec())));
        }
        let mut counts = [0u32; 256];
        data.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        // 1024 of each, within six standard deviations.
        assert!(counts.iter().all(|count| (832..1216).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_length_is_rounded_up_to_pages() {
        assert_eq!([0, 1, 4096, 5000].map(|bytes| zeros(bytes).unwrap().len()), [4096, 4096, 4096, 8192]);
    }
}
