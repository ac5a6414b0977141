//! A bench on a block device or a file of this machine, in real time.

use std::ffi::OsStr;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use emmc_linux::bench_context::{self, Meter};
use emmc_linux::block_io::{BlockIo, EngineChoice, Opening, TargetHandle, open, writable_bytes};
use emmc_linux::hold::{self, Point};
use emmc_linux::session::{Keep, Overwritten, Restore, Session, SessionError};
use emmc_port::{BlockOp, BlockTarget, TargetKind};
use emmc_report::visible;
use emmc_units::Bytes;
use emmc_workload::{BenchResult, Context, Cost, FlushAt, Options, Order, Progress, Stream, Suite, drive};

use super::consent::{Intent, say};
use super::demand::Demand;
use super::keeper::BarKeeper;
use super::place::{NewPlace, Place};
use super::{Measured, options, run_suite};
use crate::cli::{BenchArgs, EngineArg};
use crate::progress::Watched;
use crate::save::Refused;
use crate::signals::stop_by_signal;

/// Size of one write when a new file is filled. Unit: bytes.
const FILL_BYTES: u64 = 1 << 20;
const RESTORED: &str = "its content was saved before, restored afterwards and compared; ranges that were unmapped read as before, \
but are now mapped";
/// Saved content may use one part in this many of the memory.
const MEMORY_SHARE: u64 = 4;

