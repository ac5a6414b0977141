//! What the torture writes: units that say which unit they are and which write made them.

/// Bytes that are repeated over a unit: its number, and the stamp of the write.
const CELL_BYTES: usize = 12;

/// What was read from a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The content of one write, whole; 0: erased.
    Stamp(u64),
    /// An honest error.
    Uncorrectable,
    /// Anything else, in words.
    Garbage(String),
}

/// The content of `count` units from `first` as the write `stamp` makes them.
pub(crate) fn make(first: u32, count: u32, unit_bytes: usize, stamp: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count as usize * unit_bytes);
    for unit in first..first + count {
        let mut cell = [0; CELL_BYTES];
        cell[..4].copy_from_slice(&unit.to_le_bytes());
        cell[4..].copy_from_slice(&stamp.to_le_bytes());
        bytes.extend(cell.iter().cycle().take(unit_bytes));
    }
    bytes
}

/// What the bytes of a unit are.
pub(crate) fn read(unit: u32, bytes: &[u8]) -> Seen {
    if bytes.iter().all(|&byte| byte == 0) {
        return Seen::Stamp(0);
    }
    let word = |from: usize, to: usize| bytes[from..to].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    let (owner, stamp) = (word(0, 4), word(4, CELL_BYTES));
    if bytes.chunks(CELL_BYTES).any(|cell| *cell != bytes[..cell.len()]) {
        return Seen::Garbage(format!("a mixture that begins with write {stamp} of unit {owner}"));
    }
    if owner != u64::from(unit) {
        return Seen::Garbage(format!("write {stamp} of unit {owner}"));
    }
    Seen::Stamp(stamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_generated_content_is_accepted() {
        let bytes = make(7, 2, 32, 99);
        assert_eq!(read(7, &bytes[..32]), Seen::Stamp(99));
        assert_eq!(read(8, &bytes[32..]), Seen::Stamp(99));
        assert_eq!(read(7, &[0; 32]), Seen::Stamp(0));
        assert!(matches!(read(9, &bytes[..32]), Seen::Garbage(_)));
        let mut torn = bytes[..32].to_vec();
        torn[16..].fill(0);
        assert!(matches!(read(7, &torn), Seen::Garbage(_)));
    }
}
