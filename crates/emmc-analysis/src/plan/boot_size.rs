//! Other sizes of the boot areas, by the commands of three makers that U-Boot publishes.
//!
//! They are no settings of the standard, so that this is no [`Plan`](super::Plan) and nothing of emmclab sends them:
//! the plan has the sequence, U-Boot's command for it, and what is not known of its effects.
//!
//! Source: U-Boot `mmc bootpart-resize` (`drivers/mmc/mmc_boot.c`): Samsung since 2013, Micron and SanDisk in 2026.10.

use emmc_port::CardData;
use emmc_regs::CardKind;
use emmc_regs::ext_csd::reg;
use emmc_units::Bytes;
use serde::Serialize;

use super::document::{CardIdentity, Objection};
use super::rules::{objection, unknown};
use crate::hwpart::Equivalent;

/// What the makers' commands count in, as BOOT_SIZE_MULT and RPMB_SIZE_MULT do.
const UNIT: u64 = 128 << 10;
/// What U-Boot's command counts in.
const MIB: u64 = 1 << 20;
/// The largest sizes: of a register of one byte, and of an RPMB (JESD84-B51 7.4.68: at most 0x80).
const MOST: u64 = 255 * UNIT;
const RPMB_MOST: u64 = 128 * UNIT;

/// A plan of other sizes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BootSizePlan {
    /// Whether the card's maker has a command for it.
    pub ok: bool,
    /// Name of the source.
    pub source: String,
    /// The card.
    pub card: CardIdentity,
    /// The maker whose command it is.
    pub maker: Option<&'static str>,
    /// Sizes of each boot area, before and after. Unit: bytes.
    pub boot: SizeChange,
    /// Sizes of the RPMB, before and after. Unit: bytes.
    pub rpmb: SizeChange,
    /// Why not.
    pub refusals: Vec<Objection>,
    /// What is sent, in order.
    pub sequence: Vec<SentCommand>,
    /// What is lost, or must be taken as lost.
    pub lost: Vec<String>,
    /// What is not known.
    pub unknown: Vec<String>,
    /// U-Boot's command.
    pub u_boot: Equivalent,
}

/// A size, before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeChange {
    /// As the registers say; absent: not known.
    pub before: Option<Bytes>,
    /// As planned.
    pub after: Bytes,
}

/// A command of the sequence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SentCommand {
    /// Its number.
    pub opcode: u8,
    /// Its argument.
    pub argument: u32,
    /// What it is.
    pub what: String,
}

/// Whose command changes the sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    Micron,
    Samsung,
    SanDisk,
}

impl Maker {
    /// By MID, as U-Boot knows them.
    fn of(mid: u8) -> Option<Self> {
        match mid {
            0x13 => Some(Self::Micron),
            0x15 => Some(Self::Samsung),
            0x45 => Some(Self::SanDisk),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Micron => "Micron",
            Self::Samsung => "Samsung",
            Self::SanDisk => "SanDisk",
        }
    }

    /// The sequence. Sizes in [`UNIT`]s.
    fn sequence(self, boot: u32, rpmb: u32) -> Vec<SentCommand> {
        let vendor = |argument, what: &str| SentCommand { opcode: 62, argument, what: what.into() };
        let write = |index: u16, value: u32, what: &str| SentCommand {
            opcode: 6,
            argument: 3 << 24 | u32::from(index) << 16 | value << 8,
            what: format!("{what} = {value}"),
        };
        let sizes = [vendor(boot, "size of each boot area, in 128 KiB"), vendor(rpmb, "size of the RPMB, in 128 KiB")];
        let enter: Vec<SentCommand> = match self {
            Self::Micron => {
                return vec![
                    write(reg::ERASE_GROUP_DEF.offset, 1, "ERASE_GROUP_DEF"),
                    write(125, boot, "Micron's size of each boot area, in 128 KiB, EXT_CSD 125"),
                    write(126, 0, "its second byte"),
                    write(127, 0, "its third byte"),
                    write(reg::PARTITION_SETTING_COMPLETED.offset, 1, "PARTITION_SETTING_COMPLETED"),
                ];
            }
            Self::Samsung => vec![vendor(0xefac_62ec, "opens the maker's mode"), vendor(0x00cb_aea7, "sizes follow")],
            Self::SanDisk => vec![vendor(0x254d_dec4, "sizes follow")],
        };
        enter.into_iter().chain(sizes).collect()
    }
}

