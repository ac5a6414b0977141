//! `trace record --measure-overhead`: the command with and without recording, in turns.

use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use emmc_linux::tracefs::Recorder;
use emmc_workload::Interval;
use serde::Serialize;

use super::pace::{Counter, Counts, Looks};
use super::program::{Program, Signals};
use crate::CommandResult;
use crate::cli::TraceRecordArgs;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) const SCHEMA: &str = "emmclab.trace-overhead/1";

/// Looks at the requests' counter in a run: few enough to cost nothing, and the same in every run.
const LOOKS: u32 = 50;
const LOOK_MIN: Duration = Duration::from_millis(10);
const LOOK_MAX: Duration = Duration::from_millis(500);

/// What `trace record --measure-overhead` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Overhead {
    /// The recording of the last run.
    file: String,
    /// Runs with recording, each between two without.
    rounds: u32,
    /// What its requests lose; absent if the command makes too few.
    requests: Option<Slower>,
    /// The mean time without, of the whole command. Unit: seconds.
    without_s: f64,
    /// The mean time with it. Unit: seconds.
    with_s: f64,
    /// How much longer the whole command takes: the geometric mean over rounds. Unit: percent.
    overhead_percent: f64,
    /// Its 95 % confidence interval. Unit: percent.
    interval: Option<Interval>,
    /// The least and the most of single rounds. Unit: percent.
    spread: Interval,
    /// Events of a run, the mean.
    events: f64,
    /// Events that were lost in all of them.
    lost_events: u64,
    /// Cost of an event, measured by system calls. Unit: nanoseconds.
    event_ns: Option<f64>,
}

/// The requests that the kernel counts, from 5 % to 95 % of those of a run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Slower {
    /// The disk with most of them.
    disk: String,
    /// Of a run, the mean; merged bios count as one each.
    count: f64,
    /// The mean rate without recording. Unit: requests per second.
    without_per_s: f64,
    /// The mean rate with it. Unit: requests per second.
    with_per_s: f64,
    /// How many fewer IOPS: the geometric mean over rounds. Unit: percent.
    fewer_percent: f64,
    /// Its 95 % confidence interval. Unit: percent.
    interval: Option<Interval>,
    /// The least and the most of single rounds. Unit: percent.
    spread: Interval,
}

/// A run of the command.
struct Timed {
    took_s: f64,
    /// Requests, and requests per second.
    rate: Option<(u64, f64)>,
}

