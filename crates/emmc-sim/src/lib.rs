//! A virtual card as the target of benchmarks and jobs, in simulated time.
//!
//! Outstanding requests share the card's queue: as many in parallel as it has slots, one without a command queue. The
//! rest wait in the host; those that wait for a slot of the queue and adjoin become one command. Absent on purpose: the
//! host's own cost (`emmc-host`).

pub mod command_target;
mod content;
pub mod ffu;
mod job;
pub mod lock;
mod polling;
mod queue;
pub mod rpmb;
mod serve;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use emmc_card::device::{Area, Device, HostDone, StorageError, WriteFlags};
use emmc_card::ftl::{FtlError, TrimKind};
use emmc_port::{
    Access, BlockContent, BlockDone, BlockOp, BlockRequest, BlockTarget, SimulatedTarget, TargetError, TargetFill,
    TargetKind, TargetShape,
};
use emmc_units::{Agenda, Instant, Nanos, SECTOR_BYTES};

pub use command_target::CommandTarget;
use polling::POLLING;
use queue::Queue;

/// The largest command of most hosts.
///
/// Source: `max_req_size` in the kernel's sdhci.c. Unit: bytes.
const COMMAND_BYTES: u64 = 512 << 10;
/// Most requests that a host may have outstanding, the default of Linux' block layer.
const DEPTH_MAX: u32 = 256;

/// A powered virtual card that stores no data, or stores data: then every written sector holds its number and that of
/// the request.
#[derive(Debug)]
pub struct SimTarget {
    device: Device,
    shape: TargetShape,
    now: Instant,
    access: Access,
    /// The largest command of the host; larger requests are several commands in sequence.
    command_bytes: u64,
    /// Parallel requests in the card.
    slots: usize,
    /// How often the host asks for ready tasks of the command queue while no data moves; `None`: no queue is used.
    polling: Option<Nanos>,
    /// The host asks whether a flush has ended; else its controller tells it at once.
    asks_for_flushes: bool,
    /// The end of the last transfer.
    moved: Instant,
    /// Commands that the driver takes before one of them has ended. Without a queue it takes all: none are merged.
    commands_max: usize,
    /// Commands that wait for a slot, and those whose transfer is not computed yet.
    queue: Queue,
    /// When slots become free, of commands whose end is known at once: without a queue, and below a simulated host.
    taken: BinaryHeap<Reverse<Instant>>,
    /// Completions of outstanding requests by their places in `requests`, and the free places there.
    outstanding: Agenda<u32>,
    requests: Vec<Outstanding>,
    free: Vec<u32>,
    /// The errors of single requests that are outstanding, by place.
    errors: Vec<(u32, String)>,
    payload: Vec<u8>,
    /// Requests with content so far.
    stamps: u64,
}

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    submitted: Instant,
    request: BlockRequest,
    /// It is in a command that another request began.
    is_merged: bool,
    /// The next request of the same command.
    next: Option<u32>,
}

impl SimTarget {
    /// A card at the time `now`, under the user's name for it; with or without command queueing. Its cache is switched
    /// on, if it has one, as in Linux; [`Device::set_cache`] switches it off.
    pub fn new(mut device: Device, name: &str, now: Instant, queueing: bool) -> Self {
        // Only switching off does work that can fail.
        let _ = device.switch_cache(true, now);
        let shape = TargetShape {
            name: name.into(),
            kind: TargetKind::Simulated,
            size_bytes: device.sectors(Area::User) * SECTOR_BYTES,
            sector_bytes: SECTOR_BYTES as u32,
            depth_max: DEPTH_MAX,
            can_trim: true,
            engine: "simulated",
        };
        let slots = if queueing { usize::from(device.profile().controller.queue_depth).max(1) } else { 1 };
        let polling = (slots > 1).then_some(POLLING);
        let (taken, outstanding) = (BinaryHeap::new(), Agenda::new());
        let access = Access { area: Area::User, reliable: false, discard: true };
        Self {
            device,
            shape,
            now,
            access,
            command_bytes: COMMAND_BYTES,
            slots,
            polling,
            asks_for_flushes: true,
            moved: now,
            commands_max: if slots > 1 { slots } else { DEPTH_MAX as usize },
            queue: Queue::default(),
            taken,
            outstanding,
            requests: Vec::new(),
            free: Vec::new(),
            errors: Vec::new(),
            payload: Vec::new(),
            stamps: 0,
        }
    }

    /// The card, and its time.
    pub fn into_device(self) -> (Device, Instant) {
        (self.device, self.now)
    }

