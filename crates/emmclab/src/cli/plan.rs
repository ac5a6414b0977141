//! `plan`: every change of a card's configuration, one command each.

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use emmc_analysis::hwpart::{EnhRequest, GpArgument, WrRelArgument};
use emmc_analysis::plan::{Assignment, BootMode, Protection, WpRange};
use emmc_units::Bytes;

use super::{SaveArgs, SourceArgs, known};

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Plan hardware partitions: enhanced user area, general purpose partitions, write
    /// reliability. Sends nothing to the card
    Hwpart(HwpartArgs),
    /// Plan write reliability alone, which closes the partitioning as well. Sends nothing to the card
    Wrrel(PlanArgs<WrrelArgs>),
    /// Plan what the card boots from, and its bus during boot. Sends nothing to the card
    Boot(PlanArgs<BootArgs>),
    /// Plan other sizes of the boot areas, by the command of the card's vendor. Sends nothing to the card
    BootSize(PlanArgs<BootSizeArgs>),
    /// Plan background operations. Sends nothing to the card
    Bkops(PlanArgs<BkopsArgs>),
    /// Plan the volatile cache. Sends nothing to the card
    Cache(PlanArgs<CacheArgs>),
    /// Plan the reset pin. Sends nothing to the card
    Hwreset(PlanArgs<HwresetArgs>),
    /// Plan write protection of boot areas, or of groups of the user area. Sends nothing to the card
    Wp(PlanArgs<WpArgs>),
    /// Plan how secure removal is done. Sends nothing to the card
    SecureRemoval(PlanArgs<RemovalArgs>),
    /// Plan native sectors of 4 KiB instead of emulated ones of 512 bytes. Sends nothing to the card
    NativeSectors(PlanArgs<NoArgs>),
    /// Plan the production state. Sends nothing to the card
    ProductionState(PlanArgs<ProductionArgs>),
    /// Plan any setting that the field table has. Sends nothing to the card
    Set(PlanArgs<SetArgs>),
}

/// A source, what is wanted, and where the plan is saved.
#[derive(Args, Debug)]
pub(crate) struct PlanArgs<T: Args> {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) wanted: T,
    #[command(flatten)]
    pub(crate) save: SaveArgs,
}

#[derive(Args, Debug)]
pub(crate) struct HwpartArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Enhanced (pSLC) part of the user area: its size, e.g. 4GiB, 50% or max; START:SIZE if it does not start at 0
    #[arg(long, value_name = "[START:]SIZE")]
    pub(crate) enh_user: Option<EnhRequest>,
    /// A general purpose partition: N:SIZE, optionally followed by :enh, :sys or :nonpersist (may be repeated)
    #[arg(long, value_name = "N:SIZE[:enh]")]
    pub(crate) gp: Vec<GpArgument>,
    /// Write reliability of every area: on or off, or per area, e.g. user=on,gp1=off
    #[arg(long, value_name = "on|off")]
    pub(crate) wrrel: Option<WrRelArgument>,
    #[command(flatten)]
    pub(crate) save: SaveArgs,
}

/// On or off, as a word of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    On,
    Off,
}

impl From<OnOff> for bool {
    fn from(word: OnOff) -> Self {
        word == OnOff::On
    }
}

#[derive(Args, Debug)]
pub(crate) struct WrrelArgs {
    /// Every area: on or off; or per area, e.g. user=on,gp1=off
    #[arg(value_name = "on|off")]
    pub(crate) wrrel: WrRelArgument,
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("change").required(true).multiple(true)))]
pub(crate) struct BootArgs {
    /// What the card boots from
    #[arg(long, value_name = "AREA", group = "change", conflicts_with = "switch")]
    pub(crate) from: Option<BootFrom>,
    /// Boot from the other boot area than now: boot1 instead of boot2, or the reverse
    #[arg(long, group = "change")]
    pub(crate) switch: bool,
    /// Whether the card announces its boot data
    #[arg(long, value_name = "on|off", group = "change")]
    pub(crate) ack: Option<OnOff>,
    /// Data lines during boot
    #[arg(long, value_name = "LINES", group = "change", value_parser = lines)]
    pub(crate) width: Option<u8>,
    /// Bus mode during boot
    #[arg(long, value_name = "MODE", group = "change")]
    pub(crate) mode: Option<BootModeArg>,
    /// Whether the mode stays after boot
    #[arg(long, value_name = "on|off", group = "change")]
    pub(crate) keep: Option<OnOff>,
}

