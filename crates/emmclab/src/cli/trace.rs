//! The arguments of `trace`.

use std::ffi::OsString;
use std::path::PathBuf;

use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};
use emmc_units::Bytes;

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Record requests with the kernel's tracefs, while a command runs or for some time; needs root
    Record(TraceRecordArgs),
    /// Report where the time of requests goes: file system, block layer, driver, card, completion
    Analyse(TraceAnalyseArgs),
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
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    pub(crate) time: Option<Duration>,
    /// Buffer in the kernel for each processor; if it is full, the oldest events are lost
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = super::known::exact_size)]
    pub(crate) buffer: Bytes,
    /// Record while this command runs
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// `10s`, `500ms` or `2min`.
fn time(text: &str) -> Result<Duration, String> {
    let time = super::known::time(text)?;
    let is_possible = (Duration::from_millis(1)..=Duration::from_secs(86_400)).contains(&time);
    is_possible.then_some(time).ok_or_else(|| "expected 1ms to 1440min".into())
}

#[derive(Args, Debug)]
pub(crate) struct TraceAnalyseArgs {
    /// One recording: trace.dat, ftrace text, blkparse text, blktrace files of all processors, or pages of
    /// trace_pipe_raw with the kernel's format files; - for standard input
    #[arg(required = true, num_args = 1.., value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Only this device [default: eMMC and SD cards (major number 179) if there are any, else all]
    #[arg(long, value_name = "MAJOR:MINOR", value_parser = device)]
    pub(crate) device: Option<u32>,
}

/// `179:0` as the kernel's number.
fn device(text: &str) -> Result<u32, String> {
    let numbers = text.split_once(':').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let device = numbers.filter(|(major, minor): &(u32, u32)| *major < 1 << 12 && *minor < 1 << 20);
    device.map(|(major, minor)| major << 20 | minor).ok_or_else(|| "expected MAJOR:MINOR, e.g. 179:0".into())
}