    /// Whether the card can process several requests in parallel.
    pub fn queues(&self) -> bool {
        self.slots > 1
    }

    /// The same behind a host whose largest command is another one; whole sectors, 512 KiB if it is not set.
    pub fn with_commands_of(mut self, bytes: u64) -> Self {
        self.command_bytes = bytes.max(SECTOR_BYTES) / SECTOR_BYTES * SECTOR_BYTES;
        self
    }

    /// The card, for inspection.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The card, for changes between requests.
    pub fn device_mut(&mut self) -> &mut Device {
        &mut self.device
    }

    /// When the card can start a request that is submitted at `at`.
    #[inline(always)]
    fn start(&mut self, at: Instant) -> Instant {
        if self.taken.is_empty() { at } else { self.start_behind(at) }
    }

    /// The same while slots are taken.
    fn start_behind(&mut self, at: Instant) -> Instant {
        let mut start = at;
        while self.taken.peek().is_some_and(|Reverse(end)| *end <= start) {
            self.taken.pop();
        }
        while self.taken.len() >= self.slots {
            let Some(Reverse(end)) = self.taken.pop() else { break };
            start = start.max(end);
        }
        start
    }

    /// Returns when all commands of a request are done.
    #[inline(always)]
    fn hand_over(&mut self, request: &BlockRequest, now: Instant) -> Result<Instant, StorageError> {
        if request.bytes <= self.command_bytes || matches!(request.op, BlockOp::Trim | BlockOp::Flush) {
            return self.command(request, now);
        }
        self.commands(request, now)
    }

    #[cold]
    fn commands(&mut self, request: &BlockRequest, now: Instant) -> Result<Instant, StorageError> {
        let (mut at, mut left) = (now, *request);
        while left.bytes > 0 {
            let bytes = left.bytes.min(self.command_bytes);
            at = self.command(&BlockRequest { bytes, ..left }, at)?;
            left.offset_bytes += bytes;
            left.bytes -= bytes;
        }
        Ok(at)
    }

    #[inline(always)]
    fn command(&mut self, request: &BlockRequest, now: Instant) -> Result<Instant, StorageError> {
        let now = match request.op {
            BlockOp::Read | BlockOp::Write => self.queued(request, now)?,
            BlockOp::Trim | BlockOp::Flush => now,
        };
        self.transfer(request, now)
    }

    /// The command with the data, or the whole command of a request without any.
    #[inline(always)]
    fn transfer(&mut self, request: &BlockRequest, now: Instant) -> Result<Instant, StorageError> {
        let Access { area, reliable, discard } = self.access;
        let (lba, sectors) = (request.offset_bytes / SECTOR_BYTES, request.bytes / SECTOR_BYTES);
        let flags = WriteFlags { reliable, force: request.through };
        let done = match request.op {
            BlockOp::Read | BlockOp::Write if self.device.keeps_data() => self.with_content(request, now)?,
            BlockOp::Read => self.device.read(area, lba, sectors as u32, None, now)?,
            BlockOp::Write => self.device.write(area, lba, sectors as u32, flags, None, now)?,
            BlockOp::Trim => {
                let kind = if discard { TrimKind::Discard } else { TrimKind::Trim };
                self.device.trim(area, lba, sectors, kind, now)?
            }
            BlockOp::Flush => {
                let done = self.device.flush(now)?;
                HostDone { done: self.asked(now, done.done), ..done }
            }
        };
        self.moved = self.moved.max(done.transferred);
        Ok(done.done)
    }

    /// A read or write of a card that stores data.
    #[cold]
    fn with_content(&mut self, request: &BlockRequest, now: Instant) -> Result<HostDone, StorageError> {
        let Access { area, reliable, .. } = self.access;
        let (lba, sectors) = (request.offset_bytes / SECTOR_BYTES, (request.bytes / SECTOR_BYTES) as u32);
        self.payload.resize(request.bytes as usize, 0);
        let payload = &mut self.payload[..];
        if request.op == BlockOp::Read {
            self.device.read(area, lba, sectors, Some(payload), now)
        } else {
            self.stamps += 1;
            for (sector, number) in payload.chunks_exact_mut(SECTOR_BYTES as usize).zip(lba..) {
                sector[..8].copy_from_slice(&number.to_le_bytes());
                sector[8..16].copy_from_slice(&self.stamps.to_le_bytes());
            }
            let flags = WriteFlags { reliable, force: request.through };
            self.device.write(area, lba, sectors, flags, Some(payload), now)
        }
    }

