//! One type of event for every format.

use emmc_units::Nanos;

pub use crate::step::Step;

/// An event of the kernel, in 48 bytes: thousands of each processor are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, on the clock of the recording.
    pub at: Nanos,
    /// The thread that was running, which is not always the thread that caused it.
    pub pid: u32,
    /// The processor.
    pub cpu: u32,
    /// What happened.
    pub what: What,
}

const _: () = assert!(size_of::<Event>() <= 48);

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// An event of the block layer.
    Block(BlockEvent),
    /// A command of the MMC layer, or a task of its command queue, started or ended.
    Mmc(MmcEvent),
    /// A system call began or ended.
    Syscall {
        /// Which.
        call: Syscall,
        /// Whether it began.
        entered: bool,
    },
    /// A thread wrote into a file.
    FileWrite(FileWrite),
    /// The thread's file system entered a known place, and for which file.
    Mark(Mark, File),
    /// The interrupt of an MMC controller was taken.
    Interrupt {
        /// The controller: the number in `mmc0`.
        host: u8,
    },
    /// A function of the MMC layer or of a driver was called, or started a timer.
    Step(Step),
    /// A processor went from one thread to another. Number 0 is its idle thread.
    Switch {
        /// The thread that ran.
        previous: u32,
        /// The thread that runs now.
        next: u32,
    },
    /// A thread was woken up (`sched_waking`), or was put among those that wait for a processor (`sched_wakeup`).
    Wake {
        /// The thread.
        pid: u32,
        /// `sched_waking`, the begin of a wake-up.
        began: bool,
    },
    /// Events are missing from this instant to another one.
    Lost {
        /// The first instant after the loss.
        until: Nanos,
        /// How many; 0 if the recording does not say.
        count: u32,
    },
}

/// An event of the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// What happened to the bio or request.
    pub action: Action,
    /// The operation.
    pub op: Op,
    /// `SYNC` and the like.
    pub flags: Flags,
    /// The device: major number in the upper 12 bits, minor number in the lower 20.
    pub device: u32,
    /// The first sector.
    pub sector: u64,
    /// Unit: sectors of 512 bytes, rounded up.
    pub sectors: u32,
    /// The sectors of a split's first part, or the error of a completion (0 is none).
    pub other: u32,
}

/// What happened to a bio or a request. The letters are those of blkparse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Q: a bio was queued.
    Queue,
    /// X: a bio was split in two.
    Split,
    /// M: a bio (or a whole request) was appended to a request.
    BackMerge,
    /// F: a bio was put in front of a request.
    FrontMerge,
    /// A request was appended to another one (`block_rq_merge`).
    RequestMerge,
    /// G: a request was allocated for a bio.
    GetRequest,
    /// S: a bio waits for a free request.
    Sleep,
    /// I: a request was given to the scheduler.
    Insert,
    /// D: a request was given to the driver.
    Issue,
    /// R: the driver returned a request.
    Requeue,
    /// C: all or a part of a request was completed.
    Complete,
    /// A bio was completed without a request of its own (`block_bio_complete`).
    BioComplete,
    /// P: the thread's requests are held back.
    Plug,
    /// U: held requests are released.
    Unplug,
    /// A: a bio moved from one device to another.
    Remap,
    /// Accounting started (`block_io_start`) or ended (`block_io_done`).
    Account,
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// R.
    Read,
    /// W.
    Write,
    /// D.
    Discard,
    /// DE or E: secure erase.
    Erase,
    /// FF: an operation that only flushes.
    Flush,
    /// N, zones, and what the driver sends for itself.
    Other,
}

impl Op {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Discard => "discard",
            Self::Erase => "erase",
            Self::Flush => "flush",
            Self::Other => "other",
        }
    }
}

/// Flags of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// A flush before it.
    pub const PREFLUSH: Self = Self(1);
    /// Durable when it completes.
    pub const FUA: Self = Self(2);
    /// Somebody waits for it.
    pub const SYNC: Self = Self(4);
    /// Metadata of a file system.
    pub const META: Self = Self(8);
    /// Read-ahead.
    pub const AHEAD: Self = Self(16);

    /// Whether a flag is set.
    pub fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }
}

/// The sectors of the first part, from the first sector of the remainder; 0 for a place that is none.
pub(crate) fn first_part(sector: u64, remainder: u64) -> u32 {
    remainder.checked_sub(sector).and_then(|first| u32::try_from(first).ok()).unwrap_or(0)
}

/// Whether a range ends before 2^64 bytes. The completion of a flush has no sectors, and the last sector as its place.
#[inline]
pub(crate) fn is_place(sector: u64, sectors: u32) -> bool {
    sector < 1 << 54 || sectors == 0 || sector.checked_add(u64::from(sectors)).is_some_and(|end| end <= u64::MAX / 512)
}

