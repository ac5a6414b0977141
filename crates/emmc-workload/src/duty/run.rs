//! Runs a duty on a card, part by part.

use emmc_port::{Access, BlockDone, BlockOp, CardCounters, CardTarget};
use emmc_regs::Area;
use emmc_units::{Nanos, SECTOR_BYTES};

use super::files::InFiles;
use super::rate::InPlace;
use super::recorded::Repeated;
use super::source::{Part, Periods, Queue};
use super::{DAY_S, DutyLoad, Partition, Requests};
use crate::drive::engine::{Engine, Plan, Recorder};
use crate::drive::measured::Measured;
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, FlushAt, Stream};
use crate::drive::watch::{Progress, Watch};
use crate::stats::latency::{Latencies, Latency, Stalls};

/// Requests between two calls of the progress callback.
const WATCH_EVERY: u64 = 1 << 13;

/// Requests of a period: they are made together. No card takes as many within seconds.
const WAITING_MAX: f64 = 4e6;
/// Size of a sequential request. Unit: bytes.
const STREAM_BYTES: f64 = 524_288.0;

/// A duty in progress.
pub struct Duty {
    periods: Box<dyn Periods>,
    queue: Queue,
    depth: u32,
    seed: u64,
    bytes_per_day: f64,
}

/// What a part of a duty did.
#[derive(Clone, Debug)]
pub struct DutyPart {
    /// Bytes that the card received.
    pub written_bytes: u64,
    /// Bytes that the programs wrote meanwhile, before any filesystem.
    pub program_bytes: f64,
    /// The time of the load: what the requests' own times span, not what the card took. Unit: seconds.
    pub load_s: f64,
    /// The card's time. Unit: seconds.
    pub card_s: f64,
    /// What the card did.
    pub card: CardCounters,
    /// Latencies of writes; `None` without any. Unit: microseconds.
    pub writes_us: Option<Latency>,
    /// Latencies of flushes. Unit: microseconds.
    pub flushes_us: Option<Latency>,
    /// Slow writes.
    pub stalls: Stalls,
    /// Why it ended early: a worn-out card, the watcher.
    pub ended: Option<BenchError>,
}

impl Duty {
    /// A duty on a partition of the user area.
    ///
    /// Errors: what does not fit, in words.
    pub fn new(load: &DutyLoad, partition: Partition, takes_flushes: bool) -> Result<Self, String> {
        if partition.bytes() < 1 << 20 {
            return Err(format!("a partition of {} bytes; a load needs 1 MiB", partition.bytes()));
        }
        let flush_s = load.flush_s;
        let (periods, bytes_per_day): (Box<dyn Periods>, f64) = match &load.requests {
            Requests::Rate(rate) => {
                let flush_s = flush_s.filter(|_| takes_flushes || rate.filesystem.is_some());
                check_rate(rate, partition, flush_s.filter(|_| rate.filesystem.is_none()))?;
                match rate.filesystem {
                    None => (Box::new(InPlace::new(rate.clone(), partition, flush_s, load.seed)), rate.bytes_per_day),
                    Some(files) => {
                        let in_files =
                            InFiles::new(rate.clone(), files, partition, load.flush_s, takes_flushes, load.seed);
                        (Box::new(in_files.map_err(|error| error.to_string())?), rate.bytes_per_day)
                    }
                }
            }
            Requests::Recorded { trace, bytes_per_day, wrap } => {
                let repeated = Repeated::new(trace, *bytes_per_day, *wrap, partition)?;
                let rate = repeated.bytes_per_day();
                (Box::new(repeated), rate)
            }
        };
        Ok(Self { periods, queue: Queue::default(), depth: load.depth, seed: load.seed, bytes_per_day })
    }

    /// What the programs write each day. Unit: bytes.
    pub fn bytes_per_day(&self) -> f64 {
        self.bytes_per_day
    }

    /// From now on updates begin only by [`Duty::start_update`], not at their times.
    pub fn hold_updates(&mut self) {
        self.periods.hold_updates();
    }

