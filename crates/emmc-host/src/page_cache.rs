//! The page cache of a board: the requests that a program's writes and reads cause, and when.
//!
//! Writes end in memory; a flusher writes them back in the background once enough is dirty, and a writer is throttled
//! when too much is (`balance_dirty_pages`). Data that is dirty when a program ends has not been written: a benchmark
//! without a sync does not measure it. Reads come from memory, or fetch a window and the next one ahead of the reader.
//! Absent on purpose: the kernel's reclaim policy (oldest first here), and processor time other than copying.

use std::collections::{BTreeMap, VecDeque};

use emmc_port::{BlockOp, BlockRequest, SimulatedTarget, TargetError};
use emmc_units::{Bytes, Instant, Nanos};

/// Granularity of fetching and reclaim. Unit: bytes.
const CHUNK: u64 = 64 << 10;
/// Largest request of the block layer (`max_sectors_kb`). Unit: bytes.
const REQUEST_MAX: u64 = 512 << 10;
/// Source: VM_MAX_READAHEAD, include/linux/mm.h. Unit: bytes.
const WINDOW: u64 = 128 << 10;

/// A board's page cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageCache {
    /// The dirty limit: midway between `dirty_background_ratio` and `dirty_ratio` of the available memory.
    pub dirty: Bytes,
    /// Memory for cached files.
    pub cached: Bytes,
    /// Copy speed of a program's data. Unit: bytes a second.
    pub copy_bytes_per_s: f64,
}

/// The cache's state.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    cache: PageCache,
    /// Dirty ranges by their beginning, and their bytes in all.
    dirty: BTreeMap<u64, u64>,
    dirty_bytes: u64,
    /// The flusher's position.
    cursor: u64,
    /// Cached chunks with their last use, and the uses in order.
    present: BTreeMap<u64, u64>,
    uses: VecDeque<(u64, u64)>,
    use_count: u64,
    /// When the card has finished its current request.
    card_free: Instant,
    /// The read-ahead window, and when it arrives.
    ahead: Option<(u64, u64, Instant)>,
    expected: u64,
}

impl Pages {
    pub(crate) fn new(cache: PageCache, now: Instant) -> Self {
        Self {
            cache,
            dirty: BTreeMap::new(),
            dirty_bytes: 0,
            cursor: 0,
            present: BTreeMap::new(),
            uses: VecDeque::new(),
            use_count: 0,
            card_free: now,
            ahead: None,
            expected: u64::MAX,
        }
    }

    /// A program's call; returns when it returns.
    pub(crate) fn call(
        &mut self,
        request: &BlockRequest,
        now: Instant,
        card: &mut dyn SimulatedTarget,
    ) -> Result<Instant, TargetError> {
        let (from, to) = (request.offset_bytes, request.offset_bytes + request.bytes);
        let copied = now + Nanos::from_micros_f64(request.bytes as f64 / self.cache.copy_bytes_per_s.max(1.0) * 1e6);
        let done = match request.op {
            BlockOp::Read => self.read(from, to, now, card)?.max(copied),
            BlockOp::Write => {
                self.add_dirty(from, to);
                self.keep(from, to);
                self.balance(copied, card)?
            }
            BlockOp::Trim => {
                self.forget(from, to);
                self.ask(request, now, card)?
            }
            BlockOp::Flush => {
                self.write_back_to(0, now, card)?;
                self.ask(request, now, card)?
            }
        };
        if request.op == BlockOp::Write && request.through {
            self.write_back_to(0, done, card)?;
            return Ok(done.max(self.card_free));
        }
        Ok(done)
    }

    /// Writes back in the background down to half the limit; above the limit the writer waits.
    fn balance(&mut self, now: Instant, card: &mut dyn SimulatedTarget) -> Result<Instant, TargetError> {
        let limit = self.cache.dirty.0;
        while self.dirty_bytes > limit / 2 && self.card_free <= now {
            self.write_back_one(now, card)?;
        }
        if self.dirty_bytes <= limit {
            return Ok(now);
        }
        self.write_back_to(limit, now, card)?;
        Ok(now.max(self.card_free))
    }

    fn write_back_to(&mut self, bytes: u64, now: Instant, card: &mut dyn SimulatedTarget) -> Result<(), TargetError> {
        while self.dirty_bytes > bytes {
            self.write_back_one(now, card)?;
        }
        Ok(())
    }

