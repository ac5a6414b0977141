//! The registers of a part as it leaves the factory, made from its profile.
//!
//! Absent on purpose: registers that change in use (SEC_COUNT after partitioning, health, modes), which belong to the
//! card.

mod ext_csd;
mod identification;
mod sd;
#[cfg(test)]
mod tests;

use emmc_regs::CardKind;
use emmc_regs::crc::crc7;
use emmc_regs::ext_csd::EXT_CSD_BYTES;
use emmc_regs::ocr::Ocr;

use super::{BusMode, Profile};

pub(super) use ext_csd::override_fault;
pub(super) use identification::{byte_addressed_size, year_code};
pub(super) use sd::au_code;

/// Above this an eMMC or SD card is addressed by sectors.
///
/// Unit: bytes.
pub(super) const BYTE_ADDRESSED_MAX: u64 = 2 << 30;

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

impl RegisterImage {
    /// The registers of a part as the factory leaves it, at power-on.
    ///
    /// The profile must keep its rules ([`Profile::check`]); otherwise values that do not fit a register are cut off.
    pub fn new(profile: &Profile) -> Self {
        let mut image = Self {
            cid: identification::cid(profile),
            csd: [0; 16],
            ocr: ocr(profile),
            ext_csd: [0; EXT_CSD_BYTES],
            scr: [0; 8],
            ssr: [0; 64],
        };
        match profile.kind {
            CardKind::Emmc => {
                image.csd = identification::csd(profile);
                image.ext_csd = ext_csd::ext_csd(profile);
            }
            CardKind::Sd => {
                image.csd = sd::csd(profile);
                image.scr = sd::scr(profile);
                image.ssr = sd::ssr(profile);
            }
        }
        image
    }
}

fn ocr(profile: &Profile) -> u32 {
    let large = profile.areas.user_bytes > BYTE_ADDRESSED_MAX;
    let ocr = Ocr::VDD_27_36;
    let ocr = match profile.kind {
        CardKind::Emmc if large => ocr.with(Ocr::VDD_170_195).with(Ocr::SECTOR_MODE),
        CardKind::Emmc => ocr.with(Ocr::VDD_170_195),
        CardKind::Sd if large => ocr.with(Ocr::CCS),
        CardKind::Sd => ocr,
    };
    if is_uhs(profile) { ocr.with(Ocr::S18A).0 } else { ocr.0 }
}

/// Whether an SD card offers a bus mode that wants 1.8 V.
fn is_uhs(profile: &Profile) -> bool {
    profile.kind == CardKind::Sd && profile.controller.bus_max >= BusMode::Sdr50
}

/// Writes checksum and end bit of a CID or CSD.
fn seal(mut register: [u8; 16]) -> [u8; 16] {
    register[15] = crc7(&register[..15]) << 1 | 1;
    register
}
