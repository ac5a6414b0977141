//! Trims of a mounted filesystem, range by range, and a test whether its card obeys them.
//!
//! A trim discards only what the filesystem says is free. The test writes a file of its own and reads the device where
//! that file was: it writes nothing else. Absent on purpose: whether the card is a known bad one (`emmc-analysis`).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FallocateFlags;

use crate::block_io::data;
use crate::block_io::discard::{Extent, extents, fitrim};

/// What is compared and read at once. Unit: bytes.
const BLOCK: usize = 4096;
/// Blocks that are read and timed.
const SAMPLES: usize = 256;
/// Of the blocks this share must be as before, or must not, for a verdict.
const MOST: f64 = 0.95;

/// What a trim has done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trimmed {
    /// What the filesystem discarded. Unit: bytes.
    pub bytes: u64,
    /// Calls of FITRIM.
    pub ranges: u64,
    /// The time that they took.
    pub time: Duration,
    /// It was stopped before its end.
    pub is_stopped: bool,
}

/// Trims all free space of the filesystem that is mounted at `point`, `step_bytes` at a time.
///
/// `progress` gets the share that is done, and says whether to go on.
///
/// Errors: the kernel's; EOPNOTSUPP if a layer does not discard.
pub fn trim(point: &Path, step_bytes: u64, mut progress: impl FnMut(f64, u64) -> bool) -> io::Result<Trimmed> {
    let folder = File::open(point)?;
    let whole = length_bytes(point)?.max(1);
    let step = step_bytes.max(1 << 20);
    let (mut trimmed, mut start) = (Trimmed::default(), 0);
    let begin = Instant::now();
    while start < whole {
        if !progress(start as f64 / whole as f64, trimmed.bytes) {
            trimmed.is_stopped = true;
            break;
        }
        // A filesystem may count a little more than its device has.
        let length = if whole - start <= step { u64::MAX - start } else { step };
        match fitrim(&folder, start, length) {
            Ok(bytes) => trimmed.bytes += bytes,
            // Behind the last block of the filesystem, which can end before its device.
            Err(error) if start > 0 && error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) => return Err(error),
        }
        trimmed.ranges += 1;
        start = start.saturating_add(step);
    }
    trimmed.time = begin.elapsed();
    Ok(trimmed)
}

/// The device's size, else that of the filesystem. Unit: bytes.
fn length_bytes(point: &Path) -> io::Result<u64> {
    let number = fs::metadata(point)?.dev();
    let folder = format!("/sys/dev/block/{}:{}/size", libc::major(number), libc::minor(number));
    let sectors = fs::read_to_string(folder).ok().and_then(|text| text.trim().parse::<u64>().ok());
    match sectors.and_then(|sectors| sectors.checked_mul(512)) {
        Some(bytes) => Ok(bytes),
        None => Ok(crate::ioctl::space(point)?.total.0),
    }
}

/// What the test saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Obeyed {
    /// Whether discarded blocks lost their content; absent if some did and some did not.
    pub obeys: Option<bool>,
    /// Blocks that were read before and after.
    pub blocks: usize,
    /// Of them, those that still have the content of the file.
    pub same: usize,
    /// Of them, those that are all zeros.
    pub zero: usize,
    /// What the filesystem discarded. Unit: bytes.
    pub trimmed_bytes: u64,
    /// A block's read: the median before and after.
    pub read: [Duration; 2],
}

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// The system refused something.
    #[error("{what}: {error}")]
    Failed {
        /// What was tried.
        what: String,
        /// The system's reason.
        error: io::Error,
    },
    /// The file's blocks cannot be found on a device.
    #[error("{0}")]
    NoPlace(String),
}

fn failed<T>(what: impl Into<String>, result: io::Result<T>) -> Result<T, TestError> {
    result.map_err(|error| TestError::Failed { what: what.into(), error })
}

