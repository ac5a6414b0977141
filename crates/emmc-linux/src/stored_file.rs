//! A file whose every block says where and when it was written: written, synced, and read again from the card.
//!
//! Absent on purpose: the verdict (`emmc-analysis`), and any block that is not of this file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Advice, fadvise};

use crate::block_io::data;

/// Unit: bytes.
const BLOCK: usize = 4096;
const MAGIC: &[u8; 8] = b"emmctrst";

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoredBlocks {
    /// Blocks of 4 KiB.
    pub blocks: u64,
    /// Of them, those that hold something else.
    pub wrong: u64,
    /// Of them, those that cannot be read.
    pub unreadable: u64,
    /// Of the wrong ones, those that hold another block of the file.
    pub elsewhere: u64,
}

/// Writes a file that does not exist yet, and waits until the card reports it as stored.
///
/// Errors: the system's; the file exists.
pub fn store(path: &Path, blocks: u64, seed: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let mut chunk = Vec::with_capacity(256 * BLOCK);
    for index in 0..blocks {
        chunk.extend_from_slice(&block(seed, index));
        if chunk.len() == chunk.capacity() || index + 1 == blocks {
            file.write_all(&chunk)?;
            chunk.clear();
        }
    }
    file.sync_all()
}

/// Reads the file from the card: past the page cache where the filesystem can, else after dropping it there.
///
/// Errors: the system's, those of single blocks excepted; a file that [`store`] did not write.
pub fn compare(path: &Path) -> io::Result<StoredBlocks> {
    let plain = File::open(path)?;
    let (length, mut head) = (plain.metadata()?.len(), [0; BLOCK]);
    fadvise(&plain, 0, None, Advice::DontNeed)?;
    let direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT | libc::O_CLOEXEC).open(path);
    let file = direct.unwrap_or(plain);
    let mut memory = data::random(BLOCK, 1)?;
    let blocks = length / BLOCK as u64;
    let mut read = |index: u64| {
        file.read_exact_at(&mut memory[..BLOCK], index * BLOCK as u64)?;
        io::Result::Ok(memory[..BLOCK].to_vec())
    };
    // Each block has the seed, so one that is whole is enough.
    let seed = (0..blocks).find_map(|index| {
        let bytes = read(index).ok()?;
        head.copy_from_slice(&bytes);
        is_ours(&head).map(|(seed, _)| seed)
    });
    let seed = seed.ok_or_else(|| io::Error::other("no block of it is one that `trust --keep` has written"))?;
    let mut found = StoredBlocks { blocks, ..StoredBlocks::default() };
    for index in 0..blocks {
        match read(index) {
            Err(_) => found.unreadable += 1,
            Ok(bytes) if bytes == block(seed, index) => {}
            Ok(bytes) => {
                found.wrong += 1;
                let other = is_ours(&bytes).filter(|(other, at)| *other == seed && bytes == block(seed, *at));
                found.elsewhere += u64::from(other.is_some());
            }
        }
    }
    Ok(found)
}

/// The seed and the number that a block claims.
fn is_ours(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut number = [[0; 8]; 3];
    let mut rest = bytes;
    for part in &mut number {
        rest.read_exact(part).ok()?;
    }
    let [magic, seed, index] = number;
    (&magic == MAGIC).then(|| (u64::from_le_bytes(seed), u64::from_le_bytes(index)))
}

/// A block: its marks, and numbers that follow from them. Source: splitmix64.
fn block(seed: u64, index: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BLOCK);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&seed.to_le_bytes());
    bytes.extend_from_slice(&index.to_le_bytes());
    let mut state = seed ^ index.wrapping_mul(0x2545_f491_4f6c_dd1d);
    while bytes.len() < BLOCK {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_a_block_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stored");
        store(&path, 300, 7).unwrap();
        assert_eq!(compare(&path).unwrap(), StoredBlocks { blocks: 300, ..StoredBlocks::default() });
        assert!(store(&path, 1, 7).is_err(), "it exists");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[0; BLOCK], 0).unwrap();
        file.write_all_at(&block(7, 9), 8 * BLOCK as u64).unwrap();
        file.write_all_at(&block(6, 10), 10 * BLOCK as u64).unwrap();
        let expected = StoredBlocks { blocks: 300, wrong: 3, elsewhere: 1, unreadable: 0 };
        assert_eq!(compare(&path).unwrap(), expected);
        std::fs::write(&path, [1; 9000]).unwrap();
        assert!(compare(&path).unwrap_err().to_string().contains("trust --keep"));
    }
}
