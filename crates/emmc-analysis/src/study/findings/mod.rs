//! Findings: what a user should know or decide, worst first, each with its evidence and advice.
//!
//! Each finding has evidence in the source; a missing value gives no finding. Absent on purpose: old firmware and known
//! bad parts, because there is no public list to cite.

mod boot;
mod bus;
mod consistency;
mod marks;
mod partitioning;
mod plain;
pub(super) mod power_cut;
mod sd;
mod upkeep;
mod vendor;
mod wear;

use emmc_port::CardData;
use emmc_regs::CardKind;
use emmc_regs::ext_csd::{Anomaly, DeviceInfo, ExtCsd};

use super::identity;
use crate::capacity::Capacity;
use crate::finding::{self, Finding};
use crate::health::{Forecast, Health, HealthOptions};
use crate::maker_health::{Refusal, VendorHealth};

/// The input of the rules.
struct Facts<'a> {
    card: &'a CardData,
    csd: &'a ExtCsd,
    info: &'a DeviceInfo,
    health: &'a Health,
    forecast: Option<&'a Forecast>,
    capacity: &'a Capacity,
}

impl Facts<'_> {
    /// Whether the part states this revision or a later one.
    fn at_least(&self, rev: u8) -> bool {
        self.info.rev.is_some_and(|found| found >= rev)
    }
}

/// Results computed before the findings.
pub(super) struct Parts<'a> {
    pub(super) health: &'a Health,
    pub(super) forecast: Option<&'a Forecast>,
    pub(super) thresholds: &'a HealthOptions,
    pub(super) capacity: &'a Capacity,
    pub(super) anomalies: &'a [Anomaly],
    pub(super) vendor: &'a [VendorHealth],
    pub(super) vendor_refused: &'a [Refusal],
    pub(super) measured: &'a [Finding],
    pub(super) names: &'a Names<'a>,
}

/// Names of the card in commands.
pub(super) struct Names<'a> {
    /// The source argument for this tool.
    pub(super) source: &'a str,
    /// `/dev/mmcblk0`, where it is a card of this machine.
    pub(super) device: Option<String>,
}

/// All findings on a card, worst first.
pub(super) fn findings(card: &CardData, parts: &Parts<'_>) -> Vec<Finding> {
    let unknown = ExtCsd::unknown();
    let csd = card.ext_csd.as_ref().unwrap_or(&unknown);
    let (info, _) = csd.decode();
    let (health, forecast) = (parts.health, parts.forecast);
    let facts = Facts { card, csd, info: &info, health, forecast, capacity: parts.capacity };
    let mut findings = Vec::new();
    wear::find(&facts, &mut findings);
    vendor::find(&facts, parts.thresholds, parts.vendor, parts.vendor_refused, &mut findings);
    consistency::find(&facts, parts.anomalies, &mut findings);
    marks::find(&facts, &mut findings);
    findings.extend(parts.capacity.findings.iter().cloned());
    match identity::kind(card) {
        Some(CardKind::Emmc) => {
            power_cut::find(&facts, &mut findings);
            partitioning::find(&facts, &mut findings);
            boot::find(&facts, &mut findings);
            bus::find(&facts, &mut findings);
            upkeep::find(&facts, &mut findings);
        }
        Some(CardKind::Sd) => sd::find(&facts, &mut findings),
        None => {}
    }
    findings.iter_mut().for_each(|finding| finding.evidence.mark(card));
    findings.extend(parts.measured.iter().cloned());
    findings.iter_mut().for_each(|finding| plain::complete(finding, &facts, parts.names));
    finding::sort(&mut findings);
    findings
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_coverage;
