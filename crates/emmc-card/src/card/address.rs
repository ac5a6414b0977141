//! Converts the argument of a data command to sectors of an area.

use emmc_regs::ext_csd::reg;
use emmc_regs::ocr::{AccessMode, Ocr};
use emmc_regs::r1::R1;

use super::Card;

/// Sectors of 512 bytes in a native sector of 4 KiB.
const NATIVE_SECTORS: u64 = 8;

impl Card {
    /// Whether addresses are in bytes: parts of at most 2 GiB.
    pub(super) fn counts_bytes(&self) -> bool {
        Ocr(self.device.stored_registers().ocr).access_mode(self.kind) == Some(AccessMode::Byte)
    }

    /// Whether the card works with native sectors of 4 KiB (DATA_SECTOR_SIZE).
    pub(super) fn has_native_sectors(&self) -> bool {
        self.is_emmc() && self.ext_csd_byte(reg::DATA_SECTOR_SIZE) == 1
    }

    /// The sector of an address, which must lie in the accessed area.
    ///
    /// Errors: ADDRESS_MISALIGN, ADDRESS_OUT_OF_RANGE.
    pub(super) fn sector_at(&self, address: u32) -> Result<u64, R1> {
        let address = u64::from(address);
        let sector = if self.counts_bytes() {
            if address % 512 != 0 {
                return Err(R1::ADDRESS_ERROR);
            }
            address / 512
        } else {
            address
        };
        let area = self.area();
        if sector >= self.device.sectors(area) {
            return Err(R1::OUT_OF_RANGE);
        }
        if self.has_native_sectors() && sector % NATIVE_SECTORS != 0 {
            return Err(R1::ADDRESS_ERROR);
        }
        Ok(sector)
    }

    /// Whether this number of blocks can be transferred with the current block length.
    ///
    /// Errors: BLOCK_LEN_ERROR.
    pub(super) fn check_blocks(&self, blocks: Option<u32>) -> Result<(), R1> {
        let whole = blocks.is_none_or(|blocks| u64::from(blocks) % NATIVE_SECTORS == 0);
        let fits = self.block_len == 512 || self.interface.is_ddr();
        if fits && (whole || !self.has_native_sectors()) { Ok(()) } else { Err(R1::BLOCK_LEN_ERROR) }
    }
}
