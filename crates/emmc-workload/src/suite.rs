//! The suites: what each measures, what it costs, and how it is run.

mod iozone;

use emmc_port::{BlockTarget, TargetShape};
use emmc_units::Instant;

use crate::measurement::Measured;
use crate::result::{Figure, Outcome, Pivot};
use crate::stream::{BenchError, Stream, drive};
use crate::watch::{Progress, Watch};

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
        }
    }
}

impl<'a> Bench<'a> {
    /// Runs a suite.
    ///
    /// Errors: as [`Suite::cost`] and [`Suite::run`].
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
        suite.run(&mut bench)?;
        bench.outcome.time_s = bench.target.now().since(began).as_secs_f64();
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
        self.outcome.written_bytes += measured.written_bytes;
        self.outcome.read_bytes += measured.read_bytes;
        self.outcome.trimmed_bytes += measured.trimmed_bytes;
        Ok(measured)
    }

    /// Drives the target with a stream and tells what came of it at a place in a table.
    ///
    /// Errors: as [`drive`].
    pub fn measure(&mut self, table: &str, row: &str, column: &str, stream: &Stream) -> Result<Measured, BenchError> {
        let measured = self.prepare(&format!("{row} {column}"), stream)?;
        self.outcome.measurements.push(measured.told(table, row, column));
        Ok(measured)
    }

    /// How a table's measurements are laid out for people.
    pub fn table(&mut self, pivot: Pivot) {
        self.outcome.tables.push(pivot);
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

/// All suites, in the order in which they are listed.
pub fn suites() -> &'static [&'static dyn Suite] {
    &[&iozone::Iozone]
}

/// The suite of a name.
pub fn named(name: &str) -> Option<&'static dyn Suite> {
    suites().iter().copied().find(|suite| suite.name() == name)
}