/// Runs a suite on a device, a file or in a folder.
pub(super) fn bench(
    suite: &dyn Suite,
    (path, name): (&Path, &str),
    args: &BenchArgs,
    is_quiet: bool,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Measured> {
    match Place::find(path, name, suite, args, stop)? {
        Place::New(new) => {
            nothing_to_save(name, args)?;
            on_new(suite, &new, name, args, is_quiet, stop)
        }
        Place::There(session) => on_existing(suite, *session, name, args, is_quiet, stop),
    }
}

/// Runs a suite that only reads.
pub(super) fn read_only(
    suite: &dyn Suite,
    (path, name): (&Path, &str),
    options: &Options,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Measured> {
    let session = placed(path, name, stop)?;
    let opening = Opening {
        engine: EngineChoice::Auto,
        write: false,
        flush_all: false,
        seed: options.seed,
        stop: Arc::clone(stop),
    };
    let target = done(session.look(&opening))?;
    let context = bench_context::context(session.handle().path(), None, target.is_direct());
    reading(suite, target, context.with_context(|| name.to_owned())?, options, stop)
}

fn reading(
    suite: &dyn Suite,
    mut target: BlockIo,
    mut context: Context,
    options: &Options,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Measured> {
    stop_by_signal(stop)?;
    let meter = Meter::default();
    let mut result = run_suite(suite, &mut target, options, Arc::clone(stop))?;
    ended_by_signal(&mut result, stop);
    bench_context::finish(&mut context, &meter, result.outcome.written_bytes);
    result.context = context;
    Ok(result.into())
}

fn on_existing(
    suite: &dyn Suite,
    mut session: Session,
    name: &str,
    args: &BenchArgs,
    is_quiet: bool,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Measured> {
    let seen = looked_at(&session, suite, args, stop)?;
    let shape = seen.shape().clone();
    let options = options(args, shape.size_bytes)?;
    let cost = suite.cost(&shape, &options)?;
    let context = bench_context::context(session.handle().path(), None, seen.is_direct());
    let mut context = context.with_context(|| name.to_owned())?;
    if cost.written_bytes == 0 && cost.to_bytes <= cost.from_bytes {
        return reading(suite, seen, context, &options, stop);
    }
    drop(seen);
    let is_device = shape.kind == TargetKind::Device;
    agreed(&mut session, (suite, cost), &context, args, (name, is_device, is_quiet))?;
    stop_by_signal(stop)?;
    let cost = suite.cost(done(session.hold(&opening(args, suite, true, stop)))?.shape(), &options)?;
    let mut keeper = BarKeeper::new(stop);
    save(&mut session, &cost, args, is_quiet, &mut keeper)?;
    let meter = Meter::default();
    let work = |mut target: BlockIo, _: &TargetHandle| run_suite(suite, &mut target, &options, Arc::clone(stop));
    let Overwritten { result, restore } = done(session.overwrite(work, &mut keeper))?;
    let (saved_bytes, restore_error) = noted(restore, &mut context);
    let (mut result, restore_error) = both(result, restore_error)?;
    ended_by_signal(&mut result, stop);
    // All writes for this bench, not only those of its suite.
    result.outcome.written_bytes += saved_bytes;
    bench_context::finish(&mut context, &meter, result.outcome.written_bytes);
    result.context = context;
    Ok(Measured { result, restore_error })
}

fn on_new(
    suite: &dyn Suite,
    new: &NewPlace,
    name: &str,
    args: &BenchArgs,
    is_quiet: bool,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Measured> {
    let mut target = new.opened(name, &opening(args, suite, true, stop))?;
    let size_bytes = target.shape().size_bytes;
    let options = options(args, size_bytes)?;
    let cost = suite.cost(target.shape(), &options)?;
    let context = bench_context::context(new.file.path(), Some(&new.folder), target.is_direct());
    let mut context = context.with_context(|| name.to_owned())?;
    let capacity_bytes = context.disk.as_ref().and_then(|disk| disk.size_bytes).unwrap_or(size_bytes);
    let time_most = suite.time_most();
    Demand {
        suite: suite.name(),
        cost,
        time_most,
        beside_bytes: size_bytes,
        context: &context,
        capacity_bytes,
        cycles: None,
    }
    .announce(&format!("{name}: a new file is created here, filled, and removed afterwards"), is_quiet);
    if let Some(most) = writable_bytes().filter(|most| *most < cost.to_bytes) {
        bail!("{name}: writes would reach byte {}, but `ulimit -f` allows {most}: nothing was written", cost.to_bytes);
    }
    stop_by_signal(stop)?;
    let filled_bytes = fill(&mut target, &mut context, stop)?;
    let meter = Meter::default();
    let mut result = run_suite(suite, &mut target, &options, Arc::clone(stop))?;
    ended_by_signal(&mut result, stop);
    result.outcome.written_bytes += filled_bytes;
    bench_context::finish(&mut context, &meter, result.outcome.written_bytes);
    result.context = context;
    Ok(result.into())
}

/// Identifies an existing target.
///
/// Errors: neither a device nor a regular file; the kernel's.
pub(super) fn placed(path: &Path, name: &str, stop: &Arc<AtomicBool>) -> anyhow::Result<Session> {
    if let Some(session) = Session::place(path, name, stop).with_context(|| name.to_owned())? {
        return Ok(session);
    }
    // Its error says what is there instead.
    match open(path, name, &Opening::plain(false, stop)) {
        Err(error) => done(Err(error.into())),
        Ok(_) => Err(Refused(format!("{name}: changed while it was opened: nothing was written")).into()),
    }
}

/// A step of a session; what was refused for safety has its exit code.
pub(super) fn done<T>(step: Result<T, SessionError>) -> anyhow::Result<T> {
    step.map_err(|error| match error {
        SessionError::Refused(why) => Refused(why).into(),
        error => error.into(),
    })
}

/// placed -> consented.
///
/// Errors: in use; the user did not agree.
pub(super) fn agreed(
    session: &mut Session,
    (suite, cost): (&dyn Suite, Cost),
    context: &Context,
    args: &BenchArgs,
    (called, is_device, is_quiet): (&str, bool, bool),
) -> anyhow::Result<()> {
    done(session.check())?;
    done(session.consent([cost.from_bytes, cost.to_bytes], |occupied| {
        Intent { suite, cost, occupied, context, called, is_device, is_quiet }.ask(args).map_err(|refused| refused.0)
    }))
}

/// For targets whose content is not overwritten.
///
/// Errors: --save-restore is given.
pub(super) fn nothing_to_save(name: &str, args: &BenchArgs) -> anyhow::Result<()> {
    if args.save_restore {
        bail!("--save-restore: {name}: the bench uses new files and overwrites nothing");
    }
    Ok(())
}

/// The result, with the error of the restore; without a result, both errors are one.
pub(super) fn both<R>(
    result: std::thread::Result<anyhow::Result<R>>,
    restore_error: Option<anyhow::Error>,
) -> anyhow::Result<(R, Option<anyhow::Error>)> {
    match (result, restore_error) {
        (Ok(Ok(result)), restore_error) => Ok((result, restore_error)),
        (Ok(Err(error)), None) => Err(error),
        (Ok(Err(error)), Some(lost)) => Err(anyhow::anyhow!("{lost:#}; earlier error: {error:#}")),
        (Err(panic), lost) => {
            if let Some(lost) = lost {
                say(&format!("{lost:#}"));
            }
            resume_unwind(panic)
        }
    }
}

/// Notes that a signal ended the work.
pub(super) fn ended_by_signal(result: &mut BenchResult, stop: &AtomicBool) {
    if stop.load(Ordering::Relaxed) && result.outcome.ended_early.is_some() {
        result.outcome.ended_early = Some("stopped by a signal".into());
    }
}

fn opening(args: &BenchArgs, suite: &dyn Suite, write: bool, stop: &Arc<AtomicBool>) -> Opening {
    let engine = match args.engine {
        EngineArg::Auto => EngineChoice::Auto,
        EngineArg::IoUring => EngineChoice::Uring,
        EngineArg::Pread => EngineChoice::Pread,
    };
    // iozone -e counts an fsync.
    Opening { engine, write, flush_all: suite.name() == "iozone", seed: args.seed, stop: Arc::clone(stop) }
}

/// Opens a target to identify it. A device is not opened for writing before the user consented; a file must be, to find
/// out whether it supports holes.
fn looked_at(
    session: &Session,
    suite: &dyn Suite,
    args: &BenchArgs,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<BlockIo> {
    if !args.read_only && session.handle().path().is_file() {
        if let Ok(target) = session.look(&opening(args, suite, true, stop)) {
            return Ok(target);
        }
    }
    done(session.look(&opening(args, suite, false, stop)))
}

/// held -> saved.
///
/// Errors: not enough memory; those of the session.
pub(super) fn save(
    session: &mut Session,
    cost: &Cost,
    args: &BenchArgs,
    is_quiet: bool,
    keeper: &mut BarKeeper,
) -> anyhow::Result<()> {
    let range = [cost.from_bytes, cost.to_bytes];
    let keep = match &args.save_to {
        _ if !args.save_restore => Keep::Nowhere,
        Some(path) => Keep::File(path),
        None => Keep::Memory,
    };
    if keep == Keep::Memory {
        let bytes = session.bytes_to_save(range)?;
        let most = memory_bytes().map_or(u64::MAX, |memory| memory / MEMORY_SHARE);
        if bytes > most {
            let (bytes, most) = (Bytes(bytes).rounded(), Bytes(most).rounded());
            bail!(
                "--save-restore: {bytes} must be saved, but only {most} of memory can be used: --save-to FILE saves to a file"
            );
        }
    }
    let saved = session.save(range, keep, keeper);
    keeper.finish();
    let bytes = Bytes(done(saved)?).rounded();
    if args.save_restore && range[0] < range[1] && !is_quiet {
        say(&match &args.save_to {
            None => format!("{bytes} saved in memory; kill -9 or a power cut would prevent the restore"),
            Some(path) => {
                let word = |name: &OsStr, other: &str| crate::shell::word(name).unwrap_or_else(|| other.into());
                let target = word(args.target.as_deref().unwrap_or_default(), "TARGET");
                let (file, path) = (word(path.as_os_str(), "FILE"), path.display().to_string());
                // The text is printed line by line: a name must not add lines.
                let path = visible(&path);
                format!(
                    "{bytes} saved in {path}; after kill -9 or a power cut: emmclab bench {target} --restore-from {file} \
--destroy"
                )
            }
        });
    }
    Ok(())
}

/// Notes what became of saved content. Returns what the restore wrote (unit: bytes) and its error.
pub(super) fn noted(restore: Restore, context: &mut Context) -> (u64, Option<anyhow::Error>) {
    match restore {
        Restore::Nothing => (0, None),
        Restore::Whole(bytes) => {
            context.notes.push(RESTORED.into());
            (bytes, None)
        }
        Restore::Lost(error) => {
            context.notes.push("its content was saved before and could not be restored completely".into());
            (0, Some(error.into()))
        }
    }
}

/// MemAvailable. Unit: bytes.
fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Fills a new file, so that reads of it reach the device.
fn fill(target: &mut BlockIo, context: &mut Context, stop: &Arc<AtomicBool>) -> anyhow::Result<u64> {
    let size = target.shape().size_bytes;
    let step = Progress { step: "a new file", number: 1, steps: 1, done_share: 0.0, whole: None, now: None };
    let mut bar = Watched::new(Arc::clone(stop));
    for (from, to, block) in
        [(0, size / FILL_BYTES * FILL_BYTES, FILL_BYTES), (size / FILL_BYTES * FILL_BYTES, size, 0)]
    {
        if from < to {
            let block = if block == 0 { to - from } else { block };
            let pass = Stream::pass(BlockOp::Write, Order::Sequential, from, to, block);
            drive(target, &Stream { flush: FlushAt::End, ..pass }, step, &mut bar)?;
        }
    }
    bar.finish();
    hold::reached(Point::Filled, stop);
    if let Some(filesystem) = &mut context.filesystem {
        filesystem.hole_bytes = 0;
    }
    context
        .notes
        .push(format!("the file was created for this run, filled with {size} bytes before, and removed afterwards"));
    Ok(size)
}
