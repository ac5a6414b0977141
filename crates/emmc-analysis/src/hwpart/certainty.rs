//! Certainty of a figure: read from registers, or inferred.

use serde::{Deserialize, Serialize};

/// Certainty of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// It follows from registers.
    Exact,
    /// It is inferred; the part decides.
    Estimated,
}
