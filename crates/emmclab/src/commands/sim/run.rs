//! `sim run`: a workload on a virtual card, in simulated time.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use emmc_card::card::Card;
use emmc_card::nand::StoredContent;
use emmc_card::sim::{Ended, Job, Run, RunResult};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::CommandResult;
use crate::cli::SimRunArgs;
use crate::exit::Exit;
use crate::output::{Output, Page};
use crate::virtual_card::Powered;

pub(crate) const SCHEMA: &str = "emmclab.sim-run/1";

/// Requests between two looks at the progress.
const BATCH: u64 = 1 << 16;
/// The largest job file that is read.
const JOB_BYTES_MAX: u64 = 1 << 30;

/// What `sim run --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SimRun {
    /// Real time that the simulation took. Unit: seconds.
    wall_s: f64,
    /// What came of it.
    #[serde(flatten)]
    result: RunResult,
}

pub(crate) fn run(args: &SimRunArgs, output: &mut Output) -> CommandResult {
    let text = read_job(&args.job)?;
    let folder = args.job.parent().unwrap_or(Path::new(""));
    let mut load = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    let job = Job::from_json(&text, &mut load).with_context(|| args.job.display().to_string())?;
    let keep = if job.cuts_power() { StoredContent::Orders } else { StoredContent::Nothing };
    let Powered { card, now, store } = match args.dry_run {
        true => args.card.look(keep, args.seed)?,
        false => args.card.open(keep, args.seed)?,
    };
    let start = std::time::Instant::now();
    let (device, rest) = card.into_parts();
    let (device, result) = complete(Run::new(device, job, now)?)?;
    let now = result.now;
    let run = SimRun { wall_s: start.elapsed().as_secs_f64(), result };
    Powered { card: Card::from_parts(device, rest), now, store }.store()?;
    let exit = if run.result.ended == Ended::Done { Exit::Good } else { Exit::Findings };
    #[cfg(feature = "html")]
    let page = Page { path: args.output.as_deref(), force: args.force, inputs: vec![&args.job] };
    #[cfg(not(feature = "html"))]
    let page = Page::default();
    output.report(SCHEMA, &run, &page, |run| emmc_report::present::sim_run(&run.result, run.wall_s))?;
    Ok(exit)
}

/// Runs to the end, with a progress bar on a terminal once it takes longer than a second.
fn complete(mut run: Run) -> anyhow::Result<(emmc_card::device::Device, RunResult)> {
    let begun = std::time::Instant::now();
    let mut bar: Option<ProgressBar> = None;
    loop {
        let progress = run.step(BATCH)?;
        if progress.is_finished {
            break;
        }
        if bar.is_none() && begun.elapsed() > Duration::from_secs(1) {
            bar = Some(new_bar());
        }
        if let Some(bar) = &bar {
            let seconds = progress.now.0 as f64 / 1e9;
            bar.set_message(format!(
                "phase {}/{} {}, {seconds:.1} s simulated",
                progress.phase, progress.phases, progress.kind
            ));
            let done = (progress.phase as f64 - 1.0 + progress.done_share) / progress.phases as f64;
            bar.set_position((done * 1000.0) as u64);
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(run.finish())
}

fn new_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr_with_hz(8));
    // The template is a constant that is known to be good.
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3}%  {msg}  {eta} left") {
        bar.set_style(style);
    }
    bar
}

fn read_job(path: &Path) -> anyhow::Result<String> {
    let name = path.display();
    let mut text = String::new();
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(std::fs::File::open(path).with_context(|| format!("{name}: cannot read"))?)
    };
    source.take(JOB_BYTES_MAX).read_to_string(&mut text).with_context(|| format!("{name}: cannot read"))?;
    Ok(text)
}
