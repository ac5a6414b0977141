//! The suites: what each measures, what it costs, and how it is run.

mod bonnie;
mod boot;
mod class;
mod dd;
mod flashbench;
mod fs;
mod hdparm;
mod install;
mod iozone;
mod on_disk;
mod replay;
pub(crate) mod speed;
mod steady;
mod tiotest;
mod trim;

use std::sync::Arc;

use emmc_port::{BlockOp, BlockTarget, TargetShape};
use emmc_units::{Instant, Nanos};

use crate::files::FileSuite;
use crate::grid::Grid;
use crate::measurement::Measured;
use crate::order::Order;
use crate::replay::Trace;
use crate::result::{Figure, Outcome, Pivot};
use crate::stream::{BenchError, Stream, drive, visit};
use crate::watch::{Progress, Watch};

/// The most that is trimmed at once. Unit: bytes.
const TRIM_BYTES: u64 = 1 << 30;

/// A suite of measurements.
pub trait Suite: Sync {
    /// What it is called on the command line.
    fn name(&self) -> &'static str;

    /// What it measures, in a sentence.
    fn about(&self) -> &'static str;

    /// What it will do to a target, before it does anything.
    ///
    /// Errors: the target does not fit, e.g. is too small; options that make no sense.
    fn cost(&self, shape: &TargetShape, options: &Options) -> Result<Cost, BenchError>;

    /// Measures.
    ///
    /// Errors: a target that cannot go on, a watcher that stops it.
    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError>;
}

/// What a suite may be told.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Where on the target the suite's area begins. Unit: bytes.
    pub from_bytes: u64,
    /// The size of the area, where a suite lets it be chosen. Unit: bytes.
    pub size_bytes: Option<u64>,
    /// Requests outstanding, where a suite lets them be chosen.
    pub queue_depth: Option<u32>,
    /// The most that may be written, where a suite goes on until it has seen enough. Unit: bytes.
    pub write_budget_bytes: Option<u64>,
    /// Measure only these rows, by what they are called, e.g. record sizes.
    pub rows: Vec<String>,
    /// Reads only: leave out what writes.
    pub read_only: bool,
    /// For everything left to chance.
    pub seed: u64,
    /// What the suite `replay` makes again.
    pub replay: Option<Replay>,
}

/// Recorded requests, and how they are made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// The requests.
    pub trace: Arc<Trace>,
    /// At their recorded times, rather than as fast as it goes.
    pub timed: bool,
    /// What lies beyond the target's end begins anew at its beginning.
    pub wrap: bool,
}

/// What a suite will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Unit: bytes; at most.
    pub written_bytes: u64,
    /// Unit: bytes; at most.
    pub read_bytes: u64,
    /// The part of the target whose content is lost; empty where nothing is written.
    pub from_bytes: u64,
    /// Where that part ends.
    pub to_bytes: u64,
    /// Steps, for the watcher; 0: not known beforehand.
    pub steps: u32,
}

/// A suite under way on a target.
pub struct Bench<'a> {
    /// What is measured.
    pub target: &'a mut dyn BlockTarget,
    /// What was asked for.
    pub options: &'a Options,
    watch: &'a mut dyn Watch,
    steps: u32,
    number: u32,
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
        }
    }
}

impl<'a> Bench<'a> {
    /// Runs a suite; what was measured before it failed or was stopped is told ([`Outcome::ended_early`]).
    ///
    /// Errors: as [`Suite::cost`], and as [`Suite::run`] where nothing was measured.
    pub fn run(
        suite: &dyn Suite,
        target: &'a mut dyn BlockTarget,
        options: &'a Options,
        watch: &'a mut dyn Watch,
    ) -> Result<Outcome, BenchError> {
        let cost = suite.cost(target.shape(), options)?;
        let began = target.now();
        let outcome = Outcome { suite: suite.name().into(), about: suite.about().into(), ..Outcome::default() };
        let mut bench = Self { target, options, watch, steps: cost.steps, number: 0, outcome };
        let ended = suite.run(&mut bench);
        bench.outcome.time_s = bench.target.now().since(began).as_secs_f64();
        if let Err(error) = ended {
            if bench.outcome.measurements.is_empty() && bench.outcome.figures.is_empty() {
                return Err(error);
            }
            bench.outcome.ended_early = Some(error.to_string());
        }
        Ok(bench.outcome)
    }

    /// The target's time.
    pub fn now(&mut self) -> Instant {
        self.target.now()
    }

    /// Drives the target with a stream, of which nothing is told: preparation.
    ///
    /// Errors: as [`drive`].
    pub fn prepare(&mut self, step: &str, stream: &Stream) -> Result<Measured, BenchError> {
        self.number += 1;
        let progress = Progress { step, number: self.number, steps: self.steps, done_share: 0.0 };
        let measured = drive(self.target, stream, progress, self.watch)?;
        self.count(&measured);
        Ok(measured)
    }

