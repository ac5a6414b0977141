//! Requests that are not complete yet, found by their first sector or by their last.

use emmc_units::Nanos;

use super::heads::Heads;
use crate::event::{BlockEvent, File, Flags, Op, Syscall};
use crate::request::Hardware;

/// Most open requests; a device has at most some thousands, so that more are lost ends.
const OPEN_MAX: usize = 1 << 16;
const NONE: u32 = u32::MAX;
/// Keys of what has no sector.
const FLUSH: u64 = u64::MAX;
const EMPTY: u64 = u64::MAX - 1;

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Only a bio.
    Queued,
    /// With a request of its own.
    Got,
    /// At the scheduler, or back from the driver.
    Inserted,
    /// At the driver.
    Issued,
}

/// The way of a request to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Access {
    /// No event says it.
    #[default]
    Unknown,
    /// Past the page cache.
    Direct,
    /// Through the page cache.
    Buffered,
}

/// An open request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) stage: Stage,
    pub(crate) op: Op,
    pub(crate) flags: Flags,
    pub(crate) device: u32,
    pub(crate) pid: u32,
    /// Whose fsync a journal's commit is for.
    pub(crate) asked_by: Option<u32>,
    /// What is not complete.
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
    /// What is complete.
    pub(crate) done: u32,
    pub(crate) queued: Option<Nanos>,
    pub(crate) queued_last: Nanos,
    pub(crate) bios: (u32, u64),
    pub(crate) got: Option<Nanos>,
    pub(crate) inserted: Option<Nanos>,
    pub(crate) issued: Nanos,
    pub(crate) issued_cpu: u32,
    pub(crate) hardware: Option<Hardware>,
    pub(crate) requeues: u32,
    pub(crate) error: u64,
    /// Its system call, when that began, and the number of the thread's call.
    pub(crate) call: Option<(Syscall, Nanos, u64)>,
    pub(crate) access: Access,
    /// What its thread worked on.
    pub(crate) file: File,
    /// Its thread committed a journal.
    pub(crate) is_journal: bool,
    /// The device's and the controller's busy time when the wait began, then the wait. Unit: nanoseconds.
    pub(crate) busy_mark: u64,
    pub(crate) waited: u64,
    /// The work of all processors when it was queued; 0 if it is not known. Unit: nanoseconds.
    pub(crate) work: u64,
    /// Distinguishes the users of a place in the table; 0 if the place is free.
    pub(crate) serial: u64,
    /// What it is found by: [`key`] when it came into the table.
    pub(super) key: (u32, u64),
    pub(super) next: u32,
}

impl Open {
    /// Belongs to the one that another belongs to.
    pub(crate) fn follow(&mut self, other: &Self) {
        (self.pid, self.asked_by, self.call, self.access) = (other.pid, other.asked_by, other.call, other.access);
        (self.file, self.is_journal) = (other.file, other.is_journal);
    }

    /// What an event says.
    pub(crate) fn new(block: &BlockEvent, pid: u32, at: Nanos) -> Self {
        let mut open = Self {
            stage: Stage::Queued,
            op: block.op,
            flags: block.flags,
            device: 0,
            pid: 0,
            asked_by: None,
            sector: 0,
            sectors: 0,
            done: 0,
            queued: None,
            queued_last: at,
            bios: (0, 0),
            got: None,
            inserted: None,
            issued: at,
            issued_cpu: 0,
            hardware: None,
            requeues: 0,
            error: 0,
            call: None,
            access: Access::Unknown,
            file: File::default(),
            is_journal: false,
            busy_mark: 0,
            waited: 0,
            work: 0,
            serial: 0,
            key: (0, 0),
            next: NONE,
        };
        open.set(block, pid, at);
        open
    }

    /// Becomes what an event says, without a copy: a request is 300 bytes long.
    #[inline]
    fn set(&mut self, block: &BlockEvent, pid: u32, at: Nanos) {
        // All fields, so that none is forgotten.
        let Self {
            stage,
            op,
            flags,
            device,
            pid: thread,
            asked_by,
            sector,
            sectors,
            done,
            queued,
            queued_last,
            bios,
            got,
            inserted,
            issued,
            issued_cpu,
            hardware,
            requeues,
            error,
            call,
            access,
            file,
            is_journal,
            busy_mark,
            waited,
            work,
            serial: _,
            key: _,
            next: _,
        } = self;
        (*stage, *op, *flags, *device) = (Stage::Queued, block.op, block.flags, block.device);
        (*thread, *sector, *sectors, *done) = (pid, block.sector, block.sectors, 0);
        (*queued, *queued_last, *bios, *got, *inserted) = (None, at, (0, 0), None, None);
        (*issued, *issued_cpu, *hardware, *requeues, *error) = (at, 0, None, 0, 0);
        *asked_by = None;
        (*call, *access, *file, *is_journal) = (None, Access::Unknown, File::default(), false);
        (*busy_mark, *waited, *work) = (0, 0, 0);
    }
}

/// Flushes have no sectors: their place is 0 when they are issued, and the last sector when they are complete.
#[inline]
fn key(device: u32, op: Op, sector: u64, sectors: u32) -> (u32, u64) {
    match (op, sectors) {
        (Op::Flush, _) => (device, FLUSH),
        (_, 0) => (device, EMPTY),
        _ => (device, sector),
    }
}

/// The table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    places: Vec<Open>,
    free: Vec<u32>,
    /// The newest of each key; older ones follow by `next`.
    heads: Heads,
    serial: u64,
    count: usize,
}

/// A place in the table, for as long as the same request is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(u32, u64);

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
        self.places[place as usize].serial = self.serial;
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

    /// The newest that is wanted, of all: for merges, of which there is one for each bio at most.
    pub(crate) fn search(&self, wanted: impl Fn(&Open) -> bool) -> Option<Handle> {
        let all = self.places.iter().enumerate().filter(|(_, open)| open.serial != 0);
        let newest = all.filter(|(_, open)| wanted(open)).max_by_key(|(_, open)| open.serial);
        newest.map(|(place, open)| Handle(place as u32, open.serial))
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
        (self.heads, self.count) = (Heads::default(), 0);
        count
    }
}
