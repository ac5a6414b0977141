//! The suites: the measurement of each, its cost, and its run.

mod area;
mod bonnie;
mod boot;
mod burst;
mod class;
mod dd;
mod disk;
mod early;
pub(crate) mod files;
mod flashbench;
mod fs;
mod hdparm;
mod install;
mod iozone;
mod knobs;
mod reliable;
mod replay;
pub(crate) mod speed;
mod steady;
mod tiotest;
mod trim;

use emmc_port::{BlockOp, BlockRequest, BlockTarget, TargetKind, TargetShape};
use emmc_units::{Instant, Nanos};

use crate::drive::measured::Measured;
use crate::drive::order::Order;
use crate::drive::stream::{BenchError, Driven, Mix, Stream, driven};
use crate::drive::watch::{Cost, Progress, Watch, Whole};
use crate::result::grid::Grid;
use crate::result::measurement::Detail;
use crate::result::state::{CardState, StateKind};
use crate::result::{Figure, Outcome, Pivot};
use crate::trace::Replay;
use area::area;
pub use area::from_option;
pub use burst::BURST_VOLUME;
pub use early::EarlyEnds;
use files::FileSuite;
pub use flashbench::open_unit_offsets;
pub use knobs::{Knob, follows};

/// Largest trim. Unit: bytes.
const TRIM_BYTES: u64 = 1 << 30;

/// A suite of measurements.
pub trait Suite: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What it measures, in one sentence.
    fn about(&self) -> &'static str;

    /// The options that it supports; others are refused.
    fn follows(&self) -> &'static [Knob] {
        &[Knob::From, Knob::Size]
    }

    /// Its time limit, if it has one.
    fn time_most(&self) -> Option<Nanos> {
        None
    }

    /// Whether it reads back what it has written: the target must store data.
    fn reads_content(&self) -> bool {
        false
    }

    /// Whether it restores what it overwrites itself.
    fn restores(&self) -> bool {
        false
    }

    /// What it will do to a target.
    ///
    /// Errors: an unsuitable target, e.g. too small; options that do not apply.
    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError>;

    /// Runs the measurement.
    ///
    /// Errors: a target that fails, a cancelled run.
    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError>;
}

/// Options of a suite.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Start of the suite's area on the target. Unit: bytes.
    pub from_bytes: u64,
    /// The size of the area, if the suite supports it. Unit: bytes.
    pub size_bytes: Option<u64>,
    /// Requests outstanding, if the suite supports it.
    pub queue_depth: Option<u32>,
    /// Write limit, for suites that run until they have enough data. Unit: bytes.
    pub write_budget_bytes: Option<u64>,
    /// Measure only these rows, by name, e.g. record sizes.
    pub rows: Vec<String>,
    /// Reads only: skip everything that writes.
    pub read_only: bool,
    /// Seed of everything random.
    pub seed: u64,
    /// The input of the suite `replay`.
    pub replay: Option<Replay>,
    /// Passes of the suite `iozone` that leave nothing behind end early: for a search that simulates it hundreds of
    /// times.
    pub early_ends: Option<EarlyEnds>,
    /// How much is reported of each measurement.
    pub detail: Detail,
}

/// A running suite on a target.
pub struct Bench<'a> {
    /// What is measured.
    pub target: &'a mut dyn BlockTarget,
    /// The user's options.
    pub options: &'a Options,
    watch: &'a mut dyn Watch,
    steps: u32,
    number: u32,
    whole: Whole,
    /// The state that the suite has caused on a share of the target.
    brought: Option<(StateKind, f64)>,
    outcome: Outcome,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            from_bytes: 0,
            size_bytes: None,
            queue_depth: None,
            write_budget_bytes: None,
            rows: Vec::new(),
            read_only: false,
            seed: 1,
            replay: None,
            early_ends: None,
            detail: Detail::All,
        }
    }
}

impl Options {
    /// Space after the start of the area, or the requested part of that. Unit: bytes.
    fn room(&self, shape: &TargetShape) -> u64 {
        shape.size_bytes.saturating_sub(self.from_bytes).min(self.size_bytes.unwrap_or(u64::MAX))
    }
}

