//! `trace record` and `trace analyse`: recordings of Linux, and the spans of their requests.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use emmc_linux::tracefs::{Recorder, Saved, TracefsError};
use emmc_trace::result::Analysis;
use emmc_trace::{Input, Storage, analyse, open};
use serde::Serialize;

use crate::CommandResult;
use crate::cli::{RecordingArgs, TraceAnalyseArgs, TraceCommand, TraceRecordArgs};
use crate::exit::Exit;
use crate::input;
use crate::output::Output;
#[cfg(feature = "html")]
use crate::output::Page;
use crate::save::Refused;
use crate::signals;

pub(crate) mod boot;
pub(crate) mod compare;
pub(crate) mod export;
mod live;
pub(crate) mod overhead;
mod pace;
mod program;
pub(crate) mod who;

pub(crate) use self::program::CannotRun;
use self::program::{Program, Signals};

pub(crate) const SCHEMA: &str = "emmclab.trace-analyse/1";
pub(crate) const RECORD_SCHEMA: &str = "emmclab.trace-record/1";

/// Most bytes of a pipe, which has to be kept in memory. A file is read piece by piece.
const PIPE_BYTES_MAX: u64 = 1 << 30;
const FILES_MAX: usize = 4096;
/// Without a command.
const DEFAULT_TIME: Duration = Duration::from_secs(10);

pub(crate) fn run(command: &TraceCommand, output: &mut Output) -> CommandResult {
    match command {
        TraceCommand::Record(args) => record(args, output),
        TraceCommand::Analyse(args) => run_analyse(args, output),
        TraceCommand::Export(args) => export::run(args, output),
        TraceCommand::Compare(args) => compare::run(args, output),
        TraceCommand::Who(args) => who::run(args, output),
    }
}

/// What `trace record` prints.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RecordedFile {
    /// The recording.
    file: String,
    /// Its size.
    file_bytes: u64,
    /// How long it took. Unit: seconds.
    duration_s: f64,
    /// Events in it.
    events: u64,
    /// Events that were overwritten or dropped because the buffer was full.
    lost_events: u64,
    /// Measured cost of an event for the processor that records it. Unit: nanoseconds.
    event_ns: Option<f64>,
    /// The cost of all events, as a share of one processor. Unit: percent.
    cost_percent: Option<f64>,
    /// Events of the default set that this kernel does not have.
    missing: Vec<String>,
    /// The exit code of the command, if it ended by itself.
    command_exit: Option<i32>,
    /// The signal that ended the command, or this recording.
    ended_by_signal: Option<i32>,
}

fn record(args: &TraceRecordArgs, output: &mut Output) -> CommandResult {
    if args.at_boot {
        return boot::at_boot(args, output);
    }
    if args.live {
        let stop = Arc::new(AtomicBool::new(false));
        signals::stop_by_signal(&stop)?;
        return live::run(args, &stop, output);
    }
    let name = args.output.display().to_string();
    match std::fs::metadata(&args.output) {
        Ok(found) if !found.is_file() => {
            return Err(Refused(format!("{name}: is no plain file: name another one")).into());
        }
        Ok(_) if !args.force => anyhow::bail!("{name}: exists already; --force replaces it"),
        _ => {}
    }
    can_write(&args.output).with_context(|| format!("{name}: cannot write"))?;
    if args.from_boot {
        return boot::from_boot(args, output);
    }
    let signals = Signals::new()?;
    if args.measure_overhead {
        let found = overhead::run(args, &signals, output);
        return match (found, signals.last()) {
            (Err(error), Some(signal)) => {
                output.error(&format!("{error:#}"));
                Ok(program::by_signal(signal))
            }
            (found, _) => found,
        };
    }
    record_now(args, &name, &signals, output)
}

/// Finds out before an hour of work whether its recording can be written. Leaves the place as it was.
fn can_write(path: &Path) -> io::Result<()> {
    let is_there = path.exists();
    File::options().write(true).create(true).truncate(false).open(path)?;
    if is_there { Ok(()) } else { std::fs::remove_file(path) }
}