#[derive(Args, Debug)]
pub(crate) struct BootSizeArgs {
    /// The size of each boot area: whole MiB, e.g. 8MiB
    #[arg(long, value_name = "SIZE", value_parser = known::exact_size)]
    pub(crate) boot: Bytes,
    /// The size of the RPMB, where the command sets it too; without it the RPMB keeps its size
    #[arg(long, value_name = "SIZE", value_parser = known::exact_size)]
    pub(crate) rpmb: Option<Bytes>,
}

fn lines(text: &str) -> Result<u8, String> {
    match text {
        "1" => Ok(1),
        "4" => Ok(4),
        "8" => Ok(8),
        _ => Err("expected 1, 4 or 8 data lines".into()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BootFrom {
    None,
    Boot1,
    Boot2,
    User,
}

impl BootFrom {
    /// BOOT_PARTITION_ENABLE.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Boot1 => 1,
            Self::Boot2 => 2,
            Self::User => 7,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BootModeArg {
    Sdr,
    Hs,
    Ddr,
}

impl From<BootModeArg> for BootMode {
    fn from(mode: BootModeArg) -> Self {
        match mode {
            BootModeArg::Sdr => Self::Sdr,
            BootModeArg::Hs => Self::HighSpeed,
            BootModeArg::Ddr => Self::Ddr,
        }
    }
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("change").required(true).multiple(true)))]
pub(crate) struct BkopsArgs {
    /// Background operations by the card itself
    #[arg(long, value_name = "on|off", group = "change")]
    pub(crate) auto: Option<OnOff>,
    /// Background operations by the host's command: one-time
    #[arg(long, group = "change")]
    pub(crate) manual: bool,
}

#[derive(Args, Debug)]
pub(crate) struct CacheArgs {
    /// Whether the cache is used
    #[arg(value_name = "on|off")]
    pub(crate) cache: OnOff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PinArg {
    Enable,
    Disable,
}

#[derive(Args, Debug)]
pub(crate) struct HwresetArgs {
    /// Whether the pin resets the card: one-time, either way
    #[arg(value_name = "enable|disable")]
    pub(crate) pin: PinArg,
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("where").required(true)))]
pub(crate) struct WpArgs {
    /// Boot areas
    #[arg(long, value_name = "AREA", group = "where")]
    pub(crate) boot: Option<WpBootArg>,
    /// Groups of the user area: where they start and their size, both whole groups
    #[arg(long, value_name = "START:SIZE", group = "where", value_parser = range)]
    pub(crate) user: Option<WpRange>,
    /// The protection afterwards; boot areas have power-on and permanent only
    #[arg(long = "as", value_name = "PROTECTION", value_parser = protection)]
    pub(crate) protection: Protection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WpBootArg {
    Both,
    Boot1,
    Boot2,
}

fn protection(text: &str) -> Result<Protection, String> {
    let words = Protection::ALL.map(Protection::word).join(", ");
    let found = Protection::ALL.into_iter().find(|protection| protection.word() == text);
    found.ok_or_else(|| format!("expected one of {words}"))
}

pub(super) fn range(text: &str) -> Result<WpRange, String> {
    let (start, size) = text.split_once(':').ok_or("expected START:SIZE, e.g. 64MiB:8MiB")?;
    let start = if start.trim() == "0" { Bytes(0) } else { known::exact_size(start)? };
    Ok(WpRange { start, size: known::exact_size(size)? })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RemovalArg {
    /// By an erase
    Erase,
    /// By an overwrite with a character, then an erase
    Overwrite,
    /// By an overwrite with a character, its complement, then at random
    OverwriteRandom,
    /// As the vendor does it
    Vendor,
}

#[derive(Args, Debug)]
pub(crate) struct RemovalArgs {
    /// How secure removal is done: one-time
    #[arg(value_name = "TYPE")]
    pub(crate) kind: RemovalArg,
}

#[derive(Args, Debug)]
pub(crate) struct NoArgs {}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateArg {
    Normal,
    PreSolderingWrites,
    PreSolderingPostWrites,
    AutoPreSoldering,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AwarenessArg {
    None,
    Manual,
    Auto,
}

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("change").required(true).multiple(true)))]
pub(crate) struct ProductionArgs {
    /// The state
    #[arg(long, value_name = "STATE", group = "change")]
    pub(crate) state: Option<StateArg>,
    /// The mode: the host announces soldering, or the card finds it out
    #[arg(long, value_name = "MODE", group = "change")]
    pub(crate) enable: Option<AwarenessArg>,
}

#[derive(Args, Debug)]
pub(crate) struct SetArgs {
    /// A register and its value, e.g. FW_CONFIG=1 or BKOPS_EN.AUTO_EN=1 (may be repeated)
    #[arg(value_name = "REGISTER[.BITS]=VALUE", required = true)]
    pub(crate) assignments: Vec<Assignment>,
}
