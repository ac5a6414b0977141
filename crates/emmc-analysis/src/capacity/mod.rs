//! Capacity: areas of the part, partitions and gaps in them, and filesystem overhead.
//!
//! Every size names its source; sizes printed rounded stay intervals. Absent on purpose: the flash
//! behind the areas. No register gives the spare blocks or the cost of enhanced areas.

mod area;
mod filesystem;
mod finding;
mod table;

use emmc_port::CardData;
use emmc_units::{Bytes, Sectors};
use serde::Serialize;

pub use self::area::{Area, AreaName, EnhancedPart};
pub use self::filesystem::FilesystemLine;
pub use self::table::{Alignment, AlignmentUnit, PartitionTable, Slot};
use crate::finding::Finding;

/// A size, exact or rounded, and what it was read from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Amount {
    /// The exact size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Bytes>,
    /// The exact size in sectors of 512 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sectors: Option<Sectors>,
    /// The smallest size that the source's rounded text allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_bytes: Option<Bytes>,
    /// The largest size that the text allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<Bytes>,
    /// Its source.
    pub source: String,
}

impl Amount {
    /// An exact size.
    pub fn exact(bytes: Bytes, source: impl Into<String>) -> Self {
        let sectors = bytes.whole_sectors();
        Self { bytes: Some(bytes), sectors, min_bytes: None, max_bytes: None, source: source.into() }
    }

    /// A size known to lie between two others.
    pub fn between(min: Bytes, max: Bytes, source: impl Into<String>) -> Self {
        Self { bytes: None, sectors: None, min_bytes: Some(min), max_bytes: Some(max), source: source.into() }
    }

    /// Whether two statements of a size are compatible.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let range = |amount: &Self| (amount.bytes.or(amount.min_bytes), amount.bytes.or(amount.max_bytes));
        let ((low, high), (other_low, other_high)) = (range(self), range(other));
        let below = |low: Option<Bytes>, high: Option<Bytes>| low.zip(high).is_none_or(|(low, high)| low <= high);
        below(low, other_high) && below(other_low, high)
    }
}

/// Where a card's bytes are.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capacity {
    /// The part's areas: user, boot, RPMB, general purpose.
    pub areas: Vec<Area>,
    /// The sum of all areas whose size is known exactly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accounted: Option<Amount>,
    /// Areas of an eMMC whose exact size is unknown and not in the sum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_accounted: Vec<AreaName>,
    /// Partitions and gaps, a table for each disk that has partitions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<PartitionTable>,
    /// Mounted filesystems and their overhead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filesystems: Vec<FilesystemLine>,
    /// Contradictions between sources, and partitions that do not fit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

/// Accounts for a card's bytes.
pub fn capacity(card: &CardData) -> Capacity {
    let areas = area::areas(card);
    let (accounted, not_accounted) = area::sum(card, &areas);
    let tables = table::tables(card);
    let filesystems = filesystem::filesystems(card);
    let findings = finding::findings(card, &areas, &tables, &filesystems);
    Capacity { areas, accounted, not_accounted, tables, filesystems, findings }
}

#[cfg(test)]
mod tests;