/// Reads the letters of an operation, such as `FWFSM`.
///
/// Source: `blk_fill_rwbs` in kernel/trace/blktrace.c. blkparse writes `FN` for an operation that only flushes.
pub(crate) fn letters(rwbs: &[u8]) -> (Op, Flags) {
    let (mut flags, mut rest) = (0, rwbs);
    if let [b'F', after @ ..] = rwbs {
        (flags, rest) = (Flags::PREFLUSH.0, after);
    }
    let op = match rest.first() {
        Some(b'R') => Op::Read,
        Some(b'W') => Op::Write,
        Some(b'D') if rest.get(1) == Some(&b'E') => Op::Erase,
        Some(b'D') => Op::Discard,
        Some(b'E') => Op::Erase,
        Some(b'F') => Op::Flush,
        Some(b'N') | None if flags != 0 => Op::Flush,
        _ => Op::Other,
    };
    for letter in rest.get(1..).unwrap_or_default() {
        flags |= match letter {
            b'F' => Flags::FUA.0,
            b'S' => Flags::SYNC.0,
            b'M' => Flags::META.0,
            b'A' => Flags::AHEAD.0,
            _ => 0,
        };
    }
    (op, Flags(flags))
}

/// A command of the MMC layer, or a task of its command queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmcEvent {
    /// `mmc_request_start`, else `mmc_request_done`.
    pub started: bool,
    /// The controller: the number in `mmc0`.
    pub host: u8,
    /// The command; 0 is a task of the command queue.
    pub opcode: u8,
    /// Re-tuning is needed or in progress.
    pub retuning: bool,
    /// A reliable write is requested: bit 31 in the argument of CMD23.
    pub reliable: bool,
    /// The first error of command, data or CMD23; 0 is none.
    pub error: i16,
    /// Blocks of data.
    pub blocks: u32,
    /// The argument; of a command with data the first block, if the kernel records it.
    pub argument: u32,
    /// Whether the argument is the first block as the kernel recorded it.
    pub is_block: bool,
    /// The kernel's address of the request, or a hash of it.
    pub request: u64,
}

/// A system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Syscall {
    /// read and its forms.
    Read,
    /// write and its forms.
    Write,
    /// fsync, fdatasync, sync and their forms.
    Sync,
    /// io_submit and io_uring_enter: the caller does not wait for the request.
    Submit,
    /// Any other.
    Other,
}

impl Syscall {
    /// By the kernel's name, without `sys_enter_` or `sys_`.
    pub(crate) fn named(name: &[u8]) -> Self {
        match name {
            b"read" | b"pread64" | b"readv" | b"preadv" | b"preadv2" => Self::Read,
            b"write" | b"pwrite64" | b"writev" | b"pwritev" | b"pwritev2" => Self::Write,
            b"fsync" | b"fdatasync" | b"sync" | b"syncfs" | b"sync_file_range" | b"msync" => Self::Sync,
            b"io_submit" | b"io_uring_enter" => Self::Submit,
            _ => Self::Other,
        }
    }
}

impl MmcEvent {
    /// Takes the address of the first block as the argument, if it has one.
    pub(crate) fn located(self, address: Option<u32>) -> Self {
        match address.filter(|_| matches!(self.opcode, 0 | 17 | 18 | 24 | 25 | 44..=47)) {
            Some(address) => Self { argument: address, is_block: true, ..self },
            None => self,
        }
    }
}

/// An error of the kernel, as far as it fits.
pub(crate) fn error_code(code: i32) -> i16 {
    code.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16
}

/// The controller of an interrupt whose handler is registered as `mmc0`.
pub(crate) fn controller(name: &[u8]) -> Option<u8> {
    let digits = name.strip_prefix(b"mmc")?;
    crate::text::decimal(digits).and_then(|host| u8::try_from(host).ok())
}

/// A write into a file, by its file system or into the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileWrite {
    /// The file system's device, or its disk; 0 if it has no numbers.
    pub device: u32,
    /// The file.
    pub inode: u64,
    /// Unit: bytes; `None` for a page that became dirty.
    pub bytes: Option<u32>,
}

/// Whether an event of this name is a write into a file, and if so, whether it has its bytes.
pub(crate) fn is_file_write(name: &[u8]) -> Option<bool> {
    match name {
        b"ext4_da_write_end" | b"ext4_write_end" | b"ext4_journalled_write_end" | b"f2fs_write_end" => Some(true),
        b"writeback_dirty_folio" | b"writeback_dirty_page" => Some(false),
        _ => None,
    }
}

/// A file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct File {
    /// The file system's device as in [`BlockEvent`], a partition perhaps; 0 if it is not known.
    pub device: u32,
    /// Its number; 0 if the event does not say it.
    pub inode: u64,
}

/// A place in a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Direct I/O began.
    Direct,
    /// A buffered write or read entered the page cache.
    Buffered,
    /// Pages of a file are written back, by the kernel or for fsync.
    WriteBack,
    /// fsync of a file began.
    Sync,
    /// A journal's commit began or ended.
    Commit {
        /// Whether it began.
        began: bool,
    },
}

impl Mark {
    /// By the name of the kernel's event.
    pub(crate) fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"iomap_dio_rw_begin" | b"ext4_direct_IO_enter" | b"f2fs_direct_IO_enter" => Self::Direct,
            b"ext4_da_write_begin" | b"ext4_write_begin" | b"f2fs_write_begin" => Self::Buffered,
            b"mm_filemap_add_to_page_cache" => Self::Buffered,
            b"writeback_single_inode_start" | b"ext4_writepages" | b"f2fs_writepages" => Self::WriteBack,
            b"ext4_sync_file_enter" | b"f2fs_sync_file_enter" => Self::Sync,
            b"jbd2_start_commit" => Self::Commit { began: true },
            b"jbd2_end_commit" => Self::Commit { began: false },
            _ => return None,
        })
    }
}
