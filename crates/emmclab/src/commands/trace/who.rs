//! `trace who`: threads and files by bytes written and by time waited, from a recording, live, or over days.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail, ensure};
use emmc_linux::paths::{Inode, Search, paths};
use emmc_linux::tracefs::{FileSums, Recorded, Recorder};
use emmc_trace::{Sums, Who, open, who};
use emmc_units::printable_json;
use serde::{Deserialize, Serialize};

use super::{memory_file, recorded_in, wait_until};
use crate::CommandResult;
use crate::cli::TraceWhoArgs;
use crate::exit::Exit;
use crate::output::Output;
use crate::save::Refused;
use crate::signals;

pub(crate) const SCHEMA: &str = "emmclab.trace-who/1";

/// Without `--for`.
const DEFAULT_TIME: Duration = Duration::from_secs(10);
/// Of a light recording, for each processor: some ten thousand writes between two looks.
const LIGHT_BUFFER_BYTES: u64 = 4 << 20;
/// How often it is looked whether that is full enough to be read before the interval is over.
const FULL_EVERY: Duration = Duration::from_secs(5);
const FULL_ENOUGH: f64 = 0.4;
const DAY_S: f64 = 86_400.0;

/// What `trace who` prints, and a line of its log.
#[derive(Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct WhoDocument {
    #[serde(flatten)]
    who: Who,
    /// recording, live, light or log.
    source: String,
    /// When it ended, since 1970; `null` for a recording. Unit: seconds.
    ended_unix_s: Option<u64>,
    /// Measured cost of an event for the processor that records it. Unit: nanoseconds.
    event_ns: Option<f64>,
    /// The cost of recording and counting, as a share of one processor. Unit: percent.
    cost_percent: Option<f64>,
    /// Lines of the log that are summed up.
    parts: u64,
    /// What counted writes into files for a light recording: events, or sums of the kernel (hist triggers, `--sums`).
    #[serde(default)]
    counted_by: Option<String>,
}

pub(crate) fn run(args: &TraceWhoArgs, output: &mut Output) -> CommandResult {
    let document = if let Some(days) = args.since {
        from_log(args.log.as_deref().context("--since needs --log FILE")?, days)?
    } else if args.light {
        light(args, output)?
    } else if args.files.is_empty() {
        live(args)?
    } else {
        let found = who(open(super::opened(&args.files)?)?, args.device);
        WhoDocument { who: found, source: "recording".into(), parts: 1, ..WhoDocument::default() }
    };
    let title = |document: &WhoDocument| emmc_report::present::trace_who(&document.who, document.cost_percent);
    output.print(SCHEMA, &document, title)?;
    let is_empty = document.who.threads.is_empty() && document.who.files.is_empty();
    Ok(match (is_empty, document.who.lost_events) {
        (true, _) => Exit::Unknown,
        (false, 0) => Exit::Good,
        (false, _) => Exit::Findings,
    })
}

fn live(args: &TraceWhoArgs) -> anyhow::Result<WhoDocument> {
    let (stop, time) = (stop()?, args.time.unwrap_or(DEFAULT_TIME));
    let recorder = Recorder::new(Recorded::RequestsAndFiles, args.buffer.0)?;
    let began = Instant::now();
    recorder.start()?;
    wait_until(began + time, &stop);
    let mut file = memory_file()?;
    let saved = recorder.save(&mut file)?;
    let took = began.elapsed();
    let mut found = who(open(vec![recorded_in(file)?])?, args.device);
    found.lost_events = saved.lost;
    resolve(&mut found, Search::Filesystems);
    let cost = recorder.event_ns.map(|ns| (saved.events + saved.lost) as f64 * ns);
    let event_ns = recorder.event_ns;
    Ok(document(found, "live", event_ns, cost.map(|ns| 100.0 * ns / took.as_nanos() as f64)))
}

