//! The arguments of `rpmb`. A key is never among them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

/// What to do with an RPMB.
#[derive(Debug, Subcommand)]
pub(crate) enum RpmbCommand {
    /// Program the key: once in the card's life
    Key(RpmbKeyArgs),
    /// Read the write counter; with the key, check the reply
    Counter(RpmbCounterArgs),
    /// Read blocks of 256 bytes; with the key, check them
    Read(RpmbReadArgs),
    /// Write blocks of 256 bytes
    Write(RpmbWriteArgs),
    /// Show or switch secure write protection, which only the key's holder changes
    Protect(RpmbProtectArgs),
}

/// The RPMB that is meant.
#[derive(Args, Debug)]
pub(crate) struct RpmbTargetArgs {
    /// A whole card or its RPMB, e.g. /dev/mmcblk0rpmb, or the folder of a virtual card
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
}

/// A key that checks replies.
#[derive(Args, Debug)]
pub(crate) struct CheckKeyArgs {
    /// File of the key, 32 bytes or 64 hexadecimal digits, to check the reply with; - for standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,
}

/// A key that is needed.
#[derive(Args, Debug)]
pub(crate) struct NeededKeyArgs {
    /// File of the key, 32 bytes or 64 hexadecimal digits; - for standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct RpmbKeyArgs {
    #[command(flatten)]
    pub(crate) target: RpmbTargetArgs,
    #[command(flatten)]
    pub(crate) key: NeededKeyArgs,
    /// The card's serial number, instead of typing it
    #[arg(long, value_name = "SERIAL")]
    pub(crate) permanent: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct RpmbCounterArgs {
    #[command(flatten)]
    pub(crate) target: RpmbTargetArgs,
    #[command(flatten)]
    pub(crate) key: CheckKeyArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RpmbReadArgs {
    #[command(flatten)]
    pub(crate) target: RpmbTargetArgs,
    /// The first block
    #[arg(value_name = "ADDRESS", value_parser = number)]
    pub(crate) address: u32,
    /// Number of blocks of 256 bytes
    #[arg(value_name = "COUNT", value_parser = number)]
    pub(crate) count: u32,
    /// Where the blocks go; - for standard output
    #[arg(long, short = 'o', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) key: CheckKeyArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RpmbWriteArgs {
    #[command(flatten)]
    pub(crate) target: RpmbTargetArgs,
    /// The first block
    #[arg(value_name = "ADDRESS", value_parser = number)]
    pub(crate) address: u32,
    /// What to write, whole blocks of 256 bytes; - for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) key: NeededKeyArgs,
    /// Begin at this block of the file: after an interruption, as the report says
    #[arg(long, value_name = "BLOCKS", value_parser = number, default_value = "0", hide_default_value = true)]
    pub(crate) from: u32,
    /// Allow that the content of these blocks is lost; a device asks for its name too
    #[arg(long)]
    pub(crate) destroy: bool,
    /// The device's name, instead of typing it
    #[arg(long, value_name = "NAME")]
    pub(crate) yes_i_mean: Option<String>,
}

/// What to do with secure write protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProtectAction {
    /// Show its state
    Status,
    /// From now on write protection changes only while it is allowed
    On,
    /// Any host may change write protection again
    Off,
    /// Allow changes of write protection, until `deny` or the next power cycle
    Allow,
    /// Allow no more changes
    Deny,
}

#[derive(Args, Debug)]
pub(crate) struct RpmbProtectArgs {
    #[command(flatten)]
    pub(crate) target: RpmbTargetArgs,
    #[arg(value_name = "ACTION", default_value = "status")]
    pub(crate) action: ProtectAction,
    /// File of the key, 32 bytes or 64 hexadecimal digits; - for standard input; only `status` works without it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,
}

/// A number of blocks, decimal or hexadecimal. 65536 is the most that an address can reach.
fn number(text: &str) -> Result<u32, String> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = hexadecimal.map_or((text, 10), |digits| (digits, 16));
    let is_plain = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
    let number = u32::from_str_radix(digits, radix).ok().filter(|number| is_plain && *number <= 1 << 16);
    number.ok_or_else(|| "expected a number of blocks up to 65536, e.g. 16 or 0x10".into())
}