/// Plans other sizes; without `rpmb` the RPMB keeps its size.
pub fn boot_size(card: &CardData, boot: Bytes, rpmb: Option<Bytes>) -> BootSizePlan {
    let ext_csd = card.ext_csd.as_ref();
    let size = |field| Some(Bytes(ext_csd?.raw(field)? * UNIT));
    let before = [size(reg::BOOT_SIZE_MULT), size(reg::RPMB_SIZE_MULT)];
    let after = [boot, rpmb.or(before[1]).unwrap_or(Bytes(0))];
    let maker = card.cid.filter(|_| card.kind != Some(CardKind::Sd)).and_then(|cid| Maker::of(cid.manufacturer_id()));
    let mut refusals = Vec::new();
    if card.kind == Some(CardKind::Sd) {
        refusals.push(objection("not-emmc", "an SD card has no boot areas", Vec::new()));
    } else if card.cid.is_none() {
        refusals.push(unknown(&["CID, which says who made the card".into()]));
    } else if maker.is_none() {
        let evidence = card.cid.map(|cid| format!("MID is {:#04x}", cid.manufacturer_id())).into_iter().collect();
        refusals.push(objection("no-command", "U-Boot has no command for this maker, and none is published", evidence));
    }
    refusals.extend(size_objections(maker, before, boot, rpmb));
    let is_closed = ext_csd.and_then(|ext_csd| ext_csd.raw(reg::PARTITION_SETTING_COMPLETED));
    if maker == Some(Maker::Micron) && is_closed != Some(0) {
        refusals.push(match is_closed {
            None => unknown(&["PARTITION_SETTING_COMPLETED".into()]),
            Some(_) => objection(
                "completed",
                "the partitioning is complete, so that the card takes no other sizes",
                vec!["PARTITION_SETTING_COMPLETED is 1".into()],
            ),
        });
    }
    let units = after.map(|size| (size.0 / UNIT) as u32);
    let found = maker.filter(|_| refusals.is_empty());
    BootSizePlan {
        ok: found.is_some(),
        source: card.origins.first().map_or(String::new(), |origin| origin.name.clone()),
        card: CardIdentity::of(card),
        maker: maker.map(Maker::name),
        boot: SizeChange { before: before[0], after: after[0] },
        rpmb: SizeChange { before: before[1], after: after[1] },
        sequence: found.map_or(Vec::new(), |maker| maker.sequence(units[0], units[1])),
        lost: found.map_or(Vec::new(), lost),
        unknown: found.map_or(Vec::new(), |_| not_known()),
        u_boot: found.map_or(Equivalent::default(), |maker| u_boot(maker, after)),
        refusals,
    }
}

fn size_objections(
    maker: Option<Maker>,
    [now, rpmb_now]: [Option<Bytes>; 2],
    boot: Bytes,
    rpmb: Option<Bytes>,
) -> Vec<Objection> {
    let mut found = Vec::new();
    for (name, size, most) in [("boot areas", Some(boot), MOST), ("RPMB", rpmb, RPMB_MOST)] {
        let Some(size) = size else { continue };
        if size.0 == 0 || size.0 % MIB != 0 || size.0 > most {
            let evidence = vec![format!("{name}: {} bytes", size.0)];
            let what = format!("a size is one of whole MiB, from 1 MiB to {} MiB", most / MIB);
            found.push(objection("size", what, evidence));
        }
    }
    if maker == Some(Maker::Micron) && rpmb.is_some() {
        found.push(objection("rpmb-fixed", "Micron's command does not change the RPMB", Vec::new()));
    }
    if maker.is_some_and(|maker| maker != Maker::Micron) && rpmb.is_none() {
        match rpmb_now {
            None => found.push(unknown(&["RPMB_SIZE_MULT: the command sets the size of the RPMB too".into()])),
            Some(size) if size.0 % MIB != 0 || size.0 == 0 => {
                let evidence = vec![format!("it has {size} now; U-Boot's command takes whole MiB")];
                found.push(objection("rpmb-size", "the command sets the size of the RPMB too: give one", evidence));
            }
            Some(_) => {}
        }
    }
    let is_same = now == Some(boot) && rpmb.is_none_or(|rpmb| rpmb_now == Some(rpmb));
    if is_same {
        found.push(objection("same", "the card has these sizes already", Vec::new()));
    }
    found
}

fn lost(maker: Maker) -> Vec<String> {
    let mut lost = vec!["all data of all areas, the boot areas and the RPMB with its key among them".to_owned()];
    if maker == Maker::Micron {
        lost.push("the choice: PARTITION_SETTING_COMPLETED is one-time, and closes all other partitioning".into());
    }
    lost
}

fn not_known() -> Vec<String> {
    vec![
        "whether the sizes can be changed again".into(),
        "what the user area loses for it".into(),
        "which parts of this maker obey: U-Boot's documentation names none".into(),
    ]
}

fn u_boot(maker: Maker, [boot, rpmb]: [Bytes; 2]) -> Equivalent {
    let since =
        if maker == Maker::Samsung { "" } else { "; Micron's and SanDisk's sequences are in 2026.10 and newer" };
    Equivalent {
        commands: vec![format!("mmc bootpart-resize N {} {}", boot.0 / MIB, rpmb.0 / MIB)],
        cannot: Vec::new(),
        warnings: vec![
            format!("N is the card's number (`mmc list`); sizes are in MiB{since}"),
            "nothing is asked, and nothing is read back; switch the card's power off and on afterwards".into(),
        ],
    }
}

#[cfg(test)]
mod tests;
