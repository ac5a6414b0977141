//! `lab calibrate`: the host of the lab's kernel as a file for `bench --host`.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, bail};
use emmc_host::{HostDescription, RequestCosts};
use emmc_lab::calibration::{self, CARDS, KindSeries, Series};
use emmc_lab::folder::RunFolder;
use serde::Serialize;

use super::run::{self, LabRun};
use crate::CommandResult;
use crate::cli::{ControllerArg, DmaArg, LabCalibrateArgs, LabMachineArgs, LabRunArgs};
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Bar;
use crate::save::deliver;

pub(crate) const SCHEMA: &str = "emmclab.lab-calibrate/1";

/// What `lab calibrate --json` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LabCalibration {
    /// The version of the kernel.
    kernel: Option<String>,
    /// The processor's time for an instruction. Unit: ns.
    cpu_ns: f64,
    /// The host, as in its file.
    host: HostDescription,
    /// What was measured, with command queueing.
    cqe: Vec<Series>,
    /// And without.
    no_cqe: Vec<Series>,
}

pub(crate) fn run(args: &LabCalibrateArgs, output: &mut Output) -> CommandResult {
    if let Some(path) = args.output.as_deref().filter(|path| path.is_file() && !args.force) {
        bail!("{}: exists already; --force replaces it", path.display());
    }
    let stop = Arc::new(AtomicBool::new(false));
    crate::signals::stop_by_signal(&stop)?;
    let folder = RunFolder::new().context("a folder for the calibration")?;
    let mut bar = Bar::new();
    let mut kernel = None;
    let mut done = 0;
    let mut through = |controller: ControllerArg| {
        let mut all = Vec::new();
        for (card, us, us_per_ns) in CARDS {
            let runs = 2 * CARDS.len();
            bar.show(Some(done as f64 / runs as f64), &format!("run {} of {runs}", done + 1));
            let overhead_us = us_per_ns.mul_add(args.cpu_ns, us);
            let (version, series) = measure(args, controller, (card, overhead_us), &folder.path, &stop)?;
            kernel = version;
            all.extend(series);
            done += 1;
        }
        anyhow::Ok(all)
    };
    let (cqe, no_cqe) = (through(ControllerArg::Cqe)?, through(ControllerArg::NoCqe)?);
    bar.finish();
    let host = describe(args, kernel.as_deref(), &cqe, &no_cqe)?;
    let calibration = LabCalibration { kernel, cpu_ns: args.cpu_ns, host, cqe, no_cqe };
    let text = calibration.host.to_toml();
    if let Some(path) = &args.output {
        deliver(output, path, &text, args.force, &[])?;
    }
    if output.is_json() {
        output.print(SCHEMA, &calibration, |_| emmc_report::Document::new(""))?;
    } else if args.output.is_none() {
        output.write(&text)?;
    }
    Ok(Exit::Good)
}

/// The series of one card through one controller, and the version of the kernel.
fn measure(
    args: &LabCalibrateArgs,
    controller: ControllerArg,
    (card, overhead_us): (&str, f64),
    folder: &Path,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<(Option<String>, Vec<Series>)> {
    let [profile, script, requests] =
        [format!("{card}.toml"), "calibrate.sh".into(), "requests".into()].map(|name: String| folder.join(name));
    for (path, text) in [(&profile, calibration::card(overhead_us).as_str()), (&script, calibration::SCRIPT)] {
        fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    let run = run::measure(
        &LabRunArgs {
            card: profile.display().to_string(),
            machine: LabMachineArgs {
                seed: 1,
                age: None,
                script,
                kernel: args.kernel.clone(),
                memory: args.memory,
                patience: args.patience,
                limit: None,
                parameters: args.parameters.clone(),
            },
            env: vec![("CARD".into(), card.into())],
            filesystem: None,
            mkfs: None,
            mount: None,
            scheduler: args.scheduler.clone(),
            read_ahead: None,
            max_request: None,
            controller,
            dma: DmaArg::Adma,
            cpu_ns: args.cpu_ns,
            out: None,
            requests: Some(requests.clone()),
            accesses: None,
            trace: None,
        },
        stop,
    )?;
    if run.status != 0 {
        let last = run.output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
        bail!("the calibration's script failed: {last}");
    }
    let series = of_run(&run, &requests)?;
    Ok((run.kernel, series))
}

/// The series of a run, from the record of its requests.
fn of_run(run: &LabRun, requests: &Path) -> anyhow::Result<Vec<Series>> {
    let mut all = Vec::new();
    for result in &run.fio {
        let name = result.file.trim_end_matches(".json");
        let phase = run.phases.iter().find(|phase| phase.name == name);
        let phase = phase.with_context(|| format!("series {name}: the script has not marked it"))?;
        let record = File::open(requests).with_context(|| requests.display().to_string())?;
        all.push(Series::of(phase, &result.result, BufReader::new(record))?);
    }
    Ok(all)
}

/// The host that the series show.
fn describe(
    args: &LabCalibrateArgs,
    kernel: Option<&str>,
    cqe: &[Series],
    no_cqe: &[Series],
) -> anyhow::Result<HostDescription> {
    let costs = |all: &[Series], starts_itself: bool| -> anyhow::Result<RequestCosts> {
        let cost = |kind: &str| {
            let series = |card: &str, rest: &str| {
                let name = format!("{card}-{kind}-{rest}");
                all.iter().find(|series| series.name == name).with_context(|| format!("no series {name}"))
            };
            let series = KindSeries {
                small: series("slow", "4-1")?,
                large: series("slow", "128-1")?,
                waiting: series("slow", "4-32")?,
                quick: series("fast", "4-1")?,
                busy: series("middle", "4-32")?,
            };
            anyhow::Ok(series.cost(starts_itself))
        };
        Ok(RequestCosts { read: cost("read")?, write: cost("write")? })
    };
    let (kernel, ns) = (kernel.unwrap_or("unknown"), args.cpu_ns);
    Ok(HostDescription {
        name: format!("lab-{ns}ns"),
        description: format!("Linux {kernel} on one core, {ns} ns an instruction"),
        sources: vec![format!("emmclab lab calibrate --cpu-ns {ns}: fio with libaio on User-Mode Linux {kernel}")],
        cores: 1,
        cqe: Some(costs(cqe, true)?),
        no_cqe: costs(no_cqe, false)?,
    })
}
