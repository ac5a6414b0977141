//! Requests that are not complete yet, found by their first sector or by their last.

use std::collections::HashMap;

use emmc_units::Nanos;

use crate::event::{BlockEvent, Flags, Op, Syscall};
use crate::notes::Mixer;
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
    /// The device's and the controller's busy time when the wait began, then the wait. Unit: nanoseconds.
    pub(crate) busy_mark: u64,
    pub(crate) waited: u64,
    /// Distinguishes the users of a place in the table.
    pub(crate) serial: u64,
    pub(super) next: u32,
}

impl Open {
    pub(crate) fn new(block: &BlockEvent, pid: u32, at: Nanos) -> Self {
        Self {
            stage: Stage::Queued,
            op: block.op,
            flags: block.flags,
            device: block.device,
            pid,
            sector: block.sector,
            sectors: block.sectors,
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
            busy_mark: 0,
            waited: 0,
            serial: 0,
            next: NONE,
        }
    }

    fn key(&self) -> (u32, u64) {
        key(self.device, self.op, self.sector, self.sectors)
    }
}

/// Flushes have no sectors: their place is 0 when they are issued, and the last sector when they are complete.
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
    places: Vec<Option<Open>>,
    free: Vec<u32>,
    /// The newest of each key; older ones follow by `next`.
    heads: HashMap<(u32, u64), u32, Mixer>,
    serial: u64,
    count: usize,
}

/// A place in the table, for as long as the same request is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle(u32, u64);

impl Table {
    /// `None` if the table is full.
    pub(crate) fn insert(&mut self, mut open: Open) -> Option<Handle> {
        if self.count >= OPEN_MAX {
            return None;
        }
        self.serial += 1;
        self.count += 1;
        open.serial = self.serial;
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            (self.places.len() - 1) as u32
        });
        open.next = self.heads.insert(open.key(), place).unwrap_or(NONE);
        self.places[place as usize] = Some(open);
        Some(Handle(place, self.serial))
    }

    pub(crate) fn get(&mut self, handle: Handle) -> Option<&mut Open> {
        self.places.get_mut(handle.0 as usize)?.as_mut().filter(|open| open.serial == handle.1)
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

    fn find_at(&self, key: (u32, u64), wanted: impl Fn(&Open) -> bool) -> Option<Handle> {
        let mut place = *self.heads.get(&key)?;
        let mut found = None;
        while let Some(Some(open)) = self.places.get(place as usize) {
            if wanted(open) {
                found = Some(Handle(place, open.serial));
            }
            place = open.next;
        }
        found
    }

    /// The newest that is wanted, of all: for merges, of which there is one for each bio at most.
    pub(crate) fn search(&self, wanted: impl Fn(&Open) -> bool) -> Option<Handle> {
        let all = self.places.iter().enumerate().filter_map(|(place, open)| Some((place, open.as_ref()?)));
        let newest = all.filter(|(_, open)| wanted(open)).max_by_key(|(_, open)| open.serial);
        newest.map(|(place, open)| Handle(place as u32, open.serial))
    }

    pub(crate) fn remove(&mut self, handle: Handle) -> Option<Open> {
        let open = *self.get(handle)?;
        self.unlink(handle.0, &open);
        self.places[handle.0 as usize] = None;
        self.free.push(handle.0);
        self.count -= 1;
        Some(open)
    }

    /// Changes the first sector.
    pub(crate) fn restart(&mut self, handle: Handle, sector: u64, sectors: u32) {
        let Some(open) = self.get(handle).copied() else { return };
        self.unlink(handle.0, &open);
        let mut moved = Open { sector, sectors, ..open };
        moved.next = self.heads.insert(moved.key(), handle.0).unwrap_or(NONE);
        self.places[handle.0 as usize] = Some(moved);
    }

    fn unlink(&mut self, place: u32, open: &Open) {
        let key = open.key();
        let Some(head) = self.heads.get_mut(&key) else { return };
        if *head == place {
            if open.next == NONE {
                self.heads.remove(&key);
            } else {
                *head = open.next;
            }
            return;
        }
        let mut at = *head;
        while let Some(Some(before)) = self.places.get_mut(at as usize) {
            if before.next == place {
                before.next = open.next;
                return;
            }
            at = before.next;
        }
    }

    /// Empties the table.
    pub(crate) fn drain(&mut self) -> Vec<Open> {
        let mut all: Vec<Open> = self.places.drain(..).flatten().collect();
        all.sort_by_key(|open| open.serial);
        (self.free, self.heads, self.count) = (Vec::new(), HashMap::default(), 0);
        all
    }
}