pub(super) fn run(args: &TraceRecordArgs, signals: &Signals, output: &mut Output) -> CommandResult {
    let name = args.output.display().to_string();
    // The first run fills caches, and shows which disk's requests count and how long a run is.
    let before = Counts::now();
    let first = time(args, signals, None, LOOK_MAX)?;
    let disk = before.busiest();
    ensure!(!before.is_same(), "the command makes no request to a disk: there is nothing to measure");
    let counter = disk.as_deref().and_then(Counter::of);
    let every = Duration::from_secs_f64(first.took_s / f64::from(LOOKS)).clamp(LOOK_MIN, LOOK_MAX);
    let time = || time(args, signals, counter.as_ref(), every);
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
    let of_time = Turns::of(&without, &with, |run| Some(run.took_s)).context("no run")?;
    let longer = |logarithm: f64| 100.0 * logarithm.exp_m1();
    let found = Overhead {
        file: name,
        rounds: args.rounds,
        requests: disk.and_then(|disk| slower(disk, &without, &with)),
        without_s: of_time.without,
        with_s: of_time.with,
        overhead_percent: longer(of_time.mean),
        interval: of_time.interval.map(|found| mapped(found, longer)),
        spread: mapped(of_time.spread, longer),
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

fn time(
    args: &TraceRecordArgs,
    signals: &Signals,
    counter: Option<&Counter>,
    every: Duration,
) -> anyhow::Result<Timed> {
    let stopped = "stopped by a signal: nothing is reported";
    ensure!(signals.last().is_none(), stopped);
    let mut looks = Looks::new();
    let began = Instant::now();
    // Its output many times over helps nobody.
    let mut program = Program::start(&args.command, Stdio::null())?;
    let status = match counter {
        Some(counter) => program.watch(signals, every, || looks.add(counter))?,
        None => program.wait(signals, None)?,
    };
    let took_s = began.elapsed().as_secs_f64();
    counter.into_iter().for_each(|counter| looks.add(counter));
    let Some(status) = status else {
        program.end(signals)?;
        bail!(stopped);
    };
    if !status.success() {
        let program = args.command.first().map(|program| program.to_string_lossy()).unwrap_or_default();
        bail!("{program}: {status}; a command that fails has no time to compare");
    }
    Ok(Timed { took_s, rate: looks.rate() })
}

/// The runs in turns: logarithms of ratios to the neighbours.
///
/// So a run that is disturbed and makes its neighbour look fast has the same weight as one that makes it look slow.
struct Turns {
    without: f64,
    with: f64,
    mean: f64,
    interval: Option<Interval>,
    spread: Interval,
}

impl Turns {
    /// Of a value of each run; `None` if one has none.
    fn of(without: &[Timed], with: &[Timed], value: impl Fn(&Timed) -> Option<f64>) -> Option<Self> {
        let values = |runs: &[Timed]| runs.iter().map(&value).collect::<Option<Vec<f64>>>();
        let (without, with) = (values(without)?, values(with)?);
        let ratio = |(with, pair): (&f64, &[f64])| (with / (pair[0] * pair[1]).sqrt()).ln();
        let each: Vec<f64> = with.iter().zip(without.windows(2)).map(ratio).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let ends = each.iter().fold((f64::MAX, f64::MIN), |(low, high), one| (low.min(*one), high.max(*one)));
        Some(Self {
            without: mean(&without),
            with: mean(&with),
            mean: mean(&each),
            interval: Interval::of_batches(&each),
            spread: Interval { low: ends.0, high: ends.1 },
        })
    }
}

fn mapped(found: Interval, map: impl Fn(f64) -> f64) -> Interval {
    let (one, other) = (map(found.low), map(found.high));
    Interval { low: one.min(other), high: one.max(other) }
}

fn slower(disk: String, without: &[Timed], with: &[Timed]) -> Option<Slower> {
    let rates = Turns::of(without, with, |run| run.rate.map(|(_, per_s)| per_s))?;
    let fewer = |logarithm: f64| -100.0 * logarithm.exp_m1();
    let counts = with.iter().chain(without).filter_map(|run| run.rate).map(|(count, _)| count as f64);
    Some(Slower {
        disk,
        count: counts.sum::<f64>() / (with.len() + without.len()) as f64,
        without_per_s: rates.without,
        with_per_s: rates.with,
        fewer_percent: fewer(rates.mean),
        interval: rates.interval.map(|found| mapped(found, fewer)),
        spread: mapped(rates.spread, fewer),
    })
}

fn said(found: &Overhead, output: &mut Output) -> anyhow::Result<()> {
    let Overhead { rounds, without_s, with_s, overhead_percent, events, lost_events, file, .. } = found;
    if let Some(Slower { disk, count, without_per_s, with_per_s, fewer_percent, interval, spread }) = &found.requests {
        let range = range(*interval, *spread);
        output.said(&format!("overhead: {fewer_percent:.2} % fewer IOPS ({range}), {rounds} rounds"))?;
        output.said(&format!(
            "{disk}: {without_per_s:.0} requests/s without, {with_per_s:.0} with recording, {count:.0} a run"
        ))?;
        output.said(&format!("the whole command, its start and end included: {overhead_percent:+.2} % of its time"))?;
    } else {
        let range = range(found.interval, found.spread);
        output.said(&format!("overhead: {overhead_percent:+.2} % of the command's time ({range}), {rounds} rounds"))?;
        output.said("that is of its whole time: it makes too few requests for their rate")?;
    }
    output
        .said(&format!("without {without_s:.4} s, with {with_s:.4} s, {events:.0} events a run, {lost_events} lost"))?;
    if let Some(event_ns) = found.event_ns {
        let expected = 100.0 * events * event_ns / 1e9 / without_s;
        output.said(&format!("events alone would cost {expected:.2} % ({event_ns:.0} ns each)"))?;
    }
    output.said(&format!("{file}: the recording of the last run"))
}

/// How sure a figure is.
fn range(interval: Option<Interval>, spread: Interval) -> String {
    let Some(interval) = interval else {
        return format!("single rounds {:.2} to {:.2} %; 10 have an interval", spread.low, spread.high);
    };
    let is_shown = interval.low > 0.0 || interval.high < 0.0;
    let noise = if is_shown { "" } else { "; within noise: no cost is shown" };
    let Interval { low, high } = interval;
    format!("95 % interval {low:.2} to {high:.2} %, rounds {:.2} to {:.2} %{noise}", spread.low, spread.high)
}
