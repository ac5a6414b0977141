//! The command line: one definition for parsing, help, completions and manual pages.

#[cfg(feature = "bench")]
mod advise;
#[cfg(feature = "bench")]
mod apply;
#[cfg(feature = "bench")]
mod bench;
#[cfg(feature = "bench")]
mod bus;
#[cfg(feature = "clone")]
mod clone;
#[cfg(feature = "bench")]
mod compare;
#[cfg(feature = "clone")]
mod erase;
mod examples;
#[cfg(feature = "bench")]
mod ffu;
#[cfg(any(feature = "pages", feature = "schema"))]
mod generated;
mod history;
mod known;
#[cfg(feature = "serve")]
mod lab;
#[cfg(feature = "bench")]
mod lock;
mod monitor;
mod plan;
#[cfg(feature = "bench")]
mod probe;
#[cfg(feature = "bench")]
mod rpmb;
mod save;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "sim")]
mod sim;
mod study;
#[cfg(feature = "trace")]
mod trace;
#[cfg(feature = "bench")]
mod trim;
#[cfg(feature = "bench")]
mod trust;
#[cfg(feature = "twin")]
mod twin;
#[cfg(feature = "twin")]
pub(crate) mod what_if;

use std::path::PathBuf;

#[cfg(feature = "clone")]
pub(crate) use self::clone::{CloneArgs, RestoreArgs, TargetArgs, UnallocatedArg};
#[cfg(feature = "bench")]
pub(crate) use advise::{AdviseCommand, AdviseSystemArgs, AdviseWorthArgs};
#[cfg(feature = "bench")]
pub(crate) use apply::ApplyArgs;
#[cfg(feature = "bench")]
pub(crate) use bench::{BenchArgs, EngineArg};
#[cfg(feature = "bench")]
pub(crate) use bus::BusArgs;
use clap::{Args, ColorChoice, Parser, Subcommand, ValueHint};
#[cfg(feature = "bench")]
pub(crate) use compare::{CompareArgs, ImportArgs};
use emmc_units::Bytes;
#[cfg(feature = "clone")]
pub(crate) use erase::EraseArgs;
#[cfg(feature = "pages")]
pub(crate) use examples::examples;
pub(crate) use examples::{command, parse};
#[cfg(feature = "bench")]
pub(crate) use ffu::{FfuArgs, FfuFor};
#[cfg(feature = "pages")]
pub(crate) use generated::{CompletionsArgs, ManArgs};
#[cfg(feature = "schema")]
pub(crate) use generated::{DocumentName, SchemaArgs};
pub(crate) use history::HistoryArgs;
#[cfg(feature = "serve")]
pub(crate) use lab::{
    DmaArg, FilesystemArg, LabCalibrateArgs, LabCommand, LabMachineArgs, LabOrder, LabRunArgs, LabSweepArgs,
};
#[cfg(feature = "bench")]
pub(crate) use lock::{LockChange, LockCommand, LockForceEraseArgs, LockSetArgs};
pub(crate) use monitor::MonitorArgs;
pub(crate) use plan::{AwarenessArg, HwpartArgs, PinArg, PlanCommand, RemovalArg, StateArg, WpArgs, WpBootArg};
#[cfg(feature = "bench")]
pub(crate) use probe::ProbeArgs;
#[cfg(feature = "bench")]
pub(crate) use rpmb::{
    ProtectAction, RpmbCommand, RpmbCounterArgs, RpmbKeyArgs, RpmbProtectArgs, RpmbReadArgs, RpmbWriteArgs,
};
pub(crate) use save::{SaveArgs, SavedForm};
#[cfg(feature = "serve")]
pub(crate) use serve::{ControllerArg, CtlOrder, HostErrorArg, KindArg, ServeArgs, SimCtlArgs, TlsArg};
#[cfg(feature = "sim")]
pub(crate) use sim::{
    CqEngineName, SimCardArgs, SimCheckArgs, SimCommand, SimCreateArgs, SimInfoArgs, SimPipelineArgs, SimPowerCutArgs,
    SimProfileArgs, SimProfilesArgs, SimRunArgs,
};
pub(crate) use study::StudyArgs;
#[cfg(feature = "trace")]
pub(crate) use trace::{
    RecordingArgs, TraceAnalyseArgs, TraceCommand, TraceCompareArgs, TraceExportArgs, TraceRecordArgs, TraceWhoArgs,
};
#[cfg(feature = "bench")]
pub(crate) use trim::{PlaceArgs, TrimAdviseArgs, TrimCommand, TrimRunArgs, TrimStatusArgs};
#[cfg(feature = "bench")]
pub(crate) use trust::TrustArgs;
#[cfg(feature = "twin")]
pub(crate) use twin::{HoldOutArg, TwinBaselineArgs, TwinCheckArgs, TwinCommand, TwinFitArgs, TwinKindArg};
#[cfg(feature = "twin")]
pub(crate) use what_if::{
    AdviseLayoutArgs, AdvisePartArgs, DiscardArg, FsArg, SimLifeArgs, SimWhatIfArgs, WorkloadArgs,
};

