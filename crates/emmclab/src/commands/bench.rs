//! `bench`: a suite on a target.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, bail};
use emmc_analysis::Finding;
use emmc_analysis::measured::findings;
use emmc_port::BlockTarget;
use emmc_units::{Bytes, Size};
use emmc_workload::{Bench, BenchResult, Detail, Knob, Options, Replay, Suite, causes, doubts, follows, named, suites};
use serde::Serialize;

use crate::CommandResult;
use crate::cli::{BenchArgs, EngineArg};
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Watched;

pub(super) mod consent;
mod demand;
mod files;
mod keeper;
mod place;
mod real;
pub(crate) mod restore;
#[cfg(feature = "sim")]
mod simulated;

pub(crate) const SCHEMA: &str = "emmclab.bench/1";
pub(crate) const LIST_SCHEMA: &str = "emmclab.suites/1";

/// The largest trace that is read, because it is held in memory.
const TRACE_BYTES_MAX: u64 = 1 << 30;

/// What `bench --list` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SuiteList {
    /// Every suite.
    suites: Vec<Listed>,
}

/// A suite.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Listed {
    /// Its name, for `--suite`.
    name: &'static str,
    /// What it measures.
    about: &'static str,
    /// The command-line options that it supports; it refuses the others of these.
    follows: Vec<&'static str>,
}

pub(crate) fn run(args: &BenchArgs, output: &mut Output) -> CommandResult {
    if args.list {
        return list(output);
    }
    // With JSON, only the document or the error is printed, unless a user can be asked.
    let is_quiet = output.is_json() && !std::io::stdin().is_terminal();
    if let Some(file) = &args.restore_from {
        return restore::run(file, args, is_quiet, output);
    }
    let suite = named(&args.suite).with_context(|| {
        let known: Vec<_> = suites().iter().map(|suite| suite.name()).collect();
        format!("--suite {:?}: expected one of {}", args.suite, known.join(", "))
    })?;
    follows(suite, &given(args))?;
    let Measured { result, restore_error } = measure(suite, args, is_quiet)?;
    let document = BenchDocument { findings: findings(&result), result };
    output.print(SCHEMA, &document, |document| emmc_report::present::bench(&document.result, &document.findings))?;
    match restore_error {
        // The result is printed too; the failed restore sets the exit code.
        Some(error) => Err(error),
        None if document.result.doubts.is_empty() => Ok(Exit::Good),
        None => Ok(Exit::Findings),
    }
}

/// What `bench --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct BenchDocument {
    #[serde(flatten)]
    result: BenchResult,
    /// Findings from the result, worst first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
}

/// The result, and the error of an incomplete restore.
pub(super) struct Measured {
    pub(super) result: BenchResult,
    pub(super) restore_error: Option<anyhow::Error>,
}

impl From<BenchResult> for Measured {
    fn from(result: BenchResult) -> Self {
        Self { result, restore_error: None }
    }
}

fn list(output: &mut Output) -> CommandResult {
    let listed = |suite: &&'static dyn Suite| Listed {
        name: suite.name(),
        about: suite.about(),
        follows: suite.follows().iter().map(|knob| knob.option()).collect(),
    };
    let list = SuiteList { suites: suites().iter().map(listed).collect() };
    if output.is_json() {
        return output.print(LIST_SCHEMA, &list, |_| unreachable!("JSON was asked for")).map(|()| Exit::Good);
    }
    for Listed { name, about, follows } in list.suites {
        output.line(&format!("{name:<20} {about}\n{:<20} supports {}", "", follows.join(" ")))?;
    }
    Ok(Exit::Good)
}

/// The options of the suite on the command line.
fn given(args: &BenchArgs) -> Vec<Knob> {
    let is_given = |knob: &Knob| match knob {
        Knob::From => args.from.is_some(),
        // A created file has a size in every suite.
        Knob::Size => args.size.is_some(),
        Knob::Rows => !args.rows.is_empty(),
        Knob::ReadOnly => args.read_only,
        Knob::QueueDepth => args.queue_depth.is_some(),
        Knob::WriteBudget => args.write_budget.is_some(),
        Knob::Trace => args.trace.is_some(),
    };
    Knob::ALL.into_iter().filter(is_given).collect()
}

/// Checks options that only one kind of target supports.
///
/// Errors: the first option that this target does not support.
fn fits(name: &str, is_virtual: bool, args: &BenchArgs) -> anyhow::Result<()> {
    // --destroy and --yes-i-mean are accepted everywhere: they only give permission.
    let of_real = [("--engine", args.engine != EngineArg::Auto), ("--save-restore", args.save_restore)];
    #[cfg(feature = "sim")]
    let of_virtual = [
        ("--board", args.board.is_some()),
        ("--no-queueing", args.no_queueing),
        ("--queue-poll-us", args.queue_poll_us.is_some()),
        ("--no-flush-polling", args.no_flush_polling),
    ];
    #[cfg(not(feature = "sim"))]
    let of_virtual: [(&str, bool); 0] = [];
    let (wrong, who) = match is_virtual {
        true => (&of_real[..], "block devices, files and folders"),
        false => (&of_virtual[..], "virtual cards (sim:PROFILE, sim:FOLDER)"),
    };
    match wrong.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => bail!("{option}: supported only for {who}; not for {name}"),
    }
}

