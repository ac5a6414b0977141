//! The arguments of `advise`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use super::{PlaceArgs, known};

#[derive(Debug, Subcommand)]
pub(crate) enum AdviseCommand {
    /// Report what writes to a card without need and what makes it slow, and what a change would bring
    System(AdviseSystemArgs),
    /// Compare what was written before and after a change, from samples of monitor
    Worth(AdviseWorthArgs),
    /// Rank parts for a load: which fit, which lives longest, stalls least, is fastest
    #[cfg(feature = "twin")]
    Part(super::AdvisePartArgs),
    /// Print lines for sfdisk, genimage, wic and mkfs that fit a card
    #[cfg(feature = "twin")]
    Layout(super::AdviseLayoutArgs),
}

#[derive(Args, Debug)]
pub(crate) struct AdviseSystemArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Watch for this long which processes write
    #[arg(long = "for", value_name = "TIME", value_parser = known::time_of_work, conflicts_with = "sysroot")]
    pub(crate) watch: Option<Duration>,
    /// Samples of this card by `monitor --append`: how long it lives at the present rate, and then
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) history: Option<PathBuf>,
    /// Registers of the card from a saved file, instead of from the device
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) registers: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct AdviseWorthArgs {
    /// Samples of one card by `monitor --append`
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) samples: PathBuf,
    /// When the change was made, e.g. 2026-11-21T08:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) split: jiff::Timestamp,
}
