//! A rate as requests in place: random overwrites of the data, and a sequential stream that goes round in it.

use emmc_units::{Nanos, Rng};

use super::source::{Periods, Queue};
use super::{DAY_S, Partition, Rate, Update};
use crate::drive::stream::BenchError;

/// The longest period. Unit: seconds.
const PERIOD_S: f64 = 5.0;
/// The largest request. Unit: bytes.
const REQUEST_BYTES: u64 = 512 << 10;
/// Sequential data is written in whole blocks of this size. Unit: bytes.
const BLOCK_BYTES: u64 = 4096;

/// Requests in place.
#[derive(Debug)]
pub(super) struct InPlace {
    rate: Rate,
    data: Partition,
    updates: Option<Updates>,
    flushes: bool,
    period_s: f64,
    rng: Rng,
    time_s: f64,
    /// Bytes that are due and not written yet.
    random_due: f64,
    stream_due: f64,
    stream_at: u64,
    logs: Option<MemoryLogs>,
}

/// Logs in memory; what of them is younger than the capacity is written once a day.
#[derive(Debug)]
pub(super) struct MemoryLogs {
    /// Unit: bytes.
    capacity: f64,
    held: f64,
    days: u64,
}

/// Updates to two places in turn.
#[derive(Debug)]
struct Updates {
    update: Update,
    slots: [u64; 2],
    started: u64,
    done: u64,
}

impl Updates {
    /// Two images at the end of a partition.
    fn at_end(update: Update, to_bytes: u64) -> Self {
        Self { update, slots: [to_bytes - 2 * update.bytes, to_bytes - update.bytes], started: 0, done: 0 }
    }

    /// Writes the images that are due.
    fn write(&mut self, time_s: f64, queue: &mut Queue) {
        let due = self.started + (time_s / (self.update.weeks * 7.0 * DAY_S)) as u64;
        while self.done < due {
            let slot = self.slots[(self.done % 2) as usize];
            queue.write(nanos(time_s), slot, self.update.bytes, REQUEST_BYTES);
            self.done += 1;
        }
    }
}

/// Seconds as nanoseconds.
pub(super) fn nanos(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9) as u64)
}

impl InPlace {
    /// Of a partition whose end is kept for updates, if there are any.
    pub(super) fn new(rate: Rate, partition: Partition, flush_s: Option<f64>, seed: u64) -> Self {
        let updates = rate.update.map(|update| Updates::at_end(update, partition.to_bytes));
        let kept = rate.update.map_or(0, |update| 2 * update.bytes);
        let end = (partition.from_bytes + rate.data_bytes).min(partition.to_bytes - kept);
        let data = Partition { to_bytes: end, ..partition };
        let logs = MemoryLogs::of(&rate);
        Self {
            data,
            updates,
            flushes: flush_s.is_some(),
            period_s: flush_s.unwrap_or(PERIOD_S),
            rng: Rng::new(seed),
            time_s: 0.0,
            random_due: 0.0,
            stream_due: 0.0,
            stream_at: 0,
            logs,
            rate,
        }
    }

    /// Periods in which nothing becomes due, from now on. A small load has hours of them.
    fn idle_periods(&self) -> f64 {
        if self.updates.is_some() || self.logs.is_some() {
            return 0.0;
        }
        let bytes = self.rate.bytes_per_day * self.period_s / DAY_S;
        let idle = |due: f64, block: f64, share: f64| match share > 0.0 {
            true => ((block - due) / (bytes * share) - 1.0).floor().max(0.0),
            false => f64::INFINITY,
        };
        let random_share = self.rate.random_share;
        let random = idle(self.random_due, f64::from(self.rate.block_bytes), random_share);
        random.min(idle(self.stream_due, BLOCK_BYTES as f64, 1.0 - random_share))
    }

    fn random(&mut self, at: Nanos, queue: &mut Queue) {
        let block = u64::from(self.rate.block_bytes);
        let blocks = self.data.bytes() / block;
        while self.random_due >= block as f64 {
            let offset = self.data.from_bytes + self.rng.below(blocks) * block;
            queue.write(at, offset, block, REQUEST_BYTES);
            self.random_due -= block as f64;
        }
    }

    /// Sequential data: what is due now.
    fn stream(&mut self, at: Nanos, queue: &mut Queue) {
        let mut bytes = self.stream_due as u64 / BLOCK_BYTES * BLOCK_BYTES;
        self.stream_due -= bytes as f64;
        let size = self.data.bytes() / BLOCK_BYTES * BLOCK_BYTES;
        while bytes > 0 {
            let part = bytes.min(size - self.stream_at).min(REQUEST_BYTES);
            queue.write(at, self.data.from_bytes + self.stream_at, part, REQUEST_BYTES);
            self.stream_at = (self.stream_at + part) % size;
            bytes -= part;
        }
    }
}

impl MemoryLogs {
    /// Those of a rate, if its logs stay in memory.
    pub(super) fn of(rate: &Rate) -> Option<Self> {
        rate.log_in_memory.map(|bytes| Self { capacity: bytes as f64, held: 0.0, days: 0 })
    }

    /// Takes what is due; returns what has to be written now: once a day what memory holds.
    pub(super) fn take(&mut self, due: f64, time_s: f64) -> f64 {
        self.held = (self.held + due).min(self.capacity);
        let days = (time_s / DAY_S) as u64;
        if days > self.days {
            self.days = days;
            return std::mem::take(&mut self.held);
        }
        0.0
    }
}

impl Periods for InPlace {
    fn next_period(&mut self, queue: &mut Queue) -> Result<(), BenchError> {
        let periods = 1.0 + self.idle_periods();
        self.time_s += periods * self.period_s;
        let bytes = self.rate.bytes_per_day * periods * self.period_s / DAY_S;
        self.random_due += bytes * self.rate.random_share;
        let stream = bytes * (1.0 - self.rate.random_share);
        self.stream_due += match &mut self.logs {
            Some(logs) => logs.take(stream, self.time_s),
            None => stream,
        };
        let at = nanos(self.time_s);
        self.random(at, queue);
        self.stream(at, queue);
        if let Some(updates) = &mut self.updates {
            updates.write(self.time_s, queue);
        }
        if self.flushes && !queue.is_empty() {
            queue.flush(at);
        }
        Ok(())
    }

    fn hold_updates(&mut self) {
        if let Some(updates) = &mut self.updates {
            updates.update.weeks = f64::INFINITY;
        }
    }

    fn start_update(&mut self) {
        if let Some(updates) = &mut self.updates {
            updates.started += 1;
        }
    }

    fn time(&self) -> Nanos {
        nanos(self.time_s)
    }

    fn program_bytes(&self) -> f64 {
        let updates = self.updates.as_ref().map_or(0, |updates| updates.done * updates.update.bytes);
        self.time_s / DAY_S * self.rate.bytes_per_day + updates as f64
    }
}
