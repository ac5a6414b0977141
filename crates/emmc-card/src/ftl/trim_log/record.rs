//! Records of the log: what a page of it holds, as bytes.

use super::Trimmed;

/// Bytes of a record beside its bitmap; they go to the spare area.
const HEADER_BYTES: usize = 28;
/// A trim that is taken over from an earlier block: first, count, sequence number.
const KEPT_BYTES: usize = 16;
/// In place of the index of a checkpoint's page: a page of such trims.
const KEPT: u32 = u32::MAX - 1;

/// A page of the log.
pub(super) enum Record<'a> {
    Checkpoint {
        index: u32,
        bits: &'a [u8],
    },
    /// With its own sequence number where it was taken over from an earlier block, else 0.
    Trim {
        first: u32,
        count: u32,
        order: u64,
    },
    /// Trims taken over from an earlier block.
    Kept {
        entries: &'a [u8],
    },
}

/// The generation of the block that a record is in.
pub(super) fn generation(record: &[u8]) -> u64 {
    u64::from_le_bytes(array(record, 0))
}

/// How many pages of trims that are taken over follow a checkpoint, by its first page.
pub(super) fn taken_over(record: &[u8]) -> u32 {
    u32::from_le_bytes(array(record, 12))
}

/// In the first page of a checkpoint `first` is the number of pages with trims that are taken over after it.
pub(super) fn header(generation: u64, index: u32, first: u32, count: u32, order: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&generation.to_le_bytes());
    for (at, word) in [(8, index), (12, first), (16, count)] {
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    bytes[20..].copy_from_slice(&order.to_le_bytes());
    bytes
}

pub(super) fn parse(record: &[u8]) -> Record<'_> {
    let word = |at: usize| u32::from_le_bytes(array(record, at));
    match word(8) {
        KEPT => Record::Kept { entries: &record[HEADER_BYTES..] },
        u32::MAX => Record::Trim { first: word(12), count: word(16), order: u64::from_le_bytes(array(record, 20)) },
        index => Record::Checkpoint { index, bits: &record[HEADER_BYTES..] },
    }
}

/// How many trims that are taken over a page holds.
pub(super) fn kept_per_page(page_bytes: u32) -> usize {
    (page_bytes as usize / KEPT_BYTES).max(1)
}

pub(super) fn kept_record(generation: u64, trims: &[Trimmed]) -> Vec<u8> {
    let mut record = header(generation, KEPT, trims.len() as u32, 0, 0).to_vec();
    for trim in trims {
        record.extend(trim.first.to_le_bytes());
        record.extend(trim.count.to_le_bytes());
        record.extend(trim.order.to_le_bytes());
    }
    record
}

/// The trims of a page of those that are taken over.
pub(super) fn kept_trims(entries: &[u8]) -> impl Iterator<Item = Trimmed> + '_ {
    entries.chunks_exact(KEPT_BYTES).map(kept_trim)
}

/// Shape: [`KEPT_BYTES`] bytes.
fn kept_trim(entry: &[u8]) -> Trimmed {
    let word = |at: usize| u32::from_le_bytes(array(entry, at));
    Trimmed { first: word(0), count: word(4), order: u64::from_le_bytes(array(entry, 8)) }
}

fn array<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[at..at + N]);
    bytes
}
