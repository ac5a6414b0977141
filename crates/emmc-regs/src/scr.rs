//! SCR: which version of the SD specification a card follows and which optional commands it has.

use crate::error::Error;
use crate::hex;
use crate::layout::{self, bit, layout, number, of, within};
use crate::row::{FieldValue, RegisterField};

/// The SD configuration register, as ACMD51 sends it: bits 63:56 in the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scr(pub [u8; 8]);

impl Scr {
    /// Reads 16 hexadecimal digits, as sysfs prints them; blanks and a leading `0x` do not count.
    ///
    /// Errors: a character that is no digit, or another number of digits.
    pub fn parse_hex(text: &str) -> Result<Self, Error> {
        hex::parse("SCR", text).map(Self)
    }

    /// The version of the physical layer specification, from the four fields that grew over time.
    pub fn specification(&self) -> Option<&'static str> {
        specification(&self.0)
    }

    /// Whether the card has this many data lines, 1 or 4.
    pub fn has_bus_width(&self, lines: u8) -> bool {
        SD_BUS_WIDTHS.get(&self.0) & u64::from(lines) != 0 && matches!(lines, 1 | 4)
    }

    /// Whether CMD23 sets the block count of the next transfer.
    pub fn has_set_block_count(&self) -> bool {
        CMD_SUPPORT.get(&self.0) & CMD23 != 0
    }

    /// What erased blocks read as: 0x00 or 0xff.
    pub fn erased_byte(&self) -> u8 {
        if DATA_STAT_AFTER_ERASE.is_set(&self.0) { 0xff } else { 0x00 }
    }

    /// Every field, for printing and comparing.
    pub fn fields(&self) -> Vec<RegisterField> {
        layout::rows("SCR", &self.0, FIELDS)
    }
}

// Source: SD physical layer simplified specification, clause 5.6; Linux `drivers/mmc/core/sd.c`.
layout! {
    SCR_STRUCTURE = of(63, 60, "", |raw| if raw == 0 { "1.0".into() } else { FieldValue::Undefined });
    SD_SPEC = within(59, 56, |scr| specification(scr).map_or(FieldValue::Undefined, FieldValue::from));
    DATA_STAT_AFTER_ERASE = of(55, 55, "", |raw| if raw == 1 { "0xff".into() } else { "0x00".into() });
    SD_SECURITY = of(54, 52, "", security);
    SD_BUS_WIDTHS = of(51, 48, "", |raw| FieldValue::flags(raw, &[(0, "1 bit"), (2, "4 bit")]));
    SD_SPEC3 = bit(47);
    EX_SECURITY = number(46, 43, "");
    SD_SPEC4 = bit(42);
    SD_SPECX = number(41, 38, "");
    CMD_SUPPORT = of(35, 32, "", |raw| FieldValue::flags(raw, &COMMANDS));
}

/// Bit of CMD_SUPPORT for CMD23, SET_BLOCK_COUNT.
pub const CMD23: u64 = 1 << 1;

const COMMANDS: [(u8, &str); 4] = [(0, "CMD20"), (1, "CMD23"), (2, "CMD48/49"), (3, "CMD58/59")];

fn specification(scr: &[u8]) -> Option<&'static str> {
    match (SD_SPEC.get(scr), SD_SPEC3.get(scr), SD_SPEC4.get(scr), SD_SPECX.get(scr)) {
        (0, 0, 0, 0) => Some("1.0"),
        (1, 0, 0, 0) => Some("1.10"),
        (2, 0, 0, 0) => Some("2.00"),
        (2, 1, 0, 0) => Some("3.0x"),
        (2, 1, 1, 0) => Some("4.xx"),
        (2, 1, _, 1) => Some("5.xx"),
        (2, 1, _, 2) => Some("6.xx"),
        (2, 1, _, 3) => Some("7.xx"),
        (2, 1, _, 4) => Some("8.xx"),
        (2, 1, _, 5) => Some("9.xx"),
        _ => None,
    }
}

fn security(raw: u64) -> FieldValue {
    match raw {
        0 => "none".into(),
        1 => "not used".into(),
        2 => "SDSC (1.01)".into(),
        3 => "SDHC (2.00)".into(),
        4 => "SDXC (3.xx)".into(),
        _ => FieldValue::Undefined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(scr: &Scr, name: &str) -> String {
        scr.fields().iter().find(|field| field.name == name).unwrap().value.to_string()
    }

    #[test]
    fn published_registers_are_decoded() {
        // Phison SD16G; SanDisk SN512; Transcend USD.
        for (text, specification, security, commands) in [
            ("0235800201000000", "3.0x", "SDHC (2.00)", "CMD23"),
            ("0245848700000000", "6.xx", "SDXC (3.xx)", "CMD20, CMD23, CMD48/49"),
            ("0225800000000000", "3.0x", "SDSC (1.01)", "none"),
        ] {
            let scr = Scr::parse_hex(text).unwrap();
            assert_eq!(scr.specification(), Some(specification), "{text}");
            assert_eq!(value(&scr, "SD_SPEC"), specification);
            assert_eq!(value(&scr, "SD_SECURITY"), security);
            assert_eq!(value(&scr, "CMD_SUPPORT"), commands);
            assert_eq!(value(&scr, "SD_BUS_WIDTHS"), "1 bit, 4 bit");
            assert_eq!((scr.has_bus_width(4), scr.has_bus_width(8), scr.erased_byte()), (true, false, 0));
            assert_eq!(scr.has_set_block_count(), commands.contains("CMD23"));
        }
    }

    #[test]
    fn versions_depend_on_four_fields() {
        for (field, expected) in [
            ("0005000000000000", Some("1.0")),
            ("0185000000000000", Some("1.10")),
            ("0225000000000000", Some("2.00")),
            ("0235840000000000", Some("4.xx")),
            ("0235804000000000", Some("5.xx")),
            ("0235814000000000", Some("9.xx")),
            ("0235818000000000", None),
            ("0305000000000000", None),
        ] {
            let scr = Scr::parse_hex(field).unwrap();
            assert_eq!(scr.specification(), expected, "{field}");
            assert_eq!(scr.erased_byte(), if field.starts_with("018") { 0xff } else { 0 });
        }
        layout::assert_orderly(64, FIELDS);
        assert_eq!(value(&Scr([0xff; 8]), "SCR_STRUCTURE"), "undefined");
    }
}
