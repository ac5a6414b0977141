//! U-Boot `mmc info`: names and sizes, from which some registers follow exactly.
//!
//! Source: `print_mmcinfo()` of U-Boot, cmd/mmc.c, and the registers that drivers/mmc/mmc.c reads for it. Vendor forks
//! rename `Bus Speed` and `Mode`. Absent on purpose: registers for which several sizes give the same print.

use std::collections::BTreeMap;

use emmc_regs::CardKind;
use emmc_regs::ext_csd::{field_at, reg};
use emmc_units::Bytes;

use super::register_bits::RegisterBits;
use super::text::{Text, decimal_number, excerpt};
use super::uboot_size;
use crate::{CardData, Format, SourceError, Stated, StatedSize};

/// The labels of lines of `mmc info`, under one name for all forks; and those that no other tool prints.
const LABELS: [(&str, &str, bool); 21] = [
    ("Device", "Device", false),
    ("Manufacturer ID", "Manufacturer ID", true),
    ("OEM", "OEM", false),
    ("Name", "Name", false),
    ("Bus Speed", "Bus Speed", false),
    ("Tran Speed", "Bus Speed", true),
    ("Mode", "Mode", false),
    ("Timing Interface", "Mode", true),
    ("Rd Block Len", "Rd Block Len", true),
    ("High Capacity", "High Capacity", false),
    ("Capacity", "Capacity", false),
    ("Bus Width", "Bus Width", false),
    ("Erase Group Size", "Erase Group Size", true),
    ("HC WP Group Size", "HC WP Group Size", true),
    ("User Capacity", "User Capacity", true),
    ("User Enhanced Start", "User Enhanced Start", false),
    ("User Enhanced Size", "User Enhanced Size", false),
    ("Boot Capacity", "Boot Capacity", true),
    ("RPMB Capacity", "RPMB Capacity", true),
    ("card capabilities", "card capabilities", false),
    ("host capabilities", "host capabilities", false),
];

/// The values that U-Boot prints after `MMC version`.
const VERSIONS: [&str; 17] = [
    "1.2", "1.4", "2.2", "3", "3.0", "4", "4.0", "4.1", "4.2", "4.3", "4.4", "4.4.1", "4.41", "4.5", "5.0", "5.1",
    "5.1.11",
];

/// Bytes in one step of BOOT_SIZE_MULT and RPMB_SIZE_MULT.
const AREA_STEP_BYTES: u64 = 128 << 10;

/// Bytes in one step of HC_ERASE_GRP_SIZE.
const ERASE_UNIT_BYTES: u64 = 512 << 10;

