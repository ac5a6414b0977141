//! A request followed through the layers, and its five spans.

use emmc_units::Nanos;

use crate::event::{File, Flags, Op, Syscall};

/// Who waits for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// A system call with direct I/O.
    Direct,
    /// A system call that waits: a read of the page cache, or a write with O_SYNC.
    Sync,
    /// fsync and its forms: data, journal and flush.
    Fsync,
    /// io_submit or io_uring: nobody waits in the call.
    Async,
    /// Read-ahead.
    Readahead,
    /// A write without a system call: write-back or journal.
    Writeback,
    /// The recording has no system calls.
    Unknown,
}

impl Mode {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Sync => "sync",
            Self::Fsync => "fsync",
            Self::Async => "async",
            Self::Readahead => "readahead",
            Self::Writeback => "writeback",
            Self::Unknown => "unknown",
        }
    }
}

/// Why a request was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Direct I/O, waited for or not.
    Direct,
    /// A program's read that the page cache did not have.
    Read,
    /// Read-ahead.
    ReadAhead,
    /// A write that a program waits for: O_SYNC, or the data of fsync.
    SyncWrite,
    /// A journal, or a checkpoint.
    Journal,
    /// Metadata of a file system.
    Metadata,
    /// A write that the kernel does later.
    WriteBack,
    /// A flush of the card's cache.
    Flush,
    /// A discard or secure erase.
    Discard,
    /// Memory that is made free: swap.
    Swap,
    /// Anything else.
    Other,
}

impl Why {
    /// All, as they are declared.
    pub(crate) const ALL: [Self; 11] = [
        Self::Direct,
        Self::Read,
        Self::ReadAhead,
        Self::SyncWrite,
        Self::Journal,
        Self::Metadata,
        Self::WriteBack,
        Self::Flush,
        Self::Discard,
        Self::Swap,
        Self::Other,
    ];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct I/O",
            Self::Read => "read",
            Self::ReadAhead => "read-ahead",
            Self::SyncWrite => "sync write",
            Self::Journal => "journal",
            Self::Metadata => "metadata",
            Self::WriteBack => "write-back",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::Swap => "swap",
            Self::Other => "other",
        }
    }

    /// With the name of the thread that queued it: journals and swap have threads of their own.
    pub(crate) fn by_thread(self, name: &str) -> Self {
        let is_journal = name.starts_with("jbd2/") || name.starts_with("f2fs_ckpt");
        match self {
            Self::SyncWrite | Self::Metadata | Self::WriteBack if is_journal => Self::Journal,
            Self::SyncWrite | Self::WriteBack if name.starts_with("kswapd") => Self::Swap,
            why => why,
        }
    }
}

/// What the MMC layer did for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// The first command or task began.
    pub started: Nanos,
    /// The last one ended; of a write without a command queue that several CMD13 ask for, the last of these.
    pub ended: Nanos,
    /// The controller was free for another command: after the CMD13 that asks a write's card.
    pub released: Nanos,
    /// The controller: the number in `mmc0`.
    pub host: u8,
    /// The first command; 0 is a task of the command queue.
    pub opcode: u8,
    /// A reliable write (bit 31 of CMD23).
    pub reliable: bool,
    /// CMD13 that ask whether it is done; all but the last found the card busy.
    pub polls: u32,
    /// Commands with data after the first: further attempts, or the rest of a request.
    pub repeats: u32,
    /// Re-tuning was needed or in progress.
    pub retuning: bool,
}

/// The five spans of a request. Unit: nanoseconds. Their sum is the time from start to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spans {
    /// 1: system call to the first bio; absent without a system call.
    pub vfs: Option<Nanos>,
    /// 2: bio to driver: merge, plug, tag, scheduler.
    pub block: Option<Nanos>,
    /// 3: driver to command: DMA mapping, waiting for the previous request.
    pub issue: Option<Nanos>,
    /// 4: the card: command to end, with the polls of a busy card.
    pub hardware: Option<Nanos>,
    /// 5: end to the caller: interrupt, unmapping, completion, wake-up.
    pub post: Option<Nanos>,
}

/// What the processors did from the completion of a device's request to that of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// The time between the two.
    pub since: Nanos,
    /// Time in it that processors were not idle, summed over all of them.
    pub work: Nanos,
    /// If the second was queued after the first was complete: the part of `work` until then, and the time without work
    /// until the thread that waits for the first had a processor again. Its wake-up takes that long.
    pub gap: Option<Nanos>,
}

/// Parts of spans 1 and 5 that have a name. 0 is none: no event says that there was one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Of span 1, from its begin to the last event of the page cache in it.
    pub page_cache: Nanos,
    /// Of span 1, from the write-back of a file, after that, to the bio.
    pub write_back: Nanos,
    /// Of span 1, while the call waits until a file is durable and a journal of its file system commits.
    pub journal_before: Nanos,
    /// Of span 5, the same.
    pub journal_after: Nanos,
}

