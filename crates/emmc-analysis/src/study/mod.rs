//! A study of one card: verdict, identity, findings, health, capacity and configuration in one value.
//!
//! Absent on purpose: layout. `emmc-report` renders it; scripts read it as JSON.

mod bus_mode;
mod configuration;
mod findings;
mod identity;
mod verdict;

use emmc_port::{CardData, Format, Origin, Snapshot};
use emmc_regs::ext_csd::Anomaly;
use serde::Serialize;

pub use self::configuration::{ConfigRow, Configuration, Topic, configuration};
pub use self::identity::{Identity, identity};
pub use self::verdict::{Answer, Verdict};
use crate::capacity::{self, AreaName, Capacity};
use crate::finding::Finding;
use crate::health::{self, Forecast, Health, HealthOptions};
use crate::hwpart::{self, HwPartOptions};
use crate::maker_health::{self, Refusal, VendorHealth};
use crate::trust::SavedTrust;

/// Options of a study.
#[derive(Clone, Debug, Default)]
pub struct StudyOptions {
    /// Thresholds of health.
    pub health: HealthOptions,
    /// The source argument for commands, with its options; by default the name of the first origin.
    pub source: Option<String>,
    /// What to do before a command that names the source can run: where the source was piped in.
    pub before: Option<String>,
    /// Benchmark results.
    pub measured: Measured,
    /// When the life ends, from earlier observations.
    pub forecast: Option<Forecast>,
    /// What `trust` had found.
    pub trust: Option<SavedTrust>,
}

/// Benchmark results of a card.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// How fast it is, in one line.
    pub speed: Option<Answer>,
    /// Findings.
    pub findings: Vec<Finding>,
}

/// Everything about one card.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Study {
    /// The verdict in a few lines.
    pub verdict: Verdict,
    /// The sources.
    pub sources: Vec<Origin>,
    /// What it is.
    pub identity: Identity,
    /// Findings, worst first.
    pub findings: Vec<Finding>,
    /// How worn it is.
    pub health: Health,
    /// When its life ends, if earlier observations were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
    /// Capacity.
    pub capacity: Capacity,
    /// How it is configured.
    pub configuration: Configuration,
    /// What hardware partitioning it has, or could have.
    pub hw_partition: HwPartOptions,
    /// Vendor health reports that were decoded.
    pub vendor: Vec<VendorHealth>,
    /// Vendor health reports that were not decoded, with the reasons.
    pub vendor_refused: Vec<Refusal>,
    /// Registers with values that the standard does not allow.
    pub anomalies: Vec<Anomaly>,
    /// All undecoded data of the sources, which makes the document a source again.
    pub card: Snapshot,
}

impl Study {
    /// Whether the card is virtual.
    pub fn is_virtual(&self) -> bool {
        // A snapshot of before `taken_as` names its source only in a note.
        let taken_from_one = |note: &String| note.starts_with("taken from sim:");
        let is_virtual = |origin: &Origin| origin.forms().contains(&Format::Virtual);
        self.sources.iter().any(|origin| is_virtual(origin) || origin.notes.iter().any(taken_from_one))
    }

    /// Maker, name and size, as far as known.
    pub fn card_name(&self) -> String {
        let identity = &self.identity;
        let maker = identity.manufacturer.as_ref().map(|maker| maker.name.to_owned());
        let name = identity.product_name.as_ref().map(|name| name.trim().to_owned());
        let kind = identity.standard.clone().or_else(|| identity.kind.map(|kind| kind.to_string()));
        let user = self.capacity.areas.iter().find(|area| area.name == AreaName::User);
        let size = user.and_then(|area| area.size.bytes).map(|bytes| bytes.rounded());
        let parts: Vec<String> = [maker, name, kind, size].into_iter().flatten().collect();
        let card = if parts.is_empty() { "A card".into() } else { parts.join(" ") };
        if self.is_virtual() { format!("VIRTUAL CARD: {card}") } else { card }
    }

    /// The device, if the card is in this machine.
    fn live_device(&self) -> Option<String> {
        live_device(&self.sources)
    }

    /// Vendor health reports that were decoded.
    fn maker_health(&self) -> &[VendorHealth] {
        &self.vendor
    }
}

/// The device of a card of this machine: `/dev/mmcblk0`.
fn live_device(sources: &[Origin]) -> Option<String> {
    let live = sources.iter().find(|origin| origin.format == Format::Live)?;
    Some(if live.name.starts_with('/') { live.name.clone() } else { format!("/dev/{}", live.name) })
}

/// Studies a card.
pub fn study(card: &CardData, options: &StudyOptions) -> Study {
    let capacity = capacity::capacity(card);
    let anomalies = card.ext_csd.as_ref().map(|csd| csd.decode().1).unwrap_or_default();
    let (vendor, vendor_refused) = maker_health::sorted(card);
    let health = health::health_with(card, &vendor, &options.health);
    let source = options.source.clone().or_else(|| Some(card.origins.first()?.name.clone()));
    let source = source.unwrap_or_else(|| "SOURCE".into());
    // First among those of equal weight.
    let mut findings = options.trust.as_ref().map_or_else(Vec::new, |trust| trust.findings.clone());
    findings.extend(findings::findings(
        card,
        &findings::Parts {
            health: &health,
            forecast: options.forecast.as_ref(),
            thresholds: &options.health,
            capacity: &capacity,
            anomalies: &anomalies,
            vendor: &vendor,
            vendor_refused: &vendor_refused,
            measured: &options.measured.findings,
            names: &findings::Names { source: &source, device: live_device(&card.origins) },
        },
    ));
    crate::finding::sort(&mut findings);
    let verdict = Verdict::default();
    let mut study = Study {
        verdict,
        sources: card.origins.clone(),
        identity: identity(card),
        findings,
        health,
        forecast: options.forecast.clone(),
        capacity,
        configuration: configuration(card),
        hw_partition: hwpart::options(card),
        vendor,
        vendor_refused,
        anomalies,
        card: Snapshot::from(card),
    };
    study.verdict = verdict::verdict(card, &study, &options.measured, &source);
    study.verdict.trust = options.trust.as_ref().and_then(SavedTrust::answer);
    if let Some(before) = &options.before {
        let found = study.findings.iter_mut().flat_map(|finding| &mut finding.commands);
        for command in study.verdict.todo.iter_mut().chain(found).filter(|command| command.command.contains(&source)) {
            command.why = format!("{before}; {}", command.why);
        }
    }
    study
}

#[cfg(test)]
mod tests;