    /// Drives the target with requests at these offsets, of which nothing is told; answers how long each took.
    ///
    /// Errors: as [`visit`].
    pub fn visit(
        &mut self,
        step: &str,
        stream: &Stream,
        offsets: &[u64],
    ) -> Result<(Measured, Vec<Nanos>), BenchError> {
        self.number += 1;
        let progress = Progress { step, number: self.number, steps: self.steps, done_share: 0.0 };
        let (measured, times) = visit(self.target, stream, offsets, progress, self.watch)?;
        self.count(&measured);
        Ok((measured, times))
    }

    fn count(&mut self, measured: &Measured) {
        self.outcome.written_bytes += measured.written_bytes;
        self.outcome.read_bytes += measured.read_bytes;
        self.outcome.trimmed_bytes += measured.trimmed_bytes;
    }

    /// Tells what came of a stream, at a place in a table.
    pub fn tell(&mut self, table: &str, row: &str, column: &str, measured: &Measured) {
        self.outcome.measurements.push(measured.told(table, row, column));
    }

    /// Trims a range in as large pieces as the kernel makes of a whole device: cards keep a record of each.
    ///
    /// Errors: as [`drive`].
    fn trim(&mut self, step: &str, from_bytes: u64, to_bytes: u64) -> Result<(), BenchError> {
        let whole = from_bytes + (to_bytes - from_bytes) / TRIM_BYTES * TRIM_BYTES;
        for (from, to, bytes) in [(from_bytes, whole, TRIM_BYTES), (whole, to_bytes, to_bytes - whole)] {
            if to > from {
                self.prepare(step, &Stream::pass(BlockOp::Trim, Order::Sequential, from, to, bytes))?;
            }
        }
        Ok(())
    }

    /// Drives the target with a stream and tells what came of it at a place in a table.
    ///
    /// Errors: as [`drive`].
    pub fn measure(&mut self, table: &str, row: &str, column: &str, stream: &Stream) -> Result<Measured, BenchError> {
        let measured = self.prepare(&format!("{row} {column}"), stream)?;
        self.tell(table, row, column, &measured);
        Ok(measured)
    }

    /// How a table's measurements are laid out for people.
    pub fn table(&mut self, pivot: Pivot) {
        self.outcome.tables.push(pivot);
    }

    /// Tells a table that was computed.
    pub fn grid(&mut self, grid: Grid) {
        self.outcome.grids.push(grid);
    }

    /// Tells a figure of its own.
    pub fn figure(&mut self, figure: Figure) {
        self.outcome.figures.push(figure);
    }

    /// Says something of what was measured.
    pub fn remark(&mut self, text: impl Into<String>) {
        self.outcome.remarks.push(text.into());
    }

    /// The outcome so far.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

/// The part of a target that a suite works on: what was asked for, or everything from there on; whole multiples of `unit`.
///
/// Errors: less than one unit of room; more asked for than there is.
fn area(suite: &'static str, shape: &TargetShape, options: &Options, unit: u64) -> Result<(u64, u64), BenchError> {
    let (from, size, name, sector) = (options.from_bytes, shape.size_bytes, &shape.name, u64::from(shape.sector_bytes));
    let room = size.saturating_sub(from);
    let asked = options.size_bytes.unwrap_or(room);
    let wanted = asked / unit * unit;
    let what = if from >= size {
        format!("--from {from}: {name} has {size} bytes")
    } else if from % sector != 0 {
        format!("--from {from}: expected a multiple of its sectors of {sector} bytes")
    } else if wanted == 0 {
        format!("it needs {unit} bytes at least; {asked} from byte {from} on were given, {name} has {size}")
    } else if wanted > room {
        format!("{wanted} bytes from byte {from} on do not fit: {name} has {size}")
    } else {
        return Ok((from, from + wanted));
    };
    Err(BenchError::Misfit { suite, what })
}

/// Streams that [`Bench::trim`] takes.
fn trims(from_bytes: u64, to_bytes: u64) -> u32 {
    let size = to_bytes - from_bytes;
    u32::from(size >= TRIM_BYTES) + u32::from(size % TRIM_BYTES > 0)
}

/// Rows have no meaning for a suite.
///
/// Errors: rows were asked for.
fn no_rows(suite: &'static str, options: &Options) -> Result<(), BenchError> {
    match options.rows.first() {
        None => Ok(()),
        Some(row) => {
            Err(BenchError::Misfit { suite, what: format!("row {row:?}: this suite has no rows to choose from") })
        }
    }
}

/// All suites, in the order in which they are listed.
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
        &speed::Speed,
        &boot::Boot,
        &install::Install,
        &replay::ReplaySuite,
        &fs::Fs,
    ]
}

/// What a suite does on files, if it does anything there; with whether its part on sectors comes first, on a file in the folder.
pub fn on_files(name: &str) -> Option<(&'static dyn FileSuite, bool)> {
    match name {
        "fs" => Some((&fs::RealFs, false)),
        "boot" => Some((&boot::RealBoot, false)),
        "install" => Some((&install::RealInstall, false)),
        "bonnie" => Some((&bonnie::RealBonnie, true)),
        _ => None,
    }
}

/// The suite of a name.
pub fn named(name: &str) -> Option<&'static dyn Suite> {
    suites().iter().copied().find(|suite| suite.name() == name)
}
