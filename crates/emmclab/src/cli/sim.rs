//! The arguments of `sim`: the virtual card.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// List the profiles of virtual cards, or print one
    Profiles(SimProfilesArgs),
    /// Make a virtual card that is kept in a folder
    Create(SimCreateArgs),
    /// Run a workload on a virtual card, in simulated time
    Run(SimRunArgs),
    /// Look inside a virtual card: areas, wear, blocks, translation layer
    Info(SimInfoArgs),
    /// Cut a virtual card's power, again and again, and check what it promised
    PowerCut(SimPowerCutArgs),
    /// Give orders to a virtual card that is being served
    #[cfg(feature = "serve")]
    Ctl(super::SimCtlArgs),
}

#[derive(Args, Debug)]
pub(crate) struct SimProfilesArgs {
    /// Print this profile's file instead of the list
    pub(crate) name: Option<String>,
}

/// Which virtual card: one kept in a folder, or a new one.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct SimCardArgs {
    /// A card that `sim create` made: its folder
    pub(crate) card: Option<PathBuf>,
    /// A new card: the name of a shipped profile, with @PERCENT of its life used, or a profile's file
    #[arg(long, value_name = "NAME[@PERCENT]|FILE")]
    pub(crate) profile: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct SimCreateArgs {
    /// The folder; must not exist yet
    pub(crate) folder: PathBuf,
    /// The name of a shipped profile, with @PERCENT of its life used, or a profile's file
    #[arg(long, value_name = "NAME[@PERCENT]|FILE")]
    pub(crate) profile: String,
    /// Which specimen: weak blocks, stray times
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub(crate) seed: u64,
}

#[derive(Args, Debug)]
pub(crate) struct SimRunArgs {
    #[command(flatten)]
    pub(crate) card: SimCardArgs,
    /// The workload: a job's file, or - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) job: PathBuf,
    /// Which specimen of a new card: weak blocks, stray times
    #[arg(long, default_value_t = 1, value_name = "NUMBER", requires = "profile")]
    pub(crate) seed: u64,
    /// Leave a card that is kept in a folder as it was
    #[arg(long, requires = "card")]
    pub(crate) dry_run: bool,
    /// Write one self-contained HTML file; - for standard output
    #[cfg(feature = "html")]
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace a file that exists
    #[cfg(feature = "html")]
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

#[derive(Args, Debug)]
pub(crate) struct SimInfoArgs {
    #[command(flatten)]
    pub(crate) card: SimCardArgs,
}

#[derive(Args, Debug)]
pub(crate) struct SimPowerCutArgs {
    /// The name of a shipped profile, or a profile's file; it is scaled down to a few megabytes
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) profile: String,
    /// How many cuts
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    pub(crate) cuts: u32,
    /// Where the workloads and the cuts come from
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    pub(crate) seed: u64,
}
