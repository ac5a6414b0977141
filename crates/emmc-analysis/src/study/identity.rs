//! A card's identity: type, maker, name, serial number, date, versions.
//!
//! Absent on purpose: part number and flash type. No register gives them; the product name is only a hint.

use emmc_port::CardData;
use emmc_regs::CardKind;
use emmc_regs::cid;
use emmc_regs::crc::Crc;
use emmc_regs::date::ManufactureDate;
use emmc_regs::ext_csd::{field_named, mmc_version};
use emmc_regs::manufacturer::{self, Manufacturer};
use emmc_regs::scr::Scr;
use serde::Serialize;

use crate::health::reading;

/// A card's identity; unknown values are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Identity {
    /// eMMC or SD.
    pub kind: Option<CardKind>,
    /// The probable maker, with its certainty.
    pub manufacturer: Option<Manufacturer>,
    /// MID.
    pub manufacturer_id: Option<u8>,
    /// Bits 119:104 of the CID, as Linux prints them.
    pub oemid: Option<u16>,
    /// Package of an eMMC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// PNM.
    pub product_name: Option<String>,
    /// PSN.
    pub serial_number: Option<u32>,
    /// MDT: every month that it may mean.
    pub manufacture_date: Option<ManufactureDate>,
    /// PRV.
    pub product_revision: Option<String>,
    /// FIRMWARE_VERSION: text where all of it prints, else its bytes in hexadecimal digits.
    pub firmware: Option<String>,
    /// The standard that the card follows: `eMMC 5.1`.
    pub standard: Option<String>,
    /// EXT_CSD_REV.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ext_csd_rev: Option<u8>,
    /// State of the CID's checksum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cid_crc: Option<Crc>,
    /// Notes: values taken from text, dates with two meanings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Reads a card's identity.
pub fn identity(card: &CardData) -> Identity {
    let kind = kind(card);
    let ext_csd_rev = if kind == Some(CardKind::Sd) { None } else { reading::rev(card) };
    let mut identity = match (card.cid, kind) {
        (Some(cid), Some(kind)) => {
            let rev = ManufactureDate::rev_of(ext_csd_rev, card.csd.as_ref());
            from_cid(&cid.decode(kind, rev), cid.manufacturer(kind))
        }
        _ => from_text(card, kind),
    };
    identity.kind = kind;
    identity.ext_csd_rev = ext_csd_rev;
    identity.firmware = firmware(card, ext_csd_rev);
    identity.standard = standard(card, kind, ext_csd_rev);
    if let (Some(_), None) = (card.cid, kind) {
        identity
            .notes
            .push("the CID cannot be decoded, because it is unknown whether this is an eMMC or an SD card".into());
    }
    identity
}

/// The card type that a source states, or to which its registers belong.
pub(super) fn kind(card: &CardData) -> Option<CardKind> {
    let sd = || (card.scr.is_some() || card.ssr.is_some()).then_some(CardKind::Sd);
    let emmc = || (card.ext_csd.is_some() || card.stated.mmc_version.is_some()).then_some(CardKind::Emmc);
    card.kind.or_else(emmc).or_else(sd)
}

fn from_cid(cid: &cid::Identity, manufacturer: Option<Manufacturer>) -> Identity {
    let mut notes = Vec::new();
    if let ManufactureDate::Ambiguous(dates) = &cid.manufacture_date {
        let rules: Vec<String> = dates.iter().map(|date| format!("{date} by the rule for {}", date.rule)).collect();
        notes.push(format!("the date is ambiguous: {}", rules.join(", ")));
    }
    if let Crc::Wrong { .. } = cid.crc {
        notes.push(format!("the checksum of the CID is {}: do not trust its fields", cid.crc));
    }
    Identity {
        manufacturer,
        manufacturer_id: Some(cid.manufacturer_id),
        oemid: Some(cid.oemid),
        package: cid.package.map(|package| package.to_string()),
        product_name: Some(cid.product_name.clone()),
        serial_number: Some(cid.serial_number),
        manufacture_date: Some(cid.manufacture_date.clone()),
        product_revision: Some(cid.product_revision.to_string()),
        cid_crc: Some(cid.crc),
        notes,
        ..Identity::default()
    }
}

/// Identity from text and sysfs if there is no CID.
fn from_text(card: &CardData, kind: Option<CardKind>) -> Identity {
    let sysfs = |attribute: &str| card.sysfs.get(attribute).map(|text| text.trim().to_owned());
    let number = |attribute: &str| {
        let text = sysfs(attribute)?;
        u32::from_str_radix(text.trim_start_matches("0x"), 16).ok()
    };
    let stated = &card.stated;
    let manufacturer_id = stated.manufacturer_id.or_else(|| u8::try_from(number("manfid")?).ok());
    let oemid = stated.oem_id.or_else(|| u16::try_from(number("oemid")?).ok());
    let product_name = stated.name.as_ref().map(|name| name.trim_end().to_owned()).or_else(|| sysfs("name"));
    let name = product_name.as_deref().unwrap_or_default();
    let maker = |kind, mid| manufacturer::lookup(kind, mid, oemid.unwrap_or_default(), name.as_bytes());
    let mut notes = Vec::new();
    if manufacturer_id.is_some() || product_name.is_some() {
        notes.push("no CID in this source: the identity is from a tool's text and may be shortened".into());
    }
    if let Some(date) = stated.date.clone().or_else(|| sysfs("date")) {
        notes.push(format!("printed date: {date}; tools decode it differently, so it is not used"));
    }
    Identity {
        manufacturer: kind.zip(manufacturer_id).and_then(|(kind, mid)| maker(kind, mid)),
        manufacturer_id,
        oemid,
        serial_number: stated.serial.or_else(|| number("serial")),
        product_name,
        notes,
        ..Identity::default()
    }
}

