use std::fmt;

use serde::{Deserialize, Serialize};

/// Which of the two families a card belongs to; their registers share names but not layouts.
///
/// MMC cards older than eMMC count as eMMC: the registers grew, but kept their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CardKind {
    /// eMMC or MMC, by JEDEC; Linux calls the type `MMC`.
    Emmc,
    /// SD, by the SD Association; Linux calls the type `SD`.
    Sd,
}

impl fmt::Display for CardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Emmc => "eMMC",
            Self::Sd => "SD",
        })
    }
}
