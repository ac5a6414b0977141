//! A bench on a block device or a file of this machine, in real time.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, bail};
use emmc_linux::bench_context::{self, Meter};
use emmc_linux::block_io::{BlockIo, EngineChoice, Opening, Saved, reserve, writable_bytes};
use emmc_linux::hold::{self, Point};
use emmc_linux::usage::{Holder, occupied};
use emmc_port::{BlockOp, BlockTarget, TargetKind};
use emmc_units::Bytes;
use emmc_workload::{BenchResult, Context, Cost, FlushAt, Order, Progress, Stream, Suite, drive};

use super::consent::{Intent, say, still_free};
use super::demand::Demand;
use super::place::{Place, told};
use super::{Measured, options, run_suite};
use crate::cli::{BenchArgs, EngineArg};
use crate::progress::Watched;
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
    let place = Place::find(path, name, suite, args)?;
    if place.is_made() {
        nothing_to_save(name, args)?;
    }
    let seen = looked_at(&place, name, suite, args, stop)?;
    let size_bytes = seen.shape().size_bytes;
    let options = options(args, size_bytes)?;
    let mut cost = suite.cost(seen.shape(), &options)?;
    let mut context =
        bench_context::context(&place.path, place.folder(), seen.is_direct()).with_context(|| name.to_owned())?;
    let writes = cost.written_bytes > 0 || cost.to_bytes > cost.from_bytes;
    let mut target = seen;
    // Until saved content is restored.
    let mut _reserved = None;
    if writes || place.is_made() {
        if !place.is_made() {
            let is_device = target.shape().kind == TargetKind::Device;
            let occupied = occupied(&place.path, Holder::Nobody).with_context(|| name.to_owned())?;
            let (occupied, context) = (&occupied, &context);
            Intent { suite, cost, occupied, context, called: name, is_device, is_quiet }.ask(args)?;
            hold::reached(Point::Confirmed, stop);
            still_free(&place.path, name, Holder::Nobody)?;
        } else {
            let capacity_bytes = context.disk.as_ref().and_then(|disk| disk.size_bytes).unwrap_or(size_bytes);
            let (suite, time_most, context) = (suite.name(), suite.time_most(), &context);
            Demand { suite, cost, time_most, beside_bytes: size_bytes, context, capacity_bytes, cycles: None }
                .announce(&format!("{name}: a new file is created here, filled, and removed afterwards"), is_quiet);
        }
        if let Some(most) = writable_bytes().filter(|most| place.path.is_file() && *most < cost.to_bytes) {
            // The limit could also prevent the restore.
            bail!(
                "{name}: writes would reach byte {}, but `ulimit -f` allows {most}: nothing was written",
                cost.to_bytes
            );
        }
        drop(target);
        _reserved = reserved(&place.path, name)?;
        target = place.opened(name, &opening(args, suite, true, stop))?;
        let asked = std::mem::replace(&mut cost, suite.cost(target.shape(), &options)?);
        let is_more = cost.from_bytes < asked.from_bytes || cost.to_bytes > asked.to_bytes;
        if is_more && !place.is_made() {
            bail!("{name}: changed before the confirmation: nothing was written");
        }
    }
    stop_by_signal(stop)?;
    let mut saved = if place.is_made() { None } else { save(&target, &cost, args, is_quiet, stop)? };
    if writes && !place.is_made() {
        saved = unused(saved, &place.path, name)?;
    }
    let filled_bytes = if place.is_made() { fill(&mut target, &mut context, stop)? } else { 0 };
    let saved_bytes = saved.as_ref().map_or(0, Saved::size_bytes);
    let meter = Meter::default();
    let run = || run_suite(suite, &mut target, &options, Arc::clone(stop));
    let result = catch_unwind(AssertUnwindSafe(run));
    // Whatever the outcome: saved content is restored first.
    drop(target);
    let restore_error = put_back(saved, |again| place.opened(name, again), name, args, &mut context);
    let (mut result, restore_error) = both(result, restore_error)?;
    ended_by_signal(&mut result, stop);
    // All writes for this bench, not only those of its suite.
    result.outcome.written_bytes += filled_bytes + if restore_error.is_none() { saved_bytes } else { 0 };
    bench_context::finish(&mut context, &meter, result.outcome.written_bytes);
    result.context = context;
    Ok(Measured { result, restore_error })
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
    place: &Place,
    name: &str,
    suite: &dyn Suite,
    args: &BenchArgs,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<BlockIo> {
    if !args.read_only && place.path.is_file() {
        if let Ok(target) = place.opened(name, &opening(args, suite, true, stop)) {
            return Ok(target);
        }
    }
    place.opened(name, &opening(args, suite, false, stop))
}

