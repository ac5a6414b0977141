//! Slots for content that a client still sends: it is received into their memory, and programmed without a copy.
//!
//! The slots are a run, so what is written in sequence lies in sequence. A unit that turns out to be zeros, or whose
//! bytes a layer had to copy, does not use its slot, which becomes free again. Absent on purpose: the memory itself
//! (`payload`), and who receives (the edge).

use std::fmt::Debug;
use std::ops::Range;

use super::free_slots::GROUP;
use super::payload::Slots;

/// So much may be free before a run of new slots is taken, or a quarter of what is in use. Unit: bytes.
const SPARE_BYTES: u64 = 256 << 20;

/// Memory of slots that nothing else reads or writes.
pub trait LandingMemory: Debug + Send {
    /// All bytes.
    fn bytes(&self) -> &[u8];

    /// The same, for writing.
    fn bytes_mut(&mut self) -> &mut [u8];
}

/// A run of slots whose bytes are received before they are written: a program of these bytes needs no copy.
#[derive(Debug)]
pub struct Landing {
    slots: Range<u32>,
    memory: Box<dyn LandingMemory>,
}

impl Landing {
    /// What has been received.
    pub fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }

    /// Where it is received; it holds old content.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.memory.bytes_mut()
    }
}

/// The slots of a landing: each of them, and whether it holds content now.
pub(super) type InUse = (Range<u32>, Vec<bool>);

impl Slots {
    /// The slot that holds the bytes already, if they were received there.
    pub(super) fn landed(&mut self, bytes: &[u8]) -> Option<u32> {
        if self.landings.is_empty() {
            return None;
        }
        let slot = self.payload.slot_of(bytes)?;
        let (slots, used) = self.landings.iter_mut().find(|(slots, _)| slots.contains(&slot))?;
        let is_used = &mut used[(slot - slots.start) as usize];
        (!std::mem::replace(is_used, true)).then_some(slot)
    }

    /// Whether a slot without content is still part of a landing, whose end frees it: a client may read its memory.
    pub(super) fn goes_back_to_landing(&mut self, slot: u32) -> bool {
        let found = self.landings.iter_mut().find(|(slots, _)| slots.contains(&slot));
        found.map(|(slots, used)| used[(slot - slots.start) as usize] = false).is_some()
    }

    /// Slots for `units` units that a client sends, in a run. `None`: there is no run, or it has no memory yet; then
    /// the next units that are put are in sequence.
    pub(super) fn land(&mut self, units: u32) -> Option<Landing> {
        if units == 0 || units > GROUP || self.run.len() >= units as usize {
            return None;
        }
        let slots = self.take_run(units)?;
        match self.payload.landing(slots.clone()) {
            Some(memory) => {
                self.landings.push((slots.clone(), vec![false; units as usize]));
                Some(Landing { slots, memory })
            }
            None => {
                self.run.by_ref().for_each(|slot| self.free.give(slot));
                self.run = slots;
                None
            }
        }
    }

    /// A run of free slots: of a group that is free, or of a new one.
    fn take_run(&mut self, units: u32) -> Option<Range<u32>> {
        if let Some(run) = self.free.take_run(units) {
            return Some(run);
        }
        let used = u64::from(self.next - self.free.count());
        let spare = (SPARE_BYTES / self.zeros.len() as u64).max(used / 4);
        let first = self.next.next_multiple_of(GROUP);
        if u64::from(self.free.count()) > spare || !self.payload.allocate(first..first + GROUP) {
            return None;
        }
        (self.next..first + GROUP).for_each(|slot| self.free.give(slot));
        self.next = first + GROUP;
        self.free.take_run(units)
    }

