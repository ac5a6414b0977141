//! Everything about one card in one value: what it is, where its bytes are, how it is set, how worn it is, what to do.
//!
//! Absent on purpose: layout. The report renders this, and scripts read it as it is.

mod bus_mode;
mod configuration;
mod findings;
mod identity;

use emmc_port::{CardData, Format, Origin};
use emmc_regs::ext_csd::Anomaly;
use serde::Serialize;

pub use self::configuration::{ConfigRow, Configuration, Topic, configuration};
pub use self::identity::{Identity, identity};
use crate::capacity::{self, Capacity};
use crate::finding::Finding;
use crate::health::{self, Health, HealthOptions};
use crate::hwpart::{self, HwPartOptions};
use crate::maker_health::{self, Refusal, VendorHealth};

/// What a study may be told.
#[derive(Clone, Copy, Debug, Default)]
pub struct StudyOptions {
    /// Thresholds of health.
    pub health: HealthOptions,
}

/// Everything about one card.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Study {
    /// Where it all comes from.
    pub sources: Vec<Origin>,
    /// What it is.
    pub identity: Identity,
    /// What to know and decide, worst first.
    pub findings: Vec<Finding>,
    /// How worn it is.
    pub health: Health,
    /// Where its bytes are.
    pub capacity: Capacity,
    /// How it is set.
    pub configuration: Configuration,
    /// What hardware partitioning it has, or could have.
    pub hw_partition: HwPartOptions,
    /// Vendor health reports that were decoded.
    pub vendor: Vec<VendorHealth>,
    /// Vendor health reports that were not, and why.
    pub vendor_refused: Vec<Refusal>,
    /// Registers that hold what the standard does not allow.
    pub anomalies: Vec<Anomaly>,
}

impl Study {
    /// Whether the card is a virtual one: no user's card.
    pub fn is_virtual(&self) -> bool {
        // A snapshot says in a note what it was taken from.
        let taken_from_one = |note: &String| note.starts_with("taken from sim:");
        self.sources.iter().any(|origin| origin.format == Format::Virtual || origin.notes.iter().any(taken_from_one))
    }
}

/// Studies a card.
pub fn study(card: &CardData, options: &StudyOptions) -> Study {
    let capacity = capacity::capacity(card);
    let anomalies = card.ext_csd.as_ref().map(|csd| csd.decode().1).unwrap_or_default();
    let (vendor, vendor_refused) = maker_health::sorted(card);
    let health = health::health_with(card, &vendor, &options.health);
    let findings = findings::findings(
        card,
        &findings::Parts {
            health: &health,
            thresholds: &options.health,
            capacity: &capacity,
            anomalies: &anomalies,
            vendor: &vendor,
            vendor_refused: &vendor_refused,
        },
    );
    Study {
        sources: card.origins.clone(),
        identity: identity(card),
        findings,
        health,
        capacity,
        configuration: configuration(card),
        hw_partition: hwpart::options(card),
        vendor,
        vendor_refused,
        anomalies,
    }
}

#[cfg(test)]
mod tests;
