//! `lab sweep`: the same script for every combination of settings.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{bail, ensure};
use emmc_lab::kernel::Kernel;
use emmc_lab::run::Figure;
use serde::Serialize;

use super::cell::{Cell, Settings, cells};
use super::run::{self, LabRun};
use crate::CommandResult;
use crate::cli::LabSweepArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Bar;
use crate::virtual_card::{folder, is_folder};

pub(crate) const SCHEMA: &str = "emmclab.lab-sweep/1";

/// Phases that are not the script's.
const NOT_THE_SCRIPT: [&str; 2] = ["setup", "end"];

/// What `lab sweep --json` prints. Times are simulated.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LabSweep {
    /// The script's file.
    pub(super) script: String,
    /// The version of the kernel.
    pub(super) kernel: Option<String>,
    /// The settings that differ between runs, in the sequence in which they vary, the slowest first.
    pub(super) axes: Vec<String>,
    /// The runs, in that sequence.
    pub(super) runs: Vec<SweepRun>,
    /// Runs without a result, and those whose script failed.
    pub(super) failed: usize,
}

/// One run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SweepRun {
    /// Its settings.
    pub(super) settings: Settings,
    /// Why it failed; absent if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// What came of it; absent if there is no result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<SweepResult>,
}

/// What came of a run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SweepResult {
    /// The script's exit status.
    pub(super) status: u8,
    /// How long the script took. Unit: seconds.
    pub(super) script_s: f64,
    /// What the script reported with `figure`.
    pub(super) figures: Vec<Figure>,
    /// Results of fio, one for each job and direction.
    pub(super) fio: Vec<FioSide>,
    /// The card's requests during the script, by kind.
    pub(super) requests: BTreeMap<&'static str, Requests>,
    /// Units programmed over units that the host wrote, during the run; absent if it wrote nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) write_amplification: Option<f64>,
    /// SHA-256 of all register accesses with their instants: equal runs have equal ones.
    pub(super) digest: String,
}

/// A direction of a job of fio.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FioSide {
    /// The job.
    pub(super) job: String,
    /// `read`, `write` or `trim`.
    pub(super) kind: &'static str,
    /// Requests a second.
    pub(super) iops: f64,
    /// Unit: 10^6 bytes a second.
    pub(super) mb_s: f64,
    /// Mean of the completion latency. Unit: microseconds.
    pub(super) mean_us: f64,
    /// 99 of 100 took at most this. Unit: microseconds.
    pub(super) p99_us: f64,
}

/// Requests of a kind.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Requests {
    /// How many.
    pub(super) requests: u64,
    /// Their data.
    pub(super) bytes: u64,
    /// Their mean time, from the driver's doorbell or command to the end. Unit: microseconds.
    pub(super) mean_us: f64,
}

pub(crate) fn run(args: &LabSweepArgs, output: &mut Output) -> CommandResult {
    let machine = &args.machine;
    for card in &args.card {
        let is_stored = folder(Path::new(card)).to_str().is_some_and(is_folder);
        ensure!(!is_stored, "{card}: a sweep needs a new card for each run; expected a profile");
        run::named_profile(card)?;
    }
    if let Some(job) = &machine.age {
        crate::commands::sim::run::load_job(job)?;
    }
    let script = &machine.script;
    crate::input::text(script, run::SCRIPT_BYTES_MAX)?;
    let kernel = Kernel::find(machine.kernel.as_deref())?;
    let cells = cells(args)?;
    let stop = Arc::new(AtomicBool::new(false));
    crate::signals::stop_by_signal(&stop)?;
    let jobs = args.jobs.map_or_else(|| thread::available_parallelism().map_or(1, NonZero::get), usize::from);
    let runs = measure(&cells, jobs, &stop);
    if stop.load(Ordering::Relaxed) {
        bail!("stopped by a signal");
    }
    let failed = runs.iter().filter(|run| run.error.is_some()).count();
    let sweep = LabSweep {
        script: script.display().to_string(),
        kernel: kernel.version(),
        axes: super::cell::axes(&cells),
        runs,
        failed,
    };
    output.print(SCHEMA, &sweep, super::present_sweep::sweep)?;
    Ok(if failed == 0 { Exit::Good } else { Exit::Findings })
}

