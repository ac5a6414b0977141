//! `mmc extcsd read`: mmc-utils since 2012, and the ChromiumOS fork, complete or filtered by grep.
//!
//! Each line is read for itself, so that prompts, remarks and elisions between the lines do not matter. Absent on
//! purpose: the sentences that explain a value (`i.e. 512 KiB`), which repeat it; except for the one after
//! MAX_ENH_SIZE_MULT, which is the only source of the unit if the text has no group sizes.

use emmc_regs::CardKind;
use emmc_regs::ext_csd::{Field, field_at, field_named, fields, reg};
use emmc_units::Bytes;

use super::health_parts::Prints;
use super::register_bits::RegisterBits;
use super::text::{Line, Text, decimal_number, excerpt, hex_number, hex_of_width};
use crate::{CardData, Format, SourceError};

/// Names of mmc-utils that the standard does not have, with the intended register.
///
/// The two power classes have names that the standard gives to their neighbours.
const OTHER_NAMES: [(&str, &Field); 9] = [
    ("CARD_TYPE", reg::DEVICE_TYPE),
    ("BOOT_SIZE_MULTI", reg::BOOT_SIZE_MULT),
    ("HPI_FEATURE", reg::HPI_FEATURES),
    ("PWR_CL_200_360", reg::PWR_CL_200_195),
    ("PWR_CL_200_195", reg::PWR_CL_200_130),
    ("EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_A", reg::DEVICE_LIFE_TIME_EST_TYP_A),
    ("EXT_CSD_DEVICE_LIFE_TIME_EST_TYP_B", reg::DEVICE_LIFE_TIME_EST_TYP_B),
    ("EXT_CSD_PRE_EOL_INFO", reg::PRE_EOL_INFO),
    ("EXT_CSD_REV", reg::EXT_CSD_REV),
];

/// The text before the health registers, in mmc-utils and in the ChromiumOS fork.
///
/// A value with another text before it is not from these tools. Source: mmc_cmds.c of both, `do_read_extcsd`.
const HEALTH_LABELS: [(u16, [&str; 2]); 3] = [
    (reg::PRE_EOL_INFO.offset, ["eMMC Pre EOL information", "Pre EOL information"]),
    (reg::DEVICE_LIFE_TIME_EST_TYP_A.offset, ["eMMC Life Time Estimation A", "Device life time estimation type A"]),
    (reg::DEVICE_LIFE_TIME_EST_TYP_B.offset, ["eMMC Life Time Estimation B", "Device life time estimation type B"]),
];

/// Registers that mmc-utils prints only since it scales CACHE_SIZE (April 2020).
const SINCE_CACHE_SIZE_IS_SCALED: [&str; 2] = ["[BARRIER_CTRL]", "[STROBE_SUPPORT"];