/// Records until the command ends, the time is over, or a signal comes.
fn record_now(args: &TraceRecordArgs, name: &str, signals: &Signals, output: &mut Output) -> CommandResult {
    let recorder = Recorder::new(args.recorded(), args.buffer.0)?;
    let began = Instant::now();
    recorder.start()?;
    let time = args.time.or(args.command.is_empty().then_some(DEFAULT_TIME));
    let until = time.map(|time| began + time);
    let (mut program, mut status) = (None, None);
    if args.command.is_empty() {
        signals.wait_until(until)?;
    } else {
        status = program.insert(Program::start(&args.command, Stdio::inherit())?).wait(signals, until)?;
    }
    let signal = signals.last();
    let duration_s = began.elapsed().as_secs_f64();
    let saved = save(&recorder, &args.output)?;
    let cost = |event_ns: f64| (saved.events + saved.lost) as f64 * event_ns / duration_s / 1e7;
    let recorded = RecordedFile {
        file: name.into(),
        file_bytes: saved.bytes,
        duration_s,
        events: saved.events,
        lost_events: saved.lost,
        event_ns: recorder.event_ns,
        cost_percent: recorder.event_ns.map(cost),
        missing: recorder.missing.clone(),
        command_exit: status.and_then(|status| status.code()),
        ended_by_signal: signal.map(i32::from).or(status.and_then(|status| status.signal())),
    };
    drop(recorder);
    let exit = print_recorded(&recorded, output)?;
    let Some(program) = program else { return Ok(exit) };
    if status.is_none() {
        program.end(signals)?;
    }
    // A command has its own exit code: what was lost is in what is printed.
    Ok(match (signal, status) {
        (Some(signal), _) => program::by_signal(signal),
        (None, Some(status)) => program::exit(status),
        (None, None) => exit,
    })
}

/// Ends the recording and writes it.
fn save(recorder: &Recorder, path: &Path) -> anyhow::Result<Saved> {
    let mut file = File::create(path).with_context(|| format!("{}: cannot write", path.display()))?;
    recorder
        .save(&mut file)
        .inspect_err(|_| {
            // A part of a recording is no recording.
            drop(std::fs::remove_file(path));
        })
        .map_err(|error| match error {
            TracefsError::Output(error) => {
                anyhow::Error::new(error).context(format!("{}: cannot write", path.display()))
            }
            other => other.into(),
        })
}

fn print_recorded(recorded: &RecordedFile, output: &mut Output) -> CommandResult {
    if output.is_json() {
        output.print(RECORD_SCHEMA, recorded, |_| unreachable!("JSON was asked for"))?;
    } else {
        said(recorded, output)?;
    }
    Ok(if recorded.lost_events > 0 { Exit::Findings } else { Exit::Good })
}

fn said(recorded: &RecordedFile, output: &mut Output) -> anyhow::Result<()> {
    let RecordedFile { file, events, lost_events, duration_s, .. } = recorded;
    output.said(&format!("{file}: {events} events in {duration_s:.3} s, {lost_events} lost"))?;
    if let Some((event_ns, percent)) = recorded.event_ns.zip(recorded.cost_percent) {
        output.said(&format!("cost: {event_ns:.0} ns an event, {percent:.2} % of one processor"))?;
    }
    let missing: Vec<&str> = recorded.missing.iter().map(String::as_str).collect();
    if !missing.is_empty() {
        output.said(&format!("this kernel does not have: {}", missing.join(", ")))?;
    }
    output.said(&format!("emmclab trace analyse {file} reports where the time went"))
}

/// Until this instant, or a signal; a signal is seen soon, and an idle board is woken twice a second only.
fn wait_until(until: Instant, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(500)));
    }
}

