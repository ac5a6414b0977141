//! What is found in a result: causes of its speeds, and reasons to doubt it. The rules are in `judge`.

use serde::{Deserialize, Serialize};

/// The cause of a speed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cause {
    /// Which speed.
    pub of: String,
    /// What limits it.
    pub limit: String,
    /// The figures that show it.
    pub evidence: String,
}

/// A reason to doubt a result, or a circumstance that explains it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Doubt {
    /// `faster_than_bus`, `page_cache`, `holes`, `state_unknown`, `wraps`, `processor_bound`, `governor`,
    /// `queueing_off`, `cache_off`, `few_requests`, `failed_requests`, `stopped`.
    pub code: String,
    /// What it means.
    pub what: String,
    /// The figures that show it.
    pub evidence: String,
}

impl Doubt {
    pub(crate) fn new(code: &str, what: &str, evidence: impl Into<String>) -> Self {
        Self { code: code.into(), what: what.into(), evidence: evidence.into() }
    }
}
