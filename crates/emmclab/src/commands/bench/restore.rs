//! `bench --restore-from`: content that a killed bench left in a file, restored to its target.
//!
//! The file is read completely and compared with its checksums before the target is opened; the target must have every
//! mark of the one that the content was saved from.

use std::fmt::Write as _;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::ensure;
use emmc_linux::block_io::{BlockIo, Keeper, Opening, Saved, TargetHandle};
use emmc_linux::session::{Keep, Overwritten};
use emmc_linux::usage::Occupied;
use emmc_port::{BlockTarget, TargetKind};
use emmc_report::visible;
use emmc_units::Bytes;
use serde::Serialize;

use super::consent::Question;
use super::fits;
use super::keeper::BarKeeper;
use super::real::{done, placed};
use crate::CommandResult;
use crate::cli::BenchArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::save::Refused;
use crate::signals::{outlive_file_limits, stop_by_signal};

pub(crate) const SCHEMA: &str = "emmclab.restore/1";

/// What `bench --restore-from` restored.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Restored {
    /// The target, as named.
    target: String,
    /// The file of saved content, which stays.
    file: String,
    /// The start of the range on the target.
    from_bytes: u64,
    /// The end of the range on the target.
    to_bytes: u64,
    /// What was written and compared: the range without the holes of a file.
    restored_bytes: u64,
}

/// Restores the content of a file to the target of `args`.
///
/// Errors: a partial or damaged file; [`Refused`]: another target, one in use, no consent; a restore that is not whole.
pub(super) fn run(file: &Path, args: &BenchArgs, is_quiet: bool, output: &mut Output) -> CommandResult {
    let path = args.target.as_deref().map(Path::new).unwrap_or(Path::new(""));
    let name = path.display().to_string();
    ensure!(!name.starts_with("sim:") && !path.is_dir(), "--restore-from: {name}: expected a block device or a file");
    fits(&name, false, args)?;
    outlive_file_limits()?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut keeper = BarKeeper::new(&stop);
    let saved = Saved::open(file, keeper.watch());
    keeper.finish();
    let saved = saved?;
    let restored = restored(saved, (file, path, &name), args, is_quiet, &stop)?;
    if output.is_json() {
        output.print(SCHEMA, &restored, |_| unreachable!("JSON was asked for"))?;
        return Ok(Exit::Good);
    }
    let Restored { target, file, from_bytes, to_bytes, restored_bytes } = restored;
    let bytes = Bytes(restored_bytes).rounded();
    let what = format!("bytes {from_bytes} to {to_bytes} are restored and compared ({bytes} of content)");
    output.line(&format!("{}: {what}; {} can be removed", visible(&target), visible(&file)))?;
    Ok(Exit::Good)
}

fn restored(
    saved: Saved,
    (file, path, name): (&Path, &Path, &str),
    args: &BenchArgs,
    is_quiet: bool,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Restored> {
    let mut session = placed(path, name, stop)?;
    let seen = done(session.look(&Opening::plain(false, stop)))?;
    belongs(&saved, &seen)?;
    let is_device = seen.shape().kind == TargetKind::Device;
    drop(seen);
    let (range, restored_bytes) = (saved.range(), saved.size_bytes());
    done(session.check())?;
    done(session.consent(range, |occupied| {
        let told = told(&saved, (file, name), occupied);
        let without = "its content would be overwritten: --destroy allows that";
        let question = Question { told, without, called: name, name: &occupied.name, is_device, is_quiet };
        question.ask(args).map_err(|refused| refused.0)
    }))?;
    stop_by_signal(stop)?;
    // The question may have taken minutes.
    belongs(&saved, done(session.hold(&Opening::plain(true, stop)))?)?;
    let mut keeper = BarKeeper::new(&Arc::default());
    done(session.save(range, Keep::Nowhere, &mut keeper))?;
    // The content is in the file, so that the session has nothing to keep: its work is the restore.
    let mut shown = BarKeeper::new(&Arc::default());
    let work = |target: BlockIo, _: &TargetHandle| saved.put_back(&target, &mut shown);
    let Overwritten { result, .. } = done(session.overwrite(work, &mut keeper))?;
    result.unwrap_or_else(|panic| resume_unwind(panic))?;
    let [from_bytes, to_bytes] = range;
    Ok(Restored { target: name.into(), file: file.display().to_string(), from_bytes, to_bytes, restored_bytes })
}

/// Errors: [`Refused`] for another target; the kernel's.
fn belongs(saved: &Saved, target: &BlockIo) -> anyhow::Result<()> {
    match saved.mismatch(target)? {
        None => Ok(()),
        Some(why) => Err(Refused(format!("{}: {why}: nothing was written", target.shape().name)).into()),
    }
}

/// The text that the user must see before.
fn told(saved: &Saved, (file, called): (&Path, &str), occupied: &Occupied) -> String {
    let Occupied { name, model, size_bytes, contents, .. } = occupied;
    // The text is printed line by line: a name must not add lines.
    let mut text = format!("{}: {}", visible(called), Bytes(*size_bytes).rounded());
    if let Some(model) = model {
        let _ = write!(text, ", {}", visible(model));
    }
    let ([from, to], bytes) = (saved.range(), Bytes(saved.size_bytes()).rounded());
    let _ = write!(text, "\n  the content of bytes {from} to {to} of {} is overwritten", visible(name));
    for line in contents {
        let _ = write!(text, "\n    {}", visible(line));
    }
    let (file, from) = (file.display().to_string(), visible(saved.target()));
    let _ = write!(text, "\n  with {bytes} from {}, which were saved from {from}", visible(&file));
    text
}
