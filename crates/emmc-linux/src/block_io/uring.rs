//! Requests through io_uring: one call submits all waiting requests and waits for the first completion.
//!
//! The memory, registered with the ring if the kernel allows it, belongs to the ring and is freed only when nothing in
//! it is outstanding. Slots may share memory if the requests together exceed it: read data is ignored.
#![allow(unsafe_code)]
#![warn(clippy::undocumented_unsafe_blocks)]

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;

use emmc_port::{BlockOp, BlockRequest};
use emmc_units::Instant;
use io_uring::{IoUring, opcode, squeue, types};
use memmap2::MmapRaw;

use super::clock::Clock;
use super::data::{self, PAGE_BYTES, Stamp};
use super::outcome::Answer;

/// Initial memory; a larger request makes it grow. Unit: bytes.
const MEMORY_BYTES: usize = 32 << 20;

/// The registered file.
const FILE: types::Fixed = types::Fixed(0);

/// A ring with the memory of its requests.
pub(super) struct Uring {
    ring: ManuallyDrop<IoUring>,
    memory: ManuallyDrop<MmapRaw>,
    is_registered: bool,
    stamp: Stamp,
    seed: u64,
    slots: Vec<Slot>,
    /// Free slots; the last one is used next, so that little memory is touched.
    free: Vec<u32>,
    /// Slots not submitted yet.
    waiting: Vec<u32>,
    /// Completions that were present when the clock was read.
    stamped: usize,
    reaped: Instant,
}

#[derive(Clone, Copy)]
struct Slot {
    request: BlockRequest,
    submitted: Instant,
}

impl Uring {
    /// A ring for `depth` requests on a file.
    ///
    /// Errors: the kernel has no io_uring, or does not permit it.
    pub(super) fn new(file: &File, depth: u32, seed: u64) -> io::Result<Self> {
        let ring = ring(depth)?;
        ring.submitter().register_files(&[file.as_raw_fd()])?;
        // Saves a look-up per call; not in kernels before 5.18.
        let _ = ring.submitter().register_ring_fd();
        let memory = MmapRaw::from(data::random(MEMORY_BYTES, seed)?);
        let is_registered = register(&ring, &memory);
        let request = BlockRequest { op: BlockOp::Flush, offset_bytes: 0, bytes: 0, through: false, tag: 0 };
        Ok(Self {
            ring: ManuallyDrop::new(ring),
            memory: ManuallyDrop::new(memory),
            is_registered,
            stamp: Stamp::new(seed),
            seed,
            slots: vec![Slot { request, submitted: Instant::START }; depth as usize],
            free: (0..depth).rev().collect(),
            waiting: Vec::with_capacity(depth as usize),
            stamped: 0,
            reaped: Instant::START,
        })
    }