/// Runs the cells, this many at a time; the results are in their sequence.
fn measure(cells: &[Cell], jobs: usize, stop: &Arc<AtomicBool>) -> Vec<SweepRun> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Mutex<Vec<Option<SweepRun>>> = Mutex::new(cells.iter().map(|_| None).collect());
    let bar = Mutex::new(Bar::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(cell) = cells.get(number).filter(|_| !stop.load(Ordering::Relaxed)) else { return };
            let run = of(cell, run::measure(&cell.args, stop));
            results.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(run);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            let what = format!("run {done} of {}", cells.len());
            bar.lock().unwrap_or_else(PoisonError::into_inner).show(Some(done as f64 / cells.len() as f64), &what);
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs.min(cells.len()) {
            scope.spawn(work);
        }
    });
    bar.into_inner().unwrap_or_else(PoisonError::into_inner).finish();
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}

/// What came of a cell.
fn of(cell: &Cell, run: anyhow::Result<LabRun>) -> SweepRun {
    let settings = cell.settings.clone();
    let run = match run {
        Ok(run) => run,
        Err(error) => return SweepRun { settings, error: Some(format!("{error:#}")), result: None },
    };
    let error = (run.status != 0).then(|| {
        let last = run.output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
        format!("exit status {}: {last}", run.status)
    });
    SweepRun { settings, error, result: Some(result(run)) }
}

fn result(run: LabRun) -> SweepResult {
    let phases: Vec<_> = run.phases.iter().filter(|phase| !NOT_THE_SCRIPT.contains(&phase.name.as_str())).collect();
    let mut requests: BTreeMap<&'static str, Requests> = BTreeMap::new();
    for kind in phases.iter().flat_map(|phase| &phase.requests) {
        let sum = requests.entry(kind.kind).or_default();
        let all = sum.requests + kind.requests;
        sum.mean_us += (kind.latency_us.mean - sum.mean_us) * kind.requests as f64 / all as f64;
        sum.requests = all;
        sum.bytes += kind.bytes;
    }
    SweepResult {
        status: run.status,
        script_s: phases.iter().map(|phase| phase.duration_s).fold(0.0, |sum, seconds| sum + seconds),
        figures: run.figures,
        fio: run.fio.iter().flat_map(|result| sides(&result.result)).collect(),
        requests,
        write_amplification: run.wear.write_amplification,
        digest: run.accesses.digest,
    }
}

/// The directions of a result of fio in which there were requests.
pub(super) fn sides(result: &serde_json::Value) -> Vec<FioSide> {
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or(0.0);
    let mut sides = Vec::new();
    for job in result["jobs"].as_array().into_iter().flatten() {
        for kind in ["read", "write", "trim"] {
            let side = &job[kind];
            if number(&side["total_ios"]) > 0.0 {
                sides.push(FioSide {
                    job: job["jobname"].as_str().unwrap_or_default().to_owned(),
                    kind,
                    iops: number(&side["iops"]),
                    mb_s: number(&side["bw_bytes"]) / 1e6,
                    mean_us: number(&side["clat_ns"]["mean"]) / 1e3,
                    p99_us: number(&side["clat_ns"]["percentile"]["99.000000"]) / 1e3,
                });
            }
        }
    }
    sides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_without_requests_are_left_out() {
        let result = serde_json::json!({"jobs": [{
            "jobname": "a",
            "read": {"total_ios": 3, "iops": 2.0, "bw_bytes": 4_000_000, "clat_ns": {"mean": 1500.0, "percentile": {"99.000000": 2000}}},
            "write": {"total_ios": 0},
        }]});
        let sides = sides(&result);
        let side = sides.first().unwrap();
        assert_eq!((sides.len(), side.kind, side.mb_s, side.mean_us, side.p99_us), (1, "read", 4.0, 1.5, 2.0));
    }
}
