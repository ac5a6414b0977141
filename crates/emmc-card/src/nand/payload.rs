//! The host's bytes: numbered slots of one unit each, in memory or in storage of the edge.
//!
//! A slot is written once and then only read, until it is released. If slots outlive the process, a recorded slot is
//! not reused before its release is recorded too, so that the bytes of the last records always exist. Absent on
//! purpose: which unit has which slot (`page_store`), and any file.

use std::fmt::Debug;
use std::ops::Range;

/// Slots of bytes, one unit each.
pub trait Payload: Debug + Send {
    /// Stores a unit's bytes in a free slot.
    fn put(&mut self, slot: u32, bytes: &[u8]);

    /// A unit's bytes; the slot must be in use.
    fn get(&self, slot: u32) -> &[u8];

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
}

/// Space is released step by step in runs of at least this size. Unit: bytes.
const GIVEN_BACK_BYTES_MIN: usize = 64 << 10;
/// Most runs of free slots that one step looks at, and that are sorted at once: some hundred microseconds.
const TIDIED_RUNS: usize = 4096;
const SORTED_RUNS_MAX: usize = 8192;

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

/// What a unit's bytes are, as one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Content(pub(super) u32);

impl Content {
    /// It was programmed without bytes, or not at all.
    pub(super) const NONE: Self = Self(0);
    /// All of it is zero.
    pub(super) const ZEROS: Self = Self(1);
    const FIRST: u32 = 2;

    pub(super) fn slot(self) -> Option<u32> {
        self.0.checked_sub(Self::FIRST)
    }
}

/// Free slots, as runs: neighbours are used in sequence, and recently released ones first, because they are probably
/// still cached.
#[derive(Clone, Debug, Default)]
struct Free {
    runs: Vec<Range<u32>>,
}

impl Free {
    fn give(&mut self, slot: u32) {
        match self.runs.last_mut() {
            Some(run) if run.end == slot => run.end += 1,
            _ => self.runs.push(slot..slot + 1),
        }
    }

    fn take(&mut self) -> Option<u32> {
        let run = self.runs.last_mut()?;
        let slot = run.start;
        run.start += 1;
        if run.start == run.end {
            self.runs.pop();
        }
        Some(slot)
    }

    /// The lowest are taken next.
    fn sort(&mut self) {
        self.runs.sort_unstable_by_key(|run| std::cmp::Reverse(run.start));
        self.runs.dedup_by(|lower, higher| {
            let is_next = lower.end == higher.start;
            if is_next {
                higher.start = lower.start;
            }
            is_next
        });
    }
}

/// The slots and their owners.
#[derive(Debug)]
pub(super) struct Slots {
    payload: Box<dyn Payload>,
    is_outside: bool,
    free: Free,
    /// Released since the last record; of use where changes are logged.
    waiting: Vec<u32>,
    /// All slots from here on were never taken.
    next: u32,
    zeros: Box<[u8]>,
    /// Where slots outlive the process: by slot, how often something had been recorded when it was put.
    put_at: Option<Vec<u32>>,
    records: u32,
    /// How many runs of free slots were looked at, while their space is released step by step.
    tidied: Option<usize>,
}

