//! Whether a figure follows from registers or is inferred from them.

use serde::Serialize;

/// How far a figure can be relied upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Certainty {
    /// It follows from registers.
    Exact,
    /// It is inferred; the part decides.
    Estimated,
}
