//! CID: maker, product name, serial number and date of a card.
//!
//! Absent on purpose: the maker's name, which no standard publishes (`manufacturer` guesses it).

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use crate::CardKind;
use crate::bits::bits;
use crate::crc::Crc;
use crate::date::ManufactureDate;
use crate::error::Error;
use crate::hex;
use crate::layout::{BitField, number, of, rows, within};
use crate::manufacturer::{self, Manufacturer};
use crate::row::{FieldValue, RegisterField};

/// The card identification register, as the card sends it: bits 127:120 in the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cid(pub [u8; 16]);

/// The fields of a CID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Identity {
    /// Which layout it was read by.
    pub kind: CardKind,
    /// MID, which the standard's body allots and keeps to itself.
    pub manufacturer_id: u8,
    /// Bits 119:104, which Linux prints as `oemid`.
    ///
    /// Of an eMMC these are six reserved bits, CBX and OID, hence the 0x0100 of most soldered parts.
    pub oemid: u16,
    /// CBX of an eMMC: the package.
    pub package: Option<Package>,
    /// OID of an eMMC: one byte.
    pub oem_id: Option<u8>,
    /// OID of an SD card: two letters, escaped where they are none.
    pub oem_text: Option<String>,
    /// PNM without trailing blanks, escaped where it is not printable.
    pub product_name: String,
    /// PNM unchanged: six bytes on eMMC, five on SD.
    pub product_name_raw: Vec<u8>,
    /// PRV.
    pub product_revision: ProductRevision,
    /// PSN.
    pub serial_number: u32,
    /// MDT.
    pub manufacture_date: ManufactureDate,
    /// Bits 7:1.
    pub crc: Crc,
}

/// What an eMMC is built into: its CBX field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Package {
    /// A removable card.
    Card,
    /// Soldered, alone in its package.
    Bga,
    /// Soldered, stacked on another chip.
    Pop,
    /// Code 3.
    Reserved,
}

/// PRV: two digits, major and minor, each four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProductRevision(pub u8);

impl Cid {
    /// Reads 32 hexadecimal digits, as sysfs prints them; blanks and a leading `0x` do not count.
    ///
    /// Errors: a character that is no digit, or another number of digits.
    pub fn parse_hex(text: &str) -> Result<Self, Error> {
        hex::parse("CID", text).map(Self)
    }

    /// The checksum in bits 7:1.
    pub fn crc(&self) -> Crc {
        Crc::of(&self.0)
    }

    /// Decodes the register; an eMMC's date needs EXT_CSD_REV to be certain.
    pub fn decode(&self, kind: CardKind, ext_csd_rev: Option<u8>) -> Identity {
        let field = |hi, lo| bits(&self.0, hi, lo);
        let emmc = kind == CardKind::Emmc;
        Identity {
            kind,
            manufacturer_id: self.manufacturer_id(),
            oemid: self.oemid(),
            package: emmc.then(|| Package::from_code(field(113, 112))),
            oem_id: emmc.then(|| field(111, 104) as u8),
            oem_text: (!emmc).then(|| escaped(&self.oemid().to_be_bytes())),
            product_name: escaped(self.product_name_raw(kind)),
            product_name_raw: self.product_name_raw(kind).to_vec(),
            product_revision: ProductRevision(if emmc { field(55, 48) } else { field(63, 56) } as u8),
            serial_number: if emmc { field(47, 16) } else { field(55, 24) } as u32,
            manufacture_date: self.manufacture_date(kind, ext_csd_rev),
            crc: self.crc(),
        }
    }

    /// Every field, for printing and comparing.
    pub fn fields(&self, kind: CardKind, ext_csd_rev: Option<u8>) -> Vec<RegisterField> {
        let layout = match kind {
            CardKind::Emmc => EMMC.as_slice(),
            CardKind::Sd => SD.as_slice(),
        };
        let mut fields = rows("CID", &self.0, layout);
        // Two meanings lie outside the bits: the year depends on EXT_CSD_REV, the maker on a list.
        for field in &mut fields {
            match field.name {
                "MID" => field.value = self.manufacturer_value(kind),
                "MDT" => field.value = FieldValue::text(self.manufacture_date(kind, ext_csd_rev).to_string()),
                _ => {}
            }
        }
        fields
    }

