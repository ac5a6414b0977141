//! Health: the wear that a card reports, the state of the link to it, and what is unknown.
//!
//! A value that a part or a source does not report is unknown, never bad and never zero. Absent on purpose: decoding of
//! vendor health reports (`vendor`), and any guess at wear from age, speed or bytes written.

mod card_end;
#[cfg(test)]
mod card_end_tests;
mod check;
mod endurance;
mod error;
mod forecast;
#[cfg(test)]
mod forecast_tests;
mod history;
mod host_link;
pub(crate) mod reading;
mod series;
mod vendor_wear;
mod verdict;
mod wear_line;

use emmc_port::CardData;
use emmc_regs::CardKind;
use emmc_regs::ext_csd::reg;
use serde::Serialize;

pub use self::card_end::{CardEnd, EndEvidence};
pub use self::check::{CheckResult, CheckStatus, PerfValue, check};
pub use self::endurance::{Endurance, endurance};
pub use self::error::HealthError;
pub use self::forecast::{AreaForecast, Forecast, ForecastOptions, Moment, Outcome, WrittenForecast, forecast};
pub use self::history::{HistoryPoint, parse_history};
pub use self::host_link::{HostLink, LinkError, LinkErrorKind};
pub(crate) use self::host_link::{counted, link_errors};
use self::reading::Area;
pub use self::reading::{Absent, LifeReading, ReadFrom, Reading};
pub use self::vendor_wear::{VendorWear, WearKind};
use crate::evidence::Evidence;
use crate::finding::Severity;
use crate::maker_health::{self, VendorHealth};

/// Thresholds of used life.
///
/// The lower bound of the register's band is compared: at 90 %, 0x0A (90 % to 100 %) warns and 0x09 does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthOptions {
    warn_percent: u8,
    crit_percent: u8,
}

impl Default for HealthOptions {
    /// Warning from 90 %, critical past 100 %.
    fn default() -> Self {
        Self { warn_percent: 90, crit_percent: 100 }
    }
}

impl HealthOptions {
    /// Thresholds in percent of the estimated life.
    ///
    /// Errors: a threshold of 0 or above 100, or a warning that comes after the critical state.
    pub fn new(warn_percent: u8, crit_percent: u8) -> Result<Self, HealthError> {
        if warn_percent == 0 || crit_percent > 100 || warn_percent > crit_percent {
            return Err(HealthError::Thresholds { warn: Some(warn_percent), crit: Some(crit_percent) });
        }
        Ok(Self { warn_percent, crit_percent })
    }

    /// Thresholds of which some are given; a default moves where it would contradict a given one.
    ///
    /// Errors: as [`HealthOptions::new`]; they name only the given values.
    pub fn from_given(warn_percent: Option<u8>, crit_percent: Option<u8>) -> Result<Self, HealthError> {
        let usual = Self::default();
        let crit = crit_percent.unwrap_or(usual.crit_percent);
        let warn = warn_percent.unwrap_or(usual.warn_percent.min(crit));
        Self::new(warn, crit).map_err(|_| HealthError::Thresholds { warn: warn_percent, crit: crit_percent })
    }

    /// Warning threshold.
    pub const fn warn_percent(&self) -> u8 {
        self.warn_percent
    }

    /// Critical threshold.
    pub const fn crit_percent(&self) -> u8 {
        self.crit_percent
    }
}

/// All that a source reports about a card's health: the standard's registers, and wear by vendor reports.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    /// The result in one sentence.
    pub verdict: Verdict,
    /// Wear of type A cells.
    pub life_a: LifeReading,
    /// Wear of type B cells.
    pub life_b: LifeReading,
    /// PRE_EOL_INFO: how many of the reserved blocks are consumed.
    pub pre_eol: Reading,
    /// BKOPS_STATUS: outstanding background operations.
    pub bkops_status: Reading,
    /// EXCEPTION_EVENTS_STATUS: events that the card signals.
    pub exception_events: Reading,
    /// Used life and used spare blocks by vendor reports, the worst figure of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub vendor_wear: Vec<VendorWear>,
    /// Errors on the link between host and card.
    pub host_link: HostLink,
    /// What the part or the source does not report.
    pub cannot_tell: Vec<CannotTell>,
    /// Registers of which sysfs shows an older value; `notes` has them as text.
    #[serde(skip)]
    pub(crate) behind: Vec<Evidence>,
    /// What a reader should know about the values: their age, contradictions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Health in one word and one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    /// The worst of the known severities; unknown if the wear is unknown.
    pub severity: Severity,
    /// The reason.
    pub sentence: String,
}

/// Something unknown, which is neither good nor bad.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CannotTell {
    /// What is unknown.
    pub what: String,
    /// Why.
    pub why: String,
}

/// Judges a card's health.
pub fn health(card: &CardData, options: &HealthOptions) -> Health {
    health_with(card, &maker_health::sorted(card).0, options)
}

