//! Requests that are not complete yet, found by their first sector or by their last.

use emmc_units::Nanos;

use super::heads::{Heads, hash};
use super::open::{Open, Stage};
use crate::event::{BlockEvent, Flags, Op};

/// Most open requests; a device has at most some thousands, so that more are lost ends.
const OPEN_MAX: usize = 1 << 16;
pub(super) const NONE: u32 = u32::MAX;
/// Slots of ends, a power of two: more than a device has requests.
const ENDS: usize = 1 << 14;
/// Keys of what has no sector.
const FLUSH: u64 = u64::MAX;
const EMPTY: u64 = u64::MAX - 1;

/// Flushes have no sectors: their place is 0 when they are issued, and the last sector when they are complete.
#[inline]
fn key(device: u32, op: Op, sector: u64, sectors: u32) -> (u32, u64) {
    match (op, sectors) {
        (Op::Flush, _) => (device, FLUSH),
        (_, 0) => (device, EMPTY),
        _ => (device, sector),
    }
}

#[inline]
fn end_slot(end: (u32, u64)) -> usize {
    hash(end) & (ENDS - 1)
}

/// The table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    places: Vec<Open>,
    free: Vec<u32>,
    /// The newest of each key; older ones follow by `next`.
    heads: Heads,
    /// The last one that was given each end, as far as no other end took its slot; empty until a merge looks for one.
    ends: Vec<u32>,
    /// Discards and erases, which commands look for without a sector.
    erasing: Vec<u32>,
    serial: u64,
    count: usize,
}

/// A place in the table, for as long as the same request is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(u32, u64);

impl Handle {
    /// Whether it is of the entry with this number.
    pub(crate) fn is_serial(self, serial: u64) -> bool {
        self.1 == serial
    }
}

impl Table {
    pub(crate) fn is_full(&self) -> bool {
        self.count >= OPEN_MAX
    }

    /// Into a table that is not full.
    pub(crate) fn insert(&mut self, open: &Open) -> Handle {
        let place = self.place(open);
        self.places[place as usize] = *open;
        self.put(place)
    }

    /// A new entry with what an event says, into a table that is not full.
    #[inline]
    pub(crate) fn add(&mut self, block: &BlockEvent, pid: u32, at: Nanos) -> (Handle, &mut Open) {
        let place = match self.free.pop() {
            Some(place) => place,
            None => self.grow(&Open::new(block, pid, at)),
        };
        self.places[place as usize].set(block, pid, at);
        let handle = self.put(place);
        (handle, &mut self.places[place as usize])
    }

    fn place(&mut self, open: &Open) -> u32 {
        self.free.pop().unwrap_or_else(|| self.grow(open))
    }

    /// Links what is in a place.
    #[inline]
    fn put(&mut self, place: u32) -> Handle {
        self.serial += 1;
        self.count += 1;
        let open = &mut self.places[place as usize];
        open.serial = self.serial;
        if matches!(open.op, Op::Discard | Op::Erase) {
            self.erasing.push(place);
        }
        self.link(place);
        Handle(place, self.serial)
    }

    #[cold]
    fn grow(&mut self, open: &Open) -> u32 {
        self.places.push(*open);
        (self.places.len() - 1) as u32
    }

    #[inline]
    pub(crate) fn get(&mut self, handle: Handle) -> Option<&mut Open> {
        self.places.get_mut(handle.0 as usize).filter(|open| open.serial == handle.1)
    }

    /// The oldest with this start that is wanted.
    #[inline]
    pub(crate) fn find(&self, block: &BlockEvent, wanted: impl Fn(&Open) -> bool) -> Option<Handle> {
        self.find_at(key(block.device, block.op, block.sector, block.sectors), wanted)
    }

    pub(crate) fn find_sector(&self, device: u32, sector: u64, wanted: impl Fn(&Open) -> bool) -> Option<Handle> {
        self.find_at((device, sector), wanted)
    }

    pub(crate) fn find_flush(&self, device: u32, wanted: impl Fn(&Open) -> bool) -> Option<Handle> {
        self.find_at((device, FLUSH), wanted)
    }

    /// A bio that only asks for a flush.
    pub(crate) fn find_flushing(&self, device: u32, wanted: impl Fn(&Open) -> bool) -> Option<Handle> {
        self.find_at((device, EMPTY), |open| open.flags.has(Flags::PREFLUSH) && wanted(open))
    }

    #[inline]
    fn find_at(&self, key: (u32, u64), wanted: impl Fn(&Open) -> bool) -> Option<Handle> {
        let (mut place, mut found) = (self.heads.get(key), None);
        while let Some(open) = self.places.get(place as usize) {
            if wanted(open) {
                found = Some(Handle(place, open.serial));
            }
            place = open.next;
        }
        found
    }

