//! The arguments of `lab`: a real Linux against a virtual card, in simulated time.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use emmc_units::Bytes;

use super::{ControllerArg, SimCtlArgs};

/// A filesystem of the lab's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FilesystemArg {
    Ext4,
    F2fs,
}

impl FilesystemArg {
    /// Its name, as mkfs and mount have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::F2fs => "f2fs",
        }
    }
}

/// What the controller copies data with, without command queueing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DmaArg {
    /// Scatter and gather: the pages of a request may lie anywhere
    Adma,
    /// One piece: the kernel copies each request through a bounce buffer of 64 KiB
    Sdma,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Run a shell script or a fio job on a real Linux against a virtual card, both in simulated time
    Run(LabRunArgs),
    /// Run it for every combination of several settings, and print a table
    Sweep(LabSweepArgs),
    /// Measure the lab's kernel and processor as the file of a host for `bench --host`
    Calibrate(LabCalibrateArgs),
}

/// The machine and its script.
#[derive(Args, Clone, Debug)]
pub(crate) struct LabMachineArgs {
    /// Seed of a new card: its weak blocks and its timing variation
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub(crate) seed: u64,
    /// What a new card has behind it: a job of `sim run`
    #[arg(long, value_name = "JOB", value_parser = super::known::job(), hide_possible_values = true)]
    pub(crate) age: Option<PathBuf>,
    /// A shell script, or a fio job file (its name ends with .fio, or its first line is a section in brackets)
    #[arg(long, value_name = "FILE")]
    pub(crate) script: PathBuf,
    /// A User-Mode Linux, or a folder with one (`linux`) and its first file system (`initramfs`)
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) kernel: Option<PathBuf>,
    /// Memory of the machine, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(128..=65536))]
    pub(crate) memory: u32,
    /// End the machine when it has not accessed the card for this many real seconds; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub(crate) patience: u64,
    /// End the machine when the script has not ended after this many simulated seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) limit: Option<u64>,
    /// Parameters of the kernel, e.g. cost_syscall_ns=1000
    #[arg(last = true, value_name = "PARAMETER")]
    pub(crate) parameters: Vec<OsString>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct LabRunArgs {
    /// The card: a profile, a profile file, sim:PROFILE@PERCENT, or the folder of a card made by `sim create`
    #[arg(long, value_name = "PROFILE|DIR", value_parser = super::known::profile(), hide_possible_values = true)]
    pub(crate) card: String,
    #[command(flatten)]
    pub(crate) machine: LabMachineArgs,
    /// An environment variable of the script (may be repeated)
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Make this filesystem on the card and mount it; the script starts in it
    #[arg(long, value_enum)]
    pub(crate) filesystem: Option<FilesystemArg>,
    /// Options of mkfs; `nodiscard`: the card is not told that it is empty; `none`: mount what is on it
    #[arg(long, value_name = "OPTIONS", requires = "filesystem", allow_hyphen_values = true)]
    pub(crate) mkfs: Option<String>,
    /// Options of mount, e.g. noatime,commit=30
    #[arg(long, value_name = "OPTIONS", requires = "filesystem")]
    pub(crate) mount: Option<String>,
    /// The scheduler of the block layer: none, mq-deadline, kyber, bfq
    #[arg(long, value_name = "NAME")]
    pub(crate) scheduler: Option<String>,
    /// Read-ahead of the block layer, in KiB
    #[arg(long, value_name = "KIB")]
    pub(crate) read_ahead: Option<u32>,
    /// The largest request of the block layer, e.g. 64KiB
    #[arg(long, value_name = "SIZE", value_parser = kib)]
    pub(crate) max_request: Option<Bytes>,
    /// The controller: cqe or no-cqe
    #[arg(long, value_enum, default_value_t = ControllerArg::Cqe)]
    pub(crate) controller: ControllerArg,
    /// What the controller copies data with; sdma: only without command queueing
    #[arg(long, value_enum, default_value_t = DmaArg::Adma)]
    pub(crate) dma: DmaArg,
    /// The processor's time for an instruction, in ns; 0: its work is free
    #[arg(long, value_name = "NS", default_value_t = 0.0, value_parser = cpu_ns)]
    pub(crate) cpu_ns: f64,
    /// Copy the files that the script leaves in /out to this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write each request as the card saw it to this file, a line of JSON each
    #[arg(long, value_name = "FILE")]
    pub(crate) requests: Option<PathBuf>,
    /// Write each register access with its time to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) accesses: Option<PathBuf>,
    /// Write the kernel's trace of the events of the block layer and of mmc to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
}

