//! The arguments of `trace`.

use std::ffi::OsString;
use std::path::PathBuf;

use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, ValueHint};
use emmc_linux::tracefs::Recorded;
use emmc_units::Bytes;

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Record requests with the kernel's tracefs, while a command runs or for some time; needs root
    Record(TraceRecordArgs),
    /// Report where the time of requests goes: file system, block layer, driver, card, completion
    Analyse(TraceAnalyseArgs),
    /// Convert a recording: a timeline for Perfetto's or Chrome's viewer, or requests for fio and simulators
    Export(TraceExportArgs),
    /// Compare the spans of two recordings, and report which differences are beyond noise
    Compare(TraceCompareArgs),
    /// Report who writes and who waits: threads and files, of a recording, live, or over weeks
    Who(TraceWhoArgs),
}

#[derive(Args, Debug)]
pub(crate) struct TraceRecordArgs {
    /// The recording, a trace.dat of version 6
    #[arg(long, short = 'o', value_name = "FILE", default_value = "trace.dat", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// How long, e.g. 10s or 500ms [default: until COMMAND ends, or 10s]
    #[arg(long = "for", value_name = "TIME", value_parser = super::known::time_of_work)]
    pub(crate) time: Option<Duration>,
    /// Record more of each request, at a higher cost: interrupts of the card's controller, steps within the block
    /// layer, every wake-up and every switch of a processor
    #[arg(long, conflicts_with = "live")]
    pub(crate) full: bool,
    /// Buffer in the kernel for each processor; if it is full, the oldest events are lost
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = super::known::exact_size)]
    pub(crate) buffer: Bytes,
    /// Print spans and top writers in the terminal again and again instead, until --for or Ctrl-C; nothing is saved
    #[arg(long, conflicts_with_all = ["output", "command"])]
    pub(crate) live: bool,
    /// How often --live prints
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = super::known::time_of_work)]
    pub(crate) every: Duration,
    /// Run COMMAND with and without recording in turns, and report how many fewer IOPS it has
    #[arg(long, requires = "command", conflicts_with_all = ["live", "time"])]
    pub(crate) measure_overhead: bool,
    /// Runs with recording of --measure-overhead; a confidence interval needs 10
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Print what records the next boot: the kernel's parameters, and a systemd unit that saves the recording
    #[arg(long, conflicts_with_all = ["live", "measure_overhead", "command", "time", "output", "full"])]
    pub(crate) at_boot: bool,
    /// Write and enable the unit after showing it, when you confirm
    #[arg(long, requires = "at_boot")]
    pub(crate) install: bool,
    /// Confirm --install without a prompt, for scripts
    #[arg(long, requires = "install")]
    pub(crate) yes: bool,
    /// Remove the unit
    #[arg(long, requires = "at_boot", conflicts_with = "install")]
    pub(crate) remove: bool,
    /// The root of the system that gets the unit, e.g. an image that is mounted
    #[arg(long, requires = "at_boot", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) root: Option<PathBuf>,
    /// The kernel that gets the parameters, e.g. 6.1.0 [default: the running one]
    #[arg(long, requires = "at_boot", value_name = "RELEASE")]
    pub(crate) kernel: Option<String>,
    /// Save the recording that these parameters made of this boot, and end it
    #[arg(long, conflicts_with_all = ["live", "measure_overhead", "command", "time", "at_boot", "full"])]
    pub(crate) from_boot: bool,
    /// Record while this command runs; the exit code is the command's
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct TraceWhoArgs {
    /// A recording [default: live, which needs root]
    #[arg(num_args = 0.., value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Requests of this device only [default: eMMC and SD cards if there are any, else all]
    #[arg(long, value_name = "MAJOR:MINOR", value_parser = device)]
    pub(crate) device: Option<u32>,
    /// How long to record, e.g. 10s [default: 10s; with --light until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = super::known::time_of_work, conflicts_with = "files")]
    pub(crate) time: Option<Duration>,
    /// Buffer in the kernel for each processor
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = super::known::exact_size)]
    pub(crate) buffer: Bytes,
    /// Record only writes into files, for days and weeks, and count them at every interval
    #[arg(long, conflicts_with = "files")]
    pub(crate) light: bool,
    /// With --light: have the kernel sum up (hist triggers); a write costs more, but none can be lost
    #[arg(long, requires = "light")]
    pub(crate) sums: bool,
    /// The interval of --light
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = super::known::time_of_work)]
    pub(crate) every: Duration,
    /// The log that --light appends a line of JSON to at every interval, and --since reads
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "files")]
    pub(crate) log: Option<PathBuf>,
    /// Sum up the last days of the log
    #[arg(long, value_name = "DAYS", requires = "log", conflicts_with_all = ["light", "time"], value_parser = days)]
    pub(crate) since: Option<f64>,
}

