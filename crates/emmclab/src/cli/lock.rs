//! The arguments of `lock`. A password is never among them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// What to do with a card's password.
#[derive(Debug, Subcommand)]
pub(crate) enum LockCommand {
    /// Report whether the card is locked, and whether it takes passwords; sends nothing but reads
    Status(LockStatusArgs),
    #[command(flatten)]
    Change(LockChange),
}

/// What changes a card.
#[derive(Debug, Subcommand)]
pub(crate) enum LockChange {
    /// Set a password, or replace it: from the next power-up on the card is locked until it gets it
    Set(LockSetArgs),
    /// Remove the password, which also unlocks
    Clear(LockPasswordArgs),
    /// Lock the card now
    On(LockPasswordArgs),
    /// Unlock the card until the next power-up
    Off(LockPasswordArgs),
    /// Erase a locked card whose password is lost, which removes the password
    ForceErase(LockForceEraseArgs),
}

/// The card that is meant.
#[derive(Args, Debug)]
pub(crate) struct LockTargetArgs {
    /// A whole card, e.g. /dev/mmcblk0, or the folder of a virtual card
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
}

#[derive(Args, Debug)]
pub(crate) struct LockStatusArgs {
    #[command(flatten)]
    pub(crate) target: LockTargetArgs,
}

#[derive(Args, Debug)]
pub(crate) struct LockSetArgs {
    #[command(flatten)]
    pub(crate) target: LockTargetArgs,
    /// File of the new password, 1 to 16 bytes and perhaps an end of line; - for standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) password: PathBuf,
    /// File of the present password, if the card has one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) old: Option<PathBuf>,
    /// Leave the card locked
    #[arg(long)]
    pub(crate) lock: bool,
    /// The card's serial number, instead of typing it
    #[arg(long, value_name = "SERIAL")]
    pub(crate) permanent: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct LockPasswordArgs {
    #[command(flatten)]
    pub(crate) target: LockTargetArgs,
    /// File of the password, 1 to 16 bytes and perhaps an end of line; - for standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) password: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct LockForceEraseArgs {
    #[command(flatten)]
    pub(crate) target: LockTargetArgs,
    /// Allow that all content of the user area and the general purpose partitions is lost; a device asks for its name
    #[arg(long)]
    pub(crate) destroy: bool,
    /// The device's name, instead of typing it
    #[arg(long, value_name = "NAME")]
    pub(crate) yes_i_mean: Option<String>,
}