/// A completed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The device, as in [`BlockEvent`](crate::BlockEvent).
    pub device: u32,
    /// The operation.
    pub op: Op,
    /// Its flags when it was queued.
    pub flags: Flags,
    /// The first sector.
    pub sector: u64,
    /// Unit: sectors of 512 bytes.
    pub sectors: u32,
    /// The thread that queued its first bio, if that is recorded, else the thread that issued it.
    pub pid: u32,
    /// The thread whose fsync a journal's commit is for: the one that waits longest, if the events show one.
    pub asked_by: Option<u32>,
    /// The system call within which it was queued.
    pub call: Option<Syscall>,
    /// Who waits.
    pub mode: Mode,
    /// The file that its thread worked on, if an event said so.
    pub file: File,
    /// Its thread committed a journal.
    pub is_journal: bool,
    /// Named parts of its spans.
    pub parts: Parts,
    /// The system call began, or the thread's previous request in it was completed.
    pub entered: Option<Nanos>,
    /// Its first bio was queued.
    pub queued: Option<Nanos>,
    /// Later bios, and the sum of their delays after the first. Unit: nanoseconds.
    pub bios: (u32, u64),
    /// Its last bio was queued.
    pub queued_last: Nanos,
    /// It was allocated.
    pub got: Option<Nanos>,
    /// It was given to the scheduler.
    pub inserted: Option<Nanos>,
    /// It was given to the driver (the last time; the first one if a part was complete before it returned).
    pub issued: Nanos,
    /// What the MMC layer did.
    pub hardware: Option<Hardware>,
    /// Its last sector was completed.
    pub completed: Nanos,
    /// The system call returned; absent if nobody waited, or another request of the call was completed later.
    pub exited: Option<Nanos>,
    /// The last wake-up of the thread between `completed` and `exited`, if it is recorded.
    pub woken: Option<Nanos>,
    /// When the thread had a processor after it; without recorded wake-ups, the last time that it got one.
    pub ran: Option<Nanos>,
    /// The part of `block` and `issue` in which other requests of the device were in progress. Unit: nanoseconds.
    pub waited: Nanos,
    /// The driver returned it this many times.
    pub requeues: u32,
    /// The error; 0 is none.
    pub error: u64,
    /// Of the processors since the device's last completion; absent if their idle times are not recorded.
    pub effort: Option<Effort>,
    /// The processors that issued and completed it.
    pub cpus: (u32, u32),
}

impl Request {
    /// When it began: its system call, its bio or its issue.
    pub fn began(&self) -> Nanos {
        self.entered.or(self.queued).unwrap_or(self.issued)
    }

    /// Why it was made, by its flags and its system call.
    pub fn why(&self) -> Why {
        match (self.op, self.mode) {
            (Op::Flush, _) => Why::Flush,
            (Op::Discard | Op::Erase, _) => Why::Discard,
            (Op::Other, _) => Why::Other,
            (Op::Write, _) if self.is_journal => Why::Journal,
            // XFS and jbd2 write the end of a transaction so.
            (Op::Write, _) if self.flags.has(Flags::META) && self.flags.has(Flags::FUA) => Why::Journal,
            (_, Mode::Readahead) => Why::ReadAhead,
            _ if self.flags.has(Flags::META) => Why::Metadata,
            (_, Mode::Direct) => Why::Direct,
            (_, Mode::Async) if self.call == Some(Syscall::Submit) => Why::Direct,
            (Op::Read, _) => Why::Read,
            (Op::Write, Mode::Sync | Mode::Fsync) => Why::SyncWrite,
            // Without system calls only the flag says whether somebody waits.
            (Op::Write, Mode::Unknown) if self.flags.has(Flags::SYNC) => Why::SyncWrite,
            (Op::Write, _) => Why::WriteBack,
        }
    }

    /// When its caller had it, or its completion.
    pub fn ended(&self) -> Nanos {
        self.exited.unwrap_or(self.completed)
    }

    /// From begin to end.
    pub fn total(&self) -> Nanos {
        since(self.began(), self.ended())
    }

    /// The time at the driver and the device: what blktrace's tools call D2C.
    pub fn device_time(&self) -> Nanos {
        since(self.issued, self.completed)
    }

    /// The parts of span 5; `None` if no call waits for the request, or its return is not recorded.
    pub fn returning(&self) -> Option<Return> {
        let exited = self.exited?;
        let last = self.ran.or(self.woken);
        Some(Return {
            completion: self.hardware.map(|hardware| since(hardware.ended, self.completed)),
            wake: self.woken.map(|woken| since(self.completed, woken)),
            run: self.ran.map(|ran| since(self.completed, ran)),
            exit: last.map(|last| since(last, exited)),
        })
    }

    /// The five spans.
    pub fn spans(&self) -> Spans {
        let first = self.queued.unwrap_or(self.issued);
        let device_ends = self.hardware.map_or(self.completed, |hardware| hardware.ended);
        let after = since(device_ends, self.ended());
        Spans {
            vfs: self.entered.map(|entered| since(entered, first)),
            block: self.queued.map(|queued| since(queued, self.issued)),
            issue: self.hardware.map(|hardware| since(self.issued, hardware.started)),
            hardware: self.hardware.map(|hardware| since(hardware.started, hardware.ended)),
            post: (self.hardware.is_some() || self.exited.is_some()).then_some(after),
        }
    }
}

/// What a caller waits for after its last request's time at the card. Unit: nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Return {
    /// End of the card's work to the completion.
    pub completion: Option<Nanos>,
    /// Completion to the wake-up of the thread.
    pub wake: Option<Nanos>,
    /// Completion to the thread on a processor.
    pub run: Option<Nanos>,
    /// From there, else from the wake-up, to the return of the call.
    pub exit: Option<Nanos>,
}

/// 0 if it goes backwards.
pub(crate) fn since(from: Nanos, to: Nanos) -> Nanos {
    Nanos(to.0.saturating_sub(from.0))
}
