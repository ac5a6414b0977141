//! CID of both kinds and CSD of eMMC.

use emmc_regs::csd::mmc;
use emmc_regs::{CardKind, cid};

use super::{BYTE_ADDRESSED_MAX, seal};
use crate::profile::{GcPace, Identity, Profile};

pub(super) fn cid(profile: &Profile) -> [u8; 16] {
    let identity = &profile.identity;
    let mut register = [0; 16];
    cid::emmc::MID.set(&mut register, identity.manufacturer_id.into());
    // An eMMC's package lies in it too.
    cid::sd::OID.set(&mut register, identity.oem_id.into());
    let name = |letters: usize| {
        let letters = identity.product.bytes().chain(std::iter::repeat(b' ')).take(letters);
        letters.fold(0, |name, letter| name << 8 | u64::from(letter))
    };
    let (month, year) = (u64::from(identity.month), u64::from(year_code(profile.kind, identity).unwrap_or(0)));
    match profile.kind {
        CardKind::Emmc => {
            cid::emmc::PNM.set(&mut register, name(6));
            cid::emmc::PRV.set(&mut register, identity.revision.into());
            cid::emmc::PSN.set(&mut register, identity.serial.into());
            cid::emmc::MDT.set(&mut register, month << 4 | year);
        }
        CardKind::Sd => {
            cid::sd::PNM.set(&mut register, name(5));
            cid::sd::PRV.set(&mut register, identity.revision.into());
            cid::sd::PSN.set(&mut register, identity.serial.into());
            cid::sd::MDT.set(&mut register, year << 4 | month);
        }
    }
    seal(register)
}

/// The code of the year of making, if the register has one for it.
///
/// Source: Linux `mmc_decode_cid`: eMMC counts four bits from 1997, from EXT_CSD_REV 5 on from 2010 and from 9 on from
/// 2026, keeping the codes; SD counts eight bits from 2000.
pub(in crate::profile) fn year_code(kind: CardKind, identity: &Identity) -> Option<u8> {
    let (first, span, base) = match (kind, identity.ext_csd_rev) {
        (CardKind::Sd, _) => (2000, 256, 2000),
        (CardKind::Emmc, 0..=4) => (1997, 16, 1997),
        (CardKind::Emmc, 5..=8) => (2010, 16, 1997),
        (CardKind::Emmc, _) => (2026, 13, 1997),
    };
    let year = identity.year;
    (first..first + span).contains(&year).then(|| ((year - base) % span_of(kind)) as u8)
}

const fn span_of(kind: CardKind) -> u16 {
    match kind {
        CardKind::Emmc => 16,
        CardKind::Sd => 256,
    }
}

/// READ_BL_LEN, C_SIZE_MULT and C_SIZE + 1 of a part of at most 2 GiB, if they can hold its size exactly.
pub(in crate::profile) fn byte_addressed_size(user_bytes: u64) -> Option<(u64, u64, u64)> {
    let scales = (9..=11).flat_map(|block_len| (0..=7).map(move |mult| (block_len, mult)));
    // C_SIZE 0xfff would say that EXT_CSD has the size, so at most 4095 of them.
    let fits = |(block_len, mult): (u64, u64)| {
        let step = 1u64 << (block_len + mult + 2);
        let count = user_bytes / step;
        (user_bytes % step == 0 && (1..=4095).contains(&count)).then_some((block_len, mult, count))
    };
    scales.filter_map(fits).next()
}

/// TAAC and R2W_FACTOR of an eMMC: a block is read within ten times TAAC, and a write ends within that, times 2 to the
/// power of R2W_FACTOR. A later end is a data timeout for the host, so the limit covers the card's slowest write.
fn write_limit(profile: &Profile) -> (u64, u64) {
    let slowest_ms = slowest_write_ms(profile);
    // 1 ms x 1.0, and 32 times: 320 ms.
    if slowest_ms < 320.0 {
        return (0x0e, 5);
    }
    // 10 ms x 1.0, and at least 16 times, as a published CSD has it (d00f00320f5903ffffffffff924040).
    (0x0f, (4..7).find(|&factor| slowest_ms < f64::from(100 << factor)).unwrap_or(7))
}

/// What one write waits for at most: collection within its limit, or the merges that segment mapping makes for it.
fn slowest_write_ms(profile: &Profile) -> f64 {
    let (nand, ftl) = (&profile.nand, &profile.ftl);
    let Some(segment) = &ftl.segment else { return ftl.gc_busy_max_ms.into() };
    let cell = &nand.native;
    let pages = f64::from(nand.pages_per_block);
    let program_us = cell.program_us.iter().sum::<f64>() / cell.program_us.len().max(1) as f64;
    let transfers_us = 2.0 * f64::from(nand.page_bytes) / nand.channel_mb_s / f64::from(nand.channels);
    let page_us = (cell.read_us + program_us) / f64::from(nand.dies * nand.planes) + transfers_us;
    let merge_ms = pages * page_us / 1e3 * (1.0 + cell.time_spread) + 2.0 * cell.erase_ms;
    // One allocation unit is closed and another is filled up to the write; a shared log that is reclaimed merges one
    // more in steps, and at once as many as it has pages.
    let merges = match (segment.random_logs, ftl.gc_pace) {
        (0, _) => 2.0,
        (_, GcPace::Paced) => 3.0,
        (_, GcPace::AtOnce) => 2.0 + pages,
    };
    merges * merge_ms
}

/// CSD of an eMMC.
///
/// Source: JESD84-B51 clause 7.3; the values that no profile implies are those of published CSDs (d00f00320f5903ff...).
pub(super) fn csd(profile: &Profile) -> [u8; 16] {
    let areas = &profile.areas;
    let (block_len, mult, count) = match areas.user_bytes {
        ..=BYTE_ADDRESSED_MAX => byte_addressed_size(areas.user_bytes).unwrap_or((9, 7, 0x1000)),
        _ => (9, 7, 0x1000),
    };
    // Basic, block read and write, erase, write protection, lock; the queue is class 11.
    let classes = 0x0f5 | u64::from(profile.controller.queue_depth > 0) << 11;
    // Without ERASE_GROUP_DEF an erase group is 32 x 32 blocks, 512 KiB, and a protection group at most 32 of them.
    let wp_groups = (areas.wp_group_bytes >> 19).clamp(1, 32) - 1;
    let (taac, factor) = write_limit(profile);
    let mut csd = [0; 16];
    for (field, value) in [
        (mmc::CSD_STRUCTURE, 3),
        (mmc::SPEC_VERS, 4),
        (mmc::TAAC, taac),
        (mmc::NSAC, 1),
        (mmc::TRAN_SPEED, 0x32),
        (mmc::CCC, classes),
        (mmc::READ_BL_LEN, block_len),
        (mmc::C_SIZE, count - 1),
        (mmc::VDD_R_CURR_MIN, 7),
        (mmc::VDD_R_CURR_MAX, 7),
        (mmc::VDD_W_CURR_MIN, 7),
        (mmc::VDD_W_CURR_MAX, 7),
        (mmc::C_SIZE_MULT, mult),
        (mmc::ERASE_GRP_SIZE, 31),
        (mmc::ERASE_GRP_MULT, 31),
        (mmc::WP_GRP_SIZE, wp_groups.into()),
        (mmc::WP_GRP_ENABLE, 1),
        (mmc::R2W_FACTOR, factor),
        (mmc::WRITE_BL_LEN, 9),
    ] {
        field.set(&mut csd, value);
    }
    seal(csd)
}
