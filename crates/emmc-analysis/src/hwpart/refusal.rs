//! Refusals by broken rules.

use serde::Serialize;

use crate::evidence::{Evidence, EvidenceList};

/// A rule that the request breaks on this card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refusal {
    /// Stable name for scripts: `enh-too-large`.
    pub rule: &'static str,
    /// What is wrong, in one sentence.
    pub what: String,
    /// The figures that show it.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(with = "crate::evidence::PrintedList"))]
    pub evidence: EvidenceList,
    /// What would be accepted, if known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
}

#[derive(Default)]
pub(super) struct Broken {
    pub(super) what: String,
    pub(super) evidence: Vec<Evidence>,
    pub(super) advice: Vec<String>,
}

pub(super) fn broken<T: Into<Evidence>>(what: impl Into<String>, evidence: Vec<T>) -> Broken {
    Broken { what: what.into(), evidence: evidence.into_iter().map(Into::into).collect(), advice: Vec::new() }
}
