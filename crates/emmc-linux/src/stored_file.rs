//! A file whose every block says where and when it was written: written, synced, and read again from the card.
//!
//! Absent on purpose: the verdict (`emmc-analysis`), and any block that is not of this file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use emmc_units::Rng;
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

/// A file without a name: nothing is left of it, however the process ends.
///
/// Errors: the system's.
pub fn unnamed(folder: &Path) -> io::Result<File> {
    tempfile::tempfile_in(folder)
}

/// The path of an open file for [`compare`], also of one without a name.
pub fn path_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Fills an empty file, and waits until the card reports it as stored.
///
/// Errors: the system's; stopped.
pub fn store(file: &mut File, blocks: u64, seed: u64, stop: &AtomicBool) -> io::Result<()> {
    let mut chunk = Vec::with_capacity(256 * BLOCK);
    for index in 0..blocks {
        chunk.extend_from_slice(&block(seed, index));
        if chunk.len() == chunk.capacity() || index + 1 == blocks {
            go_on(stop)?;
            file.write_all(&chunk)?;
            chunk.clear();
        }
    }
    file.sync_all()
}

/// Reads a file from the card: past the page cache where the filesystem can, else after dropping it there.
///
/// `seed` is that of [`store`]; without it, it is taken from the first block that is whole.
/// Errors: the system's, those of single blocks excepted; stopped; without `seed`, a file without a whole block.
pub fn compare(path: &Path, seed: Option<u64>, stop: &AtomicBool) -> io::Result<StoredBlocks> {
    let plain = File::open(path)?;
    let blocks = plain.metadata()?.len() / BLOCK as u64;
    fadvise(&plain, 0, None, Advice::DontNeed)?;
    let direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT | libc::O_CLOEXEC).open(path);
    let file = direct.unwrap_or(plain);
    let mut memory = data::zeros(BLOCK)?;
    let mut read = |index: u64| {
        file.read_exact_at(&mut memory[..BLOCK], index * BLOCK as u64)?;
        io::Result::Ok(memory[..BLOCK].to_vec())
    };
    let found = || (0..blocks).find_map(|index| claims(&read(index).ok()?).map(|(seed, _)| seed));
    let none = || io::Error::other("no block of it is one that `trust --keep` has written");
    let seed = seed.or_else(found).ok_or_else(none)?;
    let mut found = StoredBlocks { blocks, ..StoredBlocks::default() };
    for index in 0..blocks {
        go_on(stop)?;
        match read(index) {
            Err(_) => found.unreadable += 1,
            Ok(bytes) if bytes == block(seed, index) => {}
            Ok(bytes) => {
                found.wrong += 1;
                let other = claims(&bytes).filter(|(other, at)| *other == seed && bytes == block(seed, *at));
                found.elsewhere += u64::from(other.is_some());
            }
        }
    }
    Ok(found)
}

fn go_on(stop: &AtomicBool) -> io::Result<()> {
    if stop.load(Ordering::Relaxed) { Err(io::Error::other("stopped by a signal")) } else { Ok(()) }
}

/// The seed and the number that a block claims.
fn claims(bytes: &[u8]) -> Option<(u64, u64)> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (seed, rest) = rest.split_first_chunk()?;
    let (index, _) = rest.split_first_chunk()?;
    Some((u64::from_le_bytes(*seed), u64::from_le_bytes(*index)))
}

/// A block: its marks, and random numbers that follow from them.
fn block(seed: u64, index: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(BLOCK);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&seed.to_le_bytes());
    bytes.extend_from_slice(&index.to_le_bytes());
    let mut rng = Rng::new(seed ^ index.rotate_left(32));
    while bytes.len() < BLOCK {
        bytes.extend_from_slice(&rng.next_u64().to_le_bytes());
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
        let go = AtomicBool::new(false);
        store(&mut File::create_new(&path).unwrap(), 300, 7, &go).unwrap();
        let compare = |seed| compare(&path, seed, &go);
        assert_eq!(compare(None).unwrap(), StoredBlocks { blocks: 300, ..StoredBlocks::default() });
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&[0; BLOCK], 0).unwrap();
        file.write_all_at(&block(7, 9), 8 * BLOCK as u64).unwrap();
        file.write_all_at(&block(6, 10), 10 * BLOCK as u64).unwrap();
        let expected = StoredBlocks { blocks: 300, wrong: 3, elsewhere: 1, unreadable: 0 };
        assert_eq!([compare(None).unwrap(), compare(Some(7)).unwrap()], [expected; 2]);
        // Nothing of it was stored.
        std::fs::write(&path, vec![0; 3 * BLOCK]).unwrap();
        assert!(compare(None).unwrap_err().to_string().contains("trust --keep"));
        assert_eq!(compare(Some(7)).unwrap(), StoredBlocks { blocks: 3, wrong: 3, ..StoredBlocks::default() });
    }

    #[test]
    fn a_file_without_a_name_is_compared_and_a_signal_ends_the_work() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = unnamed(folder.path()).unwrap();
        let (go, stop) = (AtomicBool::new(false), AtomicBool::new(true));
        store(&mut file, 20, 9, &go).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let found = compare(&path_of(&file), Some(9), &go).unwrap();
        assert_eq!(found, StoredBlocks { blocks: 20, ..StoredBlocks::default() });
        assert!(compare(&path_of(&file), Some(9), &stop).is_err());
        assert!(store(&mut file, 20, 9, &stop).is_err());
    }
}
