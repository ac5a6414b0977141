//! The arguments of `trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Report where the time of requests goes: file system, block layer, driver, card, completion
    Analyse(TraceAnalyseArgs),
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
