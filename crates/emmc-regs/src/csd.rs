//! CSD: capacity of small cards, speed, erase groups, command classes and the write protection bits.
//!
//! MMC has one layout, SD three; the top two bits choose. What large cards hold elsewhere (EXT_CSD's SEC_COUNT, the
//! SD status) is absent on purpose.

use crate::CardKind;
use crate::bits::bits;
use crate::crc::Crc;
use crate::error::Error;
use crate::hex;
use crate::layout::{self, BitField};
use crate::row::RegisterField;

mod mmc;
mod scale;
mod sd;

/// The card-specific data register, as the card sends it: bits 127:120 in the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Csd {
    /// Whose layout it has.
    pub kind: CardKind,
    /// Its bytes.
    pub bytes: [u8; 16],
}

/// The layouts by CSD_STRUCTURE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CsdLayout {
    /// MMC and eMMC, whatever CSD_STRUCTURE says: the versions differ in what fields mean, not in where they lie.
    Mmc,
    /// SD version 1.0: SDSC, up to 2 GiB.
    SdV1,
    /// SD version 2.0: SDHC and SDXC, up to 2 TiB.
    SdV2,
    /// SD version 3.0: SDUC, up to 128 TiB.
    SdV3,
    /// SD with the reserved code 3.
    SdReserved,
}

impl Csd {
    /// A CSD of a card of this kind.
    pub fn new(kind: CardKind, bytes: [u8; 16]) -> Self {
        Self { kind, bytes }
    }

    /// Reads 32 hexadecimal digits, as sysfs prints them; blanks and a leading `0x` do not count.
    ///
    /// Errors: a character that is no digit, or another number of digits.
    pub fn parse_hex(kind: CardKind, text: &str) -> Result<Self, Error> {
        Ok(Self { kind, bytes: hex::parse("CSD", text)? })
    }

    /// Which layout the register has.
    pub fn layout(&self) -> CsdLayout {
        match (self.kind, self.bits(127, 126)) {
            (CardKind::Emmc, _) => CsdLayout::Mmc,
            (CardKind::Sd, 0) => CsdLayout::SdV1,
            (CardKind::Sd, 1) => CsdLayout::SdV2,
            (CardKind::Sd, 2) => CsdLayout::SdV3,
            (CardKind::Sd, _) => CsdLayout::SdReserved,
        }
    }

    /// Bits `hi` down to `lo`.
    pub fn bits(&self, hi: u16, lo: u16) -> u64 {
        bits(&self.bytes, hi, lo)
    }

    /// The checksum in bits 7:1.
    pub fn crc(&self) -> Crc {
        Crc::of(&self.bytes)
    }

    /// Every field, for printing and comparing.
    pub fn fields(&self) -> Vec<RegisterField> {
        let table: &[BitField] = match self.layout() {
            CsdLayout::Mmc => &mmc::FIELDS,
            CsdLayout::SdV1 => &sd::FIELDS_V1,
            CsdLayout::SdV2 => &sd::FIELDS_V2,
            CsdLayout::SdV3 => &sd::FIELDS_V3,
            CsdLayout::SdReserved => &sd::FIELDS_RESERVED,
        };
        layout::rows("CSD", &self.bytes, table)
    }

    /// The capacity of the user area, where the register can hold it.
    ///
    /// An eMMC above 2 GiB has C_SIZE 0xFFF here and its capacity in EXT_CSD's SEC_COUNT.
    /// Unit: bytes.
    pub fn capacity_bytes(&self) -> Option<u64> {
        match self.layout() {
            CsdLayout::Mmc if self.bits(73, 62) == 0xfff => None,
            CsdLayout::Mmc | CsdLayout::SdV1 => {
                let block_bytes = self.read_block_bytes()?;
                Some(((self.bits(73, 62) + 1) * block_bytes) << (self.bits(49, 47) + 2))
            }
            CsdLayout::SdV2 => Some((self.bits(69, 48) + 1) << 19),
            CsdLayout::SdV3 => Some((self.bits(75, 48) + 1) << 19),
            CsdLayout::SdReserved => None,
        }
    }

