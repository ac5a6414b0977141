//! CSD, SCR and SD status of SD cards.
//!
//! Absent on purpose: CMD48 and CMD49 in SCR.CMD_SUPPORT. An A2 card has them for its cache and its queue, which the
//! nine published cards were measured without; a card that announced them would have to answer.

use emmc_regs::bits::set_bits;

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
    if user > BYTE_ADDRESSED_MAX {
        set_bits(&mut csd, 127, 126, 1);
        set_bits(&mut csd, 69, 48, (user >> 19).saturating_sub(1));
        set_bits(&mut csd, 83, 80, 9);
        set_bits(&mut csd, 25, 22, 9);
    } else {
        let (block_len, mult, count) = byte_addressed_size(user).unwrap_or((9, 7, 1));
        for (hi, lo, value) in
            [(83, 80, block_len), (73, 62, count - 1), (49, 47, mult), (61, 50, 0xfff), (25, 22, block_len)]
        {
            set_bits(&mut csd, hi, lo, value);
        }
    }
    for (hi, lo, value) in [
        (119, 112, 0x0e),
        (103, 96, 0x32),
        // Basic, block read and write, erase, lock, application specific, switch.
        (95, 84, 0x5b5),
        (46, 46, 1),
        (45, 39, 0x7f),
        (28, 26, 2),
    ] {
        set_bits(&mut csd, hi, lo, value);
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
    let commands = u64::from(profile.controller.bus_max >= BusMode::Sdr104) << 1;
    let mut scr = [0; 8];
    for (hi, lo, value) in [
        (59, 56, 2),
        (54, 52, security),
        (51, 48, 5),
        (47, 47, u64::from(uhs || app_class > 0 || (large && security == 4))),
        (42, 42, u64::from(app_class > 0)),
        (41, 38, spec_x),
        (35, 32, commands),
    ] {
        set_bits(&mut scr, hi, lo, value);
    }
    scr
}

/// SD status.
pub(super) fn ssr(profile: &Profile) -> [u8; 64] {
    let mut ssr = [0; 64];
    let Some(sd) = profile.identity.sd else { return ssr };
    let au = au_code(sd.au_bytes).unwrap_or(0);
    for (hi, lo, value) in [
        (447, 440, u64::from(sd.speed_class.min(8) / 2).min(4)),
        (431, 428, au),
        // 16 allocation units per second, plus a constant second.
        (423, 408, 16),
        (407, 402, 1),
        (401, 400, 1),
        (399, 396, sd.uhs_grade.into()),
        // UHS_AU_SIZE has no code below 1 MiB.
        (395, 392, if sd.uhs_grade > 0 { au.max(7) } else { 0 }),
        (339, 336, sd.app_class.into()),
    ] {
        set_bits(&mut ssr, hi, lo, value);
    }
    ssr
}

/// AU_SIZE of an allocation unit, if there is a code for it.
///
/// Source: SD physical layer simplified specification, clause 4.10.2: 16 KiB doubling up to 4 MiB, then steps between.
pub(in crate::profile) fn au_code(bytes: u32) -> Option<u64> {
    const KIB: [u32; 15] = [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 12288, 16384, 24576, 32768, 65536];
    (1..).zip(KIB).find(|(_, kib)| kib << 10 == bytes).map(|(code, _)| code)
}
