//! The model of vendor reports: readings with source and confidence.

use std::fmt;

use serde::Serialize;

use super::Family;

/// Confidence in the place and meaning of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The maker's own published tool or note says so.
    Documented,
    /// Independent public sources agree.
    SeveralSources,
    /// One public source says so.
    SingleSource,
    /// Sources contradict each other, or the meaning is a guess.
    Uncertain,
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Documented => "documented",
            Self::SeveralSources => "several sources",
            Self::SingleSource => "single source",
            Self::Uncertain => "uncertain",
        })
    }
}

/// A value as the report gives it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Decimal(f64),
    /// Text, or bytes as hexadecimal digits.
    Text(String),
}

impl Value {
    /// The number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Decimal(value) => Some(*value),
            Self::Text(_) => None,
        }
    }

    /// The whole number, if it is one.
    #[cfg(test)]
    pub(crate) fn as_i64(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Decimal(value) => f.pad(&format!("{value:.2}")),
            Self::Text(text) => f.pad(text),
        }
    }
}

/// One value of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reading {
    /// Stable name for scripts: `initial_bad_blocks`.
    pub name: &'static str,
    /// The value.
    pub value: Value,
    /// What it counts, if it is a number with a unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<&'static str>,
    /// Its source: command, bytes and byte order, or the other tool's key.
    pub source: String,
    /// Confidence in place and meaning.
    pub confidence: Confidence,
}

/// The part of the flash that erase counts are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Area {
    /// All of it.
    Global,
    /// Blocks used with one bit a cell, by the firmware's choice.
    Slc,
    /// The enhanced user data area, which is SLC by the user's choice.
    Enhanced,
    /// Blocks used with two bits a cell: the normal user area.
    Mlc,
    /// Blocks used with three bits a cell.
    Tlc,
    /// The controller's own blocks.
    System,
    /// Blocks that change between one bit and more bits a cell.
    Hybrid,
    /// Blocks with user data, cell type unknown.
    User,
}

impl Area {
    /// Its name in JSON.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Slc => "slc",
            Self::Enhanced => "enhanced",
            Self::Mlc => "mlc",
            Self::Tlc => "tlc",
            Self::System => "system",
            Self::Hybrid => "hybrid",
            Self::User => "user",
        }
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Global => "all blocks",
            Self::Slc => "SLC",
            Self::Enhanced => "enhanced (SLC)",
            Self::Mlc => "normal (MLC)",
            Self::Tlc => "TLC",
            Self::System => "system",
            Self::Hybrid => "hybrid",
            Self::User => "user data",
        })
    }
}

/// Erase counts of one area.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AreaWear {
    /// Which area.
    pub area: Area,
    /// The least erased block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Reading>,
    /// The most erased block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Reading>,
    /// The mean over the blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average: Option<Reading>,
    /// The sum over the blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Reading>,
    /// What the maker rates the blocks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rated: Option<Reading>,
}

impl AreaWear {
    /// An area of which nothing is known yet.
    pub const fn new(area: Area) -> Self {
        Self { area, min: None, max: None, average: None, total: None, rated: None }
    }

    /// What is known, in the order least, most, mean, sum, rating.
    pub fn readings(&self) -> impl Iterator<Item = &Reading> {
        [&self.min, &self.max, &self.average, &self.total, &self.rated].into_iter().flatten()
    }
}

/// Use of a block, from a type table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Cell {
    /// One bit a cell.
    Slc,
    /// More bits a cell.
    Multi,
}

/// One row of a per-block erase table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockWear {
    /// Block address as the card counts it.
    pub block: u32,
    /// Its erase count; absent if the table has only types.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub erases: Option<u32>,
    /// Its use, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<Cell>,
}

/// An impossible value, listed here and not among the readings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Implausible {
    /// The name that the reading would have had.
    pub name: &'static str,
    /// The area, if it is an erase count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub area: Option<Area>,
    /// What the report holds.
    pub found: String,
    /// The possible values.
    pub expected: String,
    /// Its place in the report.
    pub source: String,
}

/// One vendor report, decoded.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VendorHealth {
    /// Whose layout it was read by.
    pub family: Family,
    /// The makers of such cards, as far as known.
    pub label: String,
    /// Which command, or which tool's text.
    pub source: String,
    /// Erase counts by area.
    pub areas: Vec<AreaWear>,
    /// Bad blocks, from the factory and since.
    pub bad_blocks: Vec<Reading>,
    /// Blocks that stand in for bad ones.
    pub spares: Vec<Reading>,
    /// Life used or left.
    pub life: Vec<Reading>,
    /// Power cycles, bytes written, reclaims, errors.
    pub counters: Vec<Reading>,
    /// Firmware, flash, controller, dates.
    pub identity: Vec<Reading>,
    /// Erase counts block by block.
    pub blocks: Vec<BlockWear>,
    /// Impossible values.
    pub implausible: Vec<Implausible>,
    /// Notes: contradicting sources, the basis of the label.
    pub notes: Vec<String>,
}

impl VendorHealth {
    /// The groups of readings that belong to no area.
    pub(super) fn groups(&self) -> [&Vec<Reading>; 5] {
        [&self.bad_blocks, &self.spares, &self.life, &self.counters, &self.identity]
    }

    /// The reading of that name that belongs to no area.
    pub fn reading(&self, name: &str) -> Option<&Reading> {
        self.groups().into_iter().flatten().find(|reading| reading.name == name)
    }

    /// The number of that name that belongs to no area.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.reading(name)?.value.as_f64()
    }

    /// The erase counts of an area.
    pub fn area(&self, area: Area) -> Option<&AreaWear> {
        self.areas.iter().find(|wear| wear.area == area)
    }

    /// Every reading, with its area if it is an erase count.
    pub fn readings(&self) -> impl Iterator<Item = (Option<Area>, &Reading)> {
        let plain = self.groups().into_iter().flatten().map(|reading| (None, reading));
        let worn = self.areas.iter().flat_map(|wear| wear.readings().map(|reading| (Some(wear.area), reading)));
        plain.chain(worn)
    }

    /// Whether it holds neither a reading, nor a block, nor anything implausible.
    pub fn is_empty(&self) -> bool {
        self.readings().next().is_none() && self.blocks.is_empty() && self.implausible.is_empty()
    }
}
