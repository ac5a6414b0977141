//! Configuration space in one table: a type 0 header, MSI, PCI Express, and GL9763E's own words.
//!
//! Source: PCI Local Bus 3.0 clause 6, PCI Express Base 3.0 clause 7.8; Linux `sdhci-pci-gli.c` from 0x884 on. What
//! QEMU emulates itself (BAR sizes, MSI's address and data) is here too, for other clients.

use super::identity::Identity;
use crate::sdhci::register_file::{RegisterFile, registers};

registers! {
    VENDOR          0x000 2 Rw 0 0;
    DEVICE          0x002 2 Rw 0 0;
    COMMAND         0x004 2 Rw 0x0546 0;
    STATUS          0x006 2 Rw 0 0x0010;
    REVISION        0x008 1 Rw 0 0x01;
    INTERFACE       0x009 1 Rw 0 0x01;
    CLASS           0x00a 2 Rw 0 0x0805;
    CACHE_LINE      0x00c 1 Rw 0xff 0;
    LATENCY         0x00d 1 Rw 0 0;
    BAR_0           0x010 4 Rw 0xffff_f000 0;
    SUBSYSTEM       0x02c 4 Rw 0 0;
    CAPABILITY      0x034 1 Rw 0 0x80;
    INTERRUPT_LINE  0x03c 1 Rw 0xff 0;
    INTERRUPT_PIN   0x03d 1 Rw 0 0x01;
    SLOT_INFO       0x040 1 Rw 0 0;
    MSI             0x050 2 Rw 0 0x0005;
    MSI_CONTROL     0x052 2 Rw 0x0001 0x0080;
    MSI_ADDRESS     0x054 4 Rw 0xffff_fffc 0;
    MSI_HIGH        0x058 4 Rw 0xffff_ffff 0;
    MSI_DATA        0x05c 2 Rw 0xffff 0;
    EXPRESS         0x080 2 Rw 0 0x0010;
    EXPRESS_FLAGS   0x082 2 Rw 0 0x0002;
    DEVICE_ABILITY  0x084 4 Rw 0 0x0000_8000;
    DEVICE_CONTROL  0x088 2 Rw 0x7fff 0;
    LINK_ABILITY    0x08c 4 Rw 0 0x0000_0011;
    LINK_CONTROL    0x090 2 Rw 0x0fff 0;
    LINK_STATUS     0x092 2 Rw 0 0x0011;
    GLI_VHS         0x884 4 Rw 0xffff_ffff 0;
    GLI_STRAPS      0x888 4 Rw 0 0;
    GLI_CONFIG      0x8a0 4 Rw 0xffff_ffff 0;
    GLI_CONFIG_2    0x8a4 4 Rw 0xffff_ffff 0;
    GLI_SCR         0x8e0 4 Rw 0xffff_ffff 0;
    GLI_RX_DELAY    0x934 4 Rw 0xffff_ffff 0;
    GLI_PLL         0x938 4 Rw 0xffff_ffff 0;
    GLI_PLL_2       0x93c 4 Rw 0xffff_ffff 0;
    GLI_MMC_CONTROL 0x960 4 Rw 0xffff_ffff 0;
}

/// Unit: bytes.
pub const CONFIG_BYTES: usize = 0x1000;
/// Of BAR 0. Unit: bytes.
pub const BAR_BYTES: usize = 0x1000;

const MASTERS_BUS: u16 = 1 << 2;

/// A function's configuration space.
#[derive(Debug)]
pub(super) struct ConfigSpace(RegisterFile);

impl ConfigSpace {
    /// As after reset.
    pub(super) fn new(identity: Identity) -> Self {
        let mut registers = RegisterFile::new(TABLE, CONFIG_BYTES);
        let (vendor, device) = identity.id();
        registers.set_reset(VENDOR, vendor.into(), 2);
        registers.set_reset(DEVICE, device.into(), 2);
        registers.set_reset(SUBSYSTEM, u32::from(device) << 16 | u32::from(vendor), 4);
        registers.set_reset(GLI_STRAPS, identity.straps(), 4);
        // The list of capabilities: PCI Express, then MSI where there is one.
        registers.set_reset(EXPRESS + 1, if identity.has_msi() { MSI.into() } else { 0 }, 1);
        Self(registers)
    }

    pub(super) fn read(&self, offset: usize, bytes: usize) -> u64 {
        self.0.read(offset, bytes)
    }

    pub(super) fn write(&mut self, offset: usize, bytes: usize, value: u64) {
        self.0.write(offset, bytes, value);
    }

    /// Whether the function is bus master.
    pub(super) fn masters_bus(&self) -> bool {
        self.0.get16(COMMAND) & MASTERS_BUS != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sdhci::register_file::faults;

    #[test]
    fn the_table_covers_each_byte_once() {
        assert_eq!(faults(TABLE, CONFIG_BYTES as u16), [] as [&str; 0]);
    }

    /// The capability numbers of the list.
    fn capabilities(config: &ConfigSpace) -> Vec<u64> {
        let mut at = config.read(0x34, 1) as usize;
        let mut numbers = Vec::new();
        while at != 0 {
            numbers.push(config.read(at, 1));
            at = config.read(at + 1, 1) as usize;
        }
        numbers
    }

    #[test]
    fn identities_match_the_linux_drivers() {
        let gli = ConfigSpace::new(Identity::Gl9763e);
        assert_eq!((gli.read(0, 4), gli.read(0x888, 4), capabilities(&gli)), (0xe763_17a0, 0x80, vec![0x10, 5]));
        let without = ConfigSpace::new(Identity::Gl9763eWithoutQueue);
        assert_eq!((without.read(0, 4), without.read(0x888, 4)), (0xe763_17a0, 0));
        let generic = ConfigSpace::new(Identity::Generic);
        assert_eq!((generic.read(8, 4) >> 8, capabilities(&generic)), (0x08_0501, vec![0x10]));
    }

    #[test]
    fn a_bar_reports_its_size() {
        let mut config = ConfigSpace::new(Identity::Gl9763e);
        config.write(0x10, 4, 0xffff_ffff);
        assert_eq!(!config.read(0x10, 4) as u32 + 1, BAR_BYTES as u32);
        config.write(4, 2, 0xffff);
        assert_eq!((config.read(4, 2), config.masters_bus()), (0x0546, true));
    }
}
