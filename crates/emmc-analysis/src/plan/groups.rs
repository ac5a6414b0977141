//! Protection of groups of the user area: its kinds, and CMD31's codes of them.

use emmc_port::{CommandPort, PortError};
use serde::{Deserialize, Serialize};

use super::document::GroupStep;

/// The protection of a group, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Protection {
    /// Not protected.
    None,
    /// Until CMD29 frees it.
    Temporary,
    /// Until a power cycle or a hardware reset.
    PowerOn,
    /// For the life of the part.
    Permanent,
}

impl Protection {
    /// Every kind, weakest first.
    pub const ALL: [Self; 4] = [Self::None, Self::Temporary, Self::PowerOn, Self::Permanent];

    /// Its word on the command line and in messages.
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Temporary => "temporary",
            Self::PowerOn => "power-on",
            Self::Permanent => "permanent",
        }
    }

    /// The kind of a code of CMD31.
    const fn from_code(code: u64) -> Self {
        match code & 3 {
            0 => Self::None,
            1 => Self::Temporary,
            2 => Self::PowerOn,
            _ => Self::Permanent,
        }
    }

    /// Bits of USER_WP that CMD28 must find for this kind: US_PWR_WP_EN, US_PERM_WP_EN.
    pub(super) const fn user_wp(self) -> u8 {
        match self {
            Self::None | Self::Temporary => 0,
            Self::PowerOn => 1,
            Self::Permanent => 4,
        }
    }
}

impl GroupStep {
    /// The card's address of a group.
    pub(super) fn address(&self, group: u64) -> u32 {
        let sector = self.first_sector + group * self.group_sectors;
        u32::try_from(sector * 512 / self.address_bytes).unwrap_or(u32::MAX)
    }

    /// The protection of each group now. Without ERASE_GROUP_DEF (`is_high_capacity`) the card counts in the smaller
    /// groups of its CSD: then the one at each group's start stands for it.
    ///
    /// Errors: the card's.
    pub(super) fn read(
        &self,
        port: &mut dyn CommandPort,
        is_high_capacity: bool,
    ) -> Result<Vec<Protection>, PortError> {
        if !is_high_capacity {
            let at = |group| Ok(Protection::from_code(port.protection(self.address(group))?));
            return (0..self.groups).map(at).collect();
        }
        let mut found = Vec::new();
        for first in (0..self.groups).step_by(32) {
            let word = port.protection(self.address(first))?;
            let count = (self.groups - first).min(32);
            found.extend((0..count).map(|group| Protection::from_code(word >> (2 * group))));
        }
        Ok(found)
    }
}