    /// Who probably made the card.
    pub fn manufacturer(&self, kind: CardKind) -> Option<Manufacturer> {
        manufacturer::lookup(kind, self.manufacturer_id(), self.oemid(), self.product_name_raw(kind))
    }

    fn manufacturer_value(&self, kind: CardKind) -> FieldValue {
        self.manufacturer(kind).map_or(FieldValue::Undefined, |manufacturer| FieldValue::text(manufacturer.to_string()))
    }

    fn manufacturer_id(&self) -> u8 {
        bits(&self.0, 127, 120) as u8
    }

    fn oemid(&self) -> u16 {
        bits(&self.0, 119, 104) as u16
    }

    fn product_name_raw(&self, kind: CardKind) -> &[u8] {
        let [_, _, _, name @ .., _, _, _, _, _, _, _] = &self.0;
        match kind {
            CardKind::Emmc => name,
            CardKind::Sd => name.split_last().map_or(name, |(_, five)| five),
        }
    }

    fn manufacture_date(&self, kind: CardKind, ext_csd_rev: Option<u8>) -> ManufactureDate {
        match kind {
            CardKind::Emmc => ManufactureDate::emmc(bits(&self.0, 15, 8) as u8, ext_csd_rev),
            CardKind::Sd => ManufactureDate::sd(bits(&self.0, 19, 8) as u16),
        }
    }
}

const EMMC: [BitField; 8] = [
    number("MID", 127, 120, ""),
    of("CBX", 113, 112, "", |raw| FieldValue::text(Package::from_code(raw).to_string())),
    number("OID", 111, 104, ""),
    within("PNM", 103, 56, |cid| name_value(cid, 3..9)),
    of("PRV", 55, 48, "", |raw| FieldValue::text(ProductRevision(raw as u8).to_string())),
    number("PSN", 47, 16, ""),
    number("MDT", 15, 8, ""),
    within("CRC", 7, 1, crc_value),
];

const SD: [BitField; 7] = [
    number("MID", 127, 120, ""),
    within("OID", 119, 104, |cid| name_value(cid, 1..3)),
    within("PNM", 103, 64, |cid| name_value(cid, 3..8)),
    of("PRV", 63, 56, "", |raw| FieldValue::text(ProductRevision(raw as u8).to_string())),
    number("PSN", 55, 24, ""),
    number("MDT", 19, 8, ""),
    within("CRC", 7, 1, crc_value),
];

fn name_value(cid: &[u8], range: std::ops::Range<usize>) -> FieldValue {
    cid.get(range).map(escaped).into()
}

/// The checksum of a 16-byte register as a value; also CSD's.
pub(crate) fn crc_value(register: &[u8]) -> FieldValue {
    let register: Option<&[u8; 16]> = register.try_into().ok();
    register.map(|register| Cow::Owned(Crc::of(register).to_string())).map_or(FieldValue::Undefined, FieldValue::Text)
}

/// Printable letters as they are, the rest as escapes; what pads the end is dropped.
fn escaped(name: &[u8]) -> String {
    let length = name.iter().rposition(|&byte| byte != b' ' && byte != 0).map_or(0, |last| last + 1);
    let letter = |byte: &u8| match byte {
        // Quotes are as printable as any letter; the standard library escapes them for its own literals.
        b'"' | b'\'' => char::from(*byte).to_string(),
        byte => byte.escape_ascii().to_string(),
    };
    name.get(..length).unwrap_or_default().iter().map(letter).collect()
}

impl Package {
    fn from_code(code: u64) -> Self {
        match code {
            0 => Self::Card,
            1 => Self::Bga,
            2 => Self::Pop,
            _ => Self::Reserved,
        }
    }
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Card => "removable card",
            Self::Bga => "BGA",
            Self::Pop => "PoP",
            Self::Reserved => "reserved",
        })
    }
}

impl ProductRevision {
    /// The upper four bits; Linux calls them `hwrev` of an SD card.
    pub fn major(self) -> u8 {
        self.0 >> 4
    }

    /// The lower four bits; Linux calls them `fwrev` of an SD card.
    pub fn minor(self) -> u8 {
        self.0 & 0xf
    }
}

impl fmt::Display for ProductRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major(), self.minor())
    }
}

#[cfg(test)]
mod tests;
