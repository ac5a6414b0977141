//! The guest's memory: ranges that a client has mapped, each a part of a file that it has passed.
//!
//! A file that is sealed against shrinking is mapped here too. Any other is read and written by system calls, because
//! access to a truncated page crashes the process; a front whose clients cannot seal maps it all the same
//! ([`GuestRam::of_unsealed_files`]). Ranges without a file (ROM) are known and inaccessible. Only mapped ranges are
//! accessed, and only in their permitted direction.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::FileExt;

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{SealFlags, fcntl_get_seals};

use crate::sdhci::{GuestMemory, Unmapped};

/// Ranges at most; QEMU has about ten.
const RANGES_MAX: usize = 1024;
/// Bits of a map request.
pub(crate) const READ: u32 = 1;
pub(crate) const WRITE: u32 = 1 << 1;
/// Bits of an unmap request.
const DIRTY_PAGES: u32 = 1 << 1;
const ALL: u32 = 1 << 2;

/// Why a range is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RangeError {
    /// It overlaps an existing one.
    #[error("the range overlaps another")]
    Exists,
    /// Empty, wrapping, beyond its file, or only a part of a mapped one.
    #[error("the range is no range of its file")]
    Invalid,
    /// There are too many.
    #[error("too many ranges")]
    NoSpace,
    /// Not implemented.
    #[error("not supported")]
    NotSupported,
}

#[derive(Debug)]
enum Backing {
    /// There is no file.
    Absent,
    /// A file, from this offset on.
    File(File, u64),
    Mapped(MmapRaw),
}

#[derive(Debug)]
struct Range {
    address: u64,
    size: u64,
    flags: u32,
    backing: Backing,
}

impl Range {
    /// The number of `bytes` at `address` that are in it.
    fn covers(&self, address: u64, bytes: usize) -> Option<(u64, usize)> {
        let inside = address.checked_sub(self.address).filter(|inside| *inside < self.size)?;
        let rest = usize::try_from(self.size - inside).unwrap_or(usize::MAX);
        Some((inside, bytes.min(rest)))
    }

    fn read(&self, inside: u64, into: &mut [u8]) -> Option<()> {
        match &self.backing {
            _ if self.flags & READ == 0 => None,
            Backing::Absent => None,
            Backing::File(file, offset) => file.read_exact_at(into, offset + inside).ok(),
            Backing::Mapped(map) => {
                let end = usize::try_from(inside).ok()?.checked_add(into.len())?;
                if end > map.len() {
                    return None;
                }
                // SAFETY: the range lies within the mapping (just checked), which lives as long as `self`. It cannot
                // lose pages, because its file is sealed against shrinking; of an unsealed file that is accepted to be
                // a fault that ends this process (see `of_unsealed_files`). The guest may change the bytes at any
                // time, as with any DMA: they are only copied, never referenced.
                unsafe {
                    std::ptr::copy_nonoverlapping(map.as_ptr().add(inside as usize), into.as_mut_ptr(), into.len())
                };
                Some(())
            }
        }
    }

    fn write(&self, inside: u64, from: &[u8]) -> Option<()> {
        match &self.backing {
            _ if self.flags & WRITE == 0 => None,
            Backing::Absent => None,
            Backing::File(file, offset) => file.write_all_at(from, offset + inside).ok(),
            Backing::Mapped(map) => {
                let end = usize::try_from(inside).ok()?.checked_add(from.len())?;
                if end > map.len() {
                    return None;
                }
                // SAFETY: as in `read`; the mapping is writable, and no reference to its bytes exists.
                unsafe {
                    std::ptr::copy_nonoverlapping(from.as_ptr(), map.as_mut_ptr().add(inside as usize), from.len())
                };
                Some(())
            }
        }
    }
}

/// All ranges of a client.
#[derive(Debug, Default)]
pub(crate) struct GuestRam {
    ranges: Vec<Range>,
    /// Files that are not sealed are mapped too.
    maps_unsealed: bool,
    /// The range of the last access; the next access is usually in the same one.
    last: Cell<usize>,
}

impl GuestRam {
    /// Memory of a client that cannot seal its files. If it truncates one, this process ends with SIGBUS: a power loss
    /// for the card, which a client can have more simply by ending itself.
    pub(crate) fn of_unsealed_files() -> Self {
        Self { maps_unsealed: true, ..Self::default() }
    }

    /// Maps a range for a client.
    ///
    /// Errors: empty, wraps around the address space, overlaps another, beyond the end of its file, not a regular file.
    pub(crate) fn map(
        &mut self,
        flags: u32,
        offset: u64,
        address: u64,
        size: u64,
        file: Option<File>,
    ) -> Result<(), RangeError> {
        let end = address.checked_add(size).filter(|end| *end > address).ok_or(RangeError::Invalid)?;
        if self.ranges.iter().any(|range| range.address < end && address < range.address + range.size) {
            return Err(RangeError::Exists);
        }
        if self.ranges.len() == RANGES_MAX {
            return Err(RangeError::NoSpace);
        }
        let backing = match file {
            None => Backing::Absent,
            Some(file) => self.back(file, flags, offset, size).ok_or(RangeError::Invalid)?,
        };
        self.ranges.push(Range { address, size, flags, backing });
        Ok(())
    }

