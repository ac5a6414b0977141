//! `clone` and `restore`: a card as a file, and back.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::known;

/// What happens on a target to space that the source had not allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnallocatedArg {
    /// Deallocated, where the target supports that; what it reads as afterwards is the target's business
    #[default]
    Discard,
    /// As it is
    Keep,
}

/// How a target is overwritten.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct TargetArgs {
    /// Allow that the content of the target is lost; a device asks for its name too
    #[arg(long)]
    pub(crate) destroy: bool,
    /// The device's name, instead of typing it
    #[arg(long, value_name = "NAME")]
    pub(crate) yes_i_mean: Option<String>,
    /// What happens to space that was not allocated
    #[arg(long, value_enum, default_value_t, value_name = "discard|keep")]
    pub(crate) unallocated: UnallocatedArg,
    /// The areas to write; boot areas are unlocked for it and locked again
    #[arg(long, value_name = "LIST", default_value = "user", value_delimiter = ',')]
    #[arg(value_parser = known::AREAS)]
    pub(crate) areas: Vec<String>,
    /// Allow a target that is smaller than the source, if all content fits
    #[arg(long)]
    pub(crate) shrink: bool,
    /// Do not read back what was written
    #[arg(long)]
    pub(crate) no_read_back: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CloneArgs {
    /// A device, an image file, or the folder of a virtual card (sim:FOLDER)
    #[arg(value_parser = known::source(), hide_possible_values = true, value_hint = ValueHint::AnyPath)]
    pub(crate) source: String,
    /// The file of the clone; or another card, which is overwritten: a device, or sim:FOLDER
    #[arg(long, short, value_name = "FILE|CARD", value_hint = ValueHint::AnyPath)]
    pub(crate) output: PathBuf,
    /// Continue a clone that was interrupted
    #[arg(long)]
    pub(crate) resume: bool,
    /// Replace an existing file, and the part of one that was interrupted
    #[arg(long, conflicts_with = "resume")]
    pub(crate) force: bool,
    /// Copy everything, not only what is allocated
    #[arg(long)]
    pub(crate) whole: bool,
    /// Copy a source that is in use: all of it, and as it happens to be at that moment
    #[arg(long)]
    pub(crate) live: bool,
    /// Read the source a second time and compare it with the file
    #[arg(long)]
    pub(crate) verify: bool,
    /// Level of the compression
    #[arg(long, value_name = "LEVEL", default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=19))]
    pub(crate) level: i32,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// The file of a clone
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// A device, an image file (created if it does not exist), or sim:FOLDER
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath, required_unless_present = "check")]
    pub(crate) target: Option<String>,
    /// Only read the file and compare it with its checksums
    #[arg(long, conflicts_with_all = ["target", "verify", "resume", "destroy"])]
    pub(crate) check: bool,
    /// Write nothing: compare the target with the file
    #[arg(long, conflicts_with_all = ["resume", "destroy"])]
    pub(crate) verify: bool,
    /// Write only what is not there already: after an interruption
    #[arg(long)]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) how: TargetArgs,
}
