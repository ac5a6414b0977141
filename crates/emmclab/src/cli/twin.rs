//! The arguments of `twin`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

#[derive(Debug, Subcommand)]
pub(crate) enum TwinCommand {
    /// Find the profile whose simulated speeds match measurements
    Fit(TwinFitArgs),
    /// Compare the simulated speeds of a profile with measurements
    Check(TwinCheckArgs),
    /// Print how well simple rules predict measurements: what a fit must beat
    Baseline(TwinBaselineArgs),
}

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TwinKindArg {
    Emmc,
    Sd,
}

/// The cells that another fit does not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HoldOutArg {
    /// Every second record size, then the other half
    EverySecond,
    /// Rewrite, reread and random write
    Columns,
    /// Nothing
    None,
}

#[derive(Args, Debug)]
pub(crate) struct TwinFitArgs {
    /// Output of iozone, flashbench -O and -a, fio, dd, hdparm, bonnie++ or bench, or ref:NAME; several of one card are
    /// taken together
    #[arg(required = true, num_args = 1.., value_name = "MEASUREMENTS", value_hint = ValueHint::FilePath)]
    #[arg(value_parser = super::known::result(), hide_possible_values = true)]
    pub(crate) measurements: Vec<String>,
    /// A dump of the card's registers: its size, cache, queue, revision and bus mode are those of the profile
    #[arg(long, value_name = "DUMP", value_hint = ValueHint::FilePath)]
    pub(crate) registers: Option<String>,
    /// The host on which it was measured, a file of lab calibrate or a shipped one: its times are not the card's
    #[arg(long, value_name = "HOST.toml", value_hint = ValueHint::FilePath)]
    pub(crate) host: Option<String>,
    /// A profile of the part, shipped or NAME.toml: what no measurement shows, such as its size, endurance and
    /// identity, is taken from it
    #[arg(long, value_name = "PROFILE", value_hint = ValueHint::FilePath)]
    pub(crate) base: Option<String>,
    /// What the part is
    #[arg(long, value_enum)]
    pub(crate) kind: TwinKindArg,
    /// Write the profile here; - for standard output
    #[arg(long, short, value_name = "PROFILE.toml", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Profiles that this command made of other parts, at least three: what the measurements do not show is taken to
    /// be as in them
    #[arg(long, num_args = 1.., value_name = "PROFILE.toml", value_hint = ValueHint::FilePath)]
    pub(crate) like: Vec<String>,
    /// Fit again without some of the cells, and report how well that predicts them
    #[arg(long, value_enum, default_value = "none", value_name = "CELLS")]
    pub(crate) hold_out: HoldOutArg,
}

#[derive(Args, Debug)]
pub(crate) struct TwinCheckArgs {
    /// A shipped profile or a file, NAME.toml
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) profile: String,
    /// Output of iozone, flashbench -O and -a, fio, dd, hdparm, bonnie++ or bench, or ref:NAME; several of one card are
    /// taken together
    #[arg(required = true, num_args = 1.., value_name = "MEASUREMENTS", value_hint = ValueHint::FilePath)]
    #[arg(value_parser = super::known::result(), hide_possible_values = true)]
    pub(crate) measurements: Vec<String>,
}

#[derive(Args, Debug)]
pub(crate) struct TwinBaselineArgs {
    /// Tables of iozone, one for each part
    #[arg(required = true, num_args = 1.., value_name = "MEASUREMENTS", value_hint = ValueHint::FilePath)]
    #[arg(value_parser = super::known::result(), hide_possible_values = true)]
    pub(crate) measurements: Vec<String>,
}