/// Few events, looked at from time to time: for days and weeks.
fn light(args: &TraceWhoArgs, output: &mut Output) -> anyhow::Result<WhoDocument> {
    let mut log = args.log.as_deref().map(appended).transpose()?;
    let stop = stop()?;
    let mut counter = Counter::new(args)?;
    let began = Instant::now();
    let end = args.time.map(|time| began + time);
    let (mut all, mut last, mut used) = (Vec::<WhoDocument>::new(), began, own_ns());
    loop {
        let due = (last + args.every).min(end.unwrap_or(last + args.every));
        while !stop.load(Ordering::Relaxed) && Instant::now() < due {
            wait_until(due.min(Instant::now() + counter.look_every()), &stop);
            counter.relieve()?;
        }
        let is_over = stop.load(Ordering::Relaxed) || end.is_some_and(|end| Instant::now() >= end);
        let mut found = counter.look()?;
        // A walk at every interval would cost more than all events; `--since` makes it once.
        resolve(&mut found, Search::OpenFiles);
        let (took, now) = (last.elapsed(), own_ns());
        (last, found.duration_s) = (Instant::now(), took.as_secs_f64());
        let recording_ns = counter.event_ns().map(|ns| (found.events + found.lost_events) as f64 * ns);
        let own = now.zip(used).map(|(now, before)| now.saturating_sub(before) as f64);
        used = now;
        let cost = recording_ns.zip(own).map(|(recording, own)| 100.0 * (recording + own) / took.as_nanos() as f64);
        let mut part = document(found, "light", counter.event_ns(), cost);
        part.counted_by = Some(counter.name().into());
        if let Some((file, name)) = &mut log {
            let line = printable_json(serde_json::to_string(&part)?) + "\n";
            file.write_all(line.as_bytes()).with_context(|| format!("{name}: cannot write"))?;
            if !output.is_json() && !is_over {
                output.said(&said(&part))?;
            }
        }
        all.push(part);
        if all.len() > 1 {
            // What is in the log needs no memory.
            all = vec![summed("light", all.drain(..))];
        }
        if is_over {
            break;
        }
    }
    Ok(summed("light", all))
}

/// What counts writes into files: the kernel's own sums, or events that are read at each interval, which cost half.
enum Counter {
    /// With the sums of the last look.
    Sums(FileSums, Vec<Sums>),
    /// With what was counted since the last look.
    Events { recorder: Recorder, device: Option<u32>, counted: Vec<Who>, lost: u64 },
}

impl Counter {
    fn new(args: &TraceWhoArgs) -> anyhow::Result<Self> {
        if args.sums {
            let sums = FileSums::new()?.context("--sums: this kernel has no hist triggers (CONFIG_HIST_TRIGGERS)")?;
            return Ok(Self::Sums(sums, Vec::new()));
        }
        let recorder = Recorder::new(Recorded::Files, LIGHT_BUFFER_BYTES)?;
        recorder.start()?;
        Ok(Self::Events { recorder, device: args.device, counted: Vec::new(), lost: 0 })
    }

    /// The kernel's own sums cannot overflow within an interval.
    fn look_every(&self) -> Duration {
        match self {
            Self::Sums(..) => Duration::from_secs(86_400),
            Self::Events { .. } => FULL_EVERY,
        }
    }

    /// Counts what was recorded if the buffer could be full before the interval ends.
    fn relieve(&mut self) -> anyhow::Result<()> {
        if let Self::Events { recorder, .. } = self {
            if recorder.fill()? > FULL_ENOUGH {
                self.count()?;
            }
        }
        Ok(())
    }

    /// Counts what was recorded.
    fn count(&mut self) -> anyhow::Result<()> {
        let Self::Events { recorder, device, counted, lost } = self else { return Ok(()) };
        let mut file = memory_file()?;
        let saved = recorder.drain(&mut file)?;
        let mut found = who(open(vec![recorded_in(file)?])?, *device);
        found.lost_events = saved.lost.saturating_sub(*lost);
        *lost = saved.lost;
        counted.push(found);
        if counted.len() > 1 {
            *counted = vec![Who::sum(std::mem::take(counted))];
        }
        Ok(())
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Sums(..) => "sums of the kernel",
            Self::Events { .. } => "events",
        }
    }

    fn event_ns(&self) -> Option<f64> {
        match self {
            Self::Sums(sums, _) => sums.event_ns,
            Self::Events { recorder, .. } => recorder.event_ns,
        }
    }

    /// What was written since the last look.
    fn look(&mut self) -> anyhow::Result<Who> {
        match self {
            Self::Sums(sums, last) => {
                let mut now: Vec<Sums> = sums.read()?.iter().map(|text| Sums::new(text)).collect();
                last.resize(now.len(), Sums::default());
                let added: Vec<Sums> = now.iter().zip(&*last).map(|(now, last)| now.since(last)).collect();
                for (number, now) in now.iter_mut().enumerate() {
                    // Room for the pairs of the next interval.
                    if now.entries > sums.room() / 2 || now.dropped > 0 {
                        sums.clear(number)?;
                        *now = Sums::default();
                    }
                }
                *last = now;
                Ok(Sums::who(&added))
            }
            Self::Events { .. } => {
                self.count()?;
                let Self::Events { counted, .. } = self else { return Ok(Who::default()) };
                Ok(counted.pop().unwrap_or_default())
            }
        }
    }
}

