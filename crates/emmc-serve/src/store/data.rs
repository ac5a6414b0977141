//! The file of a card's contents: slots, written by pwrite or through a memory mapping, read through the mapping.
//!
//! Written data belongs to the operating system and survives the process. The first write to a page of a mapping costs
//! a page fault of several microseconds, any later one costs the copy alone. So new pieces of the file are written by
//! pwrite, neighbours merged, and a piece that was written once over is from then on written through the mapping.
//! Writing to a mapping must not meet a full disk, so the space of a piece is allocated first; a filesystem that cannot
//! guarantee space, or writes to a new place (copy on write), gets all slots by pwrite. What cannot be written because
//! the disk is full stays in memory until it can; no request is acknowledged meanwhile. Absent on purpose: the content
//! of each slot (`emmc_card::nand`).

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use emmc_card::nand::{LandingMemory, Payload};
use memmap2::{Mmap, MmapOptions};
use rustix::fs::FallocateFlags;

use super::slots::{Slots, SlotsMut, prefetch};

/// Most bytes that wait to be written together with their neighbours: what is written with one call becomes one folio
/// of the page cache, and ext4 visits every block of a folio for each later write into it.
const WAITING_BYTES_MAX: usize = 64 << 10;
/// Space is allocated in pieces of this size. Unit: bytes.
const ROOM_BYTES: usize = 4 << 20;

/// Space on the disk that runs of new slots leave to others. Unit: bytes.
const LEFT_BYTES: u64 = 1 << 30;
/// How much of a unit is fetched before it is read: the processor itself fetches what follows. Unit: bytes.
const PREFETCHED_BYTES: usize = 512;

/// The file in memory.
#[derive(Debug)]
enum Mapping {
    Read(Mmap),
    /// By piece: what it is.
    Write(Arc<Slots>, Vec<Piece>),
}

/// A piece of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Piece {
    /// It has space on the disk.
    has_room: bool,
    /// Bytes written by pwrite since it got its space; after a whole piece the mapping is used.
    written_bytes: u32,
}

/// Slots in a file.
#[derive(Debug)]
pub(super) struct DataFile {
    /// Absent: opened for inspection, and writes stay in memory.
    file: Option<File>,
    mapping: Mapping,
    unit_bytes: usize,
    /// Neighbouring slots that wait to be written, starting with this one.
    first_waiting: u32,
    waiting: Vec<u8>,
    /// Slots that are not in the file.
    in_memory: HashMap<u32, Box<[u8]>>,
}

impl DataFile {
    /// Opens the file of a card with `units` physical units.
    ///
    /// Errors: the system's; not enough address space.
    pub(super) fn open(path: &Path, unit_bytes: u32, units: u64, writes: bool) -> std::io::Result<Self> {
        let file = if writes {
            File::options().read(true).write(true).create(true).truncate(false).open(path)?
        } else {
            File::open(path)?
        };
        // Slots beyond the units hold data that a cut of an erase in progress may restore.
        let bytes = units.saturating_mul(2).saturating_mul(u64::from(unit_bytes)).max(1);
        let length = usize::try_from(bytes).map_err(|_| std::io::Error::other("too large for this machine"))?;
        let mapping = map(&file, length, writes && is_in_place(&file))?;
        Ok(Self {
            file: writes.then_some(file),
            mapping,
            unit_bytes: unit_bytes as usize,
            first_waiting: 0,
            waiting: Vec::new(),
            in_memory: HashMap::new(),
        })
    }

    fn offset(&self, slot: u32) -> usize {
        slot as usize * self.unit_bytes
    }

    fn range(&self, slots: &Range<u32>) -> Range<usize> {
        self.offset(slots.start)..self.offset(slots.end)
    }

    /// The place of a slot in the mapping, if it is to be written there.
    fn place(&mut self, slot: u32) -> Option<SlotsMut> {
        let range = self.range(&(slot..slot + 1));
        let (Mapping::Write(map, pieces), Some(file)) = (&mut self.mapping, &self.file) else { return None };
        let number = range.start / ROOM_BYTES;
        let piece = pieces.get_mut(number)?;
        if !piece.has_room {
            let start = number * ROOM_BYTES;
            let length = ROOM_BYTES.min(map.len() - start);
            rustix::fs::fallocate(file, FallocateFlags::empty(), start as u64, length as u64).ok()?;
            piece.has_room = true;
        }
        if piece.written_bytes < ROOM_BYTES as u32 {
            piece.written_bytes += self.unit_bytes as u32;
            return None;
        }
        SlotsMut::new(map, range)
    }

