//! `trace record --measure-overhead`: the command with and without recording, in turns.

use std::fs::File;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use emmc_linux::tracefs::Recorder;
use emmc_workload::Interval;
use serde::Serialize;

use crate::CommandResult;
use crate::cli::TraceRecordArgs;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.trace-overhead/1";

/// What `trace record --measure-overhead` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Overhead {
    /// The recording of the last run.
    file: String,
    /// Runs with recording, each between two without.
    rounds: u32,
    /// The mean time without. Unit: seconds.
    without_s: f64,
    /// The mean time with it. Unit: seconds.
    with_s: f64,
    /// How much longer the command takes: the geometric mean over rounds. Unit: percent.
    overhead_percent: f64,
    /// Its 95 % confidence interval. Unit: percent.
    interval: Option<Interval>,
    /// Events of a run, the mean.
    events: f64,
    /// Events that were lost in all of them.
    lost_events: u64,
    /// Cost of an event, measured by system calls. Unit: nanoseconds.
    event_ns: Option<f64>,
}

pub(super) fn run(args: &TraceRecordArgs, stop: &AtomicBool, output: &mut Output) -> CommandResult {
    let name = args.output.display().to_string();
    let time = || -> anyhow::Result<f64> {
        ensure!(!stop.load(Ordering::Relaxed), "stopped by a signal: nothing is reported");
        let (program, rest) = args.command.split_first().context("--measure-overhead needs a COMMAND")?;
        let program_name = program.to_string_lossy();
        let began = Instant::now();
        // Its output many times over helps nobody.
        let status = Command::new(program).args(rest).stdout(Stdio::null()).status();
        let status = status.with_context(|| format!("{program_name}: cannot run"))?;
        let took = began.elapsed().as_secs_f64();
        if !status.success() {
            bail!("{program_name}: {status}; a command that fails has no time to compare");
        }
        Ok(took)
    };
    // The first run fills caches.
    time()?;
    let (mut without, mut with) = (vec![time()?], Vec::new());
    let (mut events, mut lost_events, mut event_ns) = (0, 0, None);
    for round in 1..=args.rounds {
        let recorder = Recorder::new(args.recorded(), args.buffer.0)?;
        recorder.start()?;
        with.push(time()?);
        let mut file = if round == args.rounds {
            File::create(&args.output).with_context(|| format!("{name}: cannot write"))?
        } else {
            super::memory_file()?
        };
        let saved = recorder.save(&mut file)?;
        (events, lost_events) = (events + saved.events, lost_events + saved.lost);
        event_ns = recorder.event_ns.or(event_ns);
        drop(recorder);
        without.push(time()?);
    }
    // Logarithms of ratios: a run that is disturbed and makes its neighbour look fast has the same weight as one that
    // makes it look slow.
    let ratio = |(with, pair): (&f64, &[f64])| (with / (pair[0] * pair[1]).sqrt()).ln();
    let each: Vec<f64> = with.iter().zip(without.windows(2)).map(ratio).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let percent = |logarithm: f64| 100.0 * logarithm.exp_m1();
    let found = Overhead {
        file: name,
        rounds: args.rounds,
        without_s: mean(&without),
        with_s: mean(&with),
        overhead_percent: percent(mean(&each)),
        interval: Interval::of_batches(&each)
            .map(|found| Interval { low: percent(found.low), high: percent(found.high) }),
        events: events as f64 / f64::from(args.rounds),
        lost_events,
        event_ns,
    };
    if output.is_json() {
        output.print(SCHEMA, &found, |_| unreachable!("JSON was asked for"))?;
    } else {
        said(&found, output)?;
    }
    Ok(if found.lost_events > 0 { Exit::Findings } else { Exit::Good })
}

fn said(found: &Overhead, output: &mut Output) -> anyhow::Result<()> {
    let Overhead { rounds, without_s, with_s, overhead_percent, events, lost_events, file, .. } = found;
    let interval = found.interval.map_or(String::new(), |interval| {
        let is_shown = interval.low > 0.0 || interval.high < 0.0;
        let noise = if is_shown { "" } else { ": no cost is shown" };
        format!(" (95 % interval {:.2} to {:.2} %{noise})", interval.low, interval.high)
    });
    output.said(&format!("overhead: {overhead_percent:.2} %{interval}, {rounds} rounds"))?;
    output
        .said(&format!("without {without_s:.4} s, with {with_s:.4} s, {events:.0} events a run, {lost_events} lost"))?;
    if let Some(event_ns) = found.event_ns {
        let expected = 100.0 * events * event_ns / 1e9 / without_s;
        output.said(&format!("events alone would cost {expected:.2} % ({event_ns:.0} ns each)"))?;
    }
    output.said(&format!("{file}: the recording of the last run"))
}