    /// The oldest bio that asks for a flush before it.
    pub(crate) fn find_preflush(&self, device: u32) -> Option<&Open> {
        let waits = |open: &&Open| {
            open.serial != 0
                && open.device == device
                && open.stage < Stage::Issued
                && open.sectors > 0
                && open.flags.has(Flags::PREFLUSH)
        };
        self.places.iter().filter(waits).min_by_key(|open| open.serial)
    }

    /// The newest with this start that is wanted.
    pub(crate) fn find_newest(&self, key: (u32, u64), wanted: impl Fn(&Open) -> bool) -> Option<Handle> {
        let (mut place, mut found) = (self.heads.get(key), None::<Handle>);
        while let Some(open) = self.places.get(place as usize) {
            if wanted(open) && found.is_none_or(|other| other.1 < open.serial) {
                found = Some(Handle(place, open.serial));
            }
            place = open.next;
        }
        found
    }

    /// The newest with this end that is wanted. A place that the slot does not have any more is looked for in all.
    pub(crate) fn find_end(&mut self, (device, end): (u32, u64), wanted: impl Fn(&Open) -> bool) -> Option<Handle> {
        if self.ends.is_empty() {
            self.ends.resize(ENDS, NONE);
            let mut all: Vec<(u64, u32)> = (0u32..).zip(&self.places).map(|(at, open)| (open.serial, at)).collect();
            all.sort_unstable();
            all.into_iter().filter(|(serial, _)| *serial != 0).for_each(|(_, place)| self.note_end(place));
        }
        let wanted = |open: &Open| open.serial != 0 && open.device == device && open.end() == end && wanted(open);
        let place = self.ends[end_slot((device, end))];
        match self.places.get(place as usize).filter(|open| wanted(open)) {
            Some(open) => Some(Handle(place, open.serial)),
            None => {
                let all = (0u32..).zip(&self.places).filter(|(_, open)| wanted(open));
                all.max_by_key(|(_, open)| open.serial).map(|(place, open)| Handle(place, open.serial))
            }
        }
    }

    /// The newest discard or erase that is wanted.
    pub(crate) fn find_erasing(&self, wanted: impl Fn(&Open) -> bool) -> Option<Handle> {
        let all = self.erasing.iter().filter_map(|place| Some((*place, self.places.get(*place as usize)?)));
        let newest = all.filter(|(_, open)| wanted(open)).max_by_key(|(_, open)| open.serial);
        newest.map(|(place, open)| Handle(place, open.serial))
    }

    /// Appends sectors.
    pub(crate) fn extend(&mut self, handle: Handle, sectors: u32) {
        if let Some(open) = self.get(handle) {
            open.sectors = sectors;
            self.note_end(handle.0);
        }
    }

    #[inline]
    fn note_end(&mut self, place: u32) {
        if let (false, Some(open)) = (self.ends.is_empty(), self.places.get(place as usize)) {
            self.ends[end_slot((open.device, open.end()))] = place;
        }
    }

    /// Frees a place; what was there.
    #[inline]
    pub(crate) fn remove(&mut self, handle: Handle) -> Option<&Open> {
        if self.places.get(handle.0 as usize).is_none_or(|open| open.serial != handle.1) {
            return None;
        }
        self.unlink(handle.0);
        self.free.push(handle.0);
        self.count -= 1;
        let open = &mut self.places[handle.0 as usize];
        open.serial = 0;
        if matches!(open.op, Op::Discard | Op::Erase) {
            self.erasing.retain(|place| *place != handle.0);
        }
        Some(open)
    }

    /// Changes the first sector.
    pub(crate) fn restart(&mut self, handle: Handle, sector: u64, sectors: u32) {
        if self.get(handle).is_none() {
            return;
        }
        self.unlink(handle.0);
        let open = &mut self.places[handle.0 as usize];
        (open.sector, open.sectors) = (sector, sectors);
        self.link(handle.0);
    }

    #[inline]
    fn link(&mut self, place: u32) {
        let open = &mut self.places[place as usize];
        open.key = key(open.device, open.op, open.sector, open.sectors);
        open.next = self.heads.put(open.key, place);
        self.note_end(place);
    }

    #[inline]
    fn unlink(&mut self, place: u32) {
        let Open { key, next, .. } = self.places[place as usize];
        let slot = self.heads.slot(key);
        let head = self.heads.at(slot);
        if head == place {
            if next == NONE {
                self.heads.remove(slot);
            } else {
                self.heads.replace(slot, next);
            }
            return;
        }
        let mut at = head;
        while let Some(before) = self.places.get_mut(at as usize) {
            if before.next == place {
                before.next = next;
                return;
            }
            at = before.next;
        }
    }

    /// Empties the table; how many there were.
    pub(crate) fn clear(&mut self) -> u64 {
        let count = self.count as u64;
        self.places.clear();
        self.free.clear();
        self.ends.clear();
        self.erasing.clear();
        (self.heads, self.count) = (Heads::default(), 0);
        count
    }
}