    /// Requests submitted and not completed.
    pub(super) fn outstanding(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Prepares a request for the next call.
    ///
    /// Errors: not enough memory for its size.
    pub(super) fn push(&mut self, request: BlockRequest) -> io::Result<()> {
        let bytes = request.bytes as usize;
        if bytes > self.memory.len() {
            self.grow(bytes)?;
        }
        let slot = self.free.pop().ok_or_else(|| io::Error::from(io::ErrorKind::QuotaExceeded))?;
        let entry = self.entry(slot, &request).user_data(u64::from(slot));
        self.slots[slot as usize].request = request;
        self.waiting.push(slot);
        // SAFETY: the file is registered and so kept open by the ring. The memory of the entry is inside `self.memory`
        // (`place`), which is given back only when nothing is outstanding (`grow`, `drop`).
        let pushed = unsafe { self.ring.submission().push(&entry) };
        // The ring has an entry for each slot.
        pushed.map_err(|_| io::Error::from(io::ErrorKind::QuotaExceeded))
    }

    fn entry(&mut self, slot: u32, request: &BlockRequest) -> squeue::Entry {
        let (offset, bytes) = (request.offset_bytes, request.bytes as u32);
        let at = self.place(slot, request.bytes as usize);
        let flags = if request.through { libc::RWF_DSYNC } else { 0 };
        match request.op {
            BlockOp::Read if self.is_registered => opcode::ReadFixed::new(FILE, at, bytes, 0).offset(offset).build(),
            BlockOp::Read => opcode::Read::new(FILE, at, bytes).offset(offset).build(),
            // A trim is a plain call (`Calls`) and never comes here.
            BlockOp::Flush | BlockOp::Trim => opcode::Fsync::new(FILE).flags(types::FsyncFlags::DATASYNC).build(),
            BlockOp::Write => {
                self.mark(at, request.bytes as usize);
                if self.is_registered {
                    opcode::WriteFixed::new(FILE, at, bytes, 0).offset(offset).rw_flags(flags).build()
                } else {
                    opcode::Write::new(FILE, at, bytes).offset(offset).rw_flags(flags).build()
                }
            }
        }
    }

    /// Start of a slot's memory: slot after slot, wrapped to the start if they do not all fit.
    fn place(&self, slot: u32, bytes: usize) -> *mut u8 {
        let bytes = bytes.max(1).next_multiple_of(PAGE_BYTES);
        let fitting = (self.memory.len() / bytes).max(1);
        // `push` has made sure that one request fits, so this stays inside.
        self.memory.as_mut_ptr().wrapping_add(slot as usize % fitting * bytes)
    }

    /// Makes each page unique.
    #[inline]
    fn mark(&mut self, at: *mut u8, bytes: usize) {
        for page in (0..bytes).step_by(PAGE_BYTES) {
            // SAFETY: `at` begins a page of `self.memory` and the request's bytes are inside it; a page holds the eight
            // bytes. The kernel may read them at the same time for another request that shares the place, and then
            // writes either; no reference to the memory exists.
            unsafe { at.add(page).cast::<[u8; 8]>().write_volatile(self.stamp.take()) };
        }
    }

    /// Waits for the next completion.
    ///
    /// Errors: the ring is broken.
    pub(super) fn next(&mut self, clock: Clock) -> io::Result<Answer> {
        loop {
            if self.stamped == 0 {
                self.stamped = self.ring.completion().len();
                if self.stamped > 0 {
                    self.reaped = clock.now();
                }
            }
            if self.stamped > 0 {
                let entry = self.ring.completion().next();
                if let Some(entry) = entry {
                    self.stamped -= 1;
                    return Ok(self.answer(entry.user_data() as u32, entry.result()));
                }
            }
            self.stamped = 0;
            self.enter(clock)?;
        }
    }

    /// Submits waiting requests, and waits for one completion.
    fn enter(&mut self, clock: Clock) -> io::Result<()> {
        if !self.waiting.is_empty() {
            let now = clock.now();
            for slot in self.waiting.drain(..) {
                self.slots[slot as usize].submitted = now;
            }
        }
        match self.ring.submit_and_wait(1) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => Ok(()),
            result => result.map(drop),
        }
    }

    fn answer(&mut self, slot: u32, result: i32) -> Answer {
        let Slot { request, submitted } = self.slots[slot as usize];
        self.free.push(slot);
        let result = if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(result as usize) };
        Answer { request, submitted, done: self.reaped, result }
    }

    fn grow(&mut self, bytes: usize) -> io::Result<()> {
        if self.outstanding() > 0 {
            let what = format!("{bytes} bytes beside smaller requests: at most {}", self.memory.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let memory = MmapRaw::from(data::random(bytes, self.seed ^ bytes as u64)?);
        if self.is_registered {
            self.ring.submitter().unregister_buffers()?;
        }
        self.is_registered = register(&self.ring, &memory);
        drop(ManuallyDrop::into_inner(std::mem::replace(&mut self.memory, ManuallyDrop::new(memory))));
        Ok(())
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        while self.outstanding() > 0 {
            if self.next(Clock::default()).is_err() {
                // The kernel may still write to the memory: both must live as long as the process.
                return;
            }
        }
        // A closed ring keeps the file open slightly longer: unregistered here, so that nobody finds it in use
        // afterwards.
        let _ = self.ring.submitter().unregister_files();
        if self.is_registered {
            let _ = self.ring.submitter().unregister_buffers();
        }
        // SAFETY: each is dropped here once and not used again; the ring goes first, and nothing is outstanding in it.
        unsafe {
            ManuallyDrop::drop(&mut self.ring);
            ManuallyDrop::drop(&mut self.memory);
        }
    }
}

/// A ring with the optimisation flags that this kernel supports.
fn ring(depth: u32) -> io::Result<IoUring> {
    // 6.1 and later; 5.19; 5.1.
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(depth)
        .or_else(|_| IoUring::builder().setup_coop_taskrun().build(depth))
        .or_else(|_| IoUring::builder().build(depth))
}

/// Whether the kernel keeps the memory pinned; it does not if the limit of locked memory is too low.
fn register(ring: &IoUring, memory: &MmapRaw) -> bool {
    let all = libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() };
    // SAFETY: the memory outlives its registration: it is given back after it was unregistered (`grow`) or the ring was
    // dropped (`drop`).
    unsafe { ring.submitter().register_buffers(&[all]) }.is_ok()
}
