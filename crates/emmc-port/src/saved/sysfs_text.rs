//! The kernel's files of a card in sysfs, printed by any tool: `grep -r . DIR`, `head *`, `cat`, `udevadm info`.
//!
//! Every shape of line becomes an attribute with its place: of the card, of a disk or of a partition. Attributes of two
//! cards are refused. Absent on purpose: EXT_CSD in debugfs, which `register_hex` reads, and files of the driver.

mod lines;
mod path;
mod udev;

use std::collections::{BTreeMap, BTreeSet};

use emmc_regs::CardKind;
use emmc_regs::cid::Cid;
use emmc_units::{Bytes, Sectors};

use self::path::{Ids, Place};
use super::hex_meaning::bytes_of;
use super::identify;
use super::text::{Text, excerpt};
use crate::{CardData, Disk, Format, Partition, SourceError};

/// One file of sysfs with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Attribute<'t> {
    line: u64,
    ids: Ids<'t>,
    place: Place<'t>,
    name: &'t str,
    value: &'t str,
}

/// -EINVAL, printed as a number without a sign: the enhanced area is not set.
///
/// Source: Linux `drivers/mmc/core/mmc.c`, `mmc_manage_enhanced_area`.
const UNSET: [(&str, &str); 2] =
    [("enhanced_area_offset", "18446744073709551594"), ("enhanced_area_size", "4294967274")];

/// Attributes whose digits are a register, and how many.
const REGISTERS: [(&str, usize); 4] = [("cid", 32), ("csd", 32), ("scr", 16), ("ssr", 128)];

/// Attributes of one text at most: more is no listing of a card.
const ATTRIBUTES_MAX: usize = 4096;

/// Whether any line is an attribute of a card.
pub(super) fn recognises(text: &Text) -> bool {
    !attributes(text).is_empty()
}

/// Whether the text is the content of one attribute alone, which no other form may mistake for digits.
pub(super) fn is_bare(text: &Text) -> bool {
    lines::bare(text).is_some()
}

/// Reads the attributes, and the registers among them.
///
/// Errors: attributes of two cards, two values for one, or digits that are no register.
pub(super) fn import(text: &Text) -> Result<CardData, SourceError> {
    let mut data = CardData::new(text.name, Format::SysfsText);
    let attributes = attributes(text);
    one_card(text, &attributes)?;
    let mut disks = Disks::default();
    let mut known: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for attribute in &attributes {
        match attribute.place {
            _ if text.is_cut(attribute.line) && !has_fixed_width(attribute.name) => {
                let (line, name) = (attribute.line, attribute.name);
                data.note(format!("line {line} has no line end and may be cut: {name} is left out"));
            }
            Place::Card if UNSET.contains(&(attribute.name, attribute.value)) => {}
            Place::Card if is_cut(attribute) => {
                data.note(format!(
                    "line {}: {} is left out: {} is not what the kernel prints",
                    attribute.line,
                    attribute.name,
                    excerpt(attribute.value)
                ));
            }
            Place::Card => once(text, &mut known, attribute.name, attribute)?,
            Place::Disk(_) | Place::Partition(..) => disks.take(text, attribute)?,
        }
    }
    take_registers(text, &known, &mut data)?;
    data.sysfs = known.into_iter().map(|(name, (_, value))| (name.to_string(), value.to_string())).collect();
    data.blocks.disks = disks.finish();
    data.kind = kind(&data);
    if let Some(bare) = lines::bare(text) {
        data.note(format!(
            "the source is only {}, without a name: it is read as the attribute {}",
            excerpt(bare.value),
            bare.name
        ));
    }
    if data.sysfs.keys().any(|name| matches!(name.as_str(), "life_time" | "pre_eol_info")) {
        data.note("life_time and pre_eol_info are as old as the kernel's last probe of the card");
    }
    Ok(data)
}

/// Every attribute of a card in the text, in every form.
fn attributes<'t>(text: &'t Text) -> Vec<Attribute<'t>> {
    let mut found = lines::attributes(text);
    found.extend(udev::attributes(text));
    found.truncate(ATTRIBUTES_MAX);
    found.sort_by_key(|attribute| attribute.line);
    found
}

/// Whether the kernel prints an attribute in a fixed number of digits, so that a truncated one is recognised.
fn has_fixed_width(name: &str) -> bool {
    matches!(name, "life_time" | "pre_eol_info" | "cid" | "csd" | "scr" | "ssr" | "manfid" | "oemid" | "serial")
}

/// Whether a health attribute has another shape than the kernel's fixed one: a cut value may look healthier.
fn is_cut(attribute: &Attribute) -> bool {
    match attribute.name {
        "life_time" => !lines::is_life_time(attribute.value),
        "pre_eol_info" => !lines::is_pre_eol(attribute.value),
        _ => false,
    }
}

/// Attributes of two cards are two sources.
fn one_card(text: &Text, attributes: &[Attribute]) -> Result<(), SourceError> {
    let (mut disk, mut card): (Option<&str>, Option<&str>) = (None, None);
    for attribute in attributes {
        for (known, found) in [(&mut disk, attribute.ids.disk), (&mut card, attribute.ids.card)] {
            match (*known, found) {
                (Some(first), Some(other)) if first != other => {
                    let expected =
                        format!("attributes of one card, as {first} before; keep those of one, as with grep {first}");
                    return Err(text.malformed(attribute.line, expected, format!("{other}'s")));
                }
                (None, Some(_)) => *known = found,
                _ => {}
            }
        }
    }
    Ok(())
}

