//! The host's bytes: numbered slots of one unit each, in memory or in storage of the edge.
//!
//! A slot is written once and then only read, until it is released. If slots outlive the process, a recorded slot is
//! not reused before its release is recorded too, so that the bytes of the last records always exist. Absent on
//! purpose: which unit has which slot (`page_store`), and any file.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::OnceLock;

use super::content::Content;
use super::free_slots::{FreeSlots, GROUP};
use super::landing::{InUse, LandingMemory};
use super::sums::{Sums, lost_pattern};

/// Slots of bytes, one unit each.
pub trait Payload: Debug + Send {
    /// Stores a unit's bytes in a free slot.
    fn put(&mut self, slot: u32, bytes: &[u8]);

    /// A unit's bytes; the slot must be in use.
    fn get(&self, slot: u32) -> &[u8];

    /// The bytes of a slot in use are read soon: they can be fetched into the processor's cache.
    fn prefetch(&self, _slot: u32) {}

    /// The slot is not read any more.
    fn release(&mut self, slot: u32);

    /// Makes everything that was stored durable: it outlives the process.
    ///
    /// Errors: why not; everything can still be read, and the next call tries again.
    fn settle(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// These slots are unused; their space can be released.
    fn give_back(&mut self, _slots: Range<u32>) {}

    /// Gets space for slots that were never taken; `false`: none is to be had, or runs of slots are of no use.
    fn allocate(&mut self, _slots: Range<u32>) -> bool {
        false
    }

    /// The memory of free slots, for a client's bytes to be received into; `None`: they have none now.
    fn landing(&mut self, _slots: Range<u32>) -> Option<Box<dyn LandingMemory>> {
        None
    }

    /// The slot whose memory these bytes are, if they are in that of a slot.
    fn slot_of(&self, _bytes: &[u8]) -> Option<u32> {
        None
    }
}

/// Space is released step by step in runs of at least this size. Unit: bytes.
const GIVEN_BACK_BYTES_MIN: usize = 64 << 10;

/// Bytes in memory.
#[derive(Debug, Default)]
struct InMemory {
    slots: Vec<Box<[u8]>>,
}

impl Payload for InMemory {
    fn put(&mut self, slot: u32, bytes: &[u8]) {
        let slot = slot as usize;
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, Default::default);
        }
        self.slots[slot] = bytes.into();
    }

    fn get(&self, slot: u32) -> &[u8] {
        &self.slots[slot as usize]
    }

    fn release(&mut self, slot: u32) {
        self.slots[slot as usize] = Box::default();
    }
}

/// The slots and their owners.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) payload: Box<dyn Payload>,
    is_outside: bool,
    pub(super) free: FreeSlots,
    /// Released since the last record; of use where changes are logged.
    waiting: Vec<u32>,
    /// All slots from here on were never taken.
    pub(super) next: u32,
    pub(super) zeros: Box<[u8]>,
    /// Where slots outlive the process: by slot, how often something had been recorded when it was put.
    put_at: Option<Vec<u32>>,
    records: u32,
    /// The next slot that is looked at while the space of free ones is released step by step.
    tidied: Option<u32>,
    /// Slots that a client receives into.
    pub(super) landings: Vec<InUse>,
    /// Slots of a run that are taken next, in sequence.
    pub(super) run: Range<u32>,
    /// Of slots of the edge.
    pub(super) sums: Sums,
    /// What stands for a lost unit, once there is one.
    lost: OnceLock<Box<[u8]>>,
}

impl Slots {
    pub(super) fn in_memory(unit_bytes: u32) -> Self {
        Self {
            payload: Box::<InMemory>::default(),
            is_outside: false,
            free: FreeSlots::default(),
            waiting: Vec::new(),
            next: 0,
            zeros: vec![0; unit_bytes as usize].into(),
            put_at: None,
            records: 1,
            tidied: None,
            landings: Vec::new(),
            run: 0..0,
            sums: Sums::default(),
            lost: OnceLock::new(),
        }
    }

    /// Slots that the edge keeps, some of which are in use.
    pub(super) fn outside(unit_bytes: u32, payload: Box<dyn Payload>) -> Self {
        Self { payload, is_outside: true, put_at: Some(Vec::new()), ..Self::in_memory(unit_bytes) }
    }

    pub(super) fn is_outside(&self) -> bool {
        self.is_outside
    }

    /// All others are free. `false`: two units have the same slot, or one has a slot that cannot be.
    pub(super) fn set_used(&mut self, contents: impl Iterator<Item = Content>, slots_max: u64) -> bool {
        let mut used: Vec<u32> = contents.filter_map(Content::slot).collect();
        used.sort_unstable();
        let is_twice = used.windows(2).any(|pair| pair[0] == pair[1]);
        if is_twice || used.last().is_some_and(|last| u64::from(*last) >= slots_max) {
            return false;
        }
        self.next = used.last().map_or(0, |last| last + 1);
        self.sums.distrust(used.iter().copied());
        self.free = FreeSlots::default();
        let mut used = used.into_iter().peekable();
        (0..self.next).filter(|slot| used.next_if_eq(slot).is_none()).for_each(|slot| self.free.give(slot));
        self.free.sort();
        true
    }

