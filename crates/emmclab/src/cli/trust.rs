//! The arguments of `trust`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use emmc_units::Bytes;

use super::{PlaceArgs, known};

#[derive(Args, Debug)]
pub(crate) struct TrustArgs {
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
    /// Registers of the card from a saved file, instead of from a device
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) registers: Option<String>,
    /// The kernel's log, - for standard input [default: this machine's, where it can be read]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) log: Option<PathBuf>,
    /// Output of `probe --json` for this card: its capacity, and whether it obeys discards
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) probe: Option<PathBuf>,
    /// Output of `bus --json` for this card: whether its bus damages data
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) bus: Option<PathBuf>,
    /// Samples of this card by `monitor --append`: what grows
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) history: Option<PathBuf>,
    /// Test it: write a file of ours in this folder, sync, and read it from the card; the file is removed
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "sysroot")]
    pub(crate) test: Option<PathBuf>,
    /// Write the file of the test under this name and keep it: for --verify after a power cut
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["test", "verify", "sysroot"])]
    pub(crate) keep: Option<PathBuf>,
    /// Compare a file of --keep with what was written
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["test", "sysroot"])]
    pub(crate) verify: Option<PathBuf>,
    /// Size of that file
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = known::exact_size)]
    pub(crate) test_size: Bytes,
}
