//! The areas of a card and their names.

use std::fmt;
use std::str::FromStr;

/// A card's own partition, apart from those of a partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Area {
    /// The user data area.
    User,
    /// Boot area 1 or 2: 0 or 1.
    Boot(u8),
    /// The replay protected memory block.
    Rpmb,
    /// General purpose partition 1 to 4: 0 to 3.
    Gp(u8),
}

impl Area {
    /// Every area, in the order of the standard.
    pub const ALL: [Self; 8] =
        [Self::User, Self::Boot(0), Self::Boot(1), Self::Rpmb, Self::Gp(0), Self::Gp(1), Self::Gp(2), Self::Gp(3)];

    /// Its name in arguments, jobs and exports: `user`, `boot0`, `boot1`, `rpmb`, `gp1` to `gp4`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Boot(0) => "boot0",
            Self::Boot(_) => "boot1",
            Self::Rpmb => "rpmb",
            Self::Gp(0) => "gp1",
            Self::Gp(1) => "gp2",
            Self::Gp(2) => "gp3",
            Self::Gp(_) => "gp4",
        }
    }

    /// What the kernel appends to the card's name; it counts general purpose partitions from 0.
    ///
    /// Source: Linux `drivers/mmc/core/mmc.c`, `mmc_part_add` and its callers.
    pub const fn kernel_suffix(self) -> &'static str {
        match self {
            Self::User => "",
            Self::Gp(0) => "gp0",
            Self::Gp(1) => "gp1",
            Self::Gp(2) => "gp2",
            Self::Gp(_) => "gp3",
            Self::Boot(_) | Self::Rpmb => self.name(),
        }
    }

    /// Its value of PARTITION_CONFIG.PARTITION_ACCESS.
    ///
    /// Source: JESD84-B51, PARTITION_CONFIG.
    pub const fn access(self) -> u8 {
        match self {
            Self::User => 0,
            Self::Boot(number) => 1 + number,
            Self::Rpmb => 3,
            Self::Gp(number) => 4 + number,
        }
    }

    /// The area that PARTITION_CONFIG selects.
    pub const fn selected(partition_config: u8) -> Self {
        Self::ALL[(partition_config & 7) as usize]
    }

    /// What people call it: `boot area 1`.
    pub const fn title(self) -> &'static str {
        match self {
            Self::User => "user area",
            Self::Boot(0) => "boot area 1",
            Self::Boot(_) => "boot area 2",
            Self::Rpmb => "RPMB",
            Self::Gp(0) => "general purpose area 1",
            Self::Gp(1) => "general purpose area 2",
            Self::Gp(2) => "general purpose area 3",
            Self::Gp(_) => "general purpose area 4",
        }
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no area.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("area {0:?}: expected user, boot0, boot1, rpmb or gp1 to gp4")]
pub struct UnknownArea(String);

impl FromStr for Area {
    type Err = UnknownArea;

    fn from_str(text: &str) -> Result<Self, UnknownArea> {
        Self::ALL.into_iter().find(|area| area.name() == text).ok_or_else(|| UnknownArea(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_to_their_areas_and_the_kernel_counts_from_0() {
        for area in Area::ALL {
            assert_eq!(area.to_string().parse(), Ok(area));
            assert_eq!(Area::ALL.iter().filter(|other| other.kernel_suffix() == area.kernel_suffix()).count(), 1);
            assert_eq!(Area::ALL.iter().filter(|other| other.title() == area.title()).count(), 1);
        }
        assert_eq!(Area::ALL.map(Area::access), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(Area::ALL.into_iter().all(|area| Area::selected(0x48 | area.access()) == area));
        assert_eq!((Area::Gp(3).name(), Area::Gp(3).kernel_suffix()), ("gp4", "gp3"));
        for text in ["", "boot2", "gp0", "gp5", "User"] {
            assert!(text.parse::<Area>().is_err(), "{text}");
        }
    }
}
