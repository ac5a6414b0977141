use serde::{Deserialize, Serialize};

/// How many bits a cell holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum CellMode {
    /// Built for one bit.
    Slc = 0,
    /// Built for more, used for one.
    Pslc = 1,
    /// Two bits.
    Mlc = 2,
    /// Three bits.
    Tlc = 3,
}

impl CellMode {
    /// Bits in a cell.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Slc | Self::Pslc => 1,
            Self::Mlc => 2,
            Self::Tlc => 3,
        }
    }

    /// The mode of a block of this build when used with one bit a cell.
    pub const fn single_bit(self) -> Self {
        match self {
            Self::Slc => Self::Slc,
            _ => Self::Pslc,
        }
    }
}
