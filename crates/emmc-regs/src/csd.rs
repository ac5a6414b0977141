//! CSD: capacity of small cards, speed, erase groups, command classes and the write protection bits.
//!
//! MMC has one layout, SD three; the top two bits choose. What large cards hold elsewhere (EXT_CSD's SEC_COUNT, the
//! SD status) is absent on purpose.

use crate::CardKind;
use crate::crc::Crc;
use crate::error::Error;
use crate::hex;
use crate::layout::{self, BitField};
use crate::row::RegisterField;

pub mod mmc;
mod scale;
pub mod sd;

/// C_SIZE of an eMMC whose capacity is in EXT_CSD's SEC_COUNT.
const C_SIZE_IN_EXT_CSD: u64 = 0xfff;

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
        match (self.kind, self.get(sd::CSD_STRUCTURE)) {
            (CardKind::Emmc, _) => CsdLayout::Mmc,
            (CardKind::Sd, sd::V1) => CsdLayout::SdV1,
            (CardKind::Sd, sd::V2) => CsdLayout::SdV2,
            (CardKind::Sd, sd::V3) => CsdLayout::SdV3,
            (CardKind::Sd, _) => CsdLayout::SdReserved,
        }
    }

    /// A field as an unsigned number.
    pub fn get(&self, field: &BitField) -> u64 {
        field.get(&self.bytes)
    }

    fn is_set(&self, field: &BitField) -> bool {
        field.is_set(&self.bytes)
    }

    /// The checksum in bits 7:1.
    pub fn crc(&self) -> Crc {
        Crc::of(&self.bytes)
    }

    /// Every field, for printing and comparing.
    pub fn fields(&self) -> Vec<RegisterField> {
        match self.kind {
            CardKind::Emmc => layout::rows("CSD", &self.bytes, mmc::FIELDS),
            CardKind::Sd => layout::rows("CSD", &self.bytes, sd::fields(self.get(sd::CSD_STRUCTURE))),
        }
    }

    /// The capacity of the user area, where the register can hold it.
    ///
    /// An eMMC above 2 GiB has C_SIZE 0xFFF here and its capacity in EXT_CSD's SEC_COUNT.
    /// Unit: bytes.
    pub fn capacity_bytes(&self) -> Option<u64> {
        match self.layout() {
            CsdLayout::Mmc if self.get(mmc::C_SIZE) == C_SIZE_IN_EXT_CSD => None,
            CsdLayout::Mmc | CsdLayout::SdV1 => {
                let block_bytes = self.read_block_bytes()?;
                Some(((self.get(mmc::C_SIZE) + 1) * block_bytes) << (self.get(mmc::C_SIZE_MULT) + 2))
            }
            CsdLayout::SdV2 => Some((self.get(sd::C_SIZE_V2) + 1) << 19),
            CsdLayout::SdV3 => Some((self.get(sd::C_SIZE_V3) + 1) << 19),
            CsdLayout::SdReserved => None,
        }
    }

    fn read_block_bytes(&self) -> Option<u64> {
        match self.kind {
            CardKind::Emmc => scale::mmc_block_bytes(self.get(mmc::READ_BL_LEN)),
            CardKind::Sd => scale::sd_block_bytes(self.get(sd::READ_BL_LEN)),
        }
    }

    /// The fastest clock outside the high-speed modes; of an SD card, the bit rate of one line.
    ///
    /// Unit: Hz.
    pub fn tran_speed_hz(&self) -> Option<u64> {
        match self.layout() {
            CsdLayout::Mmc => scale::mmc_tran_speed_hz(self.get(mmc::TRAN_SPEED)),
            CsdLayout::SdReserved => None,
            _ => scale::sd_tran_speed_hz(self.get(sd::TRAN_SPEED)),
        }
    }

    /// The part of the read access time that does not depend on the clock.
    ///
    /// Unit: ns.
    pub fn taac_ns(&self) -> Option<f64> {
        if self.layout() == CsdLayout::SdReserved { None } else { scale::taac_ns(self.get(mmc::TAAC)) }
    }

    /// Whether the card understands a command class.
    pub fn has_class(&self, class: u8) -> bool {
        self.layout() != CsdLayout::SdReserved && class < 12 && self.get(mmc::CCC) >> class & 1 == 1
    }

    /// What one erase group holds while EXT_CSD's ERASE_GROUP_DEF is 0; of an SD card, what one erase unit holds.
    ///
    /// Unit: sectors of 512 bytes.
    pub fn erase_group_sectors(&self) -> Option<u64> {
        let write_block_sectors = || scale::mmc_block_bytes(self.get(mmc::WRITE_BL_LEN)).map(|bytes| bytes / 512);
        match self.layout() {
            CsdLayout::Mmc => {
                let groups = (self.get(mmc::ERASE_GRP_SIZE) + 1) * (self.get(mmc::ERASE_GRP_MULT) + 1);
                write_block_sectors().map(|sectors| groups * sectors).filter(|&sectors| sectors > 0)
            }
            CsdLayout::SdV1 if !self.is_set(sd::ERASE_BLK_EN) => {
                let blocks = self.get(sd::SECTOR_SIZE) + 1;
                write_block_sectors().map(|sectors| blocks * sectors).filter(|&sectors| sectors > 0)
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
            CsdLayout::Mmc => self.get(mmc::WP_GRP_SIZE) + 1,
            CsdLayout::SdV1 => self.get(sd::WP_GRP_SIZE) + 1,
            _ => return None,
        };
        if !self.is_set(mmc::WP_GRP_ENABLE) {
            return None;
        }
        // An SD group counts erase sectors even where single blocks can be erased.
        let unit = match self.layout() {
            CsdLayout::SdV1 => {
                (self.get(sd::SECTOR_SIZE) + 1) * (scale::mmc_block_bytes(self.get(sd::WRITE_BL_LEN))? / 512)
            }
            _ => self.erase_group_sectors()?,
        };
        Some(groups * unit)
    }

    /// PERM_WRITE_PROTECT: the whole card can never be written again.
    pub fn perm_write_protect(&self) -> bool {
        self.is_set(mmc::PERM_WRITE_PROTECT)
    }

    /// TMP_WRITE_PROTECT: the whole card cannot be written until the bit is cleared.
    pub fn tmp_write_protect(&self) -> bool {
        self.is_set(mmc::TMP_WRITE_PROTECT)
    }

    /// COPY: the content is marked as a copy.
    pub fn copy(&self) -> bool {
        self.is_set(mmc::COPY)
    }
}

#[cfg(test)]
mod tests;
