//! What a folder held last, in its lock file: the highest generation of its state, and how long its journals were.
//!
//! So an older state and a journal whose end is missing are not taken for the card. The first line is the generation of
//! the newest state. Two entries follow, for journals of even and of odd generations: generation, bytes that were
//! acknowledged, and a check of both. They are written with each commit, through a mapping where that cannot meet a
//! full disk. What does not agree with its own check is no note: the notes protect a card, and are no part of it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::FallocateFlags;

use super::LOCK_FILE;
use super::data::is_in_place;
use super::journal::checksum;
use super::slots::store_number;

/// Where the entries begin, and the size of each. Unit: bytes.
const ENTRIES_AT: usize = 64;
const ENTRY_BYTES: usize = 24;
/// Unit: bytes.
const FILE_BYTES: usize = ENTRIES_AT + 2 * ENTRY_BYTES;
/// Digits of the generation. Earlier builds write only these and an end of line.
const DIGITS: usize = 20;

/// Notes that the state of this generation has its name. Without the note an older state is not detected.
pub(super) fn note(folder: &Path, generation: u64) {
    let digits = format!("{generation:0DIGITS$}");
    let line = format!("{digits} {:08x}\n", u32::from_le_bytes(checksum(digits.as_bytes())));
    let file = File::options().write(true).open(folder.join(LOCK_FILE));
    // Of one length, so that no instant leaves a shorter number; a full disk or a read-only folder leaves the old note.
    let _ = file.and_then(|file| file.write_all_at(line.as_bytes(), 0));
}

/// What a lock file notes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Noted {
    /// The generation of the newest state; 0: unknown.
    pub(super) generation: u64,
    /// Journals: generation, and bytes that were acknowledged.
    journals: [(u64, u64); 2],
}

impl Noted {
    /// The acknowledged length of a journal; 0: unknown. Unit: bytes.
    pub(super) fn acknowledged(&self, generation: u64) -> u64 {
        let (of, bytes) = self.journals[(generation % 2) as usize];
        if of == generation { bytes } else { 0 }
    }

    fn parse(bytes: &[u8]) -> Self {
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let (digits, sum) = line.split_at_checked(DIGITS).unwrap_or_default();
        let is_whole = sum.is_empty() || sum == format!(" {:08x}", u32::from_le_bytes(checksum(digits))).as_bytes();
        let text = std::str::from_utf8(digits).ok().filter(|_| is_whole);
        let entry = |at: usize| {
            let entry = bytes.get(ENTRIES_AT + at * ENTRY_BYTES..)?.get(..ENTRY_BYTES)?;
            let [generation, end, check] =
                [0, 8, 16].map(|at| entry[at..].first_chunk().map_or(0, |number| u64::from_le_bytes(*number)));
            (check == check_of(generation, end)).then_some((generation, end))
        };
        Self {
            generation: text.and_then(|text| text.parse().ok()).unwrap_or(0),
            journals: [0, 1].map(|at| entry(at).unwrap_or_default()),
        }
    }
}

/// What was noted; nothing, where there is no file.
pub(super) fn noted(folder: &Path) -> Noted {
    Noted::parse(&std::fs::read(folder.join(LOCK_FILE)).unwrap_or_default())
}

/// Forgets how long journals were: some of their records were set aside.
pub(super) fn forget_journals(folder: &Path) {
    let file = File::options().write(true).open(folder.join(LOCK_FILE));
    let _ = file.and_then(|file| file.write_all_at(&[0; 2 * ENTRY_BYTES], ENTRIES_AT as u64));
}

/// Different for each pair that follows another, and not zero for an empty file.
fn check_of(generation: u64, end: u64) -> u64 {
    (generation ^ end.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995_7b1d_fa37
}

/// The entries of the journals, while records are written.
#[derive(Debug)]
pub(super) struct Acknowledged {
    file: File,
    map: Option<MmapRaw>,
}

impl Acknowledged {
    /// Opens the lock file for notes; `None`: it cannot be written, and a missing end of a journal is not detected.
    pub(super) fn open(folder: &Path) -> Option<Self> {
        let file = File::options().read(true).write(true).open(folder.join(LOCK_FILE)).ok()?;
        let map = is_in_place(&file)
            .then(|| {
                rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, FILE_BYTES as u64).ok()?;
                MmapOptions::new().len(FILE_BYTES).map_raw(&file).ok()
            })
            .flatten();
        Some(Self { file, map })
    }

    /// All records up to `end` are written.
    pub(super) fn note(&self, generation: u64, end: u64) {
        let entry = [generation, end, check_of(generation, end)];
        let at = ENTRIES_AT + (generation % 2) as usize * ENTRY_BYTES;
        match &self.map {
            Some(map) => {
                entry.into_iter().enumerate().for_each(|(index, number)| store_number(map, at + 8 * index, number))
            }
            None => {
                let mut bytes = [0; ENTRY_BYTES];
                bytes.chunks_exact_mut(8).zip(entry).for_each(|(to, number)| to.copy_from_slice(&number.to_le_bytes()));
                // What is not noted is not missed.
                let _ = self.file.write_all_at(&bytes, at as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_back_and_a_flipped_bit_is_no_note() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_FILE);
        std::fs::write(&path, b"").unwrap();
        assert_eq!(noted(folder.path()), Noted::default());
        note(folder.path(), 12);
        let notes = Acknowledged::open(folder.path()).unwrap();
        notes.note(12, 900);
        notes.note(13, 40);
        notes.note(12, 950);
        let unmapped = Acknowledged { file: notes.file.try_clone().unwrap(), map: None };
        unmapped.note(13, 44);
        let whole = noted(folder.path());
        let lengths = [11, 12, 13, 14].map(|generation| whole.acknowledged(generation));
        assert_eq!((whole.generation, lengths), (12, [0, 950, 44, 0]));
        let bytes = std::fs::read(&path).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            let found = Noted::parse(&wrong);
            assert!(found.generation == 12 || found.generation == 0, "bit {bit}: {found:?}");
            for generation in [12, 13] {
                let length = found.acknowledged(generation);
                assert!(length == 0 || length == whole.acknowledged(generation), "bit {bit}: {found:?}");
            }
        }
        forget_journals(folder.path());
        assert_eq!((noted(folder.path()).generation, noted(folder.path()).acknowledged(12)), (12, 0));
        // Of an earlier build.
        assert_eq!(Noted::parse(b"00000000000000000007\n").generation, 7);
    }
}
