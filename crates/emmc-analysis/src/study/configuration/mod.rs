//! How a card is configured: one row for each setting, with what it means and the register it was read from.
//!
//! A setting that the source does not tell has no row; it is named in `not_told`. Absent on purpose: judgement, which
//! the findings give.

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

/// What a setting is about.
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
    /// What a power cut may cost.
    Reliability,
    /// Boot.
    Boot,
    /// Write protection.
    Protection,
    /// Erasing for good.
    Security,
    /// Sectors, groups, best sizes.
    Media,
    /// What an SD card promises.
    Performance,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfigRow {
    /// What it is about.
    pub topic: Topic,
    /// What is set.
    pub name: &'static str,
    /// How it is set.
    pub value: String,
    /// What that means; empty where the value says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub meaning: String,
    /// The register or file it was read from.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(with = "crate::evidence::PrintedSource"))]
    pub source: Source,
}

/// All settings that a source tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Configuration {
    /// The settings, topic by topic.
    pub rows: Vec<ConfigRow>,
    /// Settings that a card of this kind has and the source does not tell.
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
    /// Adds a setting that every card of the kind has: it is missed where it is not told.
    fn add(&mut self, name: &'static str, source: impl Into<Source>, told: Told) {
        let source = source.into();
        match (&told, self.lacks(&source)) {
            (_, true) => self.told.not_in_revision.push(name),
            (None, false) => self.told.not_told.push(name),
            (Some(_), false) => self.add_if_told(name, source, told),
        }
    }

    /// Adds a setting that nobody misses.
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

/// A value whose meaning is plain.
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

/// Whether the part follows at least this revision; unknown counts as yes, so that a row is missed rather than hidden.
fn at_least(info: &DeviceInfo, rev: u8) -> bool {
    info.rev.is_none_or(|found| found >= rev)
}

#[cfg(test)]
mod tests;
