//! Other sizes of the boot areas, by the commands of three vendors that U-Boot publishes.
//!
//! The standard has no such setting, so this is no [`Plan`](super::Plan), and emmclab does not send it. The plan has
//! the sequence, U-Boot's command for it, and what is not known of its effects.
//!
//! Source: U-Boot `mmc bootpart-resize` (`drivers/mmc/mmc_boot.c`): Samsung in 2025.01; Micron and SanDisk too in
//! 2026.10-rc2.

use emmc_port::CardData;
use emmc_regs::CardKind;
use emmc_regs::ext_csd::reg;
use emmc_units::Bytes;
use serde::Serialize;

use super::document::{CardIdentity, Objection};
use super::rules::{objection, unknown};
use crate::hwpart::Equivalent;

/// The unit of the vendors' commands, of BOOT_SIZE_MULT and of RPMB_SIZE_MULT.
const UNIT_BYTES: u64 = 128 << 10;
/// The unit of U-Boot's command.
const MIB: u64 = 1 << 20;
/// BOOT_SIZE_MULT has one byte.
const BOOT_BYTES_MAX: u64 = 255 * UNIT_BYTES;
/// JESD84-B51 7.4.68: RPMB_SIZE_MULT is at most 0x80.
const RPMB_BYTES_MAX: u64 = 128 * UNIT_BYTES;

/// A plan of other sizes.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BootSizePlan {
    /// Whether the vendor of the card has a command for it.
    pub ok: bool,
    /// Name of the source.
    pub source: String,
    /// The card.
    pub card: CardIdentity,
    /// The vendor whose command it is.
    pub vendor: Option<&'static str>,
    /// Sizes of each boot area, before and after. Unit: bytes.
    pub boot: SizeChange,
    /// Sizes of the RPMB, before and after. Unit: bytes.
    pub rpmb: SizeChange,
    /// Why not.
    pub refusals: Vec<Objection>,
    /// What is sent, in order.
    pub sequence: Vec<SentCommand>,
    /// What is lost, as far as anybody knows.
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
enum Vendor {
    Micron,
    Samsung,
    SanDisk,
}

impl Vendor {
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

    /// The sequence. Sizes in [`UNIT_BYTES`]s.
    fn sequence(self, boot: u32, rpmb: u32) -> Vec<SentCommand> {
        let cmd62 = |argument, what: &str| SentCommand { opcode: 62, argument, what: what.into() };
        let write = |index: u16, value: u32, what: &str| SentCommand {
            opcode: 6,
            argument: 3 << 24 | u32::from(index) << 16 | value << 8,
            what: format!("{what} = {value}"),
        };
        let sizes = [cmd62(boot, "size of each boot area, in 128 KiB"), cmd62(rpmb, "size of the RPMB, in 128 KiB")];
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
            Self::Samsung => vec![cmd62(0xefac_62ec, "enters the vendor mode"), cmd62(0x00cb_aea7, "sizes follow")],
            Self::SanDisk => vec![cmd62(0x254d_dec4, "sizes follow")],
        };
        enter.into_iter().chain(sizes).collect()
    }
}

/// Plans other sizes; without `rpmb` the RPMB keeps its size.
pub fn boot_size(card: &CardData, boot: Bytes, rpmb: Option<Bytes>) -> BootSizePlan {
    let ext_csd = card.ext_csd.as_ref();
    let size = |field| Some(Bytes(ext_csd?.raw(field)? * UNIT_BYTES));
    let before = [size(reg::BOOT_SIZE_MULT), size(reg::RPMB_SIZE_MULT)];
    let after = [boot, rpmb.or(before[1]).unwrap_or(Bytes(0))];
    let vendor = card.cid.filter(|_| card.kind != Some(CardKind::Sd)).and_then(|cid| Vendor::of(cid.manufacturer_id()));
    let mut refusals = Vec::new();
    if card.kind == Some(CardKind::Sd) {
        refusals.push(objection("not-emmc", "an SD card has no boot areas", Vec::new()));
    } else if card.cid.is_none() {
        refusals.push(unknown(&["CID, which names the vendor".into()]));
    } else if vendor.is_none() {
        let evidence = card.cid.map(|cid| format!("MID is {:#04x}", cid.manufacturer_id())).into_iter().collect();
        refusals.push(objection("no-command", "U-Boot has no command for cards of this vendor", evidence));
    }
    refusals.extend(size_objections(vendor, before, boot, rpmb));
    let is_closed = ext_csd.and_then(|ext_csd| ext_csd.raw(reg::PARTITION_SETTING_COMPLETED));
    if vendor == Some(Vendor::Micron) && is_closed != Some(0) {
        refusals.push(match is_closed {
            None => unknown(&["PARTITION_SETTING_COMPLETED".into()]),
            Some(_) => objection(
                "completed",
                "the partitioning is complete: the sizes are final",
                vec!["PARTITION_SETTING_COMPLETED is 1".into()],
            ),
        });
    }
    let units = after.map(|size| (size.0 / UNIT_BYTES) as u32);
    let found = vendor.filter(|_| refusals.is_empty());
    BootSizePlan {
        ok: found.is_some(),
        source: card.origins.first().map_or(String::new(), |origin| origin.name.clone()),
        card: CardIdentity::of(card),
        vendor: vendor.map(Vendor::name),
        boot: SizeChange { before: before[0], after: after[0] },
        rpmb: SizeChange { before: before[1], after: after[1] },
        sequence: found.map_or(Vec::new(), |vendor| vendor.sequence(units[0], units[1])),
        lost: found.map_or(Vec::new(), lost),
        unknown: found.map_or(Vec::new(), |_| not_known()),
        u_boot: found.map_or(Equivalent::default(), |vendor| u_boot(vendor, after)),
        refusals,
    }
}

fn size_objections(
    vendor: Option<Vendor>,
    [now, rpmb_now]: [Option<Bytes>; 2],
    boot: Bytes,
    rpmb: Option<Bytes>,
) -> Vec<Objection> {
    let mut found = Vec::new();
    for (name, size, most) in [("boot areas", Some(boot), BOOT_BYTES_MAX), ("RPMB", rpmb, RPMB_BYTES_MAX)] {
        let Some(size) = size else { continue };
        if size.0 == 0 || size.0 % MIB != 0 || size.0 > most {
            let evidence = vec![format!("{name}: {} bytes", size.0)];
            let what = format!("a size is one of whole MiB, from 1 MiB to {} MiB", most / MIB);
            found.push(objection("size", what, evidence));
        }
    }
    if vendor == Some(Vendor::Micron) && rpmb.is_some() {
        found.push(objection("rpmb-fixed", "Micron's command does not change the RPMB", Vec::new()));
    }
    if vendor.is_some_and(|vendor| vendor != Vendor::Micron) && rpmb.is_none() {
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

fn lost(vendor: Vendor) -> Vec<String> {
    let mut lost = vec!["all data of all areas, the boot areas and the RPMB with its key among them".to_owned()];
    if vendor == Vendor::Micron {
        lost.push("the choice: PARTITION_SETTING_COMPLETED is one-time, and closes all other partitioning".into());
    }
    lost
}

fn not_known() -> Vec<String> {
    vec![
        "whether the sizes can be changed again".into(),
        "how much smaller the user area becomes".into(),
        "which parts have the command: U-Boot's documentation names none".into(),
    ]
}

fn u_boot(vendor: Vendor, [boot, rpmb]: [Bytes; 2]) -> Equivalent {
    let since = if vendor == Vendor::Samsung {
        ""
    } else {
        "; U-Boot 2025.01 has it for Samsung only, 2026.10-rc2 for this vendor too"
    };
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
