//! Written data: sectors that identify their write in every byte.

/// Bytes of a sector.
pub(crate) const SECTOR: usize = 512;

const WORDS: usize = SECTOR / 8;

/// The first word of every written sector.
const MAGIC: u64 = 0x656d_6d63_6c61_6221;

/// The content of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// It was never written, or erased.
    Blank,
    /// All of it belongs to this write.
    Written(u64),
    /// Anything else: parts of two writes, another sector's content, invalid data.
    Foreign,
}

/// Fills `bytes`, whole sectors from `first` on, as the write `generation`.
pub(crate) fn fill(bytes: &mut [u8], first: u64, generation: u64) {
    for (sector, bytes) in (first..).zip(bytes.chunks_exact_mut(SECTOR)) {
        for (index, word) in bytes.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&expected(sector, generation, index).to_le_bytes());
        }
    }
}

/// The content of the sector `sector`.
pub(crate) fn content(bytes: &[u8], sector: u64) -> Content {
    let word = |index: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[index * 8..index * 8 + 8]);
        u64::from_le_bytes(word)
    };
    if bytes.iter().all(|byte| *byte == 0) {
        return Content::Blank;
    }
    let generation = word(2);
    if (0..WORDS).all(|index| word(index) == expected(sector, generation, index)) {
        Content::Written(generation)
    } else {
        Content::Foreign
    }
}

fn expected(sector: u64, generation: u64, index: usize) -> u64 {
    match index {
        0 => MAGIC,
        1 => sector,
        2 => generation,
        _ => mixed(mixed(sector ^ generation.rotate_left(32)).wrapping_add(index as u64)),
    }
}

/// A pseudo-random number. Source: SplitMix64, S. Vigna, public domain.
pub(crate) fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_names_its_write() {
        let mut bytes = vec![0; 2 * SECTOR];
        assert_eq!(content(&bytes[..SECTOR], 7), Content::Blank);
        fill(&mut bytes, 7, 99);
        assert_eq!(content(&bytes[..SECTOR], 7), Content::Written(99));
        assert_eq!(content(&bytes[SECTOR..], 8), Content::Written(99));
        assert_eq!(content(&bytes[SECTOR..], 7), Content::Foreign, "another sector's content");
        let mut other = vec![0; SECTOR];
        fill(&mut other, 7, 100);
        other[SECTOR / 2..].copy_from_slice(&bytes[SECTOR / 2..SECTOR]);
        assert_eq!(content(&other, 7), Content::Foreign, "torn");
    }
}