impl<'a> Bench<'a> {
    /// Runs a suite; reports the measurements before it failed or was cancelled ([`Outcome::ended_early`]).
    ///
    /// Errors: an option that the suite does not support; as [`Suite::cost`], and as [`Suite::run`] if nothing was
    /// done.
    pub fn run(
        suite: &dyn Suite,
        target: &'a mut dyn BlockTarget,
        options: &'a Options,
        watch: &'a mut dyn Watch,
    ) -> Result<Outcome, BenchError> {
        follows(suite, &knobs::given(options))?;
        let cost = suite.cost(target.shape(), options)?;
        let began = target.now();
        let outcome = Outcome { suite: suite.name().into(), about: suite.about().into(), ..Outcome::default() };
        let (steps, whole) = (cost.steps, Whole::new(&cost));
        let mut bench = Self { target, options, watch, steps, number: 0, whole, brought: None, outcome };
        bench.outcome.state_before = bench.state();
        let ended = suite.run(&mut bench);
        bench.outcome.state_after = bench.state();
        bench.outcome.time_s = bench.target.now().since(began).as_secs_f64();
        if let Err(error) = ended {
            let told = &bench.outcome;
            let moved = told.written_bytes + told.read_bytes + told.trimmed_bytes;
            let is_stopped = error == BenchError::Stopped && moved > 0;
            if told.measurements.is_empty() && told.figures.is_empty() && !is_stopped {
                return Err(error);
            }
            bench.outcome.ended_early = Some(error.to_string());
        }
        Ok(bench.outcome)
    }

    /// The state of the target, as it reports it or as the suite has caused it.
    fn state(&self) -> CardState {
        match self.options.detail {
            Detail::Speeds => CardState::default(),
            Detail::All | Detail::WithoutIntervals => CardState::new(self.target.fill(), self.brought),
        }
    }

    /// The suite has put this part of the target into a state.
    ///
    /// Not for a file: the previous state of its blocks, and of their neighbours on the card, is not known.
    fn brought_into(&mut self, kind: StateKind, from_bytes: u64, to_bytes: u64) {
        if self.target.shape().kind == TargetKind::File {
            return;
        }
        let share = (to_bytes - from_bytes) as f64 / self.target.shape().size_bytes.max(1) as f64;
        self.brought = Some((kind, share));
    }

    /// The target's time.
    pub fn now(&mut self) -> Instant {
        self.target.now()
    }

    /// Drives the target with a stream without reporting it: preparation.
    ///
    /// Errors: as [`drive`](crate::drive).
    pub fn prepare(&mut self, step: &str, stream: &Stream) -> Result<Measured, BenchError> {
        let Driven { measured, ended, .. } = self.driven(step, stream, None)?;
        ended.map(|()| measured)
    }

    /// Drives the target with requests at these offsets without reporting them; returns the latency of each. The
    /// stream's order and its limit of bytes are ignored.
    ///
    /// Errors: as [`drive`](crate::drive); an offset outside the stream's range.
    pub fn visit(
        &mut self,
        step: &str,
        stream: &Stream,
        offsets: &[u64],
    ) -> Result<(Measured, Vec<Nanos>), BenchError> {
        let Driven { measured, times, ended } = self.driven(step, stream, Some(offsets))?;
        ended.map(|()| (measured, times))
    }

    /// The same, reported at a place in a table, also if it ends early.
    ///
    /// Errors: as [`Bench::visit`].
    pub fn measure_at(
        &mut self,
        [table, row, column]: [&str; 3],
        stream: &Stream,
        offsets: &[u64],
    ) -> Result<(Measured, Vec<Nanos>), BenchError> {
        let state = self.state();
        let mut driven = self.driven(&step(row, column), stream, Some(offsets))?;
        self.tell(&mut driven, state, [table, row, column]);
        driven.ended.map(|()| (driven.measured, driven.times))
    }

    fn driven(&mut self, step: &str, stream: &Stream, offsets: Option<&[u64]>) -> Result<Driven, BenchError> {
        self.number += 1;
        let bytes = if stream.mix == Mix::Only(BlockOp::Trim) { 0 } else { stream.bytes_most(offsets) };
        let whole = self.whole.span(bytes);
        let progress = Progress { step, number: self.number, steps: self.steps, done_share: 0.0, whole, now: None };
        let driven = driven(self.target, stream, offsets, progress, self.watch)?;
        // A stream that ends by time has moved less than its limit; one without a limit has no expected amount.
        let moved = driven.measured.written_bytes + driven.measured.read_bytes;
        self.whole.pass(if stream.limit.bytes == u64::MAX { moved } else { bytes });
        self.count(&driven.measured);
        Ok(driven)
    }

    fn count(&mut self, measured: &Measured) {
        self.outcome.written_bytes += measured.written_bytes;
        self.outcome.read_bytes += measured.read_bytes;
        self.outcome.trimmed_bytes += measured.trimmed_bytes;
    }