impl TraceRecordArgs {
    /// Which events.
    pub(crate) fn recorded(&self) -> Recorded {
        if self.full { Recorded::Details } else { Recorded::Requests }
    }
}

/// `7` or `0.5`.
fn days(text: &str) -> Result<f64, String> {
    let days = text.parse::<f64>().ok().filter(|days| (0.0..=100_000.0).contains(days) && *days > 0.0);
    days.ok_or_else(|| "expected a number of days, e.g. 7 or 0.5".into())
}

#[derive(Args, Debug)]
pub(crate) struct TraceAnalyseArgs {
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
    /// Write a self-contained page with pictures instead: spans, latencies, single requests, sizes, depths; - for
    /// standard output
    #[cfg(feature = "html")]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
    /// Replace an existing page
    #[cfg(feature = "html")]
    #[arg(long, requires = "html")]
    pub(crate) force: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TraceCompareArgs {
    /// The first recording, the baseline: one file
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub(crate) first: PathBuf,
    /// The second
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub(crate) second: PathBuf,
    /// Only this device of both [default: eMMC and SD cards if there are any, else all]
    #[arg(long, value_name = "MAJOR:MINOR", value_parser = device)]
    pub(crate) device: Option<u32>,
}

/// A recording, and which of its requests are meant.
#[derive(Args, Debug)]
pub(crate) struct RecordingArgs {
    /// One recording: trace.dat, ftrace text, blkparse text, blktrace files of all processors, or pages of
    /// trace_pipe_raw with the kernel's format files; - for standard input
    #[arg(required = true, num_args = 1.., value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Only this device [default: eMMC and SD cards (major number 179) if there are any, else all]
    #[arg(long, value_name = "MAJOR:MINOR", value_parser = device)]
    pub(crate) device: Option<u32>,
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("form").required(true).args(["perfetto", "chrome", "fio_iolog", "csv"])))]
pub(crate) struct TraceExportArgs {
    #[command(flatten)]
    pub(crate) recording: RecordingArgs,
    /// A timeline of all requests and their spans for ui.perfetto.dev, as its protobuf
    #[arg(long)]
    pub(crate) perfetto: bool,
    /// The same as Chrome's JSON, which more viewers open
    #[arg(long)]
    pub(crate) chrome: bool,
    /// The requests as fio's iolog, for --read_iolog; version 2 has waits, 3 has times
    #[arg(long, value_name = "2|3", num_args = 0..=1, require_equals = true, default_missing_value = "3")]
    #[arg(value_parser = ["2", "3"])]
    pub(crate) fio_iolog: Option<String>,
    /// The requests as CSV: time_us,op,lba,sectors
    #[arg(long)]
    pub(crate) csv: bool,
    /// The file that fio's iolog names; fio's --replay_redirect replaces it
    #[arg(long, value_name = "NAME", default_value = "replayed")]
    #[arg(conflicts_with_all = ["perfetto", "chrome", "csv"])]
    pub(crate) file: String,
    /// The new file; - for standard output
    #[arg(long, short = 'o', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

/// `179:0` as the kernel's number.
fn device(text: &str) -> Result<u32, String> {
    let numbers = text.split_once(':').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let device = numbers.filter(|(major, minor): &(u32, u32)| *major < 1 << 12 && *minor < 1 << 20);
    device.map(|(major, minor)| major << 20 | minor).ok_or_else(|| "expected MAJOR:MINOR, e.g. 179:0".into())
}
