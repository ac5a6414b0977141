//! The part of a target with a modelled filesystem, and statistics of its requests.

use emmc_port::{BlockOp, BlockRequest, BlockTarget};
use emmc_units::{Instant, Nanos};

use super::BLOCK_BYTES;
use super::ranges::Ranges;
use crate::drive::stream::BenchError;
use crate::drive::watch::{Progress, Watch, Whole};
use crate::stats::latency::Latencies;

/// Largest request of the block layer for an eMMC (`max_sectors_kb`). Unit: bytes.
const REQUEST_BYTES_MAX: u64 = 512 << 10;
const WATCH_EVERY: u64 = 256;
/// More do not wait in the scheduler's queue: 62 requests (`nr_requests` of an eMMC) of the largest size. Unit: bytes.
const WAITING_BYTES_MAX: u64 = 62 * REQUEST_BYTES_MAX;

/// A range of a target, in blocks, with one request at a time.
pub struct Disk<'a> {
    target: &'a mut dyn BlockTarget,
    watch: &'a mut dyn Watch,
    step: String,
    from_bytes: u64,
    blocks: u64,
    requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes trimmed.
    pub trimmed_bytes: u64,
    /// Flushes that reached the target.
    pub flushes: u64,
    /// Writes of 16 KiB or less that do not continue the previous write, and their bytes.
    pub scattered_writes: (u64, u64),
    /// Latency of each write.
    pub writes: Latencies,
    write_end: u64,
    /// Writes that nobody waits for: they wait in the scheduler's queue.
    waiting: Ranges,
    /// What the bench has moved before, and will.
    pub(crate) whole: Whole,
}

impl<'a> Disk<'a> {
    /// A range of a target, truncated to whole blocks.
    pub fn new(target: &'a mut dyn BlockTarget, watch: &'a mut dyn Watch, from_bytes: u64, to_bytes: u64) -> Self {
        let from_bytes = from_bytes.next_multiple_of(BLOCK_BYTES);
        let blocks = to_bytes.min(target.shape().size_bytes).saturating_sub(from_bytes) / BLOCK_BYTES;
        Self {
            target,
            watch,
            step: String::new(),
            from_bytes,
            blocks,
            requests: 0,
            read_bytes: 0,
            written_bytes: 0,
            trimmed_bytes: 0,
            flushes: 0,
            scattered_writes: (0, 0),
            writes: Latencies::default(),
            write_end: 0,
            waiting: Ranges::default(),
            whole: Whole::default(),
        }
    }

    /// Sets the step name for the progress callback.
    pub fn step(&mut self, step: impl Into<String>) {
        self.step = step.into();
    }

    /// Its size in blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The target's time.
    pub fn now(&mut self) -> Instant {
        self.target.now()
    }

    /// The host computes; the card is idle.
    ///
    /// Errors: as the target.
    pub fn think(&mut self, time: Nanos) -> Result<(), BenchError> {
        Ok(self.target.idle(time)?)
    }

    /// Reads blocks.
    ///
    /// Errors: as the target.
    pub fn read(&mut self, block: u64, count: u64) -> Result<(), BenchError> {
        self.read_bytes += count * BLOCK_BYTES;
        self.io(BlockOp::Read, block, count, false)
    }

    /// Writes blocks; `through`: FUA, to a target with a volatile cache.
    ///
    /// Errors: as the target.
    pub fn write(&mut self, block: u64, count: u64, through: bool) -> Result<(), BenchError> {
        let bytes = count * BLOCK_BYTES;
        self.written_bytes += bytes;
        if block != self.write_end && bytes <= 16 << 10 {
            self.scattered_writes.0 += 1;
            self.scattered_writes.1 += bytes;
        }
        self.write_end = block + count;
        self.io(BlockOp::Write, block, count, through && self.target.takes_flushes())
    }

    /// Writes blocks without waiting for it: they go to the target before anything that is waited for. Neighbours
    /// become one request meanwhile, because the host adds requests faster than a card finishes them.
    ///
    /// Errors: as the target.
    pub fn write_later(&mut self, block: u64, count: u64) -> Result<(), BenchError> {
        self.waiting.insert(block, count);
        if self.waiting.total() * BLOCK_BYTES >= WAITING_BYTES_MAX { self.write_waiting() } else { Ok(()) }
    }

    /// Completes what [`Disk::write_later`] began.
    ///
    /// Errors: as the target.
    pub fn write_waiting(&mut self) -> Result<(), BenchError> {
        self.waiting.drain().into_iter().try_for_each(|(block, count)| self.write(block, count, false))
    }

    /// Trims blocks.
    ///
    /// Errors: as the target.
    pub fn trim(&mut self, block: u64, count: u64) -> Result<(), BenchError> {
        self.trimmed_bytes += count * BLOCK_BYTES;
        self.request(BlockOp::Trim, self.from_bytes + block * BLOCK_BYTES, count * BLOCK_BYTES, false)
    }

    /// Flushes the card's cache, if it has one that takes flushes.
    ///
    /// Errors: as the target.
    pub fn flush(&mut self) -> Result<(), BenchError> {
        self.write_waiting()?;
        if !self.target.takes_flushes() {
            return Ok(());
        }
        self.flushes += 1;
        self.request(BlockOp::Flush, 0, 0, false)
    }

    fn io(&mut self, op: BlockOp, block: u64, count: u64, through: bool) -> Result<(), BenchError> {
        if !self.waiting.is_empty() {
            self.write_waiting()?;
        }
        let (mut at, end) = (block * BLOCK_BYTES, (block + count) * BLOCK_BYTES);
        while at < end {
            let bytes = REQUEST_BYTES_MAX.min(end - at);
            self.request(op, self.from_bytes + at, bytes, through)?;
            at += bytes;
        }
        Ok(())
    }

    fn request(&mut self, op: BlockOp, offset_bytes: u64, bytes: u64, through: bool) -> Result<(), BenchError> {
        self.target.submit(BlockRequest { op, offset_bytes, bytes, through, tag: self.requests })?;
        let done = self.target.wait()?;
        if op == BlockOp::Write {
            self.writes.record(done.latency(), offset_bytes, self.written_bytes);
        }
        self.requests += 1;
        if self.requests % WATCH_EVERY == 0 {
            let whole = self.whole.span(self.written_bytes + self.read_bytes);
            let progress = Progress { step: &self.step, number: 1, steps: 0, done_share: 1.0, whole, now: None };
            if !self.watch.progress(progress) {
                return Err(BenchError::Stopped);
            }
        }
        Ok(())
    }
}
