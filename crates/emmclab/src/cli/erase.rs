//! `erase`: which kinds, of what, and where the report goes.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use emmc_analysis::erase::EraseKind;
use emmc_analysis::plan::WpRange;
use emmc_regs::Area;
use emmc_units::Bytes;

use super::known;
use super::plan::range;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EraseArg {
    /// The card may forget the content
    Discard,
    /// Sectors read as erased
    Trim,
    /// Whole erase groups read as erased
    Erase,
    /// Trim, and every copy
    SecureTrim,
    /// Erase, and every copy
    SecureErase,
    /// Everything unmapped is removed from the flash
    Sanitize,
    /// The kernel makes it read as zeros; not for an eMMC
    Zero,
}

impl From<EraseArg> for EraseKind {
    fn from(kind: EraseArg) -> Self {
        match kind {
            EraseArg::Discard => Self::Discard,
            EraseArg::Trim => Self::Trim,
            EraseArg::Erase => Self::Erase,
            EraseArg::SecureTrim => Self::SecureTrim,
            EraseArg::SecureErase => Self::SecureErase,
            EraseArg::Sanitize => Self::Sanitize,
            EraseArg::Zero => Self::Zero,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct EraseArgs {
    /// A whole device, a file, or the folder of a virtual card; without a kind also saved registers or sim:PROFILE
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
    /// How, one after the other; without one nothing is sent, and each is explained
    #[arg(value_name = "KIND", value_enum)]
    pub(crate) kinds: Vec<EraseArg>,
    /// The area of an eMMC to erase [default: user]
    #[arg(long, value_name = "AREA", value_parser = known::area(), hide_possible_values = true)]
    pub(crate) area: Option<Area>,
    /// Erase this part of the area only, e.g. 64MiB:8MiB (may be repeated) [default: all of it]
    #[arg(long, value_name = "START:SIZE", value_parser = range)]
    pub(crate) range: Vec<WpRange>,
    /// Erase this partition only
    #[arg(long, value_name = "NUMBER", conflicts_with = "range")]
    pub(crate) partition: Option<u32>,
    /// Begin at this byte of the area: after an interruption, as the report says
    #[arg(long, value_name = "OFFSET", value_parser = offset, default_value = "0", hide_default_value = true)]
    pub(crate) from: Bytes,
    /// Allow that the content is lost; a device asks for its name too
    #[arg(long)]
    pub(crate) destroy: bool,
    /// The device's name, instead of typing it
    #[arg(long, value_name = "NAME")]
    pub(crate) yes_i_mean: Option<String>,
    /// Save the report too: JSON for .json, else text
    #[arg(long, short = 'o', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing report
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

impl EraseArgs {
    /// The area that is meant.
    pub(crate) fn area(&self) -> Area {
        self.area.unwrap_or(Area::User)
    }
}

fn offset(text: &str) -> Result<Bytes, String> {
    if text.trim() == "0" { Ok(Bytes(0)) } else { known::exact_size(text) }
}
