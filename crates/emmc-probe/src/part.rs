//! What a probe may measure, and within which limits.

use emmc_units::Nanos;
use serde::{Deserialize, Serialize};

use crate::{capacity, reads, volatile};

/// A part of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Part {
    /// The cost of a command, and the rate of reads.
    Reads,
    /// The page and the least useful write.
    Page,
    /// Open units and their size.
    Units,
    /// Where writes in random order are as fast as sequential ones.
    Order,
    /// Whether the card works while it rests.
    Idle,
    /// The write cache.
    Cache,
    /// What a discard does.
    Discard,
    /// Parts of the card that differ.
    Regions,
    /// The cache of single-bit cells.
    Slc,
    /// Whether the stated capacity is there.
    Capacity,
}

impl Part {
    /// All of them, in the order in which they run.
    pub const ALL: [Self; 10] = [
        Self::Reads,
        Self::Page,
        Self::Units,
        Self::Order,
        Self::Idle,
        Self::Cache,
        Self::Discard,
        Self::Regions,
        Self::Slc,
        Self::Capacity,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Page => "page",
            Self::Units => "units",
            Self::Order => "order",
            Self::Idle => "idle",
            Self::Cache => "cache",
            Self::Discard => "discard",
            Self::Regions => "regions",
            Self::Slc => "slc",
            Self::Capacity => "capacity",
        }
    }
}

/// What a probe may do.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Run the probers that write; the area's content is lost.
    pub write: bool,
    /// Start of the area. Unit: bytes.
    pub from_bytes: u64,
    /// End of the area. Unit: bytes.
    pub to_bytes: u64,
    /// Most that may be written. Unit: bytes.
    pub budget_bytes: u64,
    /// Most time, of the target's clock; a request that has begun is completed.
    pub time: Option<Nanos>,
    /// What is measured; empty: everything.
    pub parts: Vec<Part>,
    /// Seed of everything random.
    pub seed: u64,
}

impl Settings {
    /// Whether a part is measured.
    pub fn has(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    /// What the parts read at most. Unit: bytes.
    pub(crate) fn read_bytes(&self, sector: u64) -> u64 {
        let of_part = |part| match part {
            Part::Reads => reads::cost_bytes(),
            Part::Page => reads::borders_bytes(sector),
            Part::Discard if self.write => volatile::DISCARD_READ,
            Part::Capacity if self.write => {
                capacity::read_bytes(self.to_bytes.saturating_sub(self.from_bytes), self.is_capacity_alone())
            }
            _ => 0,
        };
        Part::ALL.into_iter().filter(|part| self.has(*part)).map(of_part).sum()
    }

    /// Only the capacity: then nothing is lost, because what the marks overwrite is restored.
    pub fn is_capacity_alone(&self) -> bool {
        self.parts == [Part::Capacity]
    }
}
