//! The arguments of `ffu`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use emmc_port::ffu::FfuMode;
use emmc_units::Bytes;

use super::known;

/// How an image is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FfuModeArg {
    /// CMD23 and CMD25 for each chunk; the card is in the mode only meanwhile
    Chunks,
    /// The same, and the card stays in the mode until the end
    Stay,
    /// CMD25 ended by CMD12; the card stays in the mode until the end
    Open,
    /// CMD24 for each block; the card is in the mode only meanwhile
    Blocks,
    /// CMD24 for each block; the card stays in the mode until the end
    BlocksStay,
}

impl From<FfuModeArg> for FfuMode {
    fn from(mode: FfuModeArg) -> Self {
        match mode {
            FfuModeArg::Chunks => Self::Chunks,
            FfuModeArg::Stay => Self::Stay,
            FfuModeArg::Open => Self::Open,
            FfuModeArg::Blocks => Self::Blocks,
            FfuModeArg::BlocksStay => Self::BlocksStay,
        }
    }
}

/// The cards that an image is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FfuFor {
    /// MID of the CID.
    pub(crate) maker: u8,
    /// PNM of the CID.
    pub(crate) product: String,
    /// FIRMWARE_VERSION before the update.
    pub(crate) version: Option<String>,
}

/// `MID:PNM` or `MID:PNM:VERSION`.
fn identity(text: &str) -> Result<FfuFor, String> {
    let expected = || "expected MID:PNM or MID:PNM:VERSION, the MID hexadecimal, e.g. 15:M8G1GC".to_owned();
    let (maker, rest) = text.split_once(':').ok_or_else(expected)?;
    let (product, version) = rest.split_once(':').map_or((rest, None), |(product, version)| (product, Some(version)));
    let digits = maker.strip_prefix("0x").unwrap_or(maker);
    let is_plain = digits.len() <= 2 && digits.chars().all(|digit| digit.is_ascii_hexdigit());
    let maker = u8::from_str_radix(digits, 16).ok().filter(|_| is_plain).ok_or_else(expected)?;
    if product.is_empty() || version.is_some_and(str::is_empty) {
        return Err(expected());
    }
    Ok(FfuFor { maker, product: product.into(), version: version.map(Into::into) })
}

#[derive(Args, Debug)]
pub(crate) struct FfuArgs {
    /// A whole card, or the folder of a virtual card; without an image also saved registers
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub(crate) target: String,
    /// The maker's firmware; without one nothing is sent, and the report says how the card stands
    #[arg(value_name = "IMAGE", value_hint = ValueHint::FilePath, requires = "identity")]
    pub(crate) image: Option<PathBuf>,
    /// The cards that the image is for: MID and PNM of the CID, and the firmware version before the update
    #[arg(long = "for", value_name = "MID:PNM[:VERSION]", value_parser = identity)]
    pub(crate) identity: Option<FfuFor>,
    /// Send nothing: after the power cycle, report whether the firmware is another one than --for names
    #[arg(long, conflicts_with_all = ["image", "permanent", "mode", "chunk"], requires = "identity")]
    pub(crate) verify: bool,
    /// How the image is sent
    #[arg(long, value_enum, default_value = "chunks")]
    pub(crate) mode: FfuModeArg,
    /// At most this much in one command, up to 512KiB [default: 512KiB]
    #[arg(long, value_name = "SIZE", value_parser = known::exact_size)]
    pub(crate) chunk: Option<Bytes>,
    /// Agree to what cannot be reverted: the card's serial number, as `emmclab show` prints it
    #[arg(long, value_name = "SERIAL", requires = "image")]
    pub(crate) permanent: Option<String>,
}