/// Identify an eMMC or SD card, report its configuration, wear and speed, and plan changes.
#[derive(Debug, Parser)]
#[command(name = "emmclab", version, about, long_about = None, propagate_version = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// Print JSON instead of text
    #[arg(long, short = 'J', global = true)]
    pub(crate) json: bool,
    /// When to colour text output
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
    /// Print long text without a pager
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the eMMC and SD cards of this machine
    List(ListArgs),
    /// Show a card's registers, decoded
    Show(ShowArgs),
    /// Save everything that a source contains about a card
    Snapshot(SnapshotArgs),
    /// Compare two sources field by field and bit by bit
    Diff(DiffArgs),
    /// Report how worn a card is and how long it will last
    Health(HealthArgs),
    /// Check a card's health for a monitoring system: one line, Nagios exit codes
    Check(CheckArgs),
    /// Take one sample of each card for a fleet: a line of JSON, or metrics; writes next to nothing
    Monitor(MonitorArgs),
    /// Plan a change without applying it
    #[command(subcommand)]
    Plan(PlanCommand),
    /// Carry a plan out on a card, compare a card with it, or rehearse it on a virtual card
    #[cfg(feature = "bench")]
    Apply(ApplyArgs),
    /// Copy what is allocated of a card to a file, or to another card
    #[cfg(feature = "clone")]
    Clone(CloneArgs),
    /// Write a clone back to a card or an image, or compare it
    #[cfg(feature = "clone")]
    Restore(RestoreArgs),
    /// Erase a card or parts of it, and report what is left; without a kind, report what the card has
    #[cfg(feature = "clone")]
    Erase(EraseArgs),
    /// Use a card's RPMB: program its key once, read its counter, read and write blocks
    #[cfg(feature = "bench")]
    #[command(subcommand)]
    Rpmb(RpmbCommand),
    /// Update a card's firmware in the field, or report how the card stands with it
    #[cfg(feature = "bench")]
    Ffu(FfuArgs),
    /// Lock a card by a password, unlock it, or report whether it is locked
    #[cfg(feature = "bench")]
    #[command(subcommand)]
    Lock(LockCommand),
    /// Study a card: what it is, how it is configured, how healthy it is, and what to do about it
    Study(StudyArgs),
    /// Measure the speed of a device, a file or a virtual card with the classic benchmarks
    #[cfg(feature = "bench")]
    Bench(BenchArgs),
    /// Compare results of emmclab and of other tools with each other and with published results
    #[cfg(feature = "bench")]
    Compare(CompareArgs),
    /// Read the output of fio, iozone, flashbench, bonnie++, hdparm or dd
    #[cfg(feature = "bench")]
    Import(ImportArgs),
    /// Find out what a card is inside: page, allocation unit, open units, cache, discard; read-only by default
    #[cfg(feature = "bench")]
    Probe(ProbeArgs),
    /// Record where the time of requests goes, and report it
    #[cfg(feature = "trace")]
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Find out whether deleted data reaches the card, trim it, and keep it trimmed
    #[cfg(feature = "bench")]
    #[command(subcommand)]
    Trim(TrimCommand),
    /// Read a card until its bus shows errors or does not: is its clock good, which lower one is, how to pin it
    #[cfg(feature = "bench")]
    Bus(BusArgs),
    /// Report what says that a card must go: registers, errors, the kernel's log, a probe, a test with a file
    #[cfg(feature = "bench")]
    Trust(TrustArgs),
    /// Make a virtual card that behaves like a measured one
    #[cfg(feature = "twin")]
    #[command(subcommand)]
    Twin(TwinCommand),
    /// Give advice: what to change in a system above a card, was it worth it, which part for which load
    #[cfg(feature = "bench")]
    #[command(subcommand)]
    Advise(AdviseCommand),
    /// Work with virtual cards, in simulated time
    #[cfg(feature = "sim")]
    #[command(subcommand)]
    Sim(SimCommand),
    /// Serve a virtual card as a live device: to a virtual machine, over NBD, or as files and loop devices
    #[cfg(feature = "serve")]
    Serve(ServeArgs),
    /// Run scripts on a real Linux against a virtual card, both in simulated time
    #[cfg(feature = "serve")]
    #[command(subcommand)]
    Lab(LabCommand),
    /// Print the help of a command, or a topic: sources, jobs, sizes, exit-codes
    Help(HelpArgs),
    /// Print the JSON Schema of a document
    #[cfg(feature = "schema")]
    Schema(SchemaArgs),
    /// Print the completion script of a shell
    #[cfg(feature = "pages")]
    Completions(CompletionsArgs),
    /// Write the manual pages to a folder
    #[cfg(feature = "pages")]
    Man(ManArgs),
}