/// Judges a card's health by its registers and by its vendor reports, which are decoded already.
pub fn health_with(card: &CardData, reports: &[VendorHealth], options: &HealthOptions) -> Health {
    let mut health = Health {
        verdict: Verdict { severity: Severity::Unknown, sentence: String::new() },
        life_a: reading::life(card, Area::A, options),
        life_b: reading::life(card, Area::B, options),
        pre_eol: reading::pre_eol(card),
        bkops_status: reading::bkops(card),
        exception_events: reading::exception_events(card),
        vendor_wear: vendor_wear::worst(reports, options),
        host_link: host_link::host_link(card),
        cannot_tell: Vec::new(),
        behind: Vec::new(),
        notes: Vec::new(),
    };
    health.verdict = verdict::verdict(card, &health);
    health.cannot_tell = cannot_tell(card, reports, &health);
    health.behind = behind(card, &health);
    health.notes = notes(card, &health);
    health
}

fn cannot_tell(card: &CardData, reports: &[VendorHealth], health: &Health) -> Vec<CannotTell> {
    let readings = [
        &health.life_a.reading,
        &health.life_b.reading,
        &health.pre_eol,
        &health.bkops_status,
        &health.exception_events,
    ];
    let mut list: Vec<CannotTell> = readings
        .iter()
        .filter(|reading| !matches!(reading.absent, None | Some(Absent::NotSupported | Absent::SdCard)))
        .map(|reading| CannotTell { what: reading.field.name.into(), why: reading.text.clone() })
        .collect();
    let wear_told = health.vendor_wear.iter().any(|wear| wear.severity != Severity::Unknown);
    if card.kind == Some(CardKind::Sd) && !wear_told {
        let why = "SD cards have no standard health register; some answer a vendor command (CMD56)".into();
        list.push(CannotTell { what: "wear".into(), why });
    }
    if health.host_link.severity == Severity::Unknown {
        list.push(CannotTell { what: "errors between host and card".into(), why: health.host_link.text.clone() });
    }
    list.extend(beyond_registers(card, reports));
    list
}

/// Values that only vendor reports have, without those of the given reports.
fn beyond_registers(card: &CardData, reports: &[VendorHealth]) -> Option<CannotTell> {
    let told = |tells: &dyn Fn(&VendorHealth) -> bool| reports.iter().any(tells);
    let missing: Vec<&str> = [
        ("bytes written", told(&|report| report.reading("written_bytes").is_some())),
        (
            "erase counts",
            told(&|report| {
                report.areas.iter().any(|area| area.readings().next().is_some()) || !report.blocks.is_empty()
            }),
        ),
        ("bad blocks", told(&|report| !report.bad_blocks.is_empty())),
    ]
    .into_iter()
    .filter_map(|(what, told)| (!told).then_some(what))
    .collect();
    let why = match (card.reports.is_empty(), reports.is_empty()) {
        (true, _) => "no standard register has them; a vendor health report may",
        (false, true) => "no standard register has them, and no vendor report could be decoded",
        (false, false) => "no standard register has them, and the vendor's report does not either",
    };
    (!missing.is_empty()).then(|| CannotTell { what: missing.join(", "), why: why.into() })
}

/// Readings of which sysfs has an older value.
fn behind(card: &CardData, health: &Health) -> Vec<Evidence> {
    let readings = [
        (&health.life_a.reading, "life_time", 0),
        (&health.life_b.reading, "life_time", 1),
        (&health.pre_eol, "pre_eol_info", 0),
    ];
    let older = |(reading, attribute, word): (&Reading, &str, usize)| {
        let raw = reading.raw.filter(|_| reading.read_from == Some(ReadFrom::ExtCsd))?;
        let cached = reading::health_attribute(card, attribute).flatten()?.get(word).copied().map(u16::from)?;
        let text = format!(": the register holds {raw:#04x}, sysfs {cached:#04x} as of the last probe");
        (raw != cached).then(|| Evidence::of(reading.field, text))
    };
    readings.into_iter().filter_map(older).collect()
}

fn notes(card: &CardData, health: &Health) -> Vec<String> {
    let mut notes = Vec::new();
    let wear = [&health.life_a.reading, &health.life_b.reading, &health.pre_eol];
    if wear.iter().any(|reading| reading.read_from == Some(ReadFrom::Sysfs)) {
        notes.push(
            "values from sysfs date from the last probe of the card, usually the last boot; EXT_CSD, by ioctl or \
             debugfs, has the present values"
                .into(),
        );
    }
    notes.extend(health.behind.iter().map(ToString::to_string));
    let report = reg::VENDOR_PROPRIETARY_HEALTH_REPORT;
    let vendor = card
        .ext_csd
        .as_ref()
        .map_or(0, |csd| report.bytes().filter_map(|offset| csd.byte(offset)).filter(|byte| *byte != 0).count());
    if vendor > 0 && health.life_a.reading.absent != Some(Absent::PartTooOld) {
        notes.push(format!("{} has {vendor} bytes that are not 0; only the vendor knows their meaning", report.name));
    }
    notes
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_damage;
#[cfg(test)]
mod tests_vendor;
