//! The arguments of `trim`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use emmc_units::Bytes;

use super::{TreeArgs, known};

/// What to do about trims.
#[derive(Debug, Subcommand)]
pub(crate) enum TrimCommand {
    /// Report whether deleted data reaches the card: its command, each layer above it, who trims, and since when not
    Status(TrimStatusArgs),
    /// Trim a mounted filesystem, or all of a card, with progress
    Run(TrimRunArgs),
    /// Print what trims from now on: a timer of systemd, a job of cron, or lines of fstab
    Advise(TrimAdviseArgs),
}

/// A place on a card.
#[derive(Args, Debug)]
pub(crate) struct PlaceArgs {
    /// A card or another disk, a partition or mapped device, or where a filesystem is mounted [default: the only card]
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) place: Option<String>,
    #[command(flatten)]
    pub(crate) tree: TreeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct TrimStatusArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    #[command(flatten)]
    pub(crate) evidence: EvidenceArgs,
    /// Test it: write a file of ours in this folder, free it, trim its place, and read the device there
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["sysroot", "probe"])]
    pub(crate) test: Option<PathBuf>,
    /// Size of that file
    #[arg(long, value_name = "SIZE", default_value = "16MiB", requires = "test", value_parser = known::exact_size)]
    pub(crate) test_size: Bytes,
}

/// What is known of the card from elsewhere.
#[derive(Args, Debug)]
pub(crate) struct EvidenceArgs {
    /// Registers of the same card, from a saved file, if the device cannot be asked
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) registers: Option<String>,
    /// Output of `probe --write --json` for this card: whether it obeys
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) probe: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct TrimRunArgs {
    /// Where a filesystem is mounted, or a card: every filesystem on it
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) place: String,
    /// Trim this much at a time; other requests wait for one such part at most
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = known::exact_size)]
    pub(crate) step: Bytes,
    /// Also measure what it brings: the speed of writes to a file of ours, before and after
    #[arg(long)]
    pub(crate) measure: bool,
    /// Size of that file
    #[arg(long, value_name = "SIZE", default_value = "64MiB", requires = "measure", value_parser = known::exact_size)]
    pub(crate) measure_size: Bytes,
    /// Trim although Linux knows the trim of this part as bad
    #[arg(long)]
    pub(crate) known_bad: bool,
}

#[derive(Args, Debug)]
pub(crate) struct TrimAdviseArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Write the shown files; one that exists is never overwritten. fstab is only shown
    #[arg(long)]
    pub(crate) write: bool,
}
