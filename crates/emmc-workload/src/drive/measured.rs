//! The recorder of a stream: counts, latencies of each kind of request, progress.

use emmc_port::{BlockDone, BlockOp};
use emmc_units::{Instant, Nanos};

use super::order::Order;
use super::stream::{Mix, Stream};
use crate::result::measurement::{Detail, Measurement, WarmUp};
use crate::result::state::CardState;
use crate::stats::interval::Interval;
use crate::stats::latency::{Latencies, Stalls};
use crate::stats::marks::Marks;
use crate::stats::warm_up::mser5;

/// The result of a stream, as counted.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The stream.
    pub stream: Stream,
    /// When it started.
    pub began: Instant,
    /// When it ended, flushes included.
    pub ended: Instant,
    /// Completed requests, without flushes.
    pub requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes trimmed.
    pub trimmed_bytes: u64,
    /// Requests that failed individually.
    pub errors: u64,
    /// Time in flushes.
    pub flush: Nanos,
    /// It was stopped early.
    pub ended_early: bool,
    /// The card's state at its start.
    pub(crate) state: CardState,
    /// Of reads, of writes, of trims, of flushes.
    latencies: [Latencies; 4],
    marks: Marks,
}

impl Measured {
    pub(crate) fn new(stream: &Stream, began: Instant) -> Self {
        Self {
            stream: *stream,
            began,
            ended: began,
            requests: 0,
            read_bytes: 0,
            written_bytes: 0,
            trimmed_bytes: 0,
            errors: 0,
            flush: Nanos::ZERO,
            ended_early: false,
            state: CardState::default(),
            latencies: Default::default(),
            marks: Marks::new(began),
        }
    }

    #[inline(always)]
    pub(crate) fn note(&mut self, done: &BlockDone, waited: Nanos) {
        let (request, latency) = (&done.request, done.latency() + waited);
        let after = self.bytes();
        let kind = match request.op {
            BlockOp::Read => {
                self.read_bytes += request.bytes;
                0
            }
            BlockOp::Write => {
                self.written_bytes += request.bytes;
                1
            }
            BlockOp::Trim => {
                self.trimmed_bytes += request.bytes;
                2
            }
            BlockOp::Flush => {
                self.flush += latency;
                3
            }
        };
        self.latencies[kind].record(latency, request.offset_bytes, after);
        self.errors += u64::from(done.error.is_some());
        if kind != 3 {
            self.requests += 1;
            self.marks.done(done.done);
        }
    }

    /// Appends the latencies and errors of a later stream.
    pub(crate) fn append(&mut self, later: Self) {
        for (own, later) in self.latencies.iter_mut().zip(later.latencies) {
            own.append(later);
        }
        self.errors += later.errors;
    }

    /// Bytes read, written and trimmed.
    pub fn bytes(&self) -> u64 {
        self.read_bytes + self.written_bytes + self.trimmed_bytes
    }

    /// Duration, flushes included.
    pub fn time(&self) -> Nanos {
        self.ended.since(self.began)
    }

    /// Bytes a second, flushes included; 0 if no time passed.
    pub fn bytes_per_s(&self) -> f64 {
        per_s(self.bytes() as f64, self.time())
    }

    /// Latencies of one kind.
    pub fn latencies(&self, op: BlockOp) -> &Latencies {
        let kind = match op {
            BlockOp::Read => 0,
            BlockOp::Write => 1,
            BlockOp::Trim => 2,
            BlockOp::Flush => 3,
        };
        &self.latencies[kind]
    }

    /// Speeds of equally long batches, in order, without the flush at the end. Unit: bytes a second.
    pub fn batch_speeds(&self) -> Vec<f64> {
        let (times, batch) = self.marks.batches();
        let bytes = (batch * self.stream.block_bytes) as f64;
        times.iter().map(|time| if *time > 0.0 { bytes / time } else { 0.0 }).collect()
    }

    /// Reports it at a place in a table.
    pub fn to_measurement(&self, table: &str, row: &str, column: &str) -> Measurement {
        self.at_place([table, row, column], Detail::All)
    }