/// Opens the target, asks for consent if the suite writes, and runs it.
pub(super) fn measure(suite: &dyn Suite, args: &BenchArgs, is_quiet: bool) -> anyhow::Result<Measured> {
    let path = args.target.as_deref().map(Path::new).unwrap_or(Path::new(""));
    let name = path.display().to_string();
    fits(&name, name.starts_with("sim:"), args)?;
    let stop = Arc::new(AtomicBool::new(false));
    let mut measured = match name.strip_prefix("sim:") {
        #[cfg(feature = "sim")]
        Some(profile) => simulated::bench(suite, &name, profile, args, is_quiet, stop)?.into(),
        #[cfg(not(feature = "sim"))]
        Some(_) => bail!("{name}: this build has no virtual cards (feature `sim`)"),
        None => {
            crate::signals::outlive_file_limits()?;
            match files::Kind::of(suite, path) {
                Some(kind) => files::bench(kind, suite, (path, &name), args, is_quiet, &stop)?,
                None => real::bench(suite, (path, &name), args, is_quiet, &stop)?,
            }
        }
    };
    conclude(&mut measured.result);
    Ok(measured)
}

/// Adds the conclusions from the measurement.
fn conclude(result: &mut BenchResult) {
    result.scale_states();
    result.doubts = doubts(result);
    result.causes = causes(result);
}

/// The result of suite `speed` for a virtual card in its present state.
#[cfg(feature = "sim")]
pub(crate) fn speed_of_virtual(name: &str, profile: &str) -> anyhow::Result<BenchResult> {
    let suite = named("speed").context("there is no suite speed")?;
    let how = simulated::How { queueing: true, polling: None, board: None, flush_polling: true, announces: false };
    let stop = Arc::new(AtomicBool::new(false));
    let mut result = simulated::measure(suite, name, profile, how, |_| Ok(Options::default()), stop)?;
    conclude(&mut result);
    Ok(result)
}

/// The read speed of a block device; writes nothing.
pub(crate) fn speed_of_device(node: &Path) -> anyhow::Result<BenchResult> {
    let suite = named("speed").context("there is no suite speed")?;
    let options = Options { read_only: true, seed: 1, ..Options::default() };
    let name = node.display().to_string();
    let mut result = real::read_only(suite, (node, &name), &options, &Arc::default())?.result;
    conclude(&mut result);
    Ok(result)
}

/// The options of a suite for a target of this size.
///
/// Errors: a size or queue depth of 0; a start beyond the end of the target.
fn options(args: &BenchArgs, size_bytes: u64) -> anyhow::Result<Options> {
    let bytes = |size: Option<Size>| size.map(|size| bytes_of(size, size_bytes));
    let from_bytes = bytes(args.from).unwrap_or(0);
    let options = Options {
        from_bytes,
        // From the start of the area to the end of the target.
        size_bytes: match args.size {
            Some(Size::Max) => Some(size_bytes.saturating_sub(from_bytes)),
            size => bytes(size),
        },
        queue_depth: args.queue_depth,
        write_budget_bytes: bytes(args.write_budget),
        rows: args.rows.clone(),
        read_only: args.read_only,
        seed: args.seed,
        replay: replay(args)?,
        early_ends: None,
        detail: Detail::All,
    };
    if options.queue_depth == Some(0) {
        bail!("--queue-depth: expected at least 1");
    }
    if options.from_bytes >= size_bytes && args.from.is_some() && size_bytes > 0 {
        let option = emmc_workload::from_option(&args.suite);
        bail!("{option} {}: the target has {}", Bytes(from_bytes).stated(), Bytes(size_bytes).stated());
    }
    if options.size_bytes == Some(0) {
        bail!("--size: expected more than 0");
    }
    Ok(options)
}

/// The trace that `--trace` names.
fn replay(args: &BenchArgs) -> anyhow::Result<Option<Replay>> {
    let Some(path) = &args.trace else { return Ok(None) };
    let name = path.display().to_string();
    let bytes = crate::input::read(path, TRACE_BYTES_MAX)?;
    let trace = Arc::new(emmc_workload::trace::read(&name, &bytes)?);
    Ok(Some(Replay { trace, timed: args.timed, wrap: args.wrap }))
}

/// A size in bytes on a target of this size.
fn bytes_of(size: Size, size_bytes: u64) -> u64 {
    match size {
        Size::Exact(Bytes(bytes)) => bytes,
        Size::Percent(percent) => (u128::from(size_bytes) * u128::from(percent) / 100) as u64 / 4096 * 4096,
        Size::Max => size_bytes,
    }
}

/// Runs the suite; the context is for the caller to fill in.
fn run_suite(
    suite: &dyn Suite,
    target: &mut dyn BlockTarget,
    options: &Options,
    stop: Arc<AtomicBool>,
) -> anyhow::Result<BenchResult> {
    let shape = target.shape().clone();
    let mut bar = Watched::new(stop);
    let outcome = Bench::run(suite, target, options, &mut bar);
    bar.finish();
    Ok(BenchResult {
        target: shape.name,
        target_kind: shape.kind,
        size_bytes: shape.size_bytes,
        engine: shape.engine.into(),
        seed: options.seed,
        outcome: outcome?,
        context: emmc_workload::Context::default(),
        doubts: Vec::new(),
        causes: Vec::new(),
    })
}
