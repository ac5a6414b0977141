//! A card's configuration: one row for each setting, with its meaning and its source register.
//!
//! A setting that the source does not have has no row; it is listed in `not_told`. Absent on purpose: judgement, which
//! is in the findings.

mod bus;
mod media;
mod protection;
mod sd;
mod service;

use emmc_port::CardData;
use emmc_regs::CardKind;
use emmc_regs::ext_csd::{DeviceInfo, ExtCsd, reg};
use serde::Serialize;

pub(super) use self::protection::boot_source;
use super::identity;
use crate::evidence::Source;

/// The topic of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// Speed modes, clock, width, voltages.
    Bus,
    /// The volatile cache.
    Cache,
    /// The command queue.
    Queue,
    /// Background operations, interrupts, reset, power-off, firmware.
    Service,
    /// Safety in a power cut.
    Reliability,
    /// Boot.
    Boot,
    /// Write protection.
    Protection,
    /// Secure erase.
    Security,
    /// Sectors, groups, optimal sizes.
    Media,
    /// What an SD card promises.
    Performance,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigRow {
    /// Its topic.
    pub topic: Topic,
    /// Its name.
    pub name: &'static str,
    /// How it is configured.
    pub value: String,
    /// Its meaning; empty if the value is plain.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub meaning: String,
    /// The register or file it was read from.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(with = "crate::evidence::PrintedSource"))]
    pub source: Source,
}

/// All settings that a source has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Configuration {
    /// The settings, topic by topic.
    pub rows: Vec<ConfigRow>,
    /// Settings that this card type has and the source does not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_told: Vec<&'static str>,
    /// Settings that the part's revision of the standard does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_in_revision: Vec<&'static str>,
}

/// Reads a card's configuration.
pub fn configuration(card: &CardData) -> Configuration {
    let rev = card.ext_csd.as_ref().and_then(|ext_csd| ext_csd.byte(reg::EXT_CSD_REV));
    let mut rows = Rows { topic: Topic::Bus, rev, told: Configuration::default() };
    bus::host_rows(card, &mut rows);
    match identity::kind(card) {
        Some(CardKind::Sd) => sd::rows(card, &mut rows),
        Some(CardKind::Emmc) => emmc(card, &mut rows),
        None => {}
    }
    for row in &mut rows.told.rows {
        row.source.0.mark(card);
    }
    rows.told
}

fn emmc(card: &CardData, rows: &mut Rows) {
    let unknown = ExtCsd::unknown();
    let csd = card.ext_csd.as_ref().unwrap_or(&unknown);
    let (info, _) = csd.decode();
    bus::rows(card, csd, &info, rows);
    service::rows(csd, &info, rows);
    protection::rows(card, csd, &info, rows);
    media::rows(card, csd, &info, rows);
}

/// A value and its meaning.
type Told = Option<(String, String)>;

/// The rows so far, and the topic of the next ones.
struct Rows {
    topic: Topic,
    /// EXT_CSD_REV.
    rev: Option<u8>,
    told: Configuration,
}

impl Rows {
    /// Adds a setting that every card of this type has: it is listed as missing if unknown.
    fn add(&mut self, name: &'static str, source: impl Into<Source>, told: Told) {
        let source = source.into();
        match (&told, self.lacks(&source)) {
            (_, true) => self.told.not_in_revision.push(name),
            (None, false) => self.told.not_told.push(name),
            (Some(_), false) => self.add_if_told(name, source, told),
        }
    }

    /// Adds an optional setting, which is not listed as missing.
    fn add_if_told(&mut self, name: &'static str, source: impl Into<Source>, told: Told) {
        let (Some((value, meaning)), source) = (told, source.into()) else { return };
        if self.lacks(&source) {
            self.told.not_in_revision.push(name);
        } else {
            self.told.rows.push(ConfigRow { topic: self.topic, name, value, meaning, source });
        }
    }

    /// Whether the part's revision does not have the field that a source cites first.
    fn lacks(&self, source: &Source) -> bool {
        let cited = source.0.cited.first();
        cited.zip(self.rev).is_some_and(|(cited, rev)| cited.field().is_newer_than(rev))
    }
}

/// A value that needs no meaning.
fn plain(value: impl Into<String>) -> (String, String) {
    (value.into(), String::new())
}

fn with(value: impl Into<String>, meaning: impl Into<String>) -> (String, String) {
    (value.into(), meaning.into())
}

fn yes_no(flag: bool, yes: &str, no: &str) -> (String, String) {
    if flag { with("yes", yes) } else { with("no", no) }
}

fn on_off(flag: bool) -> &'static str {
    if flag { "on" } else { "off" }
}

/// Names of the set bits, or `none`.
fn flags(value: u8, names: &[(u8, &str)]) -> String {
    let set: Vec<&str> = names.iter().filter(|(bit, _)| value >> bit & 1 == 1).map(|(_, name)| *name).collect();
    if set.is_empty() { "none".into() } else { set.join(", ") }
}

/// Whether the part follows at least this revision; unknown counts as yes, so that a row is reported missing, not
/// hidden.
fn at_least(info: &DeviceInfo, rev: u8) -> bool {
    info.rev.is_none_or(|found| found >= rev)
}

#[cfg(test)]
mod tests;
