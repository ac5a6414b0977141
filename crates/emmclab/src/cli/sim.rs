//! The arguments of `sim`: the virtual card.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use emmc_units::{Bytes, Nanos};

#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// List the profiles of virtual cards, or print one
    Profiles(SimProfilesArgs),
    /// Create a virtual card in a folder
    Create(SimCreateArgs),
    /// Run a workload on a virtual card, in simulated time
    Run(SimRunArgs),
    /// Print the inside of a virtual card: areas, wear, blocks, translation layer
    Info(SimInfoArgs),
    /// Say which files of a virtual card's folder are whole, and go on with those
    Check(SimCheckArgs),
    /// Cut a virtual card's power repeatedly and check that it keeps its guarantees
    PowerCut(SimPowerCutArgs),
    /// Compute the throughput of host and card together: the three stages of a request, their limits, the
    /// gain of a faster card or a queue
    Pipeline(SimPipelineArgs),
    /// Ask what changes if a card is configured, used or chosen otherwise: life, speed, stalls beside today's
    #[cfg(feature = "twin")]
    WhatIf(super::SimWhatIfArgs),
    /// Run the whole life of a virtual card under a load: volumes at which registers step, the end
    #[cfg(feature = "twin")]
    Life(super::SimLifeArgs),
    /// Control a virtual card that is being served
    #[cfg(feature = "serve")]
    Ctl(super::SimCtlArgs),
}

#[derive(Args, Debug)]
pub(crate) struct SimProfilesArgs {
    /// Print this profile's file instead of the list
    #[arg(value_parser = super::known::profile(), hide_possible_values = true)]
    pub(crate) name: Option<String>,
}

/// A virtual card: one stored in a folder, or a new one.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct SimCardArgs {
    /// Folder of a card made by `sim create`; or a new card: sim:PROFILE, sim:PROFILE@PERCENT
    #[arg(value_parser = super::known::source(), hide_possible_values = true, value_hint = ValueHint::AnyPath)]
    pub(crate) card: Option<String>,
    /// A new card: the name of a shipped profile, with @PERCENT of its life used, or a profile file
    #[arg(long, value_name = "NAME[@PERCENT]|FILE", value_parser = super::known::profile(), hide = true)]
    pub(crate) profile: Option<String>,
}

/// The part that a new virtual card simulates.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct SimProfileArgs {
    /// The part: sim:PROFILE, sim:PROFILE@PERCENT, sim:FILE.toml; `sim profiles` lists them
    #[arg(value_name = "sim:PROFILE", value_parser = super::known::source(), hide_possible_values = true)]
    pub(crate) part: Option<String>,
    /// The name of a shipped profile, with @PERCENT of its life used, or a profile file
    #[arg(long, value_name = "NAME[@PERCENT]|FILE", value_parser = super::known::profile(), hide = true)]
    pub(crate) profile: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct SimCreateArgs {
    /// The folder to create; must not exist
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) part: SimProfileArgs,
    /// Seed of the specimen: its weak blocks and its timing variation
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub(crate) seed: u64,
}

#[derive(Args, Debug)]
pub(crate) struct SimRunArgs {
    #[command(flatten)]
    pub(crate) card: SimCardArgs,
    /// The workload: the name of a shipped job (steady-random, collapse-and-trim, skewed, open-units,
    /// whole-life), a job file, or - for standard input
    #[arg(long, value_name = "NAME|FILE", value_parser = super::known::job(), hide_possible_values = true)]
    pub(crate) job: PathBuf,
    /// Seed of a new card: its weak blocks and its timing variation [default: 1]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Do not store the result in the folder of the card
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// One request at a time, like a controller without command queueing
    #[arg(long)]
    pub(crate) no_queueing: bool,
    #[cfg(feature = "html")]
    #[command(flatten)]
    pub(crate) save: super::SaveArgs,
}

