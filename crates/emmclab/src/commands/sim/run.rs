//! `sim run`: a workload on a virtual card, in simulated time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, ensure};
use emmc_card::card::Card;
use emmc_card::condition::Condition;
use emmc_card::nand::StoredContent;
use emmc_sim::SimTarget;
use emmc_workload::Job;
use emmc_workload::job::{Ended, READY_JOBS, RunResult, ready_job, run as run_job};
use serde::Serialize;

use crate::CommandResult;
use crate::cli::SimRunArgs;
use crate::exit::Exit;
use crate::input;
use crate::output::{Output, Page};
use crate::progress::Watched;
use crate::virtual_card::Powered;

pub(crate) const SCHEMA: &str = "emmclab.sim-run/1";

/// The largest job file that is read. Unit: bytes.
const JOB_BYTES_MAX: u64 = 64 << 20;
/// The largest trace of a job. Unit: bytes.
const TRACE_BYTES_MAX: u64 = 1 << 30;

/// What `sim run --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SimRun {
    /// Real time that the simulation took. Unit: seconds.
    wall_s: f64,
    /// The result.
    #[serde(flatten)]
    result: RunResult,
    /// The card after it.
    #[serde(flatten)]
    card: Condition,
}

pub(crate) fn run(args: &SimRunArgs, output: &mut Output) -> CommandResult {
    let job = load_job(&args.job)?;
    let is_kept = args.card.is_kept();
    ensure!(is_kept || !args.dry_run, "--dry-run: a new card is not stored");
    ensure!(!is_kept || args.seed.is_none(), "--seed: a card in a folder already has its seed");
    // The content that a new card stores; a card in a folder keeps its setting.
    let keep = if job.cuts_power() { StoredContent::Orders } else { StoredContent::Nothing };
    let seed = args.seed.unwrap_or(1);
    let Powered { card, now, store } = match args.dry_run {
        true => args.card.look(keep, seed)?,
        false => args.card.open(keep, seed)?,
    };
    #[cfg(feature = "html")]
    let inputs = {
        let card = args.card.card.as_deref().map(|card| Path::new(card.strip_prefix("sim:").unwrap_or(card)));
        let inputs: Vec<&Path> = card.into_iter().chain([args.job.as_path()]).collect();
        args.save.output.as_deref().map_or(Ok(()), |path| crate::save::check(path, args.save.force, &inputs))?;
        inputs
    };
    let start = std::time::Instant::now();
    let (device, rest) = card.into_parts();
    let stop = Arc::new(AtomicBool::new(false));
    crate::signals::stop_by_signal(&stop)?;
    let mut target = SimTarget::new(device, "the card", now, !args.no_queueing);
    let mut watch = Watched::job(stop);
    let result = run_job(&mut target, &job, &mut watch)?;
    watch.finish();
    let (device, now) = target.into_device();
    let run = SimRun { wall_s: start.elapsed().as_secs_f64(), result, card: Condition::of(&device) };
    Powered { card: Card::from_parts(device, rest), now, store }.store()?;
    let exit = if run.result.ended == Ended::Done { Exit::Good } else { Exit::Findings };
    #[cfg(feature = "html")]
    let page = Page { path: args.save.output.as_deref(), force: args.save.force, inputs };
    #[cfg(not(feature = "html"))]
    let page = Page::default();
    output.report(SCHEMA, &run, &page, |run| emmc_report::present::sim_run(&run.result, &run.card, run.wall_s))?;
    Ok(exit)
}

/// A shipped job, or one in a file.
pub(crate) fn load_job(name: &Path) -> anyhow::Result<Job> {
    let (text, folder) = read_job(name)?;
    let mut load = |name: &str| input::read(&folder.join(name), TRACE_BYTES_MAX).map_err(|error| format!("{error:#}"));
    Job::from_json(&text, &mut load).with_context(|| name.display().to_string())
}

/// Gives a new card a history.
///
/// Errors: it does not come to the end of the job.
#[cfg(feature = "serve")]
pub(crate) fn age(powered: Powered, job: &Job, stop: &Arc<AtomicBool>) -> anyhow::Result<Powered> {
    let Powered { card, now, store } = powered;
    let (device, rest) = card.into_parts();
    let mut target = SimTarget::new(device, "the card", now, true);
    let mut watch = Watched::job(Arc::clone(stop));
    let result = run_job(&mut target, job, &mut watch)?;
    watch.finish();
    ensure!(result.ended == Ended::Done, "the job did not come to its end: {:?}", result.ended);
    let (device, now) = target.into_device();
    Ok(Powered { card: Card::from_parts(device, rest), now, store })
}

/// A job and the folder of its traces.
fn read_job(name: &Path) -> anyhow::Result<(String, &Path)> {
    if let Some(ready) = name.to_str().and_then(ready_job) {
        return Ok((ready.text.into(), Path::new("")));
    }
    if name == Path::new("-") {
        let called = "standard input";
        let bytes = input::limited(called, std::io::stdin().lock(), JOB_BYTES_MAX)?;
        return Ok((input::utf8(called, bytes)?, Path::new("")));
    }
    std::fs::metadata(name).with_context(|| cannot_read(name))?;
    Ok((input::text(name, JOB_BYTES_MAX)?, name.parent().unwrap_or(Path::new(""))))
}

/// The error for a job name that is neither a shipped job nor a readable file.
fn cannot_read(name: &Path) -> String {
    let names: Vec<_> = READY_JOBS.iter().map(|job| job.name).collect();
    format!("{}: not a shipped job ({}), and the file cannot be read", name.display(), names.join(", "))
}