/// The lines of one or several `mmc info`, by label, each with its line.
type Lines<'t> = BTreeMap<&'t str, (u64, &'t str)>;

/// Whether the text has lines that only `mmc info` prints.
pub(super) fn recognises(text: &Text) -> bool {
    let only_here = text.lines().filter(|line| labelled(line.text).is_some_and(|(_, _, only_here)| only_here));
    only_here.take(2).count() == 2
}

/// Reads identity, sizes and the registers that follow from them.
///
/// Errors: a size or number that U-Boot does not print, or two cards in one text.
pub(super) fn import(text: &Text) -> Result<CardData, SourceError> {
    let lines = lines(text)?;
    let mut data = CardData::new(text.name, Format::UBootInfo);
    let info = Info { text, lines };
    info.identity(&mut data)?;
    let mut bits = RegisterBits::new(text);
    info.sizes(&mut data.stated, &mut bits)?;
    if let Some((note, believed)) = info.other_capacity()? {
        data.note(note);
        data.stated.user_capacity = data.stated.user_capacity.take().filter(|_| believed);
    }
    if let Some(line) = text.lines().last().filter(|line| text.is_cut(line.number) && labelled(line.text).is_some()) {
        data.note(format!("line {} has no line end and may be cut; it is left out", line.number));
    }
    if data.kind == Some(CardKind::Emmc) {
        info.registers(&mut bits)?;
        data.ext_csd = bits.finish();
        infer(&mut data);
    }
    Ok(data)
}

/// Marks every byte of EXT_CSD as inferred, and names them: U-Boot printed none of them as a number.
fn infer(data: &mut CardData) {
    let Some(ext_csd) = &data.ext_csd else { return };
    let known = (0u16..).zip(ext_csd.mask()).filter(|(_, mask)| **mask != 0);
    data.inferred = known.map(|(offset, _)| offset).collect();
    let mut names: Vec<&str> = data.inferred.iter().filter_map(|&offset| Some(field_at(offset)?.name)).collect();
    names.dedup();
    data.note(format!("not read, but inferred from U-Boot's words and sizes: {}", names.join(", ")));
}

/// The label of a line under its common name, its value, and whether no other tool prints it.
fn labelled(line: &str) -> Option<(&'static str, &str, bool)> {
    // Wikis emphasise lines with stars.
    let line = line.trim().trim_matches('*').trim();
    if let Some((kind, version)) = line.split_once(" version ") {
        let label = ["MMC", "SD"].into_iter().find(|known| *known == kind)?;
        let numbers = version.bytes().all(|letter| letter.is_ascii_digit() || letter == b'.');
        return (numbers && !version.is_empty()).then_some((label, version, false));
    }
    for (area, label) in [("Boot area 0 is ", "Boot area 0"), ("Boot area 1 is ", "Boot area 1")] {
        if let Some(state) = line.strip_prefix(area) {
            return Some((label, state, true));
        }
    }
    let (label, value) = line.split_once(':')?;
    for (gp, name) in ["GP1 Capacity", "GP2 Capacity", "GP3 Capacity", "GP4 Capacity"].iter().zip(GP_LABELS) {
        if label == *gp {
            return Some((name, value.trim(), true));
        }
    }
    let (_, name, only_here) = LABELS.into_iter().find(|(known, _, _)| *known == label.trim_end())?;
    Some((name, value.trim(), only_here))
}

const GP_LABELS: [&str; 4] = ["GP1", "GP2", "GP3", "GP4"];

/// The lines of every run of labelled lines that is an `mmc info`.
fn lines<'t>(text: &'t Text) -> Result<Lines<'t>, SourceError> {
    let mut all = Lines::new();
    let mut run: Vec<(u64, &str, &str, bool)> = Vec::new();
    let end = [super::text::Line { number: 0, text: "end" }];
    // Sizes and words have no fixed width: a last line without an end may be incomplete.
    let whole = text.lines().filter(|line| !text.is_cut(line.number));
    for line in whole.chain(end).filter(|line| !line.text.trim().is_empty()) {
        match labelled(line.text) {
            Some((label, value, only_here)) => run.push((line.number, label, value, only_here)),
            None => {
                let is_info = run.iter().any(|(_, _, _, only_here)| *only_here);
                for (number, label, value, _) in run.drain(..).filter(|_| is_info) {
                    let (before, known) = *all.entry(label).or_insert((number, value));
                    if known != value {
                        let expected = format!("one card, whose {label} is {} on line {before}", excerpt(known));
                        return Err(text.malformed(number, expected, excerpt(value)));
                    }
                }
            }
        }
    }
    Ok(all)
}

struct Info<'t> {
    text: &'t Text<'t>,
    lines: Lines<'t>,
}