    /// Writes one request from the flusher's position on, wrapping around.
    fn write_back_one(&mut self, now: Instant, card: &mut dyn SimulatedTarget) -> Result<(), TargetError> {
        let next = self.dirty.range(self.cursor..).next().or_else(|| self.dirty.iter().next());
        let Some((from, to)) = next.map(|(from, to)| (*from, *to)) else { return Ok(()) };
        let end = to.min(from + REQUEST_MAX);
        self.dirty.remove(&from);
        if end < to {
            self.dirty.insert(end, to);
        }
        self.dirty_bytes -= end - from;
        self.cursor = end;
        let request =
            BlockRequest { op: BlockOp::Write, offset_bytes: from, bytes: end - from, through: false, tag: 0 };
        self.ask(&request, now, card)?;
        Ok(())
    }

    fn read(
        &mut self,
        from: u64,
        to: u64,
        now: Instant,
        card: &mut dyn SimulatedTarget,
    ) -> Result<Instant, TargetError> {
        let is_sequential = from == self.expected;
        self.expected = to;
        let mut done = now;
        for chunk in from / CHUNK..to.div_ceil(CHUNK) {
            if self.present.contains_key(&chunk) {
                if let Some((_, _, ready)) = self.ahead.filter(|(first, end, _)| (*first..*end).contains(&chunk)) {
                    done = done.max(ready);
                    self.ahead = None;
                    self.fetch(chunk + 1, now, true, card)?;
                }
            } else {
                done = done.max(self.fetch(chunk, now, is_sequential, card)?);
                if is_sequential {
                    self.fetch(chunk + WINDOW / CHUNK, now, true, card)?;
                }
            }
            self.touch(chunk);
        }
        Ok(done)
    }

    /// Fetches a chunk, or a window starting there; returns when it arrives.
    fn fetch(
        &mut self,
        chunk: u64,
        now: Instant,
        is_window: bool,
        card: &mut dyn SimulatedTarget,
    ) -> Result<Instant, TargetError> {
        let size = card.shape().size_bytes;
        let (mut first, end) = (chunk, chunk + if is_window { WINDOW / CHUNK } else { 1 });
        while first < end && self.present.contains_key(&first) {
            first += 1;
        }
        let (from, to) = (first * CHUNK, (end * CHUNK).min(size));
        if from >= to {
            return Ok(now);
        }
        let request = BlockRequest { op: BlockOp::Read, offset_bytes: from, bytes: to - from, through: false, tag: 0 };
        let ready = self.ask(&request, now, card)?;
        self.keep(from, to);
        if is_window {
            self.ahead = Some((first, end, ready));
        }
        Ok(ready)
    }

    fn ask(
        &mut self,
        request: &BlockRequest,
        now: Instant,
        card: &mut dyn SimulatedTarget,
    ) -> Result<Instant, TargetError> {
        let at = now.max(self.card_free);
        self.card_free = card.serve(request, at)?.0;
        Ok(self.card_free)
    }

    fn add_dirty(&mut self, from: u64, to: u64) {
        self.forget_dirty(from, to);
        self.dirty_bytes += to - from;
        let joined = self.dirty.range(..=from).next_back().filter(|(_, end)| **end == from).map(|(start, _)| *start);
        self.dirty.insert(joined.unwrap_or(from), to);
    }

    fn forget_dirty(&mut self, from: u64, to: u64) {
        let touching: Vec<(u64, u64)> = self
            .dirty
            .range(..to)
            .rev()
            .map(|(start, end)| (*start, *end))
            .take_while(|(_, end)| *end > from)
            .collect();
        for (start, end) in touching {
            self.dirty.remove(&start);
            self.dirty_bytes -= end - start;
            for (left, right) in [(start, end.min(from)), (start.max(to), end)] {
                if left < right {
                    self.dirty.insert(left, right);
                    self.dirty_bytes += right - left;
                }
            }
        }
    }

    fn forget(&mut self, from: u64, to: u64) {
        self.forget_dirty(from, to);
        for chunk in from / CHUNK..to.div_ceil(CHUNK) {
            self.present.remove(&chunk);
        }
    }

    fn keep(&mut self, from: u64, to: u64) {
        for chunk in from / CHUNK..to.div_ceil(CHUNK) {
            self.touch(chunk);
        }
        while self.present.len() as u64 * CHUNK > self.cache.cached.0 {
            let Some((chunk, used)) = self.uses.pop_front() else { break };
            if self.present.get(&chunk) == Some(&used) {
                self.present.remove(&chunk);
            }
        }
    }

    fn touch(&mut self, chunk: u64) {
        self.use_count += 1;
        if self.present.insert(chunk, self.use_count) != Some(self.use_count) {
            self.uses.push_back((chunk, self.use_count));
        }
        // Superseded uses are dropped before they far outnumber the chunks.
        if self.uses.len() > 4 * self.present.len() + 1024 {
            let present = &self.present;
            self.uses.retain(|(chunk, used)| present.get(chunk) == Some(used));
        }
    }
}