#[derive(Args, Debug)]
pub(crate) struct SimInfoArgs {
    #[command(flatten)]
    pub(crate) card: SimCardArgs,
}

#[derive(Args, Debug)]
pub(crate) struct SimCheckArgs {
    /// Folder of a card made by `sim create`
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// Set aside records from the first damaged one on (card.journal.damaged), and take a state whose records
    /// are missing or that is older than one before
    #[arg(long)]
    pub(crate) repair: bool,
}

/// Who starts the next transfer when one ends.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum CqEngineName {
    /// The controller's queue engine
    Hardware,
    /// The card queues, the driver sends the commands
    Software,
    /// No command queue
    None,
}

#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("what").args(["pre", "platform", "tables"]).required(true).multiple(true))]
pub(crate) struct SimPipelineArgs {
    /// From the system call to the start of the transfer, in microseconds
    #[arg(long, value_name = "US", allow_negative_numbers = true, value_parser = micros)]
    #[arg(requires_all = ["hw", "post", "chunk"], conflicts_with = "platform")]
    pub(crate) pre: Option<Nanos>,
    /// The transfer, in microseconds
    #[arg(long, value_name = "US", allow_negative_numbers = true, value_parser = micros, requires = "pre")]
    pub(crate) hw: Option<Nanos>,
    /// From the end of the transfer to the return to the caller, in microseconds
    #[arg(long, value_name = "US", allow_negative_numbers = true, value_parser = micros, requires = "pre")]
    pub(crate) post: Option<Nanos>,
    /// Size of one request, e.g. 128KiB
    #[arg(long, value_name = "SIZE", requires = "pre", value_parser = super::known::exact_size)]
    pub(crate) chunk: Option<Bytes>,
    /// A board with published spans
    #[arg(long = "board", alias = "platform", value_name = "BOARD", value_parser = super::known::platform())]
    pub(crate) platform: Option<String>,
    /// One of the board's workloads, e.g. random-read
    #[arg(long, value_name = "NAME", requires = "platform")]
    pub(crate) workload: Option<String>,
    /// Number of outstanding requests [default: 32]
    #[arg(long = "queue-depth", alias = "depth", value_name = "COUNT")]
    pub(crate) depth: Option<u32>,
    /// Number of cores in use [default: 2, or the board's]
    #[arg(long, value_name = "COUNT")]
    pub(crate) cores: Option<u32>,
    /// Number of requests to run
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    pub(crate) requests: u64,
    /// Who starts the next transfer [default: hardware, or the board's]
    #[arg(long, value_name = "WHO")]
    pub(crate) cqe: Option<CqEngineName>,
    /// The serial part of pre, for one request at a time, in microseconds [default: all of it]
    #[arg(long, value_name = "US", allow_negative_numbers = true, value_parser = micros)]
    pub(crate) serial: Option<Nanos>,
    /// Gap between two transfers without a hardware queue engine, in microseconds [default: post, or the board's]
    #[arg(long, value_name = "US", allow_negative_numbers = true, value_parser = micros)]
    pub(crate) gap: Option<Nanos>,
    /// Print the white paper's tables: computed and published values side by side
    #[arg(long)]
    pub(crate) tables: bool,
    #[cfg(feature = "html")]
    #[command(flatten)]
    pub(crate) save: super::SaveArgs,
}

/// Microseconds, with or without a fraction.
fn micros(text: &str) -> Result<Nanos, String> {
    match text.parse::<f64>() {
        Ok(us) if us.is_finite() && us >= 0.0 => Ok(Nanos::from_micros_f64(us)),
        _ => Err("expected microseconds, e.g. 635 or 12.5".into()),
    }
}

#[derive(Args, Debug)]
pub(crate) struct SimPowerCutArgs {
    #[command(flatten)]
    pub(crate) part: SimProfileArgs,
    /// Make at least this number of cuts; the last life is finished, with up to 50
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    pub(crate) cuts: u32,
    /// Seed of the workloads and the cuts
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub(crate) seed: u64,
}
