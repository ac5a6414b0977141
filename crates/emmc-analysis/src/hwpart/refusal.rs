//! What a broken rule says.

use serde::Serialize;

/// A rule that the request breaks on this card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refusal {
    /// Stable name for scripts: `enh-too-large`.
    pub rule: &'static str,
    /// What is wrong, in one sentence.
    pub what: String,
    /// The figures that show it.
    pub evidence: Vec<String>,
    /// What would be accepted, where that can be said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
}

#[derive(Default)]
pub(super) struct Broken {
    pub(super) what: String,
    pub(super) evidence: Vec<String>,
    pub(super) advice: Vec<String>,
}

pub(super) fn broken(what: impl Into<String>, evidence: Vec<String>) -> Broken {
    Broken { what: what.into(), evidence, advice: Vec::new() }
}
