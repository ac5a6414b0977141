//! What a probe concludes: parameters with their evidence, and advice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Value {
    /// A count or a size.
    Whole(u64),
    /// A measured quantity.
    Measured(f64),
    /// One of several kinds.
    Kind(String),
}

/// How sure a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Confidence {
    /// One witness, or weak ones.
    Low,
    /// At least two independent witnesses agree, and none disagrees.
    High,
}

/// Whether a value is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Bound {
    /// The true value is this or more.
    AtLeast,
    /// The true value is this or less.
    AtMost,
}

/// What one kind of observation says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// The observation, e.g. `read alignment`.
    pub witness: String,
    /// What was seen, with its numbers.
    pub seen: String,
    /// The value that it leads to; none if it is flat or contradictory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// What the card itself states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Declared {
    /// The register or the attribute of the kernel.
    pub source: String,
    /// Its value, in the unit of the parameter.
    pub value: Value,
    /// Whether it agrees with the measured value; none without one.
    pub agrees: Option<bool>,
}

/// A parameter: its value, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Parameter {
    /// The value; none if it cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The unit of the value; empty for a count or a kind.
    pub unit: String,
    /// Present if the value is only a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// How sure the value is; none without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cannot_tell: Option<String>,
    /// What the card states.
    pub declared: Vec<Declared>,
    /// What was observed.
    pub evidence: Vec<Evidence>,
}

/// A piece of advice, and the line that follows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// The program or the file that the line is for, e.g. `mkfs.ext4`.
    pub tool: String,
    /// The line.
    pub line: String,
    /// Why, in one sentence.
    pub why: String,
}

/// What a probe did to its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spent {
    /// Unit: bytes.
    pub read_bytes: u64,
    /// Unit: bytes.
    pub written_bytes: u64,
    /// Unit: bytes.
    pub trimmed_bytes: u64,
    /// The target's time. Unit: seconds.
    pub time_s: f64,
}

/// The conclusions of a probe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Findings {
    /// By name.
    pub parameters: BTreeMap<String, Parameter>,
    /// Lines for other tools that follow from them.
    pub advice: Vec<Advice>,
    /// What it cost.
    pub spent: Spent,
    /// Whether writing probes ran.
    pub wrote: bool,
    /// Remarks, e.g. what would tell more.
    pub remarks: Vec<String>,
}

impl Value {
    /// As a whole number.
    pub fn whole(&self) -> Option<u64> {
        match self {
            Self::Whole(value) => Some(*value),
            _ => None,
        }
    }
}

impl Evidence {
    /// A witness that leads to a value.
    pub(crate) fn new(witness: &str, seen: impl Into<String>, value: Option<Value>) -> Self {
        Self { witness: witness.into(), seen: seen.into(), value }
    }
}

impl Parameter {
    /// A value with its evidence: high confidence if two witnesses support it.
    pub(crate) fn of(value: Value, unit: &str, evidence: Vec<Evidence>) -> Self {
        let support = evidence.iter().filter(|witness| witness.value.as_ref() == Some(&value)).count();
        let confidence = if support >= 2 { Confidence::High } else { Confidence::Low };
        Self {
            value: Some(value),
            unit: unit.into(),
            bound: None,
            confidence: Some(confidence),
            cannot_tell: None,
            declared: Vec::new(),
            evidence,
        }
    }

    /// No value.
    pub(crate) fn unknown(why: impl Into<String>, unit: &str, evidence: Vec<Evidence>) -> Self {
        Self {
            value: None,
            unit: unit.into(),
            bound: None,
            confidence: None,
            cannot_tell: Some(why.into()),
            declared: Vec::new(),
            evidence,
        }
    }

    pub(crate) fn at_least(mut self) -> Self {
        self.bound = Some(Bound::AtLeast);
        self
    }

    pub(crate) fn at_most(mut self) -> Self {
        self.bound = self.value.is_some().then_some(Bound::AtMost);
        self
    }
}