    /// The same, with as much of it as is asked for.
    pub(crate) fn at_place(&self, [table, row, column]: [&str; 3], detail: Detail) -> Measurement {
        let time = self.time();
        let [read_us, write_us, trim_us, flush_us] = self.latencies.each_ref().map(|found| match detail {
            Detail::All => found.latency(self.stream.seed),
            Detail::WithoutIntervals => found.without_intervals(),
            Detail::Speeds => None,
        });
        let with_intervals = detail == Detail::All;
        Measurement {
            table: table.into(),
            row: row.into(),
            column: column.into(),
            op: op_name(&self.stream.mix).into(),
            order: order_name(self.stream.order).into(),
            block_bytes: self.stream.block_bytes,
            queue_depth: self.stream.depth,
            flushed_every: self.stream.flushed_every(),
            range_bytes: Some(self.stream.to_bytes - self.stream.from_bytes),
            requests: Some(self.requests),
            bytes: Some(self.bytes()),
            time_s: Some(time.as_secs_f64()),
            flush_s: Some(self.flush.as_secs_f64()),
            mb_per_s: self.bytes_per_s() / 1e6,
            mb_per_s_interval: with_intervals.then(|| self.interval()).flatten(),
            warm_up: with_intervals.then(|| self.warm_up()).flatten(),
            iops: per_s(self.requests as f64, time),
            errors: self.errors,
            read_us,
            write_us,
            trim_us,
            flush_us,
            stalls: Some(self.stalls()),
            state: Some(self.state.clone()),
            ended_early: self.ended_early,
        }
    }

    /// Batches have equal size, so their time is what varies; the inverse of its mean is the speed.
    fn interval(&self) -> Option<Interval> {
        let (times, batch) = self.marks.batches();
        speed_of(&times, (batch * self.stream.block_bytes) as f64 / 1e6)
    }

    fn warm_up(&self) -> Option<WarmUp> {
        let (times, batch) = self.marks.batches();
        let cut = mser5(&times).filter(|cut| cut.values > 0)?;
        let (before, behind) = times.split_at(cut.values);
        let megabytes = (batch * self.stream.block_bytes) as f64 / 1e6;
        let time: f64 = behind.iter().sum();
        Some(WarmUp {
            requests: cut.values as u64 * batch,
            time_s: before.iter().sum(),
            is_settled: cut.is_settled,
            mb_per_s: if time > 0.0 { megabytes * behind.len() as f64 / time } else { 0.0 },
            mb_per_s_interval: speed_of(behind, megabytes),
        })
    }

    fn stalls(&self) -> Stalls {
        let mut all = Stalls::default();
        for stalls in self.latencies.iter().map(Latencies::stalls) {
            all.join(stalls);
        }
        all
    }
}

/// The speed's interval from the times of batches of equal size.
fn speed_of(times: &[f64], megabytes: f64) -> Option<Interval> {
    let time = Interval::of_batches(times).filter(|time| time.low > 0.0)?;
    Some(Interval { low: megabytes / time.high, high: megabytes / time.low })
}

fn per_s(amount: f64, time: Nanos) -> f64 {
    if time == Nanos::ZERO { 0.0 } else { amount / time.as_secs_f64() }
}

fn op_name(mix: &Mix) -> &'static str {
    match mix {
        Mix::Only(BlockOp::Read) => "read",
        Mix::Only(BlockOp::Write) => "write",
        Mix::Only(BlockOp::Trim) => "trim",
        Mix::Only(BlockOp::Flush) => "flush",
        Mix::Reads { .. } => "mixed",
    }
}

fn order_name(order: Order) -> &'static str {
    match order {
        Order::Sequential => "sequential",
        Order::Backward => "backward",
        Order::Shuffled => "shuffled",
        Order::Random => "random",
        Order::Strided { .. } => "strided",
        Order::Streams { .. } => "streams",
        Order::HotCold { .. } => "hot and cold",
        Order::Zipf { .. } => "zipf",
    }
}
