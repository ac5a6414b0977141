//! The registers of a part as it leaves the factory, made from its profile.

use emmc_regs::ext_csd::EXT_CSD_BYTES;

/// The registers, as bytes.
///
/// Shape: CID, CSD and SSR most significant byte first, as the card sends them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterImage {
    /// CID, checksum included.
    pub cid: [u8; 16],
    /// CSD, checksum included.
    pub csd: [u8; 16],
    /// OCR without the busy bit.
    pub ocr: u32,
    /// EXT_CSD; all zero on SD.
    pub ext_csd: [u8; EXT_CSD_BYTES],
    /// SCR; all zero on eMMC.
    pub scr: [u8; 8],
    /// SD status; all zero on eMMC.
    pub ssr: [u8; 64],
}