    /// The mapping.
    fn mapped(&self, range: Range<usize>) -> &[u8] {
        match &self.mapping {
            Mapping::Read(map) => &map[range],
            Mapping::Write(map, _) => map.bytes(range),
        }
    }

    /// Whether a slot waits to be written.
    fn waits(&self, slot: u32) -> bool {
        let units = self.waiting.len() / self.unit_bytes;
        (slot.wrapping_sub(self.first_waiting) as usize) < units
    }

    /// Writes waiting slots; slots that cannot be written stay in memory.
    fn write_waiting(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let offset = self.offset(self.first_waiting) as u64;
        let written = self.file.as_ref().is_some_and(|file| file.write_all_at(&self.waiting, offset).is_ok());
        if !written {
            for (slot, bytes) in (self.first_waiting..).zip(self.waiting.chunks_exact(self.unit_bytes)) {
                self.in_memory.insert(slot, bytes.into());
            }
        }
        self.waiting.clear();
    }

    /// Writes the slots to the file that could not be written before.
    fn write_again(&mut self) -> std::io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let slots: Vec<u32> = self.in_memory.keys().copied().collect();
        for slot in slots {
            file.write_all_at(&self.in_memory[&slot], self.offset(slot) as u64)?;
            self.in_memory.remove(&slot);
        }
        Ok(())
    }
}

/// Maps a file, including the range beyond its end.
#[expect(unsafe_code, reason = "mapping a file")]
fn map(file: &File, length: usize, writes: bool) -> std::io::Result<Mapping> {
    if writes {
        let map = MmapOptions::new().len(length).map_raw(file)?;
        return Ok(Mapping::Write(Arc::new(Slots(map)), vec![Piece::default(); length.div_ceil(ROOM_BYTES)]));
    }
    // SAFETY: only slots that were written are read through the mapping: they lie inside the file, whose length is
    // checked when it is opened. Another program that truncates the file crashes the process, but cannot corrupt its
    // memory.
    Ok(Mapping::Read(unsafe { MmapOptions::new().len(length).map(file)? }))
}

/// Whether allocated space in a file can be overwritten in place: ext2 to ext4, and tmpfs.
///
/// Source: linux/magic.h.
pub(super) fn is_in_place(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|found| matches!(found.f_type, 0xef53 | 0x0102_1994))
}

impl Payload for DataFile {
    fn put(&mut self, slot: u32, bytes: &[u8]) {
        // A slot that was released and taken again before its former bytes were written.
        if self.waits(slot) {
            self.write_waiting();
        }
        if let Some(mut place) = self.place(slot) {
            place.bytes_mut().copy_from_slice(bytes);
            return;
        }
        let units = (self.waiting.len() / self.unit_bytes) as u32;
        let goes_on = slot == self.first_waiting.wrapping_add(units) && self.waiting.len() < WAITING_BYTES_MAX;
        if !goes_on {
            self.write_waiting();
            self.first_waiting = slot;
        }
        self.waiting.extend_from_slice(bytes);
    }

    fn get(&self, slot: u32) -> &[u8] {
        if !self.waiting.is_empty() {
            let within = slot.wrapping_sub(self.first_waiting) as usize * self.unit_bytes;
            if let Some(bytes) = self.waiting.get(within..within + self.unit_bytes) {
                return bytes;
            }
        }
        if !self.in_memory.is_empty() {
            if let Some(bytes) = self.in_memory.get(&slot) {
                return bytes;
            }
        }
        self.mapped(self.range(&(slot..slot + 1)))
    }

    fn prefetch(&self, slot: u32) {
        let start = self.offset(slot);
        prefetch(self.mapped(start..start + self.unit_bytes.min(PREFETCHED_BYTES)));
    }

    fn release(&mut self, slot: u32) {
        if !self.in_memory.is_empty() {
            self.in_memory.remove(&slot);
        }
    }

    fn settle(&mut self) -> Result<(), String> {
        self.write_waiting();
        if self.in_memory.is_empty() {
            return Ok(());
        }
        self.write_again().map_err(|error| error.to_string())
    }

    fn give_back(&mut self, slots: Range<u32>) {
        self.write_waiting();
        let Range { start, end } = self.range(&slots);
        let Some(file) = &self.file else { return };
        if let Mapping::Write(_, pieces) = &mut self.mapping {
            let range = start / ROOM_BYTES..end.div_ceil(ROOM_BYTES).min(pieces.len());
            pieces[range].fill(Piece::default());
        }
        // A filesystem without holes keeps the space, which does no harm.
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = rustix::fs::fallocate(file, flags, start as u64, (end - start) as u64);
    }