    /// Unmaps all of a client's ranges inside a given one.
    ///
    /// Errors: a range is only partly inside; flags other than plain unmapping.
    pub(crate) fn unmap(&mut self, flags: u32, address: u64, size: u64) -> Result<(), RangeError> {
        if flags & ALL != 0 {
            self.ranges.clear();
            return Ok(());
        }
        if flags & DIRTY_PAGES != 0 {
            return Err(RangeError::NotSupported);
        }
        let end = address.checked_add(size).ok_or(RangeError::Invalid)?;
        let inside = |range: &Range| address <= range.address && range.address + range.size <= end;
        let outside = |range: &Range| end <= range.address || range.address + range.size <= address;
        if !self.ranges.iter().all(|range| inside(range) || outside(range)) {
            return Err(RangeError::Invalid);
        }
        self.ranges.retain(|range| !inside(range));
        Ok(())
    }

    /// The range at an address, and the number of `bytes` that are in it.
    fn find(&self, address: u64, bytes: usize) -> Option<(&Range, u64, usize)> {
        let at = |index: usize| {
            let range = self.ranges.get(index)?;
            range.covers(address, bytes).map(|(inside, part)| (range, inside, part))
        };
        at(self.last.get()).or_else(|| {
            let index = (0..self.ranges.len()).find(|index| at(*index).is_some())?;
            self.last.set(index);
            at(index)
        })
    }

    /// A part of a file as memory; absent: beyond its end, or not a regular file.
    fn back(&self, file: File, flags: u32, offset: u64, size: u64) -> Option<Backing> {
        let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        if offset.checked_add(size)? > metadata.len() {
            return None;
        }
        let is_sealed = || fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
        if (self.maps_unsealed || is_sealed()) && flags & WRITE != 0 {
            let length = usize::try_from(size).ok()?;
            if let Ok(map) = MmapOptions::new().offset(offset).len(length).map_raw(&file) {
                return Some(Backing::Mapped(map));
            }
        }
        Some(Backing::File(file, offset))
    }
}

impl GuestMemory for GuestRam {
    fn read(&self, mut address: u64, mut into: &mut [u8]) -> Result<(), Unmapped> {
        while !into.is_empty() {
            let unmapped = Unmapped { address, bytes: into.len() };
            let (range, inside, part) = self.find(address, into.len()).ok_or(unmapped)?;
            let (head, rest) = std::mem::take(&mut into).split_at_mut(part);
            range.read(inside, head).ok_or(unmapped)?;
            into = rest;
            address = address.wrapping_add(part as u64);
        }
        Ok(())
    }