    /// Reports the result of a stream at a place in a table; nothing if it ended before the first request.
    fn tell(&mut self, driven: &mut Driven, state: CardState, [table, row, column]: [&str; 3]) {
        driven.measured.state = state;
        if driven.ended.is_ok() || driven.measured.requests > 0 {
            self.outcome.measurements.push(driven.measured.at_place([table, row, column], self.options.detail));
        }
    }

    /// Trims a range in pieces as large as the kernel makes for a whole device: cards keep a record of each.
    ///
    /// Errors: as [`drive`](crate::drive).
    fn trim(&mut self, step: &str, from_bytes: u64, to_bytes: u64) -> Result<(), BenchError> {
        let whole = from_bytes + (to_bytes - from_bytes) / TRIM_BYTES * TRIM_BYTES;
        for (from, to, bytes) in [(from_bytes, whole, TRIM_BYTES), (whole, to_bytes, to_bytes - whole)] {
            if to > from {
                self.prepare(step, &Stream::pass(BlockOp::Trim, Order::Sequential, from, to, bytes))?;
            }
        }
        Ok(())
    }

    /// Drives the target with a stream and reports the result at a place in a table, also if it ends early.
    ///
    /// Errors: as [`drive`](crate::drive).
    pub fn measure(&mut self, table: &str, row: &str, column: &str, stream: &Stream) -> Result<Measured, BenchError> {
        let state = self.state();
        let mut driven = self.driven(&step(row, column), stream, None)?;
        self.tell(&mut driven, state, [table, row, column]);
        driven.ended.map(|()| driven.measured)
    }

    /// Makes everything durable; its time does not count.
    ///
    /// Errors: the target fails.
    pub fn sync(&mut self) -> Result<(), BenchError> {
        self.target.submit(BlockRequest { op: BlockOp::Flush, offset_bytes: 0, bytes: 0, through: false, tag: 0 })?;
        self.target.wait()?;
        Ok(())
    }

    /// Sets the layout of a table's measurements.
    pub fn table(&mut self, pivot: Pivot) {
        self.outcome.tables.push(pivot);
    }

    /// Adds a computed table.
    pub fn grid(&mut self, grid: Grid) {
        self.outcome.grids.push(grid);
    }

    /// Adds a figure.
    pub fn figure(&mut self, figure: Figure) {
        self.outcome.figures.push(figure);
    }

    /// Adds a remark.
    pub fn remark(&mut self, text: impl Into<String>) {
        self.outcome.remarks.push(text.into());
    }

    /// The target and the watcher, for a suite that makes its own requests.
    pub fn parts(&mut self) -> (&mut dyn BlockTarget, &mut dyn Watch) {
        (&mut *self.target, &mut *self.watch)
    }

    /// Counts bytes that such a suite has moved.
    pub fn count_bytes(&mut self, written_bytes: u64, read_bytes: u64, trimmed_bytes: u64) {
        self.outcome.written_bytes += written_bytes;
        self.outcome.read_bytes += read_bytes;
        self.outcome.trimmed_bytes += trimmed_bytes;
    }

    /// The outcome so far.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

/// Streams that [`Bench::trim`] needs.
fn trims(from_bytes: u64, to_bytes: u64) -> u32 {
    let size = to_bytes - from_bytes;
    u32::from(size >= TRIM_BYTES) + u32::from(size % TRIM_BYTES > 0)
}

/// The step name of a measurement.
fn step(row: &str, column: &str) -> String {
    format!("{row} {column}")
}

/// All suites, in list order.
pub fn suites() -> &'static [&'static dyn Suite] {
    &[
        &iozone::Iozone,
        &flashbench::Align,
        &flashbench::OpenAu,
        &flashbench::FindFat,
        &flashbench::Scatter,
        &flashbench::IntervalSuite,
        &tiotest::Tiotest,
        &dd::Dd,
        &hdparm::Hdparm,
        &bonnie::Bonnie,
        &class::Class,
        &steady::Steady,
        &trim::Trim,
        &burst::Burst,
        &speed::Speed,
        &reliable::Reliable,
        &boot::Boot,
        &install::Install,
        &replay::ReplaySuite,
        &fs::Fs,
    ]
}

/// The part of a suite on files, if it has one; and whether its part on sectors runs first, on a file in the folder.
pub fn on_files(name: &str) -> Option<(&'static dyn FileSuite, bool)> {
    match name {
        "fs" => Some((&fs::RealFs, false)),
        "boot" => Some((&boot::RealBoot, false)),
        "install" => Some((&install::RealInstall, false)),
        "bonnie" => Some((&bonnie::RealBonnie, true)),
        _ => None,
    }
}

/// The suite with a name.
pub fn named(name: &str) -> Option<&'static dyn Suite> {
    suites().iter().copied().find(|suite| suite.name() == name)
}
