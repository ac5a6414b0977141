//! `mmc cid read` and `mmc csd read` of mmc-utils: an identity in words, short or verbose.
//!
//! The dates are kept as printed: of SD cards they are a month late, of eMMC the digits are swapped and the year is
//! counted from 1997 always. Absent on purpose: rebuilding the registers, whose digits sysfs gives.

use emmc_regs::CardKind;
use emmc_units::{Bytes, SECTOR_BYTES};

use super::text::{Text, decimal_number, excerpt, hex_of_width};
use crate::{CardData, Format, SourceError, StatedSize};

/// What the first line of an output begins with, or of its excerpt.
const STARTS: [&str; 12] = [
    "type: 'MMC'",
    "type: 'SD'",
    "manufacturer: '",
    "manufacturer: 0x",
    "manufacturing date: ",
    "======MMC/C",
    "======SD/C",
    "======SD/SCR",
    "card classes: ",
    "SPEC_VERS: 0x",
    "version: MMC v",
    "version: SD ",
];

/// Whether any line is one that only these commands print.
pub(super) fn recognises(text: &Text) -> bool {
    text.lines().any(|line| STARTS.iter().any(|start| line.text.trim_start().starts_with(start)))
}

/// Reads the values of the commands.
///
/// Errors: an invalid number, or two cards in one text.
pub(super) fn import(text: &Text) -> Result<CardData, SourceError> {
    let mut data = CardData::new(text.name, Format::MmcUtilsIds);
    let mut inside = false;
    for line in text.lines() {
        let trimmed = line.text.trim();
        // The labels are common words: they count from a first line to the next blank one.
        inside = !trimmed.is_empty() && (inside || STARTS.iter().any(|start| trimmed.starts_with(start)));
        if !inside {
            continue;
        }
        if let Some(header) = trimmed.strip_prefix("======") {
            let kind = match header.split('/').next() {
                Some("MMC") => CardKind::Emmc,
                Some("SD") => CardKind::Sd,
                _ => continue,
            };
            once(text, line.number, "card type", &mut data.kind, kind)?;
            continue;
        }
        let Some((label, value)) = trimmed.split_once(':') else { continue };
        take(text, line.number, label, value.trim(), &mut data)?;
    }
    if data.stated.date.is_some() {
        data.note(
            "the date is from mmc-utils, which decodes it wrongly: one month late for an SD card, wrong for an eMMC",
        );
    }
    Ok(data)
}

fn take(text: &Text, line: u64, label: &str, value: &str, data: &mut CardData) -> Result<(), SourceError> {
    let stated = &mut data.stated;
    let number = |bits: u32| {
        let digits = bits as usize / 4;
        let number = hex_of_width(value, digits..=digits);
        number.ok_or_else(|| text.malformed(line, format!("{label} in {digits} digits after 0x"), excerpt(value)))
    };
    match (label, data.kind) {
        ("type", _) => {
            let kind = match value {
                "'MMC'" => CardKind::Emmc,
                "'SD'" => CardKind::Sd,
                _ => return Ok(()),
            };
            once(text, line, "card type", &mut data.kind, kind)
        }
        // A name instead of a number: of an SD card, and of any card by mmc-utils of before 2022.
        ("manufacturer", kind) if value.starts_with('\'') => named_maker(text, line, value, kind, data),
        ("manufacturer" | "MID", _) => once(text, line, "MID", &mut stated.manufacturer_id, number(8)? as u8),
        ("product", _) => match quoted(value).first() {
            Some(name) => once(text, line, "PNM", &mut stated.name, name.to_string()),
            None => Ok(()),
        },
        ("PNM", _) => once(text, line, "PNM", &mut stated.name, value.to_string()),
        ("serial" | "PSN", _) => once(text, line, "PSN", &mut stated.serial, number(32)? as u32),
        ("manufacturing date", _) => once(text, line, "date", &mut stated.date, value.to_string()),
        ("MDT", _) => {
            let date = value.split_once(' ').map_or(value, |(_, date)| date);
            once(text, line, "date", &mut stated.date, date.to_string())
        }
        ("capacity" | "CAPACITY", kind) => match exact_capacity(value) {
            // An eMMC's CSD cannot express more than 2 GiB: a larger card has the largest numbers, a power of two.
            Some(size) if kind == Some(CardKind::Sd) || !size.min.0.is_power_of_two() => {
                once(text, line, "capacity", &mut stated.user_capacity, size)
            }
            _ => Ok(()),
        },
        // An SD card's classes are printed with their names, an eMMC's without.
        ("card classes", _) if is_numbers(value) => once(text, line, "card type", &mut data.kind, CardKind::Emmc),
        // Only the SPEC_VERS of an eMMC is printed; 4 means every version from 4.0 on.
        ("SPEC_VERS", _) => once(text, line, "card type", &mut data.kind, CardKind::Emmc),
        ("version", _) => match value.strip_prefix("SD ") {
            Some(version) => {
                once(text, line, "card type", &mut data.kind, CardKind::Sd)?;
                once(text, line, "version", &mut data.stated.sd_version, version.to_string())
            }
            None => once(text, line, "card type", &mut data.kind, CardKind::Emmc),
        },
        _ => Ok(()),
    }
}

/// `7, 6, 5, 4, 2, 0,`
fn is_numbers(classes: &str) -> bool {
    let plain = |letter: u8| letter.is_ascii_digit() || matches!(letter, b',' | b' ' | b'\x08');
    classes.starts_with(|letter: char| letter.is_ascii_digit()) && classes.contains(',') && classes.bytes().all(plain)
}

