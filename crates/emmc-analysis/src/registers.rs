//! Every known register of a card as one list of rows.
//!
//! Absent on purpose: the difference between two such lists (`comparison`).

use std::borrow::Cow;

use emmc_port::{CardData, Format, Origin, Snapshot};
use emmc_regs::cid::Cid;
use emmc_regs::date::ManufactureDate;
use emmc_regs::ext_csd::{Anomaly, ExtCsd, Row, mmc_version, reg};
use emmc_regs::row::{FieldValue, RegisterField};
use emmc_regs::{CardKind, Persistence};
use emmc_regs::{csd::Csd, ocr::Ocr, r1::R1, scr::Scr, ssr::Ssr};
use serde::Serialize;

/// One register field with its value: the rows of `show`, the keys of `diff`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegisterRow {
    /// `EXT_CSD`, `CID`, `CSD`, `OCR`, `SCR`, `SSR`, `R1`.
    pub register: &'static str,
    /// The standard's name.
    pub name: Cow<'static, str>,
    /// First byte in EXT_CSD, lowest bit in every other register.
    pub offset: u16,
    /// Width in bits.
    pub width_bits: u16,
    /// The number in the register.
    pub raw: u64,
    /// Its decoded value, in `unit`.
    pub value: FieldValue,
    /// Unit of `value`, if it has one.
    pub unit: Option<&'static str>,
    /// Access type as the standard abbreviates it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<String>,
    /// The effect of a careless write: `one-time`, `one-time-part`, `action`, `destructive`, `vendor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub danger: Option<&'static str>,
    /// A description, if the name does not explain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<&'static str>,
    /// The version of the standard that the part follows, if it does not have the field: `4.41`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_in_revision: Option<&'static str>,
    /// Persistence of a value, for registers other than EXT_CSD, where each bit has its own.
    #[serde(skip)]
    pub persistence: Option<Persistence>,
}

impl RegisterRow {
    /// The register's number in hexadecimal, as wide as the field.
    pub fn raw_hex(&self) -> String {
        format!("{:#0width$x}", self.raw, width = 2 + usize::from(self.width_bits.div_ceil(4)).clamp(2, 8))
    }

    /// Whether `name` means this field: its name in any case, `REGISTER.NAME`, or the name of the array it is in.
    pub fn is_named(&self, name: &str) -> bool {
        let bare = match name.split_once('.') {
            Some((register, bare)) if register.eq_ignore_ascii_case(self.register) => bare,
            Some(_) => return false,
            None => name,
        };
        let stem = self.name.split('[').next().unwrap_or_default();
        self.name.eq_ignore_ascii_case(bare) || stem.eq_ignore_ascii_case(bare)
    }

    /// Value and unit as one text.
    pub fn value_text(&self) -> String {
        if let Some(version) = self.not_in_revision {
            return format!("not in this revision ({version})");
        }
        match (&self.value, self.unit) {
            (FieldValue::Number(bytes), Some("B")) => emmc_units::Bytes(*bytes).to_string(),
            (FieldValue::Undefined, _) => "not defined".into(),
            (value, Some(unit)) => format!("{value} {unit}"),
            (value, None) => value.to_string(),
        }
    }
}

impl From<Row> for RegisterRow {
    fn from(row: Row) -> Self {
        Self {
            register: "EXT_CSD",
            name: row.name,
            offset: row.offset,
            width_bits: row.width * 8,
            raw: row.raw,
            value: row.value,
            unit: (!row.unit.is_empty()).then_some(row.unit),
            access: Some(row.field.access_text()),
            danger: row.field.danger.map(|danger| danger.as_str()),
            what: (!row.field.what.is_empty()).then_some(row.field.what),
            not_in_revision: row.not_in_rev.map(|rev| mmc_version(rev).unwrap_or("unknown")),
            persistence: None,
        }
    }
}

impl From<RegisterField> for RegisterRow {
    fn from(field: RegisterField) -> Self {
        Self {
            register: field.register,
            name: field.name.into(),
            offset: field.offset,
            width_bits: field.width_bits,
            raw: field.raw,
            value: field.value,
            unit: (!field.unit.is_empty()).then_some(field.unit),
            access: None,
            danger: None,
            what: None,
            not_in_revision: None,
            persistence: Some(field.persistence),
        }
    }
}

/// Every known field of every register; `reserved` adds the EXT_CSD bytes that the standard leaves unassigned.
pub fn rows(card: &CardData, reserved: bool) -> Vec<RegisterRow> {
    let kind = card.kind.unwrap_or(CardKind::Emmc);
    let rev = card.ext_csd.as_ref().and_then(|ext_csd| ext_csd.byte(reg::EXT_CSD_REV));
    let mut rows: Vec<RegisterRow> = Vec::new();
    let mut add = |fields: Vec<RegisterField>| rows.extend(fields.into_iter().map(RegisterRow::from));
    if let Some(cid) = &card.cid {
        add(cid.fields(kind, ManufactureDate::rev_of(rev, card.csd.as_ref())));
    }
    if let Some(csd) = card.csd {
        add(Csd::new(kind, csd).fields());
    }
    if let Some(ocr) = card.ocr {
        add(Ocr(ocr).fields(kind));
    }
    if let Some(scr) = card.scr {
        add(Scr(scr).fields());
    }
    if let Some(ssr) = card.ssr {
        add(Ssr(ssr).fields());
    }
    if let Some(status) = card.status {
        add(R1(status).fields(kind));
    }
    if let Some(ext_csd) = &card.ext_csd {
        rows.extend(ext_csd.rows(reserved).map(RegisterRow::from));
    }
    rows
}

/// All registers of a card, as `show` prints them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Registers {
    /// The sources, with notes.
    pub sources: Vec<Origin>,
    /// eMMC or SD, if it is known.
    pub kind: Option<CardKind>,
    /// Known bytes of EXT_CSD: 512 from a card, fewer from another tool's text.
    pub ext_csd_known_bytes: Option<usize>,
    /// Every known field.
    pub fields: Vec<RegisterRow>,
    /// Values that break the standard or contradict each other.
    pub anomalies: Vec<Anomaly>,
    /// All undecoded data of the sources, which makes the document a source again.
    pub card: Snapshot,
}

impl Registers {
    /// Decodes every register; `reserved` adds the EXT_CSD bytes that the standard leaves unassigned.
    pub fn new(card: &CardData, reserved: bool) -> Self {
        Self {
            sources: card.origins.clone(),
            kind: card.kind,
            ext_csd_known_bytes: card.ext_csd.as_ref().map(|ext_csd| ext_csd.known_bytes()),
            fields: rows(card, reserved),
            anomalies: card.ext_csd.as_ref().map(|ext_csd| ext_csd.decode().1).unwrap_or_default(),
            card: Snapshot::from(card),
        }
    }
}

/// Whether some register of an eMMC or an SD card has a field of that name.
pub fn is_known_name(name: &str) -> bool {
    [CardKind::Emmc, CardKind::Sd].into_iter().any(|kind| {
        let mut card = CardData::new("", Format::RegisterHex);
        card.kind = Some(kind);
        card.cid = Some(Cid([0; 16]));
        card.csd = Some([0; 16]);
        (card.ocr, card.status) = (Some(0), Some(0));
        (card.scr, card.ssr) = (Some([0; 8]), Some([0; 64]));
        card.ext_csd = Some(ExtCsd::from_bytes([0; 512]));
        rows(&card, false).iter().any(|row| row.is_named(name))
    })
}