/// What one line says.
#[derive(Debug, PartialEq)]
enum Said<'t> {
    /// `[NAME: 0x01]` or `[NAME]: 0x01`: a register, by its field and first byte.
    Register { field: &'static Field, offset: u16, value: &'t str },
    /// `[CACHE_SIZE] is 8192 KiB`.
    CacheKib(&'t str),
    /// `[CMDQ_DEPTH]: 16`: one more than the register.
    QueueDepth(&'t str),
    /// `Extended CSD rev 1.8 (MMC 5.1)`.
    Revision(&'t str),
    /// `eMMC Firmware Version: ABCDEFGH`.
    Firmware(&'t str),
    /// `eMMC SECURE_WP_SUPPORT: 1`: a bit of SECURE_WP_INFO.
    SecureWp { mask: u8, value: &'t str },
    /// A bracketed name with a value, of no register that is known here.
    Stranger(&'t str),
}

/// Whether any line is of this form.
pub(super) fn recognises(text: &Text) -> bool {
    text.lines().any(|line| matches!(said(line.text), Some(said) if !matches!(said, Said::Stranger(_))))
}

/// Reads every register that the text names.
///
/// Errors: a value that its register cannot have, or two values for one register.
pub(super) fn import(text: &Text) -> Result<CardData, SourceError> {
    let chromium_os = text.as_str().contains("Device life time estimation type");
    let format = if chromium_os { Format::ChromiumOsExtCsd } else { Format::MmcUtilsExtCsd };
    let mut data = CardData::new(text.name, format);
    let mut registers = RegisterBits::new(text);
    let mut notes = Vec::new();
    let mut cache_size = false;
    let mut after_max_enh = false;
    let mut prints = Prints::default();
    let mut broken_health = None;
    for line in text.lines() {
        if let (true, Some(kib)) = (std::mem::take(&mut after_max_enh), kib(line.text)) {
            data.stated.max_enh_size = kib.checked_mul(1024).map(Bytes);
        }
        match said(line.text) {
            Some(Said::Stranger(name)) => match meant(name) {
                Some(meant) if !text.is_cut(line.number) => {
                    return Err(text.malformed(line.number, format!("the name of a register such as {meant}"), name));
                }
                _ => notes.push(format!("line {}: {name} is no known register", line.number)),
            },
            Some(Said::Register { field, .. }) if !is_labelled(line.text, field) => {
                broken_health = broken_health.or(Some(line.number));
                notes.push(format!(
                    "line {}: {} follows words that no tool prints; it is left out",
                    line.number, field.name
                ));
            }
            Some(said) => {
                cache_size |= matches!(said, Said::CacheKib(_));
                after_max_enh = matches!(said, Said::Register { offset: 157, .. });
                if take(text, &mut registers, line, &said)? == Taken::Cut {
                    notes.push(format!("line {} ends inside its value, which is left out", line.number));
                } else if let Said::Register { field, offset, value } = said {
                    let dialect = if line.text.contains("[EXT_CSD_") { "mmc-utils" } else { "the fork" };
                    let health = is_health(field).then(|| hex_number(value)).flatten();
                    prints.take(line.number, offset, health.map(|value| (dialect, value as u8)));
                }
            }
            None => {
                if let Some(name) = broken(line.text).filter(|_| !text.is_cut(line.number)) {
                    let expected = format!("[{name}: 0x01] or [{name}]: 0x01");
                    return Err(text.malformed(line.number, expected, excerpt(line.text)));
                }
                if is_part_of_health(line.text) && !text.is_cut(line.number) {
                    broken_health = broken_health.or(Some(line.number));
                }
            }
        }
    }
    prints.check(text)?;
    if let Some(line) = broken_health {
        registers.forget(HEALTH_LABELS.iter().map(|(offset, _)| *offset));
        notes.insert(0, format!("line {line} is a broken line of health: PRE_EOL_INFO and life times are left out"));
    }
    data.kind = Some(CardKind::Emmc);
    data.ext_csd = registers.finish();
    wp_group(&mut data);
    notes.truncate(8);
    notes.into_iter().for_each(|note| data.note(note));
    if cache_size && !SINCE_CACHE_SIZE_IS_SCALED.iter().any(|name| text.as_str().contains(name)) {
        data.note(
            "CACHE_SIZE is taken as KiB; mmc-utils before April 2020 printed kilobits with that unit, an eighth of it",
        );
    }
    Ok(data)
}

/// The size in ` i.e. 10100736 KiB`.
fn kib(line: &str) -> Option<u64> {
    line.trim().strip_prefix("i.e. ")?.strip_suffix(" KiB")?.parse().ok()
}

/// The write-protect group that follows from the largest enhanced area in groups and in KiB.
fn wp_group(data: &mut CardData) {
    let Some(ext_csd) = &data.ext_csd else { return };
    let read = ext_csd
        .byte(reg::HC_WP_GRP_SIZE)
        .zip(ext_csd.byte(reg::HC_ERASE_GRP_SIZE))
        .map(|(wp, erase)| u64::from(wp) * u64::from(erase) * (512 << 10));
    let groups = ext_csd.raw(reg::MAX_ENH_SIZE_MULT).filter(|&groups| groups > 0);
    let Some((size, groups)) = data.stated.max_enh_size.zip(groups) else { return };
    let group = size.0 / groups;
    // mmc-utils computes with 32 bits on some machines: a value that contradicts the registers is ignored.
    let fits = size.0 % groups == 0 && group > 0 && group % (512 << 10) == 0 && read.is_none_or(|read| read == group);
    if fits && read.is_none() {
        data.stated.hc_wp_group = Some(Bytes(group));
        data.note(format!("the write-protect group follows from MAX_ENH_SIZE_MULT: {} over {groups} groups", size));
    } else if !fits {
        data.stated.max_enh_size = None;
    }
}

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// Its value is known now.
    Whole,
    /// The text ends inside its value.
    Cut,
}

fn take(text: &Text, registers: &mut RegisterBits, line: Line, said: &Said) -> Result<Taken, SourceError> {
    let number = line.number;
    let wrong = |expected: String, found: &str| {
        if text.is_cut(number) { Ok(Taken::Cut) } else { Err(text.malformed(number, expected, excerpt(found))) }
    };
    match *said {
        Said::Register { field, offset, value } => {
            let width = if field.is_array() { 1 } else { field.width };
            let digits = 2 * usize::from(width.min(8));
            // mmc-utils of 2012 to 2019 printed this one in six digits.
            let least = if field.offset == reg::ENH_START_ADDR.offset { 6 } else { digits };
            let whole = hex_of_width(value, least..=digits).filter(|_| !is_health(field) || ends_its_word(value));
            let Some(value) = whole else {
                return wrong(format!("{digits} digits after 0x for {}", field.name), value);
            };
            registers.set(number, field.name, offset, width, value)?;
        }
        Said::CacheKib(value) => {
            // A size above 2^31 kilobits is printed as a negative number.
            let mut words = value.split_whitespace();
            let kib = words.next().filter(|_| words.next() == Some("KiB")).and_then(|kib| kib.parse::<i64>().ok());
            let kib = kib.filter(|kib| (-(1 << 28)..1 << 29).contains(kib));
            let Some(kib) = kib else { return wrong("CACHE_SIZE in KiB".into(), value) };
            registers.set(number, "CACHE_SIZE", reg::CACHE_SIZE.offset, 4, u64::from((kib * 8) as u32))?;
        }
        Said::QueueDepth(value) => {
            let depth = value.split_whitespace().next().and_then(|depth| depth.parse::<u64>().ok());
            let depth = depth.filter(|depth| (1..=32).contains(depth));
            let Some(depth) = depth.filter(|_| !text.is_cut(number)) else {
                return wrong("a CMDQ_DEPTH of 1 to 32".into(), value);
            };
            // mmc-utils drops the upper three bits, which the standard reserves as zero.
            registers.set(number, "CMDQ_DEPTH", reg::CMDQ_DEPTH.offset, 1, depth - 1)?;
        }
        Said::Revision(value) => {
            let (revision, behind) = value.split_at_checked(1).unwrap_or((value, ""));
            let whole = behind.trim_end().is_empty() || behind.starts_with(" (");
            let Some(revision) = decimal_number(revision).filter(|_| whole) else {
                return wrong("Extended CSD rev 1.0 to 1.9".into(), value);
            };
            registers.set(number, "EXT_CSD_REV", reg::EXT_CSD_REV.offset, 1, revision)?;
        }
        Said::Firmware(value) => {
            let whole = value.len() == 8 && value.bytes().all(|letter| matches!(letter, b' '..=b'~'));
            if let (Ok(letters), true) = (<[u8; 8]>::try_from(value.as_bytes()), whole) {
                registers.set(
                    number,
                    "FIRMWARE_VERSION",
                    reg::FIRMWARE_VERSION.offset,
                    8,
                    u64::from_le_bytes(letters),
                )?;
            }
            // Binary versions are cut or mangled on their way through terminals and web pages: stay unknown.
        }
        Said::SecureWp { mask, value } => {
            let set = match value.trim_end() {
                "0" => 0,
                "1" => mask,
                _ => return wrong("0 or 1".into(), value),
            };
            registers.set_bits(number, "SECURE_WP_INFO", reg::SECURE_WP_INFO.offset, mask, set)?;
        }
        Said::Stranger(_) => {}
    }
    Ok(Taken::Whole)
}

/// Whether the words before a register that decides health are those of a tool, or none.
///
/// A file's name, a comment sign or a prompt may stand before them, but no letter of a line that was cut there.
fn is_labelled(line: &str, field: &Field) -> bool {
    let Some((_, labels)) = HEALTH_LABELS.iter().find(|(offset, _)| *offset == field.offset) else { return true };
    let parted = |before: &str| !before.ends_with(|letter: char| letter.is_alphanumeric());
    // mmc-utils puts EXT_CSD_ before these names, the fork does not.
    let [mmc_utils, fork] = labels;
    let label =
        |at: usize| if line.get(at..).is_some_and(|name| name.starts_with("[EXT_CSD_")) { mmc_utils } else { fork };
    let ends =
        |at: usize| line.get(..at).and_then(|words| words.trim_end().strip_suffix(label(at))).is_some_and(parted);
    // The bracket of the register itself: a line that was cut inside a name and continues in another has two.
    let own = |at: usize| {
        let said = line.get(at + 1..).and_then(bracketed);
        matches!(said, Some(Said::Register { field: own, .. }) if own == field)
    };
    line.match_indices('[').any(|(at, _)| own(at) && (ends(at) || line.get(..at).is_some_and(|b| b.trim().is_empty())))
}

/// Whether a register decides health.
fn is_health(field: &Field) -> bool {
    HEALTH_LABELS.iter().any(|(offset, _)| *offset == field.offset)
}

/// Whether a line has a piece of one that gives a register of health, without giving it.
fn is_part_of_health(line: &str) -> bool {
    const PIECES: [&str; 3] = ["TYP_A", "TYP_B", "EOL_INFO"];
    let tail = PIECES.iter().any(|piece| {
        let behind = line.split(piece).nth(1).map(str::trim_start);
        behind.is_some_and(|behind| behind.starts_with("]: ") || behind.starts_with(": 0x") || behind.is_empty())
    });
    let begins = ["eMMC Life Time Est", "eMMC Pre EOL inf"].iter().any(|words| line.trim_start().starts_with(words));
    let unopened = line.split_once("]: 0x").is_some_and(|(name, _)| !name.contains('['));
    (tail || begins || unopened) && !line.contains("grep ")
}

/// Whether a value of health ends its line or its word, in the digits that the tools print.
fn ends_its_word(value: &str) -> bool {
    let (number, behind) = value.split_at_checked(4).unwrap_or((value, ""));
    let behind = behind.strip_prefix(']').unwrap_or(behind);
    !number.bytes().any(|letter| letter.is_ascii_uppercase())
        && !behind.starts_with(|letter: char| letter.is_alphanumeric() || letter == ',')
}

/// The register that a name with one letter lost or doubled is of, or an element that its register does not have.
fn meant(name: &str) -> Option<&'static str> {
    let known = fields().filter(|field| !field.is_reserved()).map(|field| field.name);
    let mut known = known.chain(OTHER_NAMES.iter().map(|(other, _)| *other));
    known.find(|known| *known == name || one_letter_apart(known, name))
}

/// Whether one text is the other without one letter.
fn one_letter_apart(one: &str, other: &str) -> bool {
    let (short, long) =
        if one.len() < other.len() { (one.as_bytes(), other.as_bytes()) } else { (other.as_bytes(), one.as_bytes()) };
    let same = short.iter().zip(long).take_while(|(short, long)| short == long).count();
    short.len() + 1 == long.len() && short.get(same..) == long.get(same + 1..)
}

/// The register that a line names at a bracket, beside a value, without being a line that can be read.
fn broken(line: &str) -> Option<&'static str> {
    if !line.contains("0x") || line.contains("grep") || !line.contains(['[', ']']) {
        return None;
    }
    let letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let behind = line.split('[').skip(1).map(|rest| rest.split(|c: char| !letter(c)).next().unwrap_or_default());
    let before = line.split(']').map(|rest| rest.rsplit(|c: char| !letter(c)).next().unwrap_or_default());
    let inside = line.split(": 0x").map(|words| words.rsplit(|c: char| !letter(c)).next().unwrap_or_default());
    behind.chain(before).chain(inside).filter(|name| name.len() > 3).find_map(|name| Some(register(name, None)?.0.name))
}

fn said(line: &str) -> Option<Said<'_>> {
    // A prompt or a kernel message may have brackets before the register's.
    if let Some(said) = line.match_indices('[').take(4).find_map(|(at, _)| bracketed(line.get(at + 1..)?)) {
        return Some(said);
    }
    let line = line.trim();
    if let Some(at) = line.find("Extended CSD rev 1.") {
        return line.get(at..)?.strip_prefix("Extended CSD rev 1.").map(Said::Revision);
    }
    let (label, value) = line.split_once(':')?;
    match label {
        "eMMC Firmware Version" => Some(Said::Firmware(value.strip_prefix(' ').unwrap_or(value))),
        "eMMC SECURE_WP_SUPPORT" => Some(Said::SecureWp { mask: 1, value: value.trim_start() }),
        "eMMC SECURE_WP_EN_STATUS" => Some(Said::SecureWp { mask: 2, value: value.trim_start() }),
        _ => None,
    }
}

/// What follows an opening bracket: `NAME: 0x01]`, `NAME]: 0x01`, `NAME[64]]: 0x01`, `NAME] is 8192 KiB`.
fn bracketed(rest: &str) -> Option<Said<'_>> {
    let end = rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_')).unwrap_or(rest.len());
    let (name, rest) = rest.split_at_checked(end)?;
    let (index, rest) = match rest.strip_prefix('[') {
        Some(index) => {
            let (index, rest) = index.split_once(']')?;
            (Some(index.parse::<u16>().ok()?), rest)
        }
        None => (None, rest),
    };
    if let (Some(kib), "CACHE_SIZE") = (rest.strip_prefix("] is "), name) {
        return Some(Said::CacheKib(kib));
    }
    let value = rest.strip_prefix(": ").or_else(|| rest.strip_prefix("]: "))?.trim_start();
    if name == "CMDQ_DEPTH" && !value.starts_with("0x") {
        return Some(Said::QueueDepth(value));
    }
    let Some((field, offset)) = register(name, index) else {
        let register_like = name.len() > 3 && name.bytes().any(|letter| letter.is_ascii_uppercase());
        return (register_like && hex_number(value).is_some()).then_some(Said::Stranger(name));
    };
    Some(Said::Register { field, offset, value })
}

/// The field of a printed name, and its byte.
fn register(name: &str, index: Option<u16>) -> Option<(&'static Field, u16)> {
    if let Some((_, field)) = OTHER_NAMES.into_iter().find(|(other, _)| *other == name) {
        return Some((field, field.offset));
    }
    let field = field_named(name)?;
    match index {
        // Elements are numbered by their offset in the register.
        Some(index) => field_at(index).filter(|at| *at == field).map(|field| (field, index)),
        None => (!field.is_array()).then_some((field, field.offset)),
    }
}

#[cfg(test)]
mod tests;
