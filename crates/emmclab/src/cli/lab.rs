//! The arguments of `lab`: a real Linux against a virtual card, in simulated time.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::ControllerArg;

/// A filesystem of the lab's kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FilesystemArg {
    Ext4,
    F2fs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Run a shell script or a fio job on a real Linux against a virtual card, both in simulated time
    Run(LabRunArgs),
}

#[derive(Args, Debug)]
pub(crate) struct LabRunArgs {
    /// The card: a profile, a profile file, sim:PROFILE@PERCENT, or the folder of a card made by `sim create`
    #[arg(long, value_name = "PROFILE|DIR", value_parser = super::known::profile(), hide_possible_values = true)]
    pub(crate) card: String,
    /// Seed of a new card: its weak blocks and its timing variation
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub(crate) seed: u64,
    /// A shell script, or a fio job file (its name ends with .fio, or its first line is a section in brackets)
    #[arg(long, value_name = "FILE")]
    pub(crate) script: PathBuf,
    /// An environment variable of the script (may be repeated)
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// A User-Mode Linux, or a folder with one (`linux`) and its first file system (`initramfs`)
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) kernel: Option<PathBuf>,
    /// Make this filesystem on the card and mount it; the script starts in it
    #[arg(long, value_enum)]
    pub(crate) filesystem: Option<FilesystemArg>,
    /// Options of mkfs, e.g. "-E nodiscard"; `none`: mount what is on the card
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
    /// The controller: cqe or no-cqe
    #[arg(long, value_enum, default_value_t = ControllerArg::Cqe)]
    pub(crate) controller: ControllerArg,
    /// Memory of the machine, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = clap::value_parser!(u32).range(128..=65536))]
    pub(crate) memory: u32,
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