    /// The next requests begin an update, if the load has any.
    pub fn start_update(&mut self) {
        self.periods.start_update();
    }

    /// Writes this many bytes: at their times, or as fast as the card takes them, and then without flushes.
    pub fn run<T: CardTarget>(
        &mut self,
        card: &mut T,
        bytes: u64,
        is_paced: bool,
        step: Progress<'_>,
        watch: &mut dyn Watch,
    ) -> DutyPart {
        card.set_access(Access { area: Area::User, reliable: false, discard: true });
        let (began, before) = (card.now(), card.counters());
        let (from, programs) = (self.periods.time(), self.periods.program_bytes());
        let mut recorder = Writes(Measured::new(&Stream::pass(BlockOp::Write, Order::Random, 0, 512, 512), began));
        let plan = Plan {
            depth: self.depth,
            request_bytes: None,
            flush: FlushAt::Never,
            time: None,
            watch_every: WATCH_EVERY,
        };
        let mut failed = None;
        let source = Part {
            whole_periods: self.periods.written_per_day().is_none(),
            periods: &mut *self.periods,
            queue: &mut self.queue,
            paced_from: is_paced.then_some(from),
            without_flushes: !is_paced,
            left: bytes.next_multiple_of(SECTOR_BYTES),
            all: bytes,
            failed: &mut failed,
        };
        let (_, ended) = Engine::new(card, source, &mut recorder, plan).run(step, watch);
        let (measured, after) = (recorder.0, card.counters());
        let latencies = |op| measured.latencies(op);
        let written = measured.written_bytes as f64;
        let (program_bytes, load_s) = match self.periods.written_per_day() {
            Some(per_day) => (written, written / per_day * DAY_S),
            None => {
                let load = Nanos(self.periods.time().0 - from.0);
                (self.periods.program_bytes() - programs, load.as_secs_f64())
            }
        };
        DutyPart {
            written_bytes: measured.written_bytes,
            program_bytes,
            load_s,
            card_s: card.now().since(began).as_secs_f64(),
            card: CardCounters {
                programs: after.programs - before.programs,
                erases: after.erases - before.erases,
                copied_units: after.copied_units - before.copied_units,
                stalls: after.stalls - before.stalls,
            },
            writes_us: latencies(BlockOp::Write).latency(self.seed),
            flushes_us: latencies(BlockOp::Flush).latency(self.seed),
            stalls: Latencies::stalls(latencies(BlockOp::Write)).clone(),
            ended: failed.or(ended.err()),
        }
    }
}

/// Errors: a value outside its range, data that does not fit.
fn check_rate(rate: &super::Rate, partition: Partition, flush_s: Option<f64>) -> Result<(), String> {
    let kept = rate.update.map_or(0, |update| 2 * update.bytes);
    let room = partition.bytes().saturating_sub(kept);
    let block = u64::from(rate.block_bytes);
    if rate.data_bytes > room {
        let why = if kept > 0 { format!(" beside two images of {} bytes", kept / 2) } else { String::new() };
        return Err(format!("{} bytes of data do not fit into {room} bytes{why}", rate.data_bytes));
    }
    if block == 0 || block > rate.data_bytes || block % SECTOR_BYTES != 0 {
        return Err(format!("blocks of {block} bytes in {} bytes of data", rate.data_bytes));
    }
    let per_s =
        rate.bytes_per_day / DAY_S * (rate.random_share / block as f64 + (1.0 - rate.random_share) / STREAM_BYTES);
    let waiting = per_s * flush_s.unwrap_or(1.0);
    if waiting > WAITING_MAX {
        return Err(format!("{waiting:.2e} requests between two flushes; expected at most {WAITING_MAX:.0e}"));
    }
    Ok(())
}

/// Records latencies from when the host hands a request over: the requests of a period are made together, and wait for
/// each other in the host.
struct Writes(Measured);

impl<T: CardTarget> Recorder<T> for Writes {
    #[inline]
    fn done(&mut self, _: &mut T, done: &BlockDone, _waited: Nanos) {
        self.0.note(done, Nanos::ZERO);
    }
}