/// Locks a file that will be written; a device is opened exclusively.
fn reserved(path: &Path, name: &str) -> anyhow::Result<Option<std::fs::File>> {
    if !path.is_file() {
        return Ok(None);
    }
    told(reserve(path, name)).map(Some)
}

pub(super) fn save(
    target: &BlockIo,
    cost: &Cost,
    args: &BenchArgs,
    is_quiet: bool,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Option<Saved>> {
    if !args.save_restore || cost.to_bytes <= cost.from_bytes {
        return Ok(None);
    }
    let bytes = Saved::bytes_of(target, cost.from_bytes, cost.to_bytes)?;
    if args.save_to.is_none() {
        let most = memory_bytes().map_or(u64::MAX, |memory| memory / MEMORY_SHARE);
        if bytes > most {
            let (bytes, most) = (Bytes(bytes).rounded(), Bytes(most).rounded());
            bail!(
                "--save-restore: {bytes} must be saved, but only {most} of memory can be used: --save-to FILE saves to a file"
            );
        }
    }
    let mut bar = Watched::new(Arc::clone(stop));
    let saved = Saved::take(target, [cost.from_bytes, cost.to_bytes], args.save_to.as_deref(), &mut bar);
    bar.finish();
    let saved = saved?;
    let place = args.save_to.as_ref().map_or("memory".into(), |path| path.display().to_string());
    if !is_quiet {
        let bytes = Bytes(bytes).rounded();
        say(&format!("{bytes} saved in {place}; kill -9 or a power cut would prevent the restore"));
    }
    hold::reached(Point::Saved, stop);
    Ok(Some(saved))
}

/// The last look before the first write; saving may have taken minutes.
///
/// Errors: the target is in use; nothing was written, and saved content is removed.
pub(super) fn unused(saved: Option<Saved>, path: &Path, name: &str) -> anyhow::Result<Option<Saved>> {
    match still_free(path, name, Holder::Us) {
        Ok(()) => Ok(saved),
        Err(error) => {
            saved.into_iter().for_each(Saved::forget);
            Err(error)
        }
    }
}

/// Restores saved content; a note reports success, an error what was not restored. The target is opened again, because
/// the handle of the bench may have stopped permanently.
pub(super) fn put_back(
    saved: Option<Saved>,
    opened: impl Fn(&Opening) -> anyhow::Result<BlockIo>,
    name: &str,
    args: &BenchArgs,
    context: &mut Context,
) -> Option<anyhow::Error> {
    let saved = saved?;
    let again =
        Opening { engine: EngineChoice::Pread, write: true, flush_all: false, seed: args.seed, stop: Arc::default() };
    let done = match opened(&again) {
        Ok(target) => {
            let mut bar = Watched::new(Arc::default());
            let done = saved.put_back(&target, &mut bar);
            bar.finish();
            done.map_err(anyhow::Error::from)
        }
        Err(error) => Err(error.context(saved.not_reached(name))),
    };
    match done {
        Ok(()) => {
            context.notes.push(RESTORED.into());
            None
        }
        Err(error) => {
            context.notes.push("its content was saved before and could not be restored completely".into());
            Some(error)
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