    fn allocate(&mut self, slots: Range<u32>) -> bool {
        let range = self.range(&slots);
        let (Mapping::Write(map, _), Some(file)) = (&self.mapping, &self.file) else { return false };
        let free = rustix::fs::fstatvfs(file).map_or(0, |found| found.f_bavail.saturating_mul(found.f_frsize));
        let (start, length) = (range.start as u64, range.len() as u64);
        range.end <= map.len()
            && free >= LEFT_BYTES
            && rustix::fs::fallocate(file, FallocateFlags::empty(), start, length).is_ok()
    }

    fn landing(&mut self, slots: Range<u32>) -> Option<Box<dyn LandingMemory>> {
        // Slots that were released before their bytes were written.
        let waiting = (self.waiting.len() / self.unit_bytes) as u32;
        if slots.start < self.first_waiting + waiting && self.first_waiting < slots.end {
            self.write_waiting();
        }
        let range = self.range(&slots);
        let Mapping::Write(map, pieces) = &self.mapping else { return None };
        let pieces = pieces.get(range.start / ROOM_BYTES..range.end.div_ceil(ROOM_BYTES))?;
        let is_written = |piece: &Piece| piece.has_room && piece.written_bytes >= ROOM_BYTES as u32;
        if !pieces.iter().all(is_written) {
            return None;
        }
        Some(Box::new(SlotsMut::new(map, range)?))
    }

    fn slot_of(&self, bytes: &[u8]) -> Option<u32> {
        let Mapping::Write(map, _) = &self.mapping else { return None };
        let offset = map.offset_of(bytes)?;
        let is_slot = offset % self.unit_bytes == 0 && bytes.len() == self.unit_bytes;
        is_slot.then_some((offset / self.unit_bytes) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_read_back_at_every_position() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let mut data = DataFile::open(&path, 4, 100, true).unwrap();
        for slot in [0u32, 1, 2, 9, 5, 6] {
            data.put(slot, &[slot as u8; 4]);
        }
        assert_eq!((data.get(2), data.get(6)), (&[2; 4][..], &[6; 4][..]));
        data.settle().unwrap();
        assert!(std::fs::read(&path).unwrap().len() >= 40);
        drop(data);
        let mut looked_at = DataFile::open(&path, 4, 100, false).unwrap();
        assert_eq!(looked_at.get(9), [9; 4]);
        looked_at.put(9, &[1; 4]);
        looked_at.settle().unwrap();
        assert_eq!((looked_at.get(9), std::fs::read(&path).unwrap()[36]), (&[1; 4][..], 9));
    }

    #[test]
    fn every_way_of_writing_gives_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let slots = 3 * (ROOM_BYTES / 4096) as u32;
        let mut data = DataFile::open(&path, 4096, slots.into(), true).unwrap();
        let byte = |slot: u32, round: u32| (slot % 83 + round * 84 + 1) as u8;
        for round in 0..3 {
            // Neighbours first; later rounds find pieces that were written once over, and take the slots out of order.
            let order = (0..slots).map(|index| if round == 0 { index } else { index * 7 % slots });
            for slot in order {
                data.put(slot, &[0xee; 4096]);
                data.release(slot);
                data.put(slot, &[byte(slot, round); 4096]);
                assert_eq!(data.get(slot)[4095], byte(slot, round), "slot {slot}");
            }
            (0..slots).for_each(|slot| assert_eq!(data.get(slot), [byte(slot, round); 4096], "slot {slot}"));
            data.settle().unwrap();
            let file = std::fs::read(&path).unwrap();
            let found = (0..slots).map(|slot| file[slot as usize * 4096 + 77]);
            assert!(found.eq((0..slots).map(|slot| byte(slot, round))), "round {round}");
        }
    }

    #[test]
    fn space_is_released() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let mut data = DataFile::open(&path, 4096, 1000, true).unwrap();
        (0..256).for_each(|slot| data.put(slot, &[7; 4096]));
        data.settle().unwrap();
        let before = std::fs::metadata(&path).unwrap().blocks();
        data.give_back(0..255);
        let after = std::fs::metadata(&path).unwrap().blocks();
        assert!(after < before || after == before && before == 0, "{before} and {after} blocks");
        assert_eq!(data.get(255), [7; 4096]);
        (0..256).for_each(|slot| data.put(slot, &[8; 4096]));
        data.settle().unwrap();
        assert_eq!((data.get(0), data.get(255)), (&[8; 4096][..], &[8; 4096][..]));
        assert_eq!(std::fs::read(&path).unwrap()[..256 << 12], [8; 256 << 12]);
    }
}