/// The source of a card's data.
#[derive(Args, Debug, Default)]
pub(crate) struct SourceArgs {
    /// Device, saved file, - for standard input, or sim:PROFILE
    #[arg(value_parser = known::source(), hide_possible_values = true, value_hint = ValueHint::AnyPath)]
    pub(crate) source: String,
    #[command(flatten)]
    pub(crate) more: MoreArgs,
}

/// Additions to a source.
#[derive(Args, Debug, Default)]
pub(crate) struct MoreArgs {
    /// Another saved file of the same card: CID, lsblk, df, vendor health (may be repeated)
    #[arg(long, value_name = "FILE")]
    pub(crate) with: Vec<PathBuf>,
    /// A saved vendor reply, 512 bytes or hex digits, e.g. micron:0x11:reply.bin (may be repeated)
    #[arg(long, value_name = "FAMILY:ARG:FILE")]
    pub(crate) vendor_reply: Vec<String>,
    #[command(flatten)]
    pub(crate) tree: TreeArgs,
}

/// Where the machine's /sys and /proc are.
#[derive(Args, Debug, Default)]
pub(crate) struct TreeArgs {
    /// Read a copy of /sys (and /proc) in this folder instead of this machine's
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) sysroot: Option<PathBuf>,
}

/// What is asked of a live card itself.
#[derive(Args, Debug, Default)]
pub(crate) struct LiveArgs {
    /// Read the vendor health report of a live card, if read commands are enough
    #[arg(long)]
    pub(crate) vendor_health: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) tree: TreeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Show only this field, e.g. SEC_COUNT
    #[arg(long, value_name = "NAME")]
    pub(crate) field: Option<String>,
    /// Also show reserved bytes, and vendor bytes that are zero
    #[arg(long)]
    pub(crate) all: bool,
    /// Show complete meanings, and how each field can be written
    #[arg(long)]
    pub(crate) full: bool,
    /// Show only the register values as numbers
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Args, Debug)]
pub(crate) struct SnapshotArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) save: SaveArgs,
}

#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// Device, saved file, or - for standard input
    #[arg(value_parser = known::source(), hide_possible_values = true, value_hint = ValueHint::AnyPath)]
    pub(crate) a: String,
    /// Device or saved file
    #[arg(value_parser = known::source(), hide_possible_values = true, value_hint = ValueHint::AnyPath)]
    pub(crate) b: String,
    /// Show only persistent bits, which survive a power cycle
    #[arg(long)]
    pub(crate) persistent: bool,
}

#[derive(Args, Debug)]
pub(crate) struct HealthArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Number of erase blocks of the raw flash, for the endurance estimate
    #[arg(long, value_name = "COUNT", requires = "cycles")]
    pub(crate) blocks: Option<u64>,
    /// Erase cycles that each block endures
    #[arg(long, value_name = "COUNT", requires = "blocks")]
    pub(crate) cycles: Option<u64>,
    /// Size of an erase block of the raw flash
    #[arg(long, value_name = "SIZE", default_value = "4MiB", requires = "blocks", value_parser = known::exact_size)]
    pub(crate) block_size: Bytes,
    /// Flash writes per host write, to convert flash volume to host volume
    #[arg(long, value_name = "FACTOR", requires = "blocks")]
    pub(crate) write_amplification: Option<f64>,
    #[command(flatten)]
    pub(crate) history: HistoryArgs,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// Device, saved file, - for standard input, or sim:PROFILE
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    #[arg(value_parser = known::source(), hide_possible_values = true, value_hint = ValueHint::AnyPath)]
    pub(crate) source: Option<String>,
    #[command(flatten)]
    pub(crate) more: MoreArgs,
    /// Check every card of this machine, or of --sysroot: one line per card, worst first; the worst sets the exit code
    #[arg(long, conflicts_with_all = ["with", "vendor_reply"])]
    pub(crate) all: bool,
    /// Print no text if every card is OK, so that cron sends no mail; --json prints its document anyway
    #[arg(long, short = 'q')]
    pub(crate) quiet: bool,
    /// Warn at this percentage of used life or more [default: 90, or --critical if that is lower]
    #[arg(long, short = 'w', value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) warning: Option<u8>,
    /// Critical at this percentage of used life or more [default: 100]
    #[arg(long, short = 'c', value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) critical: Option<u8>,
}

#[derive(Args, Debug)]
pub(crate) struct HelpArgs {
    /// A command (`sim run`), a topic (`sizes`), or `topics` to list the topics
    #[arg(value_name = "COMMAND|TOPIC")]
    pub(crate) words: Vec<String>,
}
