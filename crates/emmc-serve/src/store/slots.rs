//! The mapped contents of a card, of which some slots are read and others written at the same time.
//!
//! Who may read or write a slot is decided by its owner (`emmc_card::nand`): a slot is written once, by its only owner,
//! before its content is recorded, and read from then on until it is free again.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use emmc_card::nand::LandingMemory;
use memmap2::MmapRaw;

/// Unit: bytes.
#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;

/// All slots. The file behind it may be shorter.
#[derive(Debug)]
pub(super) struct Slots(pub(super) MmapRaw);

impl Slots {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The bytes of slots in use.
    #[expect(unsafe_code, reason = "a part of a mapping that others write elsewhere")]
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end <= self.len(), "{range:?} of {} bytes", self.len());
        // SAFETY: the range is inside the mapping, which lives as long as self. Only slots that were written are read:
        // they lie inside the file, whose length is checked when it is opened, and are not written again before they
        // are released. The lock of the card's folder keeps other writers of this program away; another program that
        // truncates the file crashes the process, but cannot corrupt its memory.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(range.start), range.len()) }
    }

    /// Where bytes lie in the mapping, if they do.
    pub(super) fn offset_of(&self, bytes: &[u8]) -> Option<usize> {
        let offset = (bytes.as_ptr() as usize).checked_sub(self.0.as_ptr() as usize)?;
        (offset.checked_add(bytes.len())? <= self.len()).then_some(offset)
    }
}

/// Free slots with space on the disk, which only its holder reads and writes.
#[derive(Debug)]
pub(super) struct SlotsMut {
    slots: Arc<Slots>,
    range: Range<usize>,
}

impl SlotsMut {
    /// `None`: outside the mapping.
    pub(super) fn new(slots: &Arc<Slots>, range: Range<usize>) -> Option<Self> {
        (range.start <= range.end && range.end <= slots.len()).then(|| Self { slots: Arc::clone(slots), range })
    }
}

impl LandingMemory for SlotsMut {
    fn bytes(&self) -> &[u8] {
        self.slots.bytes(self.range.clone())
    }

    #[expect(unsafe_code, reason = "a part of a mapping that others read elsewhere")]
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the range is inside the mapping, which lives as long as self. These slots are free, or reserved for
        // the one landing that holds self: no other reference to their bytes exists. Their space is allocated, so that
        // writing meets no full disk.
        unsafe { std::slice::from_raw_parts_mut(self.slots.0.as_mut_ptr().add(self.range.start), self.range.len()) }
    }
}

/// Writes a number into a mapping, in the sequence of the program: a process that dies leaves the first ones.
#[expect(unsafe_code, reason = "a number in a mapping")]
pub(super) fn store_number(map: &MmapRaw, at: usize, number: u64) {
    assert!(at % 8 == 0 && at + 8 <= map.len(), "{at} of {} bytes", map.len());
    // SAFETY: the place is inside the mapping, which begins at a page, and aligned. This process reads and writes it
    // only here; another program that truncates the file crashes the process, but cannot corrupt its memory.
    let place = unsafe { AtomicU64::from_ptr(map.as_mut_ptr().add(at).cast()) };
    place.store(number.to_le(), Ordering::Release);
}

/// Asks the processor to fetch bytes into its cache, where it has an instruction for that.
#[cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "an instruction without a safe name"))]
pub(super) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(LINE_BYTES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it is part of every x86_64, reads nothing that the program sees, and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

#[cfg(test)]
mod tests {
    use memmap2::MmapOptions;

    use super::*;

    /// Also under Miri, which has no mapped files (CONTRIBUTING.md).
    #[test]
    fn slots_are_written_while_others_are_read() {
        let slots = Arc::new(Slots(MmapOptions::new().len(8192).map_anon().unwrap().into()));
        assert!(SlotsMut::new(&slots, 4096..8193).is_none());
        let mut first = SlotsMut::new(&slots, 0..512).unwrap();
        first.bytes_mut().fill(1);
        let mut second = SlotsMut::new(&slots, 512..1024).unwrap();
        let first = slots.bytes(0..512);
        std::thread::scope(|scope| {
            scope.spawn(|| second.bytes_mut().fill(2));
            assert!(first.iter().all(|byte| *byte == 1));
        });
        prefetch(first);
        store_number(&slots.0, 4096, 7);
        assert_eq!((slots.bytes(1023..1024), slots.bytes(4096..4104)), (&[2][..], &7u64.to_le_bytes()[..]));
        assert_eq!(slots.offset_of(slots.bytes(512..600)), Some(512));
        assert_eq!(slots.offset_of(&[0; 4]), None);
    }
}