/// One line for an interval.
fn said(part: &WhoDocument) -> String {
    let written: u64 = part.who.files.iter().map(|file| file.written_bytes).sum();
    let cost = part.cost_percent.map_or(String::new(), |cost| format!(", cost {cost:.4} % of a processor"));
    let first = part.who.files.first().map_or(String::new(), |file| {
        let name = file.path.clone().unwrap_or_else(|| format!("inode {} of {}", file.inode, file.device));
        format!(", most into {name}")
    });
    format!("{:.0} s: {} written{first}{cost}", part.who.duration_s, emmc_units::Bytes(written).rounded())
}

fn from_log(path: &Path, days: f64) -> anyhow::Result<WhoDocument> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("{name}: cannot read"))?;
    ensure!(file.metadata()?.is_file(), "{name}: is no file; expected a log of trace who --light");
    let from = now_unix_s() as f64 - days * DAY_S;
    let mut parts = Vec::new();
    let mut sum: Option<WhoDocument> = None;
    for (line, number) in BufReader::new(file).lines().zip(1u64..) {
        let line = line.with_context(|| format!("{name}: cannot read"))?;
        if line.trim().is_empty() {
            continue;
        }
        let part: WhoDocument = match serde_json::from_str(&line) {
            Ok(part) => part,
            Err(error) => bail!("{name}, line {number}: {error}; expected a line of trace who --light"),
        };
        if part.ended_unix_s.is_some_and(|ended| ended as f64 >= from) {
            parts.extend(sum.take());
            parts.push(part);
            sum = Some(summed("log", parts.drain(..)));
        }
    }
    let mut sum = sum.with_context(|| format!("{name}: nothing of the last {days} days is in it"))?;
    resolve(&mut sum.who, Search::Filesystems);
    Ok(sum)
}

fn document(who: Who, source: &str, event_ns: Option<f64>, cost_percent: Option<f64>) -> WhoDocument {
    let (source, ended_unix_s) = (source.into(), Some(now_unix_s()));
    WhoDocument { who, source, ended_unix_s, event_ns, cost_percent, parts: 1, counted_by: None }
}

/// The sum, its cost weighted by time.
fn summed(source: &str, parts: impl IntoIterator<Item = WhoDocument>) -> WhoDocument {
    let mut sum = WhoDocument { source: source.into(), ..WhoDocument::default() };
    let (mut all, mut cost, mut time) = (Vec::new(), Some(0.0), 0.0);
    for part in parts {
        sum.parts += part.parts;
        sum.ended_unix_s = sum.ended_unix_s.max(part.ended_unix_s);
        sum.event_ns = part.event_ns.or(sum.event_ns);
        sum.counted_by = part.counted_by.or(sum.counted_by);
        time += part.who.duration_s;
        cost = cost.zip(part.cost_percent).map(|(cost, percent)| cost + percent * part.who.duration_s);
        all.push(part.who);
    }
    sum.cost_percent = cost.filter(|_| time > 0.0).map(|cost| cost / time);
    sum.who = if all.len() == 1 { all.remove(0) } else { Who::sum(all) };
    sum
}

/// Finds the paths that are not known yet.
fn resolve(found: &mut Who, search: Search) {
    let key = |device: &str, inode: u64, is_filesystem: bool| {
        let (major, minor) = device.split_once(':')?;
        Some(Inode { device: (major.parse().ok()?, minor.parse().ok()?), is_filesystem, inode })
    };
    let keys =
        found.files.iter().map(|file| key(&file.device, file.inode, file.is_exact).filter(|_| file.path.is_none()));
    let keys: Vec<Option<Inode>> = keys.collect();
    let wanted: Vec<Inode> = keys.iter().flatten().copied().collect();
    let known = paths(&wanted, search);
    for (file, key) in found.files.iter_mut().zip(keys) {
        if let Some(path) = key.and_then(|key| known.get(&key)) {
            file.path = Some(path.display().to_string());
        }
    }
}

/// A log that lines are appended to.
fn appended(path: &Path) -> anyhow::Result<(File, String)> {
    let name = path.display().to_string();
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(Refused(format!("{name}: is no plain file: name another one")).into());
    }
    let file = OpenOptions::new().create(true).append(true).open(path);
    Ok((file.with_context(|| format!("{name}: cannot write"))?, name))
}

fn stop() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    signals::stop_by_signal(&stop)?;
    Ok(stop)
}

/// Processor time of this program's only thread. Unit: nanoseconds.
fn own_ns() -> Option<u64> {
    std::fs::read_to_string("/proc/self/schedstat").ok()?.split_whitespace().next()?.parse().ok()
}

fn now_unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
