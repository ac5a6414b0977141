//! Erasing: which kinds a card has, how long each takes at most, what each leaves behind, and how a range is erased.
//!
//! `offer` and `area` read the registers, `carry` goes through ranges in chunks and reports how far it came, `sample`
//! judges what was read before and after. Absent on purpose: sending (`emmc-linux`, `emmc-sim`), and consent (the
//! caller).

mod area;
mod carry;
mod offer;
mod sample;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use area::{areas, boots, called, protection, untouched};
pub use carry::{Ended, Event, Reach, in_chunks, on_card, protected, sanitize};
pub use offer::{Geometry, Offer, offers, offers_of_kernel};
pub use sample::{Sample, Verdict, Verification, positions, verify};

use emmc_regs::command::Erase;

/// A way to erase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum EraseKind {
    /// The card may forget the content: CMD38 with 3, `BLKDISCARD`.
    Discard,
    /// Sectors read as erased: CMD38 with 1.
    Trim,
    /// Whole erase groups read as erased: CMD38 with 0.
    Erase,
    /// Trim, and every copy: CMD38 with 0x80000001, then 0x80008000.
    SecureTrim,
    /// Erase, and every copy: CMD38 with 0x80000000, `BLKSECDISCARD`.
    SecureErase,
    /// Everything unmapped is removed from the flash: CMD6 of SANITIZE_START.
    Sanitize,
    /// The kernel makes the range read as zeros: `BLKZEROOUT`.
    Zero,
}

impl EraseKind {
    /// Every kind, the weakest first.
    pub const ALL: [Self; 7] =
        [Self::Discard, Self::Trim, Self::Erase, Self::SecureTrim, Self::SecureErase, Self::Sanitize, Self::Zero];

    /// Its name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Discard => "discard",
            Self::Trim => "trim",
            Self::Erase => "erase",
            Self::SecureTrim => "secure-trim",
            Self::SecureErase => "secure-erase",
            Self::Sanitize => "sanitize",
            Self::Zero => "zero",
        }
    }

    /// The arguments of CMD38, one command after the other; none if it is another command.
    pub const fn arguments(self) -> &'static [Erase] {
        match self {
            Self::Discard => &[Erase::Discard],
            Self::Trim => &[Erase::Trim],
            Self::Erase => &[Erase::Erase],
            Self::SecureTrim => &[Erase::SecureTrimStep1, Erase::SecureTrimStep2],
            Self::SecureErase => &[Erase::SecureErase],
            Self::Sanitize | Self::Zero => &[],
        }
    }

    /// Whether it takes whole erase groups only.
    pub const fn is_by_group(self) -> bool {
        matches!(self, Self::Erase | Self::SecureErase)
    }

    /// Whether it has a range; a sanitize is of the whole card.
    pub const fn has_range(self) -> bool {
        !matches!(self, Self::Sanitize)
    }
}