/// Each option may be repeated: the runs are all combinations.
#[derive(Args, Debug)]
pub(crate) struct LabSweepArgs {
    /// A card: a profile, a profile file, sim:PROFILE@PERCENT; each run gets a new one (may be repeated)
    #[arg(long, value_name = "PROFILE", value_parser = super::known::profile(), hide_possible_values = true, required = true)]
    pub(crate) card: Vec<String>,
    #[command(flatten)]
    pub(crate) machine: LabMachineArgs,
    /// An environment variable of the script; values of the same name are combined (may be repeated)
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// A filesystem: ext4, f2fs, or none for the card itself (may be repeated)
    #[arg(long, value_name = "NAME", value_parser = filesystem_or_none)]
    pub(crate) filesystem: Vec<FilesystemOrNone>,
    /// Options of mkfs (may be repeated)
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    pub(crate) mkfs: Vec<String>,
    /// Options of mount (may be repeated); defaults: none
    #[arg(long, value_name = "OPTIONS")]
    pub(crate) mount: Vec<String>,
    /// Commit interval of ext4, in seconds (may be repeated)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) commit: Vec<u32>,
    /// A scheduler of the block layer: none, mq-deadline, kyber, bfq (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) scheduler: Vec<String>,
    /// Read-ahead of the block layer, in KiB (may be repeated)
    #[arg(long, value_name = "KIB")]
    pub(crate) read_ahead: Vec<u32>,
    /// The largest request of the block layer, e.g. 64KiB (may be repeated)
    #[arg(long, value_name = "SIZE", value_parser = kib)]
    pub(crate) max_request: Vec<Bytes>,
    /// The controller: cqe or no-cqe (may be repeated)
    #[arg(long, value_enum)]
    pub(crate) controller: Vec<ControllerArg>,
    /// What the controller copies data with (may be repeated)
    #[arg(long, value_enum)]
    pub(crate) dma: Vec<DmaArg>,
    /// The processor's time for an instruction, in ns (may be repeated)
    #[arg(long, value_name = "NS", value_parser = cpu_ns)]
    pub(crate) cpu_ns: Vec<f64>,
    /// How many runs at a time [default: one for each processor of this machine]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Args, Debug)]
pub(crate) struct LabCalibrateArgs {
    /// The processor's time for an instruction, in ns; 0: its work is free, only the driver's waits are measured
    #[arg(long, value_name = "NS", value_parser = cpu_ns)]
    pub(crate) cpu_ns: f64,
    /// A User-Mode Linux, or a folder with one (`linux`) and its first file system (`initramfs`)
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) kernel: Option<PathBuf>,
    /// The scheduler of the block layer: none, mq-deadline, kyber, bfq
    #[arg(long, value_name = "NAME")]
    pub(crate) scheduler: Option<String>,
    /// Memory of the machine, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(128..=65536))]
    pub(crate) memory: u32,
    /// End the machine when it has not accessed the card for this many real seconds; 0: never
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub(crate) patience: u64,
    /// Write the host to this file instead of standard output
    #[arg(long, short = 'o', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Parameters of the kernel, e.g. cost_syscall_ns=1000
    #[arg(last = true, value_name = "PARAMETER")]
    pub(crate) parameters: Vec<OsString>,
}

/// A filesystem, or the card without one.
pub(crate) type FilesystemOrNone = Option<FilesystemArg>;

/// `ask ctl WORDS` of a script.
#[derive(Debug, Parser)]
#[command(name = "ask ctl", disable_help_flag = true)]
pub(crate) struct LabOrder {
    #[command(flatten)]
    pub(crate) ctl: SimCtlArgs,
    /// The answer as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

fn filesystem_or_none(text: &str) -> Result<FilesystemOrNone, String> {
    match text {
        "none" => Ok(None),
        text => FilesystemArg::from_str(text, false).map(Some).map_err(|_| "expected ext4, f2fs or none".into()),
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').unwrap_or_default();
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_good = is_name(name) && !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    let is_good = is_good && !value.contains('\n');
    is_good.then(|| (name.into(), value.into())).ok_or_else(|| "expected NAME=VALUE".into())
}

/// A size in whole KiB.
fn kib(text: &str) -> Result<Bytes, String> {
    let size = super::known::exact_size(text)?;
    let is_whole = size.0 > 0 && size.0 % 1024 == 0;
    is_whole.then_some(size).ok_or_else(|| "expected whole KiB, e.g. 64KiB".into())
}

fn cpu_ns(text: &str) -> Result<f64, String> {
    let ns: Option<f64> = text.parse().ok().filter(|ns| (0.0..=1000.0).contains(ns));
    ns.ok_or_else(|| "expected 0 to 1000 ns".into())
}