/// Writes a file of random content in `folder`, frees it and trims where it was, and reads the device there.
///
/// Errors: the system's; a filesystem that does not say where a file is, or is on no device.
pub fn test(folder: &Path, bytes: u64, seed: u64) -> Result<Obeyed, TestError> {
    let name = folder.display().to_string();
    // Without a name: nothing of it is left, however this ends.
    let file = failed(format!("{name}: a new file"), tempfile::tempfile_in(folder))?;
    let number = failed(&name, file.metadata())?.dev();
    let device = device_of(number).ok_or_else(|| {
        TestError::NoPlace(format!("{name}: its filesystem is on no block device (overlay, btrfs, network)"))
    })?;
    let content = written(&file, bytes, seed, &name)?;
    let found = failed(format!("{name}: where the file is"), extents(&file))?;
    let found = found.ok_or_else(|| {
        TestError::NoPlace(format!("{name}: its filesystem stores the file in another form (encrypted, compressed)"))
    })?;
    let node = device.display().to_string();
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT | libc::O_CLOEXEC).open(&device);
    let mut reader = Reader { device: failed(&node, opened)?, memory: failed(&node, data::random(BLOCK, 1))? };
    let places = places(&found, &content);
    let before = reader.look(&places, &content, &node)?;
    if before.same < places.len() || places.is_empty() {
        return Err(TestError::NoPlace(format!(
            "{node}: {} of {} blocks of the file are where the filesystem says: it may be a filesystem of several devices",
            before.same,
            places.len()
        )));
    }
    let keep = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    failed(&name, rustix::fs::fallocate(&file, keep, 0, bytes).map_err(Into::into))?;
    failed(&name, file.sync_all())?;
    failed(&name, rustix::fs::syncfs(&file).map_err(Into::into))?;
    let point = failed(&name, File::open(folder))?;
    let mut trimmed_bytes = 0;
    for extent in &found {
        trimmed_bytes += failed(format!("{name}: trim"), fitrim(&point, extent.physical, extent.length))?;
    }
    failed(&name, rustix::fs::syncfs(&point).map_err(Into::into))?;
    let after = reader.look(&places, &content, &node)?;
    let share = after.same as f64 / places.len() as f64;
    let obeys = if share >= MOST { Some(false) } else { (share <= 1.0 - MOST).then_some(true) };
    Ok(Obeyed {
        obeys,
        blocks: places.len(),
        same: after.same,
        zero: after.zero,
        trimmed_bytes,
        read: [before.read, after.read],
    })
}

/// Fills a file and waits until it is on its device.
fn written(mut file: &File, bytes: u64, seed: u64, name: &str) -> Result<Vec<u8>, TestError> {
    let content = failed(name, data::random(bytes as usize, seed))?.to_vec();
    failed(format!("{name}: writing"), file.write_all(&content).and_then(|()| file.sync_all()))?;
    Ok(content)
}

/// The device of a filesystem.
fn device_of(number: u64) -> Option<PathBuf> {
    let path = format!("/sys/dev/block/{}:{}/uevent", libc::major(number), libc::minor(number));
    let text = fs::read_to_string(path).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
    let node = Path::new("/dev").join(name);
    let found = fs::metadata(&node).ok()?;
    (found.file_type().is_block_device() && found.rdev() == number).then_some(node)
}

/// Blocks of the file, spread over it: where they are on the device, and in the content.
fn places(found: &[Extent], content: &[u8]) -> Vec<(u64, usize)> {
    let block = BLOCK as u64;
    let all = found.iter().flat_map(|extent| {
        let count = extent.length / block;
        (0..count).map(move |index| (extent.physical + index * block, (extent.logical + index * block) as usize))
    });
    let all: Vec<(u64, usize)> = all.filter(|(_, at)| at + BLOCK <= content.len()).collect();
    let every = all.len().div_ceil(SAMPLES).max(1);
    all.into_iter().step_by(every).collect()
}

struct Reader {
    device: File,
    /// Aligned to a page.
    memory: memmap2::MmapMut,
}

struct Seen {
    same: usize,
    zero: usize,
    read: Duration,
}

impl Reader {
    fn look(&mut self, places: &[(u64, usize)], content: &[u8], node: &str) -> Result<Seen, TestError> {
        let (mut same, mut zero, mut times) = (0, 0, Vec::with_capacity(places.len()));
        for &(place, at) in places {
            let begin = Instant::now();
            failed(format!("{node}: reading"), self.device.read_exact_at(&mut self.memory[..BLOCK], place))?;
            times.push(begin.elapsed());
            let read = &self.memory[..BLOCK];
            same += usize::from(content.get(at..at + BLOCK) == Some(read));
            zero += usize::from(read.iter().all(|byte| *byte == 0));
        }
        times.sort();
        Ok(Seen { same, zero, read: times.get(times.len() / 2).copied().unwrap_or_default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_spread_over_all_extents() {
        let extent = |logical, physical, blocks: u64| Extent { logical, physical, length: blocks * 4096 };
        let content = vec![0; 1024 * 4096];
        let found = [extent(0, 1 << 20, 512), extent(512 * 4096, 1 << 30, 512)];
        let all = places(&found, &content);
        assert_eq!((all.len(), all[0], all[128]), (256, (1 << 20, 0), (1 << 30, 512 * 4096)));
        assert_eq!(places(&[extent(0, 0, 3)], &content[..2 * 4096]).len(), 2, "the end of the file is in no block");
    }

    #[test]
    fn a_file_system_in_memory_has_no_place() {
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
        let error = test(folder.path(), 1 << 20, 1).unwrap_err();
        assert!(error.to_string().contains("is on no block device"), "{error}");
        assert!(trim(folder.path(), 1 << 30, |_, _| true).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
