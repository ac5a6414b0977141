//! The probable maker of a card, from MID, OID and product name.
//!
//! Neither JEDEC nor the SD Association publishes who owns which MID, resellers share them, and counterfeits copy them.
//! So the table keeps what public code says with its source, and says "probably" wherever the sources differ or only
//! one speaks. Absent on purpose: part numbers and flash types, which no field of the CID gives.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use crate::CardKind;

mod table;

/// Certainty of a manufacturer's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// Several sources agree and none differs.
    Certain,
    /// One source only, or the sources differ.
    Probably,
}

/// A maker's name, with its certainty and alternatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Manufacturer {
    /// The likeliest name.
    pub name: &'static str,
    /// Its certainty.
    pub certainty: Certainty,
    /// Names that other sources give to the same numbers.
    pub also: &'static [&'static str],
    /// Where the name comes from.
    pub source: &'static str,
}

impl fmt::Display for Manufacturer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let probably = if self.certainty == Certainty::Probably { "probably " } else { "" };
        let also = match self.also {
            [] => Cow::Borrowed(""),
            names => Cow::Owned(format!(" (or {})", names.join(", "))),
        };
        write!(f, "{probably}{}{also}", self.name)
    }
}

/// One line of the table; a line with an OID or a name is more special than one without.
struct Entry {
    kind: CardKind,
    manufacturer_id: u8,
    /// Of an eMMC bits 111:104, of an SD card 119:104.
    oem_id: Option<u16>,
    name_prefix: &'static str,
    manufacturer: Manufacturer,
}

/// The manufacturer of a card, or `None` for numbers that no source knows.
///
/// `oemid` is bits 119:104 of the CID, as Linux prints it; `name` is PNM.
/// The longest matching name prefix wins, then a matching OID, then the bare MID.
pub fn lookup(kind: CardKind, manufacturer_id: u8, oemid: u16, name: &[u8]) -> Option<Manufacturer> {
    let oem_id = match kind {
        CardKind::Emmc => oemid & 0xff,
        CardKind::Sd => oemid,
    };
    table::ENTRIES
        .iter()
        .filter(|entry| entry.kind == kind && entry.manufacturer_id == manufacturer_id)
        .filter(|entry| entry.oem_id.is_none_or(|expected| expected == oem_id))
        .filter(|entry| name.starts_with(entry.name_prefix.as_bytes()))
        .max_by_key(|entry| (entry.name_prefix.len(), entry.oem_id.is_some()))
        .map(|entry| entry.manufacturer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(kind: CardKind, manufacturer_id: u8, oemid: u16, name: &str) -> String {
        lookup(kind, manufacturer_id, oemid, name.as_bytes()).map_or("unknown".into(), |found| found.to_string())
    }

    #[test]
    fn known_cards_are_named() {
        for (manufacturer_id, oemid, name, expected) in [
            (0x13, 0x014e, "S0J56X", "Micron"),
            (0x11, 0x0100, "004GE0", "Kioxia (Toshiba)"),
            (0x11, 0x0000, "016G70", "Kioxia (Toshiba)"),
            (0x15, 0x0100, "8GME4R", "Samsung"),
            (0x15, 0x0100, "BJNB4R", "Samsung"),
            (0x15, 0x0100, "M8G1GC", "Samsung"),
            (0x15, 0x0100, "XXXXXX", "probably Samsung (or SanDisk, LG)"),
            (0x45, 0x0100, "DG4032", "SanDisk"),
            (0x02, 0x0100, "SEM08G", "SanDisk"),
            (0x02, 0x0100, "ABCDEF", "probably SanDisk (or Kingston)"),
            (0x90, 0x014a, "HBG4e\x05", "SK hynix"),
            (0x88, 0x0103, "NCard ", "Longsys (Foresee)"),
            (0xd6, 0x0103, "88A398", "Longsys (Foresee)"),
            (0xfe, 0x014e, "MMC16G", "probably Micron (or Numonyx)"),
            (0x77, 0x0000, "SOMMC1", "unknown"),
        ] {
            assert_eq!(text(CardKind::Emmc, manufacturer_id, oemid, name), expected, "{manufacturer_id:#x} {name}");
        }
        for (manufacturer_id, oemid, name, expected) in [
            (0x03, 0x5344, "SN512", "SanDisk"),
            (0x03, 0x5054, "SL16G", "SanDisk"),
            (0x27, 0x5048, "SD16G", "probably Phison (or Delkin, Apacer)"),
            (0x27, 0x5048, "APUSD", "Apacer"),
            (0x1b, 0x534d, "00000", "Samsung"),
            (0x1b, 0x0000, "ABCDE", "probably Samsung (or Transcend)"),
            (0x74, 0x4a60, "USD  ", "probably Transcend (or Jiaelec)"),
            (0x9f, 0x5449, "SD32G", "probably Kingston (or Taishin)"),
            (0x15, 0x0100, "8GME4", "unknown"),
        ] {
            assert_eq!(text(CardKind::Sd, manufacturer_id, oemid, name), expected, "{manufacturer_id:#x} {name}");
        }
    }

    #[test]
    fn every_row_is_unique_and_has_a_source() {
        for (index, entry) in table::ENTRIES.iter().enumerate() {
            let key = |entry: &Entry| (entry.kind, entry.manufacturer_id, entry.oem_id, entry.name_prefix);
            assert!(table::ENTRIES[..index].iter().all(|other| key(other) != key(entry)), "{:?}", key(entry));
            let Manufacturer { name, certainty, also, source } = entry.manufacturer;
            assert!(!source.is_empty() && !also.contains(&name), "{name}");
            assert!(certainty == Certainty::Probably || also.is_empty(), "{name} is certain, yet others are named");
        }
    }

    #[test]
    fn general_rows_follow_special_rows() {
        for entry in table::ENTRIES {
            let general = lookup(entry.kind, entry.manufacturer_id, 0xffff, b"");
            assert!(general.is_some(), "{:?} {:#x}", entry.kind, entry.manufacturer_id);
        }
    }
}
