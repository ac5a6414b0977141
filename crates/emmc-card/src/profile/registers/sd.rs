//! CSD, SCR and SD status of SD cards.
//!
//! Absent on purpose: CMD48 and CMD49 in SCR.CMD_SUPPORT. An A2 card has them for its cache and its queue, which the
//! nine published cards were measured without; a card that announced them would have to answer.

use emmc_regs::csd::sd;
use emmc_regs::{scr, ssr};

use super::{BYTE_ADDRESSED_MAX, byte_addressed_size, is_uhs, seal};
use crate::profile::{BusMode, Profile};

/// Above this a card is SDXC.
const SDHC_MAX: u64 = 32 << 30;

/// CSD: version 1 up to 2 GiB, version 2 above.
///
/// Source: SD physical layer simplified specification, clauses 5.3.2 and 5.3.3, which fixes most of version 2.
pub(super) fn csd(profile: &Profile) -> [u8; 16] {
    let user = profile.areas.user_bytes;
    let mut csd = [0; 16];
    let block_len = if user > BYTE_ADDRESSED_MAX {
        sd::CSD_STRUCTURE.set(&mut csd, 1);
        sd::C_SIZE_V2.set(&mut csd, (user >> 19).saturating_sub(1));
        9
    } else {
        let (block_len, mult, count) = byte_addressed_size(user).unwrap_or((9, 7, 1));
        for (field, value) in [
            (sd::C_SIZE, count - 1),
            (sd::C_SIZE_MULT, mult),
            (sd::VDD_R_CURR_MIN, 7),
            (sd::VDD_R_CURR_MAX, 7),
            (sd::VDD_W_CURR_MIN, 7),
            (sd::VDD_W_CURR_MAX, 7),
        ] {
            field.set(&mut csd, value);
        }
        block_len
    };
    for (field, value) in [
        (sd::TAAC, 0x0e),
        (sd::TRAN_SPEED, 0x32),
        // Basic, block read and write, erase, lock, application specific, switch.
        (sd::CCC, 0x5b5),
        (sd::READ_BL_LEN, block_len),
        (sd::ERASE_BLK_EN, 1),
        (sd::SECTOR_SIZE, 0x7f),
        (sd::R2W_FACTOR, 2),
        (sd::WRITE_BL_LEN, block_len),
    ] {
        field.set(&mut csd, value);
    }
    seal(csd)
}

/// SCR: the version that the card's features call for.
pub(super) fn scr(profile: &Profile) -> [u8; 8] {
    let app_class = profile.identity.sd.map_or(0, |sd| sd.app_class);
    let large = profile.areas.user_bytes > BYTE_ADDRESSED_MAX;
    let uhs = is_uhs(profile);
    // UHS came with 3.0, A1 with 5.1, A2 with 6.0.
    let spec_x = u64::from(app_class.min(2));
    // SDSC, SDHC, SDXC.
    let security = 2 + u64::from(large) + u64::from(profile.areas.user_bytes > SDHC_MAX);
    // SDR104 requires CMD23.
    let commands = if profile.controller.bus_max >= BusMode::Sdr104 { scr::CMD23 } else { 0 };
    let mut register = [0; 8];
    for (field, value) in [
        (scr::SD_SPEC, 2),
        (scr::SD_SECURITY, security),
        (scr::SD_BUS_WIDTHS, 5),
        (scr::SD_SPEC3, u64::from(uhs || app_class > 0 || (large && security == 4))),
        (scr::SD_SPEC4, u64::from(app_class > 0)),
        (scr::SD_SPECX, spec_x),
        (scr::CMD_SUPPORT, commands),
    ] {
        field.set(&mut register, value);
    }
    register
}

/// SD status.
pub(super) fn ssr(profile: &Profile) -> [u8; 64] {
    let mut status = [0; 64];
    let Some(sd) = profile.identity.sd else { return status };
    let au = au_code(sd.au_bytes).unwrap_or(0);
    for (field, value) in [
        (ssr::SPEED_CLASS, u64::from(sd.speed_class.min(8) / 2).min(4)),
        (ssr::AU_SIZE, au),
        // 16 allocation units per second, plus a constant second.
        (ssr::ERASE_SIZE, 16),
        (ssr::ERASE_TIMEOUT, 1),
        (ssr::ERASE_OFFSET, 1),
        (ssr::UHS_SPEED_GRADE, sd.uhs_grade.into()),
        // UHS_AU_SIZE has no code below 1 MiB.
        (ssr::UHS_AU_SIZE, if sd.uhs_grade > 0 { au.max(7) } else { 0 }),
        (ssr::APP_PERF_CLASS, sd.app_class.into()),
    ] {
        field.set(&mut status, value);
    }
    status
}

/// AU_SIZE of an allocation unit, if there is a code for it.
///
/// Source: SD physical layer simplified specification, clause 4.10.2: 16 KiB doubling up to 4 MiB, then steps between.
pub(in crate::profile) fn au_code(bytes: u32) -> Option<u64> {
    const KIB: [u32; 15] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 12288, 16384, 24576, 32768, 65536];
    (1..).zip(KIB).find(|(_, kib)| kib << 10 == bytes).map(|(code, _)| code)
}
