#![no_main]
//! Any partition tables and filesystems: the parts cover the area, and what is allocated lies inside them.

use emmc_clone::allocation::{ReadAt, map};
use libfuzzer_sys::fuzz_target;

const SIZE_BYTES: u64 = 64 << 20;
const SECTOR_BYTES: u64 = 512;

/// Zeros, but for some sectors: the last sector of this number that was given.
struct Sparse<'a>(Vec<(u64, &'a [u8])>);

impl ReadAt for Sparse<'_> {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<(), String> {
        let end = offset.checked_add(into.len() as u64).filter(|end| *end <= SIZE_BYTES);
        let end = end.ok_or("outside")?;
        into.fill(0);
        for (at, bytes) in &self.0 {
            let (from, to) = (offset.max(*at), end.min(at + bytes.len() as u64));
            if from < to {
                into[(from - offset) as usize..(to - offset) as usize]
                    .copy_from_slice(&bytes[(from - at) as usize..(to - at) as usize]);
            }
        }
        Ok(())
    }
}

// Chunks of 514 bytes: the number of a sector, and its bytes.
fuzz_target!(|data: &[u8]| {
    let sectors = data.chunks(514).filter_map(|chunk| {
        let (number, bytes) = chunk.split_first_chunk()?;
        Some((u64::from(u16::from_le_bytes(*number)) * SECTOR_BYTES, bytes))
    });
    let found = map(&mut Sparse(sectors.collect()), SIZE_BYTES, SECTOR_BYTES).expect("everything can be read");
    let mut end = 0;
    for part in &found.parts {
        assert_eq!(part.from_bytes, end, "{:?}", found.parts);
        assert!(part.from_bytes < part.to_bytes && part.used_bytes <= part.to_bytes - part.from_bytes);
        end = part.to_bytes;
    }
    assert_eq!(end, SIZE_BYTES);
    assert_eq!(found.used.bytes(), found.parts.iter().map(|part| part.used_bytes).sum::<u64>());
    assert!(found.used.as_slice().last().is_none_or(|range| range[1] <= SIZE_BYTES));
});