fn run_analyse(args: &TraceAnalyseArgs, output: &mut Output) -> CommandResult {
    let inputs = inputs(&args.recording)?;
    #[cfg(feature = "html")]
    let again = args.html.as_ref().map(|_| inputs.clone());
    let analysis = analyse(open(inputs)?, args.recording.device);
    #[cfg(feature = "html")]
    if let Some(inputs) = again {
        page(args, inputs, &analysis, output)?;
        return Ok(exit(&analysis));
    }
    output.print(SCHEMA, &analysis, emmc_report::present::trace)?;
    Ok(exit(&analysis))
}

/// The page with pictures: the recording is read twice more, to choose the points and to collect them.
#[cfg(feature = "html")]
fn page(args: &TraceAnalyseArgs, again: Vec<Input>, analysis: &Analysis, output: &mut Output) -> anyhow::Result<()> {
    let found = emmc_trace::survey(open(again.clone())?, args.recording.device);
    let pictures = emmc_trace::pictures(open(again)?, &found);
    let inputs = args.recording.files.iter().map(|path| path.as_path()).collect();
    let page = Page { path: args.html.as_deref(), force: args.force, inputs };
    output.report(SCHEMA, analysis, &page, |analysis| emmc_report::present::trace_page(analysis, &pictures))
}

fn exit(analysis: &Analysis) -> Exit {
    let has_commands = analysis.commands.is_some();
    match (analysis.requests > 0 || has_commands, analysis.causes.is_empty()) {
        (false, _) => Exit::Unknown,
        (true, true) => Exit::Good,
        (true, false) => Exit::Findings,
    }
}

/// The files of one recording.
fn inputs(args: &RecordingArgs) -> anyhow::Result<Vec<Input>> {
    opened(&args.files)
}

fn opened(files: &[std::path::PathBuf]) -> anyhow::Result<Vec<Input>> {
    ensure!(files.len() <= FILES_MAX, "{} files; expected at most {FILES_MAX}", files.len());
    let is_input = |path: &&std::path::PathBuf| path.as_os_str() == "-";
    ensure!(files.iter().filter(is_input).count() < 2, "standard input can be only one of the files");
    files.iter().map(|path| storage(path)).collect()
}

/// A recording of one file, analysed; for `study`.
pub(crate) fn analysed(path: &Path) -> anyhow::Result<Analysis> {
    let input = storage(path)?;
    let name = input.name.clone();
    let analysis = analyse(open(vec![input])?, None);
    ensure!(analysis.requests > 0, "{name}: no complete request is in it");
    Ok(analysis)
}

/// A file that is only in memory.
fn memory_file() -> anyhow::Result<File> {
    let made = rustix::fs::memfd_create("emmclab-trace", rustix::fs::MemfdFlags::CLOEXEC);
    Ok(File::from(made.context("a file in memory")?))
}

/// What was just recorded.
fn recorded_in(file: File) -> anyhow::Result<Input> {
    let size_bytes = file.metadata()?.len();
    Ok(Input { name: "recording".into(), storage: Arc::new(Pieces { file, size_bytes }) })
}

/// A file that is read piece by piece.
struct Pieces {
    file: File,
    size_bytes: u64,
}

impl Storage for Pieces {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}

fn storage(path: &Path) -> anyhow::Result<Input> {
    let name = if path.as_os_str() == "-" { "standard input".into() } else { path.display().to_string() };
    let cannot = || format!("{name}: cannot read");
    let storage: Arc<dyn Storage> = if path.as_os_str() == "-" {
        Arc::new(input::limited(&name, io::stdin().lock(), PIPE_BYTES_MAX)?)
    } else if std::fs::metadata(path).with_context(cannot)?.is_file() {
        let file = File::open(path).with_context(cannot)?;
        let size_bytes = file.metadata().with_context(cannot)?.len();
        Arc::new(Pieces { file, size_bytes })
    } else {
        Arc::new(input::read(path, PIPE_BYTES_MAX)?)
    };
    Ok(Input { name, storage })
}