    /// What was received is written, or will not be.
    pub(super) fn end_landing(&mut self, landing: Landing) {
        if let Some(at) = self.landings.iter().position(|(slots, _)| *slots == landing.slots) {
            let (slots, used) = self.landings.swap_remove(at);
            slots.zip(used).filter(|(_, is_used)| !is_used).for_each(|(slot, _)| self.free.give(slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::content::Content;
    use super::super::payload::Payload;
    use super::*;

    const UNIT: usize = 16;

    #[derive(Debug)]
    struct Memory(Box<[u8]>);

    impl LandingMemory for Memory {
        fn bytes(&self) -> &[u8] {
            &self.0
        }

        fn bytes_mut(&mut self) -> &mut [u8] {
            &mut self.0
        }
    }

    /// Where the landings are: address, bytes and first slot of each; and which slots were written by copies.
    #[derive(Debug, Default)]
    struct Log {
        landings: Vec<(usize, usize, u32)>,
        copied: Vec<u32>,
    }

    #[derive(Debug, Default)]
    struct Outside(Arc<Mutex<Log>>);

    impl Payload for Outside {
        fn put(&mut self, slot: u32, _: &[u8]) {
            self.0.lock().unwrap().copied.push(slot);
        }

        fn get(&self, _: u32) -> &[u8] {
            &[]
        }

        fn release(&mut self, _: u32) {}

        fn allocate(&mut self, slots: Range<u32>) -> bool {
            slots.end <= 3 * GROUP
        }

        fn landing(&mut self, slots: Range<u32>) -> Option<Box<dyn LandingMemory>> {
            // The first group has no memory yet.
            let memory = (slots.start >= GROUP).then(|| Memory(vec![7; slots.len() * UNIT].into()))?;
            self.0.lock().unwrap().landings.push((memory.0.as_ptr() as usize, memory.0.len(), slots.start));
            Some(Box::new(memory))
        }

        fn slot_of(&self, bytes: &[u8]) -> Option<u32> {
            let at = bytes.as_ptr() as usize;
            let log = self.0.lock().unwrap();
            let found = log.landings.iter().find(|(start, length, _)| (*start..start + length).contains(&at));
            found.map(|(start, _, first)| first + ((at - start) / UNIT) as u32)
        }
    }

    fn slots() -> (Slots, Arc<Mutex<Log>>) {
        let log = Arc::new(Mutex::new(Log::default()));
        (Slots::outside(UNIT as u32, Box::new(Outside(Arc::clone(&log)))), log)
    }

    fn slot(content: Content) -> u32 {
        content.slot().unwrap()
    }

    #[test]
    fn units_that_were_received_there_are_not_copied() {
        let (mut slots, log) = slots();
        assert!(slots.land(600).is_none(), "no memory yet");
        let copied: Vec<u32> = (0..600).map(|_| slot(slots.put(&[3; UNIT]))).collect();
        assert_eq!(copied, Vec::from_iter(0..600), "but in sequence");
        let mut landing = slots.land(500).unwrap();
        landing.bytes_mut()[UNIT..2 * UNIT].fill(0);
        let [first, zeros, third] = [0, 1, 2].map(|unit| slots.put(&landing.bytes()[unit * UNIT..][..UNIT]));
        assert_eq!((slot(first), zeros, slot(third)), (GROUP, Content::ZEROS, GROUP + 2));
        let twice = slots.put(&landing.bytes()[..UNIT]);
        assert_ne!(slot(twice), GROUP, "the same bytes again are another content");
        assert_eq!(log.lock().unwrap().copied.len(), 601);
        let before = slots.free.count();
        slots.end_landing(landing);
        assert_eq!(slots.free.count(), before + 498);
    }

    #[test]
    fn a_slot_that_is_released_during_its_landing_is_free_after_it() {
        let (mut slots, _) = slots();
        assert!(slots.land(GROUP).is_none());
        (0..GROUP).for_each(|_| assert!(slots.put(&[3; UNIT]).slot().is_some()));
        let landing = slots.land(GROUP).unwrap();
        let kept = slots.put(&landing.bytes()[..UNIT]);
        let released = slots.put(&landing.bytes()[UNIT..2 * UNIT]);
        slots.release(&[released]);
        let other = slots.put(&[9; UNIT]);
        assert_ne!(slot(other), slot(released), "a client may read its memory");
        slots.recorded();
        slots.release(&[kept]);
        slots.recorded();
        let before = slots.free.count();
        slots.end_landing(landing);
        assert_eq!(slots.free.count(), before + GROUP);
    }

    #[test]
    fn new_slots_are_taken_only_while_few_are_free() {
        let (mut slots, _) = slots();
        assert!(slots.land(GROUP + 1).is_none());
        assert!(slots.land(GROUP).is_none());
        (0..GROUP).for_each(|_| assert!(slots.put(&[3; UNIT]).slot().is_some()));
        let landings = [(); 2].map(|()| slots.land(GROUP).unwrap());
        assert!(slots.land(1).is_none(), "the disk has no more space");
        landings.into_iter().for_each(|landing| slots.end_landing(landing));
        assert_eq!((slots.free.count(), slots.end()), (2 * GROUP, 3 * GROUP));
        slots.tidy();
        assert_eq!((slots.free.count(), slots.end()), (0, GROUP));
    }
}
