//! Which controller the function presents itself as.

use crate::sdhci::Abilities;

/// A controller that drivers know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// Genesys Logic GL9763E: eight lines, HS400 with enhanced strobe, command queueing, MSI.
    #[default]
    Gl9763e,
    /// The same with command queueing disabled by strap.
    Gl9763eWithoutQueue,
    /// A generic controller: four lines, HS200, INTx.
    Generic,
}

/// Bits of CAPABILITIES.
mod capability {
    /// Timeout clock of 50 MHz, base clock of 200 MHz.
    pub(super) const CLOCKS: u64 = 0x0000_c8b2;
    pub(super) const EIGHT_LINES: u64 = 1 << 18;
    pub(super) const ADMA2: u64 = 1 << 19;
    pub(super) const HIGH_SPEED: u64 = 1 << 21;
    pub(super) const SDMA: u64 = 1 << 22;
    pub(super) const V33: u64 = 1 << 24;
    pub(super) const V18: u64 = 1 << 26;
    pub(super) const ADDRESS_64_V4: u64 = 1 << 27;
    pub(super) const ADDRESS_64_V3: u64 = 1 << 28;
    pub(super) const EMBEDDED: u64 = 1 << 30;
    /// SDR50, SDR104, DDR50 and all drivers.
    pub(super) const UHS: u64 = 0x77 << 32;
}

impl Identity {
    /// Vendor and device ID.
    ///
    /// Source: Linux `sdhci-pci.h` for GL9763E. The generic one has no vendor: drivers match its class.
    pub(super) fn id(self) -> (u16, u16) {
        match self {
            Self::Gl9763e | Self::Gl9763eWithoutQueue => (0x17a0, 0xe763),
            Self::Generic => (0x1d1d, 0xe33c),
        }
    }

    /// Whether it has a command queueing engine.
    pub fn has_queue(self) -> bool {
        self == Self::Gl9763e
    }

    /// Whether it has MSI; it always has INTx.
    pub fn has_msi(self) -> bool {
        self != Self::Generic
    }

    /// The word at 0x888 of configuration space; its bit 7 says whether there is command queueing.
    ///
    /// Source: Linux `sdhci-pci-gli.c`, PCIE_GLI_9763E_MB.
    pub(super) fn straps(self) -> u32 {
        if self.has_queue() { 1 << 7 } else { 0 }
    }

    /// What its registers say.
    pub(super) fn abilities(self) -> Abilities {
        use capability as c;
        let common = c::CLOCKS | c::ADMA2 | c::HIGH_SPEED | c::SDMA | c::V33 | c::V18 | c::EMBEDDED | c::UHS;
        match self {
            Self::Gl9763e | Self::Gl9763eWithoutQueue => {
                Abilities { version: 3, capabilities: common | c::EIGHT_LINES | c::ADDRESS_64_V4 | c::ADDRESS_64_V3 }
            }
            Self::Generic => Abilities { version: 2, capabilities: common | c::ADDRESS_64_V3 },
        }
    }
}