    /// Whole sectors inside the area.
    #[inline]
    fn check(&self, request: &BlockRequest) -> Result<(), TargetError> {
        let is_whole = (request.offset_bytes | request.bytes) % SECTOR_BYTES == 0 && request.bytes > 0;
        let end = request.offset_bytes.checked_add(request.bytes);
        let is_inside = self.access.area == Area::User && end.is_some_and(|end| end <= self.shape.size_bytes);
        if is_whole && is_inside || request.op == BlockOp::Flush {
            return Ok(());
        }
        self.check_in_area(request)
    }

    #[cold]
    fn check_in_area(&self, request: &BlockRequest) -> Result<(), TargetError> {
        let size_bytes = self.device.sectors(self.access.area) * SECTOR_BYTES;
        TargetShape { size_bytes, ..self.shape.clone() }.check(request)
    }

    /// When the card completes a request that starts at `start`, and its own error, if any.
    #[inline]
    fn outcome(&mut self, request: &BlockRequest, start: Instant) -> Result<(Instant, Option<String>), TargetError> {
        match self.hand_over(request, start) {
            Ok(done) => Ok((done, None)),
            Err(error) => self.failed_request(error, start),
        }
    }

    /// An uncorrectable read is an error of the request alone.
    #[cold]
    fn failed_request(&self, error: StorageError, start: Instant) -> Result<(Instant, Option<String>), TargetError> {
        match error {
            StorageError::Ftl(FtlError::Uncorrectable { .. }) => Ok((start, Some(error.to_string()))),
            error => Err(self.ended(error)),
        }
    }

    /// An error after which the card does not continue.
    fn ended(&self, error: StorageError) -> TargetError {
        match error {
            StorageError::Ftl(FtlError::WornOut) => TargetError::WornOut { name: self.shape.name.clone() },
            error => self.failed(error),
        }
    }

    fn failed(&self, reason: impl ToString) -> TargetError {
        TargetError::Failed { name: self.shape.name.clone(), reason: reason.to_string() }
    }
}

impl BlockTarget for SimTarget {
    fn shape(&self) -> &TargetShape {
        &self.shape
    }

    fn now(&mut self) -> Instant {
        self.now
    }

    #[inline]
    fn submit(&mut self, request: BlockRequest) -> Result<(), TargetError> {
        self.submit_at(request, self.now)
    }

    fn foresee_reads(&mut self, offsets_bytes: &[u64]) {
        self.device.foresee_reads(self.access.area, offsets_bytes);
    }

    #[inline]
    fn wait(&mut self) -> Result<BlockDone, TargetError> {
        self.transfer_until(None)?;
        let Some((done, place)) = self.outstanding.pop() else {
            return Err(self.failed("nothing is outstanding"));
        };
        self.now = self.now.max(done);
        self.free.push(place);
        if self.outstanding.is_empty() {
            self.taken.clear();
        }
        let Outstanding { submitted, request, is_merged, .. } = self.requests[place as usize];
        if !is_merged {
            self.freed(done)?;
        }
        let error = self.errors.iter().position(|(failed, _)| *failed == place);
        let error = error.map(|index| self.errors.swap_remove(index).1);
        Ok(BlockDone { request, submitted, done, error })
    }

    fn wait_until(&mut self, until: Instant) -> Result<Option<BlockDone>, TargetError> {
        self.transfer_until(Some(until))?;
        if self.outstanding.next_at().is_some_and(|done| done <= until) {
            return self.wait().map(Some);
        }
        self.now = self.now.max(until);
        Ok(None)
    }

    #[inline(always)]
    fn complete(&mut self, request: BlockRequest) -> Result<BlockDone, TargetError> {
        self.check(&request)?;
        let (submitted, start) = (self.now, self.start(self.now));
        let (done, error) = match self.hand_over(&request, start) {
            Ok(done) => (done, None),
            Err(error) => self.failed_request(error, start)?,
        };
        self.now = self.now.max(done);
        Ok(BlockDone { request, submitted, done, error })
    }

    fn fill(&self) -> Option<TargetFill> {
        Some(self.device.fullness())
    }

    fn takes_flushes(&self) -> bool {
        self.device.takes_flushes()
    }

    fn idle(&mut self, time: Nanos) -> Result<(), TargetError> {
        let until = self.now + time;
        self.now = until.max(self.rest(self.now, until)?);
        Ok(())
    }

    fn content(&mut self) -> Option<&mut dyn BlockContent> {
        if self.device.keeps_data() { Some(self) } else { None }
    }
}

#[cfg(test)]
mod tests;
