//! Suites on files: in a folder, or on filesystems that are created for them.
//!
//! A suite that works on files has such a part beside, or instead of, its part on sectors ([`Suite`](crate::Suite)). It
//! works through a [`FileTree`], so its operations are counted and can be stopped in one place. Absent on purpose: the
//! tree itself (`emmc-linux`; models of ext4 and f2fs are in [`fs`](crate::fs)).

use emmc_port::{FileOp, FilePlace, FileTree, FilesystemError, NewFilesystem, TargetError, TreeWork};
use emmc_units::{Bytes, Instant, Nanos};

use crate::drive::stream::BenchError;
use crate::drive::watch::{Progress, Watch, Whole};
use crate::result::grid::Grid;
use crate::result::state::{CardState, StateKind};
use crate::result::{Figure, Outcome};
use crate::suites::{Cost, Options};

/// Operations between two calls of the progress callback.
const WATCH_EVERY: u64 = 32;

/// The place for a suite's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileShape {
    /// Its name as given by the user.
    pub name: String,
    /// Available space: free space of a folder, the size of a device. Unit: bytes.
    pub room_bytes: u64,
    /// A device on which filesystems are created; otherwise an existing folder.
    pub is_device: bool,
    /// The used part of a device is trimmed before a filesystem is created.
    pub is_trimmed: bool,
}

/// A suite that works on files.
pub trait FileSuite: Sync {
    /// What it measures there, in one sentence.
    fn about(&self) -> &'static str;

    /// What it will do. The range is the part of a device that it uses, or the space that it needs in a folder.
    ///
    /// Errors: not enough space; options that do not apply.
    fn cost(&self, shape: &FileShape, options: &Options) -> Result<Cost, BenchError>;

    /// Runs the measurement.
    ///
    /// Errors: a tree that fails, a cancelled run.
    fn run(&self, bench: &mut FileBench<'_>) -> Result<(), BenchError>;
}

/// A running suite on files.
pub struct FileBench<'a> {
    /// Facts about the place.
    pub shape: FileShape,
    /// The user's options.
    pub options: &'a Options,
    place: &'a mut dyn FilePlace,
    watch: &'a mut dyn Watch,
    number: u32,
    steps: u32,
    whole: Whole,
    outcome: Outcome,
}

impl<'a> FileBench<'a> {
    /// Runs a suite; reports the measurements before it failed or was cancelled ([`Outcome::ended_early`]).
    ///
    /// Errors: as [`FileSuite::cost`], and as [`FileSuite::run`] if nothing was measured.
    pub fn run(
        (name, suite): (&str, &dyn FileSuite),
        shape: FileShape,
        place: &'a mut dyn FilePlace,
        options: &'a Options,
        watch: &'a mut dyn Watch,
    ) -> Result<Outcome, BenchError> {
        let cost = suite.cost(&shape, options)?;
        let began = place.now();
        let mut outcome = Outcome { suite: name.into(), about: suite.about().into(), ..Outcome::default() };
        if shape.is_device && shape.is_trimmed {
            let share = cost.to_bytes as f64 / shape.room_bytes.max(1) as f64;
            outcome.state_before = CardState::new(None, Some((StateKind::Trimmed, share)));
        }
        let mut bench =
            Self { shape, options, place, watch, number: 0, steps: cost.steps, whole: Whole::new(&cost), outcome };
        let ended = suite.run(&mut bench);
        let ended_at = bench.place.now();
        let mut outcome = bench.outcome;
        outcome.time_s = ended_at.since(began).as_secs_f64();
        if let Err(error) = ended {
            let has_any =
                outcome.grids.iter().flat_map(|grid| &grid.lines).any(|line| line.values.iter().any(Option::is_some));
            if outcome.figures.is_empty() && !has_any {
                return Err(error);
            }
            outcome.ended_early = Some(error.to_string());
        }
        Ok(outcome)
    }

    /// Runs work on the existing tree, or on a new filesystem.
    ///
    /// Errors: as [`FilePlace::with`]; a cancelled run.
    pub fn on_tree(&mut self, new: Option<NewFilesystem<'_>>, work: TreeWork<'_>) -> Result<(), FilesystemError> {
        let Self { place, watch, number, steps, whole, outcome, shape, .. } = self;
        place.with(new, &mut |tree| {
            let mut counted = Counted {
                tree,
                watch: &mut **watch,
                number,
                steps: *steps,
                whole,
                outcome,
                name: &shape.name,
                step: String::new(),
                calls: 0,
            };
            work(&mut counted)
        })
    }