    fn write(&self, mut address: u64, mut from: &[u8]) -> Result<(), Unmapped> {
        while !from.is_empty() {
            let unmapped = Unmapped { address, bytes: from.len() };
            let (range, inside, part) = self.find(address, from.len()).ok_or(unmapped)?;
            let (head, rest) = from.split_at(part);
            range.write(inside, head).ok_or(unmapped)?;
            from = rest;
            address = address.wrapping_add(part as u64);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, fcntl_add_seals, memfd_create};

    fn file(bytes: u64, sealed: bool) -> File {
        let file = File::from(memfd_create("guest", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap());
        file.set_len(bytes).unwrap();
        if sealed {
            fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        }
        file
    }

    /// Also under Miri, which has no mapped files (CONTRIBUTING.md).
    #[test]
    fn copies_stay_within_a_mapping() {
        let map = MmapOptions::new().len(4096).map_anon().unwrap();
        let range = Range { address: 0, size: 8192, flags: READ | WRITE, backing: Backing::Mapped(map.into()) };
        range.write(4092, b"abcd").unwrap();
        let mut back = [0; 4];
        range.read(4092, &mut back).unwrap();
        assert_eq!(&back, b"abcd");
        for inside in [4093, 4096, 8000, u64::MAX] {
            assert!(range.write(inside, b"abcd").is_none() && range.read(inside, &mut back).is_none(), "{inside}");
        }
        let read_only = Range { flags: READ, ..range };
        assert!(read_only.write(0, b"x").is_none());
    }

    #[test]
    fn accesses_cross_adjacent_ranges_but_not_gaps() {
        for sealed in [false, true] {
            let mut ram = GuestRam::default();
            let backing = file(0x4000, sealed);
            ram.map(READ | WRITE, 0x1000, 0x10_0000, 0x1000, Some(backing.try_clone().unwrap())).unwrap();
            ram.map(READ | WRITE, 0x3000, 0x10_1000, 0x1000, Some(backing.try_clone().unwrap())).unwrap();
            assert_eq!(matches!(ram.ranges[0].backing, Backing::Mapped(_)), sealed);
            ram.write(0x10_0ffe, b"abcd").unwrap();
            let mut back = [0; 4];
            ram.read(0x10_0ffe, &mut back).unwrap();
            assert_eq!(&back, b"abcd");
            let mut raw = [0; 2];
            backing.read_exact_at(&mut raw, 0x1ffe).unwrap();
            assert_eq!(&raw, b"ab");
            backing.read_exact_at(&mut raw, 0x3000).unwrap();
            assert_eq!(&raw, b"cd");
            for (address, bytes) in [(0x10_1ffe, 4), (0xf_ffff, 2), (u64::MAX, 4)] {
                assert!(ram.read(address, &mut vec![0; bytes]).is_err(), "{address:#x}");
                assert!(ram.write(address, &vec![0; bytes]).is_err(), "{address:#x}");
            }
            ram.unmap(0, 0x10_0000, 0x1000).unwrap();
            assert!(ram.read(0x10_0ffe, &mut back).is_err());
            ram.read(0x10_1000, &mut back).unwrap();
            ram.unmap(ALL, 0, 0).unwrap();
            assert!(ram.read(0x10_1000, &mut back).is_err());
        }
    }

    #[test]
    fn access_rights_are_enforced_and_rom_is_excluded() {
        let mut ram = GuestRam::default();
        ram.map(READ, 0, 0, 0x1000, Some(file(0x1000, true))).unwrap();
        ram.map(WRITE, 0, 0x1000, 0x1000, Some(file(0x1000, true))).unwrap();
        ram.map(READ | WRITE, 0, 0x2000, 0x1000, None).unwrap();
        let reads = [0, 0x1000, 0x2000].map(|address| ram.read(address, &mut [0]).is_ok());
        let writes = [0, 0x1000, 0x2000].map(|address| ram.write(address, &[0]).is_ok());
        assert_eq!((reads, writes), ([true, false, false], [false, true, false]));
    }

    #[test]
    fn unsealed_files_are_mapped_only_on_request() {
        for (mut ram, is_mapped) in [(GuestRam::default(), false), (GuestRam::of_unsealed_files(), true)] {
            ram.map(READ | WRITE, 0x1000, 0, 0x1000, Some(file(0x2000, false))).unwrap();
            assert_eq!(matches!(ram.ranges[0].backing, Backing::Mapped(_)), is_mapped);
            ram.write(0xff0, &[7; 16]).unwrap();
            let mut back = [0; 16];
            ram.read(0xff0, &mut back).unwrap();
            assert_eq!(back, [7; 16]);
            assert_eq!(ram.map(READ, 0x1000, 0x1000, 0x2000, Some(file(0x2000, false))), Err(RangeError::Invalid));
        }
    }

    #[test]
    fn a_shrunk_file_causes_an_error_only() {
        let mut ram = GuestRam::default();
        let backing = file(0x2000, false);
        ram.map(READ | WRITE, 0, 0, 0x2000, Some(backing.try_clone().unwrap())).unwrap();
        backing.set_len(0).unwrap();
        assert!(ram.read(0x1000, &mut [0; 16]).is_err());
    }

    #[test]
    fn bad_ranges_are_refused() {
        let mut ram = GuestRam::default();
        ram.map(3, 0, 0x1000, 0x2000, None).unwrap();
        for (offset, address, size, bytes, error) in [
            (0, 0, 0, None, RangeError::Invalid),
            (0, u64::MAX - 1, 2, None, RangeError::Invalid),
            (0, 0x2fff, 1, None, RangeError::Exists),
            (0, 0, 0x1001, None, RangeError::Exists),
            (0x1000, 0x8000, 0x1000, Some(0x1800), RangeError::Invalid),
            (u64::MAX, 0x8000, 0x1000, Some(0x1800), RangeError::Invalid),
        ] {
            let file = bytes.map(|bytes| file(bytes, true));
            assert_eq!(ram.map(3, offset, address, size, file), Err(error), "{address:#x} {size:#x}");
        }
        let socket = std::os::unix::net::UnixStream::pair().unwrap().0;
        let socket = File::from(std::os::fd::OwnedFd::from(socket));
        assert_eq!(ram.map(3, 0, 0x8000, 0x1000, Some(socket)), Err(RangeError::Invalid), "a socket");
        assert_eq!(ram.unmap(0, 0x1000, 0x1000), Err(RangeError::Invalid), "half of a range");
        assert_eq!(ram.unmap(DIRTY_PAGES, 0x1000, 0x2000), Err(RangeError::NotSupported));
        for number in 0..RANGES_MAX as u64 - 1 {
            ram.map(3, 0, 0x10_0000 + number * 16, 16, None).unwrap();
        }
        assert_eq!(ram.map(3, 0, 0, 16, None), Err(RangeError::NoSpace));
    }
}