    /// Takes bytes in.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Content {
        if *bytes == *self.zeros {
            return Content::ZEROS;
        }
        if self.found_lost() == Some(bytes) {
            return Content::LOST;
        }
        let slot = self.landed(bytes).unwrap_or_else(|| {
            let slot = self.take();
            self.payload.put(slot, bytes);
            slot
        });
        if let Some(put_at) = &mut self.put_at {
            if put_at.len() <= slot as usize {
                put_at.resize(slot as usize + 1, 0);
            }
            put_at[slot as usize] = self.records;
            self.sums.set(slot, Sums::of(bytes));
        }
        Content(slot + Content::FIRST)
    }

    /// A slot for one unit.
    fn take(&mut self) -> u32 {
        self.run.next().or_else(|| self.free.take()).unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// Puts a unit's bytes where they were. `false`: they are of another size, or the slot cannot be.
    pub(super) fn put_at(&mut self, content: Content, bytes: &[u8], slots_max: u64) -> bool {
        match content.slot().filter(|slot| u64::from(*slot) < slots_max && bytes.len() == self.zeros.len()) {
            Some(slot) => {
                self.payload.put(slot, bytes);
                true
            }
            None => false,
        }
    }

    /// The checksum of a content with a slot of the edge; 0: none is known.
    pub(super) fn sum(&self, content: Content) -> u32 {
        content.slot().map_or(0, |slot| self.sums.get(slot))
    }

    pub(super) fn get(&self, content: Content) -> Option<&[u8]> {
        match content {
            Content::NONE => None,
            Content::ZEROS => Some(&self.zeros),
            Content::LOST => Some(self.lost()),
            _ => content.slot().map(|slot| self.get_slot(slot)),
        }
    }

    #[inline]
    fn get_slot(&self, slot: u32) -> &[u8] {
        let bytes = self.payload.get(slot);
        if self.sums.is_done() || self.sums.check(slot, bytes) { bytes } else { self.lost() }
    }

    #[cold]
    fn lost(&self) -> &[u8] {
        self.lost.get_or_init(|| lost_pattern(self.zeros.len()))
    }

    /// What stands for lost units, if any was read.
    #[inline]
    pub(super) fn found_lost(&self) -> Option<&[u8]> {
        self.lost.get().map(AsRef::as_ref)
    }

    /// The bytes are read soon.
    #[inline]
    pub(super) fn prefetch(&self, content: Content) {
        if let Some(slot) = content.slot() {
            self.payload.prefetch(slot);
        }
    }

    pub(super) fn release(&mut self, contents: &[Content]) {
        for slot in contents.iter().filter_map(|content| content.slot()) {
            let put_at = self.put_at.as_ref().map(|put_at| put_at.get(slot as usize).copied().unwrap_or_default());
            if put_at.is_some_and(|put_at| put_at != self.records) {
                self.waiting.push(slot);
            } else {
                self.freed(slot);
            }
        }
    }

    /// Everything that was put outlives the process.
    ///
    /// Errors: as [`Payload::settle`].
    pub(super) fn settle(&mut self) -> Result<(), String> {
        self.payload.settle()
    }

    /// All slots that were ever taken are below.
    pub(super) fn end(&self) -> u32 {
        self.next
    }

    /// The space of free slots is released, and the lowest are taken next.
    pub(super) fn tidy(&mut self) {
        self.run.by_ref().for_each(|slot| self.free.give(slot));
        self.free.sort();
        let runs: Vec<Range<u32>> = self.free.runs(0, self.next).collect();
        self.next = runs.iter().rev().fold(self.next, |next, run| if run.end == next { run.start } else { next });
        self.free.cut(self.next);
        runs.into_iter().for_each(|run| self.payload.give_back(run));
    }

    /// Releases the space of the next long run of free slots in a group; `true`: there are no more. Shorter ones
    /// are soon used again, which would cost more than their space is worth.
    pub(super) fn tidy_some(&mut self) -> bool {
        let from = self.tidied.unwrap_or_default();
        let end = self.next.min((from / GROUP + 1) * GROUP);
        let units_min = (GIVEN_BACK_BYTES_MIN / self.zeros.len()).max(1);
        let long = self.free.runs(from, end).find(|run| run.len() >= units_min);
        let looked_at = long.as_ref().map_or(end, |run| run.end);
        if let Some(run) = long {
            self.payload.give_back(run);
        }
        self.tidied = (looked_at < self.next).then_some(looked_at);
        self.tidied.is_none()
    }

    /// All released slots are recorded.
    pub(super) fn recorded(&mut self) {
        self.records = self.records.wrapping_add(1);
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.drain(..).for_each(|slot| self.freed(slot));
        self.waiting = waiting;
    }

    fn freed(&mut self, slot: u32) {
        self.payload.release(slot);
        if !self.goes_back_to_landing(slot) {
            self.free.give(slot);
        }
    }
}

/// A copy has its bytes in memory, wherever those of the original are.
impl Clone for Slots {
    fn clone(&self) -> Self {
        let mut payload = InMemory::default();
        let mut is_free = vec![false; self.next as usize];
        self.free.runs(0, self.next).for_each(|run| is_free[run.start as usize..run.end as usize].fill(true));
        for slot in (0..self.next).filter(|&slot| !is_free[slot as usize]) {
            payload.put(slot, self.payload.get(slot));
        }
        Self {
            payload: Box::new(payload),
            is_outside: false,
            free: self.free.clone(),
            waiting: self.waiting.clone(),
            next: self.next,
            zeros: self.zeros.clone(),
            put_at: None,
            records: 1,
            tidied: None,
            landings: Vec::new(),
            run: 0..0,
            sums: self.sums.clone(),
            lost: self.lost.clone(),
        }
    }
}

#[cfg(test)]
#[path = "tests/payload.rs"]
mod tests;
