//! Persistence of register values.
//!
//! Source: JESD84-B51 7.4, the legend of the access types. Absent on purpose: which bit has which (the registers'
//! tables).

use serde::Serialize;

/// Persistence of a written value.
///
/// The order is from the shortest to the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Persistence {
    /// The standard does not say: states that the card reports, reserved bits, the vendor's bytes.
    NotSpecified,
    /// Until a power cycle, a hardware reset or CMD0.
    UntilReset,
    /// Until a power cycle or a hardware reset; CMD0 does not clear it.
    UntilPowerCycle,
    /// Over power cycles, and it can be changed again: by the host, or by the card as it wears.
    Kept,
    /// As `OneTime` once PARTITION_SETTING_COMPLETED is set; lost at the next power cycle without it.
    OneTimeOnceCommitted,
    /// For the life of the part: it is written once.
    OneTime,
}

impl Persistence {
    /// Whether a power cycle clears it.
    pub const fn is_volatile(self) -> bool {
        matches!(self, Self::UntilReset | Self::UntilPowerCycle)
    }

    /// Whether a power cycle keeps it, as far as the standard says.
    pub const fn is_persistent(self) -> bool {
        matches!(self, Self::Kept | Self::OneTimeOnceCommitted | Self::OneTime)
    }
}