    /// Whether an eMMC's capacity is to be read from EXT_CSD's SEC_COUNT instead.
    pub fn capacity_is_in_ext_csd(&self) -> bool {
        self.layout() == CsdLayout::Mmc && self.bits(73, 62) == 0xfff
    }

    fn read_block_bytes(&self) -> Option<u64> {
        match self.kind {
            CardKind::Emmc => scale::mmc_block_bytes(self.bits(83, 80)),
            CardKind::Sd => scale::sd_block_bytes(self.bits(83, 80)),
        }
    }

    /// The fastest clock outside the high-speed modes; of an SD card, the bit rate of one line.
    ///
    /// Unit: Hz.
    pub fn tran_speed_hz(&self) -> Option<u64> {
        match self.layout() {
            CsdLayout::Mmc => scale::mmc_tran_speed_hz(self.bits(103, 96)),
            CsdLayout::SdReserved => None,
            _ => scale::sd_tran_speed_hz(self.bits(103, 96)),
        }
    }

    /// The part of the read access time that does not depend on the clock.
    ///
    /// Unit: ns.
    pub fn taac_ns(&self) -> Option<f64> {
        if self.layout() == CsdLayout::SdReserved { None } else { scale::taac_ns(self.bits(119, 112)) }
    }

    /// The command classes that the card understands.
    pub fn command_classes(&self) -> impl Iterator<Item = u8> {
        let classes = if self.layout() == CsdLayout::SdReserved { 0 } else { self.bits(95, 84) };
        (0..12).filter(move |class| classes >> class & 1 == 1)
    }

    /// What one erase group holds while EXT_CSD's ERASE_GROUP_DEF is 0; of an SD card, what one erase unit holds.
    ///
    /// Unit: sectors of 512 bytes.
    pub fn erase_group_sectors(&self) -> Option<u64> {
        let write_block_sectors = || scale::mmc_block_bytes(self.bits(25, 22)).map(|bytes| bytes / 512);
        match self.layout() {
            CsdLayout::Mmc => {
                let groups = (self.bits(46, 42) + 1) * (self.bits(41, 37) + 1);
                write_block_sectors().map(|sectors| groups * sectors).filter(|&sectors| sectors > 0)
            }
            CsdLayout::SdV1 if self.bits(46, 46) == 0 => {
                write_block_sectors().map(|sectors| (self.bits(45, 39) + 1) * sectors).filter(|&sectors| sectors > 0)
            }
            CsdLayout::SdV1 | CsdLayout::SdV2 | CsdLayout::SdV3 => Some(1),
            CsdLayout::SdReserved => None,
        }
    }

    /// What one write protection group holds while ERASE_GROUP_DEF is 0, or `None` when there are no groups.
    ///
    /// Unit: sectors of 512 bytes.
    pub fn write_protect_group_sectors(&self) -> Option<u64> {
        let groups = match self.layout() {
            CsdLayout::Mmc => self.bits(36, 32) + 1,
            CsdLayout::SdV1 => self.bits(38, 32) + 1,
            _ => return None,
        };
        if self.bits(31, 31) == 0 {
            return None;
        }
        // An SD group counts erase sectors even where single blocks can be erased.
        let unit = match self.layout() {
            CsdLayout::SdV1 => (self.bits(45, 39) + 1) * (scale::mmc_block_bytes(self.bits(25, 22))? / 512),
            _ => self.erase_group_sectors()?,
        };
        Some(groups * unit)
    }

    /// PERM_WRITE_PROTECT: the whole card can never be written again.
    pub fn perm_write_protect(&self) -> bool {
        self.bits(13, 13) == 1
    }

    /// TMP_WRITE_PROTECT: the whole card cannot be written until the bit is cleared.
    pub fn tmp_write_protect(&self) -> bool {
        self.bits(12, 12) == 1
    }

    /// COPY: the content is marked as a copy.
    pub fn copy(&self) -> bool {
        self.bits(14, 14) == 1
    }
}

#[cfg(test)]
mod tests;