    /// Adds a table to the outcome.
    pub fn grid(&mut self, grid: Grid) {
        self.outcome.grids.push(grid);
    }

    /// Adds a figure to the outcome.
    pub fn figure(&mut self, figure: Figure) {
        self.outcome.figures.push(figure);
    }

    /// Adds a remark to the outcome.
    pub fn remark(&mut self, text: impl Into<String>) {
        self.outcome.remarks.push(text.into());
    }
}

/// As an error of the bench.
pub(crate) fn of_files(error: FilesystemError, suite: &'static str) -> BenchError {
    match error {
        FilesystemError::Target(error) => error.into(),
        FilesystemError::Missing { what } => BenchError::Misfit { suite, what },
    }
}

/// Granularity of created filesystems: whole sectors of any device. Unit: bytes.
const BLOCK: u64 = 4096;

/// Checks the space for a suite in a folder.
///
/// Errors: less space than it needs; `--size` below the minimum; `--from`, which does not apply.
pub(crate) fn room(
    suite: &'static str,
    shape: &FileShape,
    options: &Options,
    (least_bytes, needed_bytes): (u64, u64),
) -> Result<(), BenchError> {
    let refused = |what: String| Err(BenchError::Misfit { suite, what });
    let stated = |bytes: u64| Bytes(bytes).stated();
    if options.from_bytes > 0 {
        let whole =
            if shape.is_device { "a filesystem starts at the start of its device" } else { "a folder has no sectors" };
        return refused(format!("--from {}: {whole}", stated(options.from_bytes)));
    }
    if let Some(asked) =
        options.size_bytes.filter(|asked| shape.is_device && *asked != shape.room_bytes && asked % BLOCK != 0)
    {
        return refused(format!("--size {}: expected a multiple of {}", stated(asked), stated(BLOCK)));
    }
    if let Some(asked) = options.size_bytes.filter(|asked| *asked < least_bytes) {
        return refused(format!("--size {}: at least {} are needed", stated(asked), stated(least_bytes)));
    }
    if needed_bytes > shape.room_bytes {
        let has = if shape.is_device { "has" } else { "has room for" };
        let given = if options.size_bytes.is_some() { "--size" } else { "it" };
        return refused(format!(
            "{given} needs {}; {} {has} {}; --size accepts {} or more",
            stated(needed_bytes),
            shape.name,
            stated(shape.room_bytes),
            stated(least_bytes)
        ));
    }
    Ok(())
}

/// A tree that counts operations and can be cancelled.
struct Counted<'a> {
    tree: &'a mut dyn FileTree,
    watch: &'a mut dyn Watch,
    outcome: &'a mut Outcome,
    /// Steps so far.
    number: &'a mut u32,
    steps: u32,
    whole: &'a Whole,
    name: &'a str,
    step: String,
    calls: u64,
}

impl FileTree for Counted<'_> {
    fn now(&mut self) -> Instant {
        self.tree.now()
    }

    fn processor(&mut self) -> Option<Nanos> {
        self.tree.processor()
    }

    fn idle(&mut self, time: Nanos) -> Result<(), TargetError> {
        self.tree.idle(time)
    }

    fn call(&mut self, op: FileOp<'_>) -> Result<u64, TargetError> {
        let answer = self.tree.call(op)?;
        match op {
            FileOp::Write { .. } | FileOp::WriteCharacters { .. } => self.outcome.written_bytes += answer,
            FileOp::Read { .. } | FileOp::ReadCharacters { .. } => self.outcome.read_bytes += answer,
            _ => {}
        }
        self.calls += 1;
        if self.calls % WATCH_EVERY == 0 {
            let moved_bytes = self.outcome.written_bytes + self.outcome.read_bytes;
            let progress = Progress {
                step: &self.step,
                number: *self.number,
                steps: self.steps,
                done_share: 1.0,
                whole: self.whole.span(moved_bytes),
                now: None,
            };
            if !self.watch.progress(progress) {
                return Err(TargetError::Failed { name: self.name.into(), reason: "stopped".into() });
            }
        }
        Ok(answer)
    }

    fn step(&mut self, step: &str) {
        *self.number += 1;
        self.step = step.into();
        self.tree.step(step);
    }
}