impl Info<'_> {
    fn value(&self, label: &str) -> Option<&str> {
        self.lines.get(label).map(|(_, value)| *value)
    }

    fn line(&self, label: &str) -> u64 {
        self.lines.get(label).map_or(0, |(line, _)| *line)
    }

    fn hex(&self, label: &str, digits_max: usize) -> Result<Option<u16>, SourceError> {
        let Some(value) = self.value(label) else { return Ok(None) };
        let number = u16::from_str_radix(value, 16).ok().filter(|_| value.len() <= digits_max);
        let expected = || format!("{label} of at most {digits_max} hexadecimal digits");
        number.map(Some).ok_or_else(|| self.text.malformed(self.line(label), expected(), excerpt(value)))
    }

    /// A size and the words after it: `7.3 GiB ENH WRREL`.
    fn size(&self, label: &str) -> Result<Option<(StatedSize, Words)>, SourceError> {
        let Some(value) = self.value(label) else { return Ok(None) };
        let mut words = value.split_whitespace();
        let size = [words.next(), words.next()].map(Option::unwrap_or_default).join(" ");
        let rest: Vec<&str> = words.collect();
        let words = Words { enh: rest.contains(&"ENH"), wrrel: rest.contains(&"WRREL") };
        let size = uboot_size::parse(&size);
        let wrong =
            || self.text.malformed(self.line(label), format!("a size such as 7.3 GiB for {label}"), excerpt(value));
        size.map(|size| Some((size, words))).ok_or_else(wrong)
    }

    fn identity(&self, data: &mut CardData) -> Result<(), SourceError> {
        let stated = &mut data.stated;
        stated.manufacturer_id = self.hex("Manufacturer ID", 2)?.and_then(|id| u8::try_from(id).ok());
        stated.name = self.value("Name").map(String::from).filter(|name| !name.is_empty());
        stated.bus_speed_hz = self.value("Bus Speed").and_then(decimal_number);
        stated.bus_mode = self.value("Mode").map(String::from);
        stated.bus_width = self.value("Bus Width").map(String::from);
        data.kind = match (self.value("MMC"), self.value("SD")) {
            (Some(version), None) => {
                let known = VERSIONS.contains(&version);
                stated.mmc_version = Some(version.to_string()).filter(|_| known);
                if !known {
                    data.note(format!("MMC version {version} is not known; it is left out"));
                }
                Some(CardKind::Emmc)
            }
            (None, Some(version)) => {
                stated.sd_version = Some(version.to_string());
                Some(CardKind::Sd)
            }
            // Only an eMMC of 4.41 or later has these lines.
            _ if self.value("User Capacity").or(self.value("Boot Capacity")).is_some() => Some(CardKind::Emmc),
            _ => None,
        };
        let oem = self.hex("OEM", 4)?;
        let name_letters = self.value("Name").map_or(0, str::len);
        if data.kind == Some(CardKind::Emmc) && name_letters == 6 && oem.is_some_and(|oem| oem <= 0xff) {
            data.note("OEM is OID without CBX, as U-Boot prints it since 2022");
        } else {
            data.stated.oem_id = oem;
        }
        if data.kind == Some(CardKind::Emmc) && name_letters == 5 {
            data.note("the name may lack its sixth letter, which U-Boot did not print before 2022");
        }
        Ok(())
    }

    fn sizes(&self, stated: &mut Stated, bits: &mut RegisterBits) -> Result<(), SourceError> {
        let capacity = self.size("Capacity")?.map(|(size, _)| size);
        stated.user_capacity = self.size("User Capacity")?.map(|(size, _)| size).or(capacity);
        stated.enh_user_size = self.size("User Enhanced Size")?.map(|(size, _)| size);
        if let Some((size, _)) = self.size("HC WP Group Size")? {
            let units = uboot_size::only_multiple(&size, ERASE_UNIT_BYTES);
            if size.max.0 == 0 || uboot_size::no_multiple(&size, ERASE_UNIT_BYTES) {
                let expected = "a multiple of 512 KiB for HC WP Group Size";
                return Err(self.text.malformed(self.line("HC WP Group Size"), expected, excerpt(&size.text)));
            }
            stated.hc_wp_group = units.map(|units| Bytes(units * ERASE_UNIT_BYTES));
            if units == Some(1) {
                let line = self.line("HC WP Group Size");
                bits.set_field(line, reg::HC_ERASE_GRP_SIZE, 1)?;
                bits.set_field(line, reg::HC_WP_GRP_SIZE, 1)?;
            }
        }
        if let Some((size, _)) = self.size("Erase Group Size")? {
            // CSD cannot give more than 512 KiB; whole units above come from HC_ERASE_GRP_SIZE.
            let step = if size.max.0 > ERASE_UNIT_BYTES + AREA_STEP_BYTES { ERASE_UNIT_BYTES } else { 512 };
            let exact = uboot_size::only_multiple(&size, step).map(|steps| Bytes(steps * step));
            stated.erase_group = exact;
        }
        Ok(())
    }

    /// `Capacity` is of the hardware partition that is selected, usually the user area.
    ///
    /// Where it is no area's, one of the two lost a letter, and the user capacity is not believed.
    fn other_capacity(&self) -> Result<Option<(String, bool)>, SourceError> {
        let (Some((selected, _)), Some((user, _))) = (self.size("Capacity")?, self.size("User Capacity")?) else {
            return Ok(None);
        };
        if selected.max >= user.min && user.max >= selected.min {
            return Ok(None);
        }
        let mut areas = Vec::new();
        for label in ["Boot Capacity", "RPMB Capacity"].into_iter().chain(GP_LABELS) {
            areas.extend(self.size(label)?);
        }
        let of_an_area = areas.iter().any(|(area, _)| area.max >= selected.min && selected.max >= area.min);
        let (why, counts) = if of_an_area {
            ("another hardware partition was selected", "User Capacity is used")
        } else {
            ("one of them is damaged", "neither is believed")
        };
        let note = format!("Capacity is {} and User Capacity {}: {why}; {counts}", selected.text, user.text);
        Ok(Some((note, of_an_area)))
    }

    fn registers(&self, bits: &mut RegisterBits) -> Result<(), SourceError> {
        if let Some(revision) = self.value("MMC").and_then(ext_csd_rev) {
            bits.set_field(self.line("MMC"), reg::EXT_CSD_REV, revision)?;
        }
        for (label, field) in [("Boot Capacity", reg::BOOT_SIZE_MULT), ("RPMB Capacity", reg::RPMB_SIZE_MULT)] {
            let Some((size, words)) = self.size(label)? else { continue };
            let line = self.line(label);
            let steps = uboot_size::only_multiple(&size, AREA_STEP_BYTES);
            let expected = format!("a multiple of 128 KiB for {label}");
            let steps = steps.ok_or_else(|| self.text.malformed(line, expected, excerpt(&size.text)))?;
            bits.set_field(line, field, steps)?;
            // Both areas carry ENH when the part can have enhanced areas at all.
            bits.set_field_bits(line, reg::PARTITIONING_SUPPORT, 0b10, if words.enh { 0b10 } else { 0 })?;
        }
        for (area, mask) in [("Boot area 0", 0b0011), ("Boot area 1", 0b1100)] {
            let state = match self.value(area) {
                Some("not write protected") => 0b0000,
                Some("power on protected") => 0b0101,
                Some("permanently protected") => 0b1010,
                Some("in reserved protection state") => 0b1111,
                _ => continue,
            };
            bits.set_field_bits(self.line(area), reg::BOOT_WP_STATUS, mask, state & mask)?;
        }
        self.partitioning(bits)
    }

    /// U-Boot shows enhanced areas and GP partitions only once PARTITION_SETTING_COMPLETED is set.
    fn partitioning(&self, bits: &mut RegisterBits) -> Result<(), SourceError> {
        let user = self.size("User Capacity")?;
        let user_enh = user.as_ref().is_some_and(|(_, words)| words.enh);
        let completed = user_enh || GP_LABELS.iter().any(|gp| self.value(gp).is_some());
        if let Some((_, words)) = &user {
            let line = self.line("User Capacity");
            bits.set_field_bits(line, reg::WR_REL_SET, 1, u8::from(words.wrrel))?;
            if completed {
                bits.set_field_bits(line, reg::PARTITION_SETTING_COMPLETED, 1, 1)?;
                bits.set_field_bits(line, reg::PARTITIONS_ATTRIBUTE, 1, u8::from(words.enh))?;
            }
        }
        let group =
            self.size("HC WP Group Size")?.and_then(|(size, _)| uboot_size::only_multiple(&size, ERASE_UNIT_BYTES));
        for ((gp, bit), field) in GP_LABELS.iter().zip(1..).zip(reg::GP_SIZE_MULT) {
            let Some((size, words)) = self.size(gp)? else { continue };
            let (line, mask) = (self.line(gp), 1u8 << bit);
            bits.set_field_bits(line, reg::WR_REL_SET, mask, if words.wrrel { mask } else { 0 })?;
            bits.set_field_bits(line, reg::PARTITIONS_ATTRIBUTE, mask, if words.enh { mask } else { 0 })?;
            if let Some(groups) = group.and_then(|units| uboot_size::only_multiple(&size, units * ERASE_UNIT_BYTES)) {
                bits.set_field(line, field, groups)?;
            }
        }
        self.enhanced_start(bits, group)?;
        self.erase_group(bits, group, completed)
    }

    fn enhanced_start(&self, bits: &mut RegisterBits, group: Option<u64>) -> Result<(), SourceError> {
        let Some((start, _)) = self.size("User Enhanced Start")? else { return Ok(()) };
        let sectors = if start.max == Bytes(0) {
            Some(0)
        } else {
            let bytes = group.map(|units| units * ERASE_UNIT_BYTES);
            let groups = bytes.and_then(|bytes| uboot_size::only_multiple(&start, bytes));
            let by_sector = self.value("High Capacity") == Some("Yes");
            groups.zip(bytes).map(|(groups, bytes)| groups * bytes / 512).filter(|_| by_sector)
        };
        let line = self.line("User Enhanced Start");
        sectors.map_or(Ok(()), |sectors| bits.set_field(line, reg::ENH_START_ADDR, sectors))
    }

    /// Of a partitioned part U-Boot prints the high-capacity erase group, of others perhaps the one of CSD.
    fn erase_group(&self, bits: &mut RegisterBits, group: Option<u64>, completed: bool) -> Result<(), SourceError> {
        let Some((size, _)) = self.size("Erase Group Size")? else { return Ok(()) };
        let line = self.line("Erase Group Size");
        let units = uboot_size::only_multiple(&size, ERASE_UNIT_BYTES).filter(|&units| units > 0);
        let Some(units) = units.filter(|&units| completed || units > 1) else { return Ok(()) };
        bits.set_field(line, reg::HC_ERASE_GRP_SIZE, units)?;
        match group {
            Some(group) if group % units == 0 => bits.set_field(line, reg::HC_WP_GRP_SIZE, group / units),
            _ => Ok(()),
        }
    }
}

/// What follows a size.
struct Words {
    enh: bool,
    wrrel: bool,
}

/// EXT_CSD_REV of a version that U-Boot prints for one revision only; 4.0 is also its answer when it does not know.
fn ext_csd_rev(version: &str) -> Option<u64> {
    let revisions = [("4.1", 1), ("4.2", 2), ("4.3", 3), ("4.4", 4), ("4.41", 5), ("4.4.1", 5), ("4.5", 6), ("5.0", 7)];
    let newer = [("5.1", 8), ("5.1.11", 9)];
    revisions.iter().chain(&newer).find(|(known, _)| *known == version).map(|(_, revision)| *revision)
}

#[cfg(test)]
mod tests;
