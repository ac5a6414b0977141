//! A bench on files: in a folder, or on filesystems created on a block device.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, bail};
use emmc_linux::bench_context::{self, Meter};
use emmc_linux::block_io::{BlockIo, Opening, TargetHandle};
use emmc_linux::file_tree::{Folder, Scratch, may_mount};
use emmc_linux::session::Overwritten;
use emmc_port::{BlockTarget, FilePlace, TargetKind};
use emmc_workload::{
    BenchResult, Context, Cost, Figure, FileBench, FileShape, FileSuite, Options, Outcome, Suite, on_files,
};

use super::demand::Demand;
use super::keeper::BarKeeper;
use super::{Measured, options, real};
use crate::cli::{BenchArgs, EngineArg};
use crate::progress::Watched;
use crate::save::Refused;
use crate::signals::stop_by_signal;

/// How requests reach a tree of files.
const ENGINE: &str = "files";

/// The part of a suite that runs on files.
pub(super) enum Kind {
    /// On filesystems created on a device.
    Made(&'static dyn FileSuite),
    /// In a folder.
    There(&'static dyn FileSuite),
    /// In a folder, after the part on sectors, which runs on a file there.
    After(&'static dyn FileSuite),
}

impl Kind {
    /// `None` if the suite has no files, or the target does not support them.
    pub(super) fn of(suite: &dyn Suite, path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        let (files, is_second) = on_files(suite.name())?;
        match (found.is_dir(), is_second) {
            (true, false) => Some(Self::There(files)),
            (true, true) => Some(Self::After(files)),
            (false, _) if found.file_type().is_block_device() && suite.name() == "fs" => Some(Self::Made(files)),
            (false, _) => None,
        }
    }
}

/// Runs a suite on files.
pub(super) fn bench(
    kind: Kind,
    suite: &dyn Suite,
    target: (&Path, &str),
    args: &BenchArgs,
    is_quiet: bool,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Measured> {
    if args.engine != EngineArg::Auto && !matches!(kind, Kind::After(_)) {
        bail!("--engine: suite {} works on files here, with plain calls", suite.name());
    }
    if !matches!(kind, Kind::Made(_)) {
        real::nothing_to_save(target.1, args)?;
    }
    match kind {
        Kind::Made(files) => on_device((suite, files), target, args, is_quiet, stop),
        Kind::There(files) => Ok(in_folder((suite, files), target, args, is_quiet, stop)?.into()),
        Kind::After(files) => {
            let meter = Meter::default();
            let mut measured = real::bench(suite, target, args, is_quiet, stop)?;
            let result = &mut measured.result;
            if result.outcome.ended_early.is_none() {
                let written_bytes = result.context.wear.map_or(0, |wear| wear.written_bytes);
                let more = match in_folder((suite, files), target, args, is_quiet, stop) {
                    Ok(more) => more,
                    Err(error) => {
                        // The results so far are still reported.
                        result.outcome.ended_early = Some(format!("before anything was measured on files: {error:#}"));
                        real::ended_by_signal(result, stop);
                        return Ok(measured);
                    }
                };
                bench_context::finish(&mut result.context, &meter, written_bytes + more.outcome.written_bytes);
                join(&mut result.outcome, more.outcome);
                let notes = more.context.notes.into_iter();
                let new: Vec<String> = notes.filter(|note| !result.context.notes.contains(note)).collect();
                result.context.notes.extend(new);
            }
            Ok(measured)
        }
    }
}

/// Adds the results of the second part of a suite.
fn join(first: &mut Outcome, second: Outcome) {
    first.time_s += second.time_s;
    first.written_bytes += second.written_bytes;
    first.read_bytes += second.read_bytes;
    first.grids.extend(second.grids);
    first.figures.extend(second.figures);
    first.remarks.extend(second.remarks);
    first.ended_early = second.ended_early;
    first.about = format!("{}; {}", first.about, second.about);
}

fn in_folder(
    (suite, files): (&dyn Suite, &dyn FileSuite),
    (path, name): (&Path, &str),
    args: &BenchArgs,
    is_quiet: bool,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<BenchResult> {
    let room_bytes = bench_context::available_bytes(path).with_context(|| name.to_owned())?;
    let shape = FileShape { name: name.into(), room_bytes, is_device: false, is_trimmed: false };
    let options = options(args, room_bytes)?;
    let cost = files.cost(&shape, &options)?;
    let mut context = bench_context::context(path, None, true).with_context(|| name.to_owned())?;
    let capacity_bytes = context.disk.as_ref().and_then(|disk| disk.size_bytes).unwrap_or(room_bytes);
    let (suite_name, time_most) = (suite.name(), suite.time_most());
    Demand { suite: suite_name, cost, time_most, beside_bytes: 0, context: &context, capacity_bytes, cycles: None }
        .announce(&format!("{name}: new files are created here and removed afterwards"), is_quiet);
    stop_by_signal(stop)?;
    for path in Folder::left_over(path) {
        context.notes.push(format!("{}: left over from a bench that was killed; it can be removed", path.display()));
    }
    let mut folder = Folder::new(path, name, args.seed, stop).with_context(|| name.to_owned())?;
    let meter = Meter::default();
    let before = bench_context::disk_written_bytes(&context);
    let mut outcome = run((suite, files), shape, &mut folder, &options, stop);
    if let Ok(outcome) = &mut outcome {
        written_on_device(outcome, before, &context, "; this includes writes of other programs");
    }
    if let Some(filesystem) = &mut context.filesystem {
        filesystem.cached = !folder.is_direct();
    }
    let removed = folder.remove().with_context(|| format!("{name}: removing the created files"));
    let outcome = outcome?;
    removed?;
    context.notes.push("the files were created for this run and removed afterwards".into());
    bench_context::finish(&mut context, &meter, outcome.written_bytes);
    let mut result = told((name, TargetKind::File), cost, &options, outcome, context);
    real::ended_by_signal(&mut result, stop);
    Ok(result)
}

fn on_device(
    (suite, files): (&dyn Suite, &dyn FileSuite),
    (path, name): (&Path, &str),
    args: &BenchArgs,
    is_quiet: bool,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Measured> {
    let opening = |write| Opening { seed: args.seed, ..Opening::plain(write, stop) };
    // From here on the name is not used again: it may now lead elsewhere.
    let mut session = real::placed(path, name, stop)?;
    let seen = real::done(session.look(&opening(false)))?.shape().clone();
    let room_bytes = seen.size_bytes;
    let shape = FileShape { name: name.into(), room_bytes, is_device: true, is_trimmed: seen.can_trim };
    let options = options(args, room_bytes)?;
    let cost = files.cost(&shape, &options)?;
    if !may_mount() {
        bail!("{name}: creating and mounting filesystems requires root; nothing was written");
    }
    let mut context = bench_context::context(session.handle().path(), None, true).with_context(|| name.to_owned())?;
    real::agreed(&mut session, (suite, cost), &context, args, (name, true, is_quiet))?;
    stop_by_signal(stop)?;
    // Opened exclusively: the consent covers only the present content.
    if real::done(session.hold(&opening(true)))?.shape().size_bytes != room_bytes {
        return Err(Refused(format!("{name}: changed before the confirmation: nothing was written")).into());
    }
    let mut keeper = BarKeeper::new(stop);
    real::save(&mut session, &cost, args, is_quiet, &mut keeper)?;
    let meter = Meter::default();
    let before = bench_context::disk_written_bytes(&context);
    let work = |target: BlockIo, held: &TargetHandle| {
        // Filesystems are created by other programs, which open the device themselves.
        drop(target);
        let mut scratch = Scratch::new(held, name, cost.to_bytes, args.seed, stop);
        let mut outcome = run((suite, files), shape, &mut scratch, &options, stop)?;
        let written_bytes = written_on_device(&mut outcome, before, &context, "");
        anyhow::Ok((outcome, scratch.made().to_vec(), written_bytes))
    };
    let Overwritten { result, restore } = real::done(session.overwrite(work, &mut keeper))?;
    let (_, restore_error) = real::noted(restore, &mut context);
    let ((outcome, made, written_bytes), restore_error) = real::both(result, restore_error)?;
    context.made_filesystems = made;
    bench_context::finish(&mut context, &meter, written_bytes);
    let mut result = told((name, TargetKind::Device), cost, &options, outcome, context);
    result.size_bytes = room_bytes;
    real::ended_by_signal(&mut result, stop);
    Ok(Measured { result, restore_error })
}

/// The volume written on the device: the files, and the journal and tables of the filesystem.
fn written_on_device(outcome: &mut Outcome, before: Option<u64>, context: &Context, others: &str) -> u64 {
    let now = bench_context::disk_written_bytes(context);
    let Some(bytes) = now.zip(before).map(|(now, before)| now.saturating_sub(before)) else {
        return outcome.written_bytes;
    };
    let what = match outcome.written_bytes {
        0 => "journal, folders and inodes of empty files".into(),
        in_files => format!("{:.2} times the volume written to files", bytes as f64 / in_files as f64),
    };
    let note = format!("{what}{others}");
    outcome.figures.push(Figure::new("written on the device", bytes as f64 / f64::from(1 << 20), "MiB", note));
    bytes
}

fn run(
    (suite, files): (&dyn Suite, &dyn FileSuite),
    shape: FileShape,
    place: &mut dyn FilePlace,
    options: &Options,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Outcome> {
    let mut bar = Watched::new(Arc::clone(stop));
    let outcome = FileBench::run((suite.name(), files), shape, place, options, &mut bar);
    bar.finish();
    Ok(outcome?)
}

fn told(
    (name, kind): (&str, TargetKind),
    cost: Cost,
    options: &Options,
    outcome: Outcome,
    context: Context,
) -> BenchResult {
    BenchResult {
        target: name.into(),
        target_kind: kind,
        size_bytes: cost.to_bytes,
        engine: ENGINE.into(),
        seed: options.seed,
        outcome,
        context,
        doubts: Vec::new(),
        causes: Vec::new(),
    }
}