/// The register exists from eMMC 5.0 on; earlier parts have only PRV.
fn firmware(card: &CardData, ext_csd_rev: Option<u8>) -> Option<String> {
    if ext_csd_rev.is_some_and(|rev| rev < 7) {
        return None;
    }
    let field = field_named("FIRMWARE_VERSION")?;
    let row = card.ext_csd.as_ref().and_then(|csd| csd.rows(false).find(|row| row.field.offset == field.offset));
    row.map(|row| row.value.to_string()).or_else(|| card.sysfs.get("fwrev").map(|text| text.trim().to_owned()))
}

fn standard(card: &CardData, kind: Option<CardKind>, ext_csd_rev: Option<u8>) -> Option<String> {
    match kind? {
        CardKind::Emmc => {
            let version = ext_csd_rev.and_then(mmc_version).or(card.stated.mmc_version.as_deref());
            version.map(|version| format!("eMMC {}", version.trim()))
        }
        CardKind::Sd => {
            let register = card.scr.and_then(|scr| Scr(scr).specification());
            register.or(card.stated.sd_version.as_deref()).map(|version| format!("SD {version}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use emmc_port::Format;
    use emmc_regs::cid::Cid;
    use emmc_regs::ext_csd::ExtCsd;

    use super::*;

    fn with_cid(kind: CardKind, cid: &str, rev: Option<u8>) -> Identity {
        let mut card = CardData { kind: Some(kind), ..CardData::new("card", Format::RegisterHex) };
        card.cid = Cid::parse_hex(cid).ok();
        card.ext_csd = rev.map(|rev| {
            let mut csd = ExtCsd::unknown();
            csd.set_uint(192, 1, rev.into());
            csd
        });
        identity(&card)
    }

    #[test]
    fn a_real_part_is_named_with_its_certainty() {
        let part = with_cid(CardKind::Emmc, "150100424a4e4234520fdac7c0381400", Some(8));
        assert_eq!(part.manufacturer.map(|maker| maker.name), Some("Samsung"));
        assert_eq!((part.product_name.as_deref(), part.serial_number), (Some("BJNB4R"), Some(0xdac7_c038)));
        assert_eq!((part.standard.as_deref(), part.package.as_deref()), (Some("eMMC 5.1"), Some("BGA")));
        assert_eq!(part.manufacture_date.unwrap().to_string(), "2017-01");
        assert!(part.notes.is_empty(), "{:?}", part.notes);
    }

    #[test]
    fn an_ambiguous_date_and_a_damaged_cid_are_reported() {
        let unknown_rev = with_cid(CardKind::Emmc, "1501004d384731474303dc0db061506f", None);
        assert!(unknown_rev.notes.iter().any(|note| note.contains("2013-05") && note.contains("1997-05")));
        let damaged = with_cid(CardKind::Emmc, "1501004d384731474303dc0db061516f", Some(8));
        assert!(damaged.notes.iter().any(|note| note.contains("checksum")), "{:?}", damaged.notes);
    }

    #[test]
    fn u_boots_text_names_a_part_without_a_cid() {
        let mut card = CardData::new("mmc info", Format::UBootInfo);
        card.stated.manufacturer_id = Some(0x13);
        card.stated.oem_id = Some(0x14e);
        card.stated.name = Some("S0J56 ".into());
        card.stated.mmc_version = Some("5.1".into());
        let part = identity(&card);
        assert_eq!((part.kind, part.standard.as_deref()), (Some(CardKind::Emmc), Some("eMMC 5.1")));
        assert_eq!(
            (part.manufacturer.map(|maker| maker.name), part.product_name.as_deref()),
            (Some("Micron"), Some("S0J56"))
        );
        assert!(part.notes[0].contains("no CID"), "{:?}", part.notes);
    }

    #[test]
    fn an_sd_card_has_its_own_date_rule_and_no_firmware_register() {
        let mut card = CardData { kind: Some(CardKind::Sd), ..CardData::default() };
        card.cid = Cid::parse_hex("275048534431364730da89b82900fb61").ok();
        card.scr = Some([0x02, 0x35, 0x80, 0x02, 0x01, 0, 0, 0]);
        let sd = identity(&card);
        assert_eq!(sd.manufacture_date.unwrap().to_string(), "2015-11");
        assert_eq!((sd.standard.as_deref(), sd.firmware), (Some("SD 3.0x"), None));
    }

    #[test]
    fn unknown_identity_prints_nothing() {
        assert_eq!(identity(&CardData::default()), Identity::default());
        let undecidable = CardData { cid: Cid::parse_hex(&"15".repeat(16)).ok(), ..CardData::default() };
        assert!(identity(&undecidable).notes[0].contains("eMMC or an SD card"));
    }
}