/// Keeps a value, or refuses a second one.
fn once<'t>(
    text: &Text,
    known: &mut BTreeMap<&'t str, (u64, &'t str)>,
    name: &'t str,
    attribute: &Attribute<'t>,
) -> Result<(), SourceError> {
    let (line, value) = *known.entry(name).or_insert((attribute.line, attribute.value));
    if value != attribute.value {
        let expected = format!("one card, whose {name} is {} on line {line}", excerpt(value));
        return Err(text.malformed(attribute.line, expected, excerpt(attribute.value)));
    }
    Ok(())
}

fn take_registers(text: &Text, known: &BTreeMap<&str, (u64, &str)>, data: &mut CardData) -> Result<(), SourceError> {
    for (name, digits) in REGISTERS {
        let Some(&(line, value)) = known.get(name) else { continue };
        if value.len() != digits || !value.bytes().all(|letter| letter.is_ascii_hexdigit()) {
            let expected = format!("{digits} hexadecimal digits of {}", name.to_uppercase());
            return Err(text.malformed(line, expected, excerpt(value)));
        }
        let bytes = bytes_of(value);
        match name {
            "cid" => data.cid = bytes.try_into().ok().map(Cid),
            "csd" => data.csd = bytes.try_into().ok(),
            "scr" => data.scr = bytes.try_into().ok(),
            _ => data.ssr = bytes.try_into().ok(),
        }
    }
    data.rca = known.get("rca").and_then(|(_, rca)| u16::from_str_radix(rca.trim_start_matches("0x"), 16).ok());
    Ok(())
}

/// The family: by `type`, else by an attribute of one family only, else by the form of the registers.
fn kind(data: &CardData) -> Option<CardKind> {
    const EMMC_ONLY: [&str; 6] =
        ["life_time", "pre_eol_info", "enhanced_area_offset", "raw_rpmb_size_mult", "ffu_capable", "prv"];
    let has = |names: &[&str]| names.iter().any(|name| data.sysfs.contains_key(*name));
    match data.sysfs.get("type").map(String::as_str) {
        Some("MMC") => Some(CardKind::Emmc),
        Some("SD" | "SDcombo") => Some(CardKind::Sd),
        _ if data.scr.is_some() || data.ssr.is_some() => Some(CardKind::Sd),
        _ if has(&EMMC_ONLY) => Some(CardKind::Emmc),
        _ => {
            let by_csd = data.csd.as_ref().and_then(identify::kind_of_csd);
            by_csd.or_else(|| data.cid.as_ref().and_then(|cid| identify::kind_of_cid(&cid.0)))
        }
    }
}

/// Disks and partitions as their attributes name them.
#[derive(Default)]
struct Disks<'t> {
    values: BTreeMap<(&'t str, Option<&'t str>, &'t str), (u64, &'t str)>,
    names: BTreeSet<(&'t str, Option<&'t str>)>,
}

impl<'t> Disks<'t> {
    fn take(&mut self, text: &Text, attribute: &Attribute<'t>) -> Result<(), SourceError> {
        let (disk, partition) = match attribute.place {
            Place::Disk(disk) => (disk, None),
            Place::Partition(disk, partition) => (disk, Some(partition)),
            Place::Card => return Ok(()),
        };
        if !matches!(attribute.name, "size" | "start" | "ro") {
            return Ok(());
        }
        if attribute.value.parse::<u64>().is_err() {
            let expected = format!("{} of {} as a number", attribute.name, partition.unwrap_or(disk));
            return Err(text.malformed(attribute.line, expected, excerpt(attribute.value)));
        }
        self.names.insert((disk, partition));
        let key = (disk, partition, attribute.name);
        let (line, value) = *self.values.entry(key).or_insert((attribute.line, attribute.value));
        if value != attribute.value {
            let expected = format!("{} of {disk} to be {value} as line {line} says", attribute.name);
            return Err(text.malformed(attribute.line, expected, excerpt(attribute.value)));
        }
        Ok(())
    }

    fn finish(self) -> Vec<Disk> {
        let number = |disk: &str, partition: Option<&str>, name: &str| -> Option<u64> {
            self.values.get(&(disk, partition, name))?.1.parse().ok()
        };
        // Sizes in sysfs count 512 bytes, for every sector size of the card.
        let bytes = |disk, partition| number(disk, partition, "size").and_then(|sectors| sectors.checked_mul(512));
        let mut disks: Vec<Disk> = Vec::new();
        for &(name, partition) in &self.names {
            if disks.last().is_none_or(|disk| disk.name != name) {
                disks.push(Disk {
                    name: name.into(),
                    bytes: bytes(name, None).map(Bytes),
                    read_only: number(name, None, "ro").map(|ro| ro == 1),
                    partitions: Vec::new(),
                });
            }
            let (Some(partition), Some(disk)) = (partition, disks.last_mut()) else { continue };
            disk.partitions.push(Partition {
                name: partition.into(),
                start: number(name, Some(partition), "start").map(Sectors),
                bytes: bytes(name, Some(partition)).map(Bytes),
                ..Partition::default()
            });
        }
        disks
    }
}

#[cfg(test)]
mod tests;