/// `manufacturer: 'SanDisk' 'SD'`: the maker's name is mmc-utils' guess, OID is the card's.
fn named_maker(
    text: &Text,
    line: u64,
    value: &str,
    kind: Option<CardKind>,
    data: &mut CardData,
) -> Result<(), SourceError> {
    let quoted = quoted(value);
    let [maker, oid] = quoted.as_slice() else { return Ok(()) };
    if !matches!(*maker, "" | "Unlisted") {
        data.note(format!("mmc-utils names the maker {maker}"));
    }
    let oid: Vec<u8> = oid.bytes().collect();
    match (kind, oid.as_slice()) {
        // One letter is an eMMC's OID, without CBX; it may be a zero byte.
        (Some(CardKind::Emmc), _) => Ok(()),
        (None, [_]) => once(text, line, "card type", &mut data.kind, CardKind::Emmc),
        (_, [high, low]) => {
            once(text, line, "card type", &mut data.kind, CardKind::Sd)?;
            once(text, line, "OID", &mut data.stated.oem_id, u16::from_be_bytes([*high, *low]))
        }
        // Letters after a zero byte are not printed.
        _ => Ok(()),
    }
}

/// `119.08Gbyte (127865454592 bytes, 249737216 sectors, 512 bytes each)`.
fn exact_capacity(value: &str) -> Option<StatedSize> {
    let (text, bytes) = value.split_once(" (")?;
    let (bytes, sectors) = bytes.split_once(" bytes, ")?;
    // Twice the same number: where one lost a digit, neither is believed.
    let sectors = sectors.strip_suffix(" sectors, 512 bytes each)").and_then(decimal_number)?;
    let bytes = bytes.parse().ok().filter(|bytes| sectors.checked_mul(SECTOR_BYTES) == Some(*bytes)).map(Bytes)?;
    Some(StatedSize { text: text.into(), min: bytes, max: bytes })
}

/// The texts between single quotes; a product name may hold one.
fn quoted(value: &str) -> Vec<&str> {
    let Some((start, end)) = value.find('\'').zip(value.rfind('\'')) else { return Vec::new() };
    value.get(start + 1..end).map(|inside| inside.split("' '").collect()).unwrap_or_default()
}

fn once<T: PartialEq + std::fmt::Debug>(
    text: &Text,
    line: u64,
    what: &str,
    place: &mut Option<T>,
    value: T,
) -> Result<(), SourceError> {
    match place {
        Some(known) if *known != value => {
            Err(text.malformed(line, format!("one card, whose {what} is {known:?} before"), format!("{value:?}")))
        }
        _ => {
            *place = Some(value);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(log: &str) -> Result<CardData, String> {
        let text = Text::new("log", log.as_bytes()).unwrap().unwrap();
        assert!(recognises(&text), "{log}");
        import(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn short_and_verbose_texts_are_read() {
        let emmc = "type: 'MMC'\nmanufacturer: 0x15 (Samsung) oid: 0x0\nproduct: '8G1GC' 0.3\nserial: 0xdc0db061\n\
                    manufacturing date: 2002 jan\n";
        let data = read(emmc).unwrap();
        let stated = &data.stated;
        assert_eq!(data.kind, Some(CardKind::Emmc));
        assert_eq!((stated.manufacturer_id, stated.oem_id, stated.serial), (Some(0x15), None, Some(0xdc0d_b061)));
        assert_eq!((stated.name.as_deref(), stated.date.as_deref()), (Some("8G1GC"), Some("2002 jan")));
        assert!(data.origins[0].notes[0].contains("wrongly"));
        let verbose = "======SD/CID======\n\tMID: 0x03 (SanDisk)\n\tOID: SD\n\tPNM: SL16G\n\tPSN: 0x5a5d9301\n\tMDT: 0x0f1 2015 feb\n";
        let data = read(verbose).unwrap();
        assert_eq!((data.kind, data.stated.manufacturer_id), (Some(CardKind::Sd), Some(3)));
        assert_eq!((data.stated.name.as_deref(), data.stated.date.as_deref()), (Some("SL16G"), Some("2015 feb")));
    }

    #[test]
    fn an_sd_cards_capacity_is_exact() {
        let csd = "type: 'SD'\ncard classes: 10 switch, 0 basic\n\
                   capacity: 119.08Gbyte (127865454592 bytes, 249737216 sectors, 512 bytes each)\n";
        let size = read(csd).unwrap().stated.user_capacity.unwrap();
        assert_eq!((size.text.as_str(), size.min, size.max), ("119.08Gbyte", Bytes(127_865_454_592), size.min));
        assert_eq!(read("type: 'MMC'\ncapacity: 2.00Gbyte (2147483648 bytes, x)").unwrap().stated.user_capacity, None);
    }

    #[test]
    fn common_words_in_other_text_are_ignored() {
        let log = "serial: unknown\n\ntype: 'SD'\nserial: 0x00000001\n\nserial: 7\ntype: disk\n";
        assert_eq!(read(log).unwrap().stated.serial, Some(1));
    }

    #[test]
    fn wrong_numbers_and_two_cards_are_refused() {
        for (log, message) in [
            ("type: 'SD'\nserial: fecbbd8b", "line 2: expected serial in 8 digits after 0x, found \"fecbbd8b\""),
            (
                "type: 'MMC'\nmanufacturer: 0x115 (x)",
                "line 2: expected manufacturer in 2 digits after 0x, found \"0x115 (x)\"",
            ),
            ("type: 'SD'\ntype: 'MMC'", "line 2: expected one card, whose card type is Sd before, found Emmc"),
        ] {
            assert_eq!(read(log).unwrap_err(), format!("log: at {message}"));
        }
    }
}
