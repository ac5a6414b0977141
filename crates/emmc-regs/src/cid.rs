//! CID: maker, product name, serial number and date of a card.
//!
//! Absent on purpose: the maker's name, which no standard publishes (`manufacturer` guesses it).

use std::fmt;

use serde::Serialize;

use crate::CardKind;
use crate::crc::{Crc, crc_value};
use crate::date::ManufactureDate;
use crate::error::Error;
use crate::hex;
use crate::layout::{BitField, bytes, layout, number, of, rows, within};
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
        let field = |field: &BitField| field.get(&self.0);
        let is_emmc = kind == CardKind::Emmc;
        let (revision, serial) = match kind {
            CardKind::Emmc => (field(emmc::PRV), field(emmc::PSN)),
            CardKind::Sd => (field(sd::PRV), field(sd::PSN)),
        };
        Identity {
            kind,
            manufacturer_id: self.manufacturer_id(),
            oemid: self.oemid(),
            package: is_emmc.then(|| Package::from_code(field(emmc::CBX))),
            oem_id: is_emmc.then(|| field(emmc::OID) as u8),
            oem_text: (!is_emmc).then(|| escaped(sd::OID.bytes(&self.0))),
            product_name: escaped(self.product_name_raw(kind)),
            product_name_raw: self.product_name_raw(kind).to_vec(),
            product_revision: ProductRevision(revision as u8),
            serial_number: serial as u32,
            manufacture_date: self.manufacture_date(kind, ext_csd_rev),
            crc: self.crc(),
        }
    }

    /// Every field, for printing and comparing.
    pub fn fields(&self, kind: CardKind, ext_csd_rev: Option<u8>) -> Vec<RegisterField> {
        let layout = match kind {
            CardKind::Emmc => emmc::FIELDS,
            CardKind::Sd => sd::FIELDS,
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

    /// MID.
    pub fn manufacturer_id(&self) -> u8 {
        emmc::MID.get(&self.0) as u8
    }

    fn oemid(&self) -> u16 {
        sd::OID.get(&self.0) as u16
    }

    fn product_name_raw(&self, kind: CardKind) -> &[u8] {
        match kind {
            CardKind::Emmc => emmc::PNM.bytes(&self.0),
            CardKind::Sd => sd::PNM.bytes(&self.0),
        }
    }

    fn manufacture_date(&self, kind: CardKind, ext_csd_rev: Option<u8>) -> ManufactureDate {
        match kind {
            CardKind::Emmc => ManufactureDate::emmc(emmc::MDT.get(&self.0) as u8, ext_csd_rev),
            CardKind::Sd => ManufactureDate::sd(sd::MDT.get(&self.0) as u16),
        }
    }
}

/// The fields of an eMMC's CID.
pub mod emmc {
    use super::*;

    layout! {
        MID = number(127, 120, "");
        CBX = of(113, 112, "", |raw| FieldValue::text(Package::from_code(raw).to_string()));
        OID = number(111, 104, "");
        PNM = bytes(103, 56, name_value);
        PRV = of(55, 48, "", |raw| FieldValue::text(ProductRevision(raw as u8).to_string()));
        PSN = number(47, 16, "");
        MDT = number(15, 8, "");
        CRC = within(7, 1, crc_value);
    }
}

/// The fields of an SD card's CID.
pub mod sd {
    use super::*;

    layout! {
        MID = number(127, 120, "");
        OID = bytes(119, 104, name_value);
        PNM = bytes(103, 64, name_value);
        PRV = of(63, 56, "", |raw| FieldValue::text(ProductRevision(raw as u8).to_string()));
        PSN = number(55, 24, "");
        MDT = number(19, 8, "");
        CRC = within(7, 1, crc_value);
    }
}

fn name_value(name: &[u8]) -> FieldValue {
    FieldValue::text(escaped(name))
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
