//! A request that is not complete yet.

use emmc_units::Nanos;

use super::table::NONE;
use crate::event::{BlockEvent, File, Flags, Op, Syscall};
use crate::request::{Hardware, Parts};

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
    /// Parts of the time before its bio.
    pub(crate) parts: Parts,
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
        (self.file, self.is_journal, self.parts) = (other.file, other.is_journal, other.parts);
    }

    /// The sector behind it.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.sector.wrapping_add(u64::from(self.sectors))
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
            parts: Parts::default(),
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
    pub(super) fn set(&mut self, block: &BlockEvent, pid: u32, at: Nanos) {
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
            parts,
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
        (*asked_by, *parts) = (None, Parts::default());
        (*call, *access, *file, *is_journal) = (None, Access::Unknown, File::default(), false);
        (*busy_mark, *waited, *work) = (0, 0, 0);
    }
}