impl Slots {
    pub(super) fn in_memory(unit_bytes: u32) -> Self {
        Self {
            payload: Box::<InMemory>::default(),
            is_outside: false,
            free: Free::default(),
            waiting: Vec::new(),
            next: 0,
            zeros: vec![0; unit_bytes as usize].into(),
            put_at: None,
            records: 1,
            tidied: None,
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
        let mut expected = 0;
        let mut runs = Vec::new();
        for slot in used {
            if slot > expected {
                runs.push(expected..slot);
            }
            expected = slot + 1;
        }
        runs.reverse();
        self.free = Free { runs };
        true
    }

    /// Takes bytes in.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Content {
        if *bytes == *self.zeros {
            return Content::ZEROS;
        }
        let slot = self.free.take().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.payload.put(slot, bytes);
        if let Some(put_at) = &mut self.put_at {
            if put_at.len() <= slot as usize {
                put_at.resize(slot as usize + 1, 0);
            }
            put_at[slot as usize] = self.records;
        }
        Content(slot + Content::FIRST)
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

    pub(super) fn get(&self, content: Content) -> Option<&[u8]> {
        match content {
            Content::NONE => None,
            Content::ZEROS => Some(&self.zeros),
            _ => content.slot().map(|slot| self.payload.get(slot)),
        }
    }

    pub(super) fn release(&mut self, contents: &[Content]) {
        for slot in contents.iter().filter_map(|content| content.slot()) {
            let put_at = self.put_at.as_ref().map(|put_at| put_at.get(slot as usize).copied().unwrap_or_default());
            if put_at.is_some_and(|put_at| put_at != self.records) {
                self.waiting.push(slot);
            } else {
                self.payload.release(slot);
                self.free.give(slot);
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
        self.free.sort();
        if let Some(last) = self.free.runs.first().filter(|run| run.end == self.next).cloned() {
            self.free.runs.remove(0);
            self.next = last.start;
            self.payload.give_back(last);
        }
        self.free.runs.iter().for_each(|run| self.payload.give_back(run.clone()));
    }

    /// Releases the space of some long runs of free slots; `true`: there are no more. Shorter ones are soon used again,
    /// which would cost more than their space is worth.
    pub(super) fn tidy_some(&mut self) -> bool {
        let Some(next) = self.tidied else {
            if self.free.runs.len() <= SORTED_RUNS_MAX {
                self.free.sort();
            }
            self.tidied = Some(0);
            return false;
        };
        let units_min = (GIVEN_BACK_BYTES_MIN / self.zeros.len()).max(1);
        let end = self.free.runs.len().min(next + TIDIED_RUNS);
        let runs = self.free.runs.get(next..end).unwrap_or_default();
        // Runs before the last one change no more.
        match runs.iter().position(|run| run.len() >= units_min) {
            Some(long) => {
                self.payload.give_back(runs[long].clone());
                self.tidied = Some(next + long + 1);
            }
            None => self.tidied = Some(end),
        }
        let is_done = self.tidied.is_some_and(|next| next >= self.free.runs.len());
        if is_done {
            self.tidied = None;
        }
        is_done
    }

    /// All released slots are recorded.
    pub(super) fn recorded(&mut self) {
        self.records = self.records.wrapping_add(1);
        for slot in self.waiting.drain(..) {
            self.payload.release(slot);
            self.free.give(slot);
        }
    }
}

/// A copy has its bytes in memory, wherever those of the original are.
impl Clone for Slots {
    fn clone(&self) -> Self {
        let mut payload = InMemory::default();
        let mut is_free = vec![false; self.next as usize];
        self.free.runs.iter().for_each(|run| is_free[run.start as usize..run.end as usize].fill(true));
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_reused_after_its_release_is_recorded() {
        let mut slots = Slots::outside(4, Box::<InMemory>::default());
        let (one, two) = (slots.put(&[1; 4]), slots.put(&[2; 4]));
        assert_eq!((slots.get(one), slots.get(Content::NONE)), (Some(&[1; 4][..]), None));
        assert_eq!((slots.put(&[0; 4]), slots.get(Content::ZEROS)), (Content::ZEROS, Some(&[0; 4][..])));
        slots.release(&[two]);
        assert_eq!(slots.put(&[2; 4]), two, "it was never recorded");
        slots.recorded();
        slots.release(&[one, Content::ZEROS]);
        assert_ne!(slots.put(&[3; 4]), one);
        slots.recorded();
        assert_eq!(slots.put(&[2; 4]), one);
        assert_eq!(slots.clone().get(one), Some(&[2; 4][..]));
    }

    #[test]
    fn unused_slots_are_free() {
        let mut slots = Slots::in_memory(1);
        let used = [Content(2 + 3), Content::ZEROS, Content(2 + 1), Content::NONE];
        assert!(slots.set_used(used.into_iter(), 4));
        assert!(!Slots::in_memory(1).set_used(used.into_iter(), 3));
        assert!(!Slots::in_memory(1).set_used([Content(7); 2].into_iter(), 99));
        let taken: Vec<u32> = (0..3).map(|_| slots.put(&[9]).0 - 2).collect();
        assert_eq!(taken, [0, 2, 4]);
        slots.release(&[Content(2 + 4), Content(2 + 1), Content(2 + 3)]);
        slots.tidy();
        assert_eq!((slots.end(), slots.put(&[9]).0 - 2), (3, 1));
    }
}
