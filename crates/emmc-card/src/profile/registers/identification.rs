//! CID of both kinds and CSD of eMMC.

use emmc_regs::CardKind;
use emmc_regs::bits::set_bits;

use super::{BYTE_ADDRESSED_MAX, seal};
use crate::profile::{Identity, Profile};

pub(super) fn cid(profile: &Profile) -> [u8; 16] {
    let identity = &profile.identity;
    let mut cid = [0; 16];
    set_bits(&mut cid, 127, 120, identity.manufacturer_id.into());
    set_bits(&mut cid, 119, 104, identity.oem_id.into());
    let name = |letters: usize| {
        let letters = identity.product.bytes().chain(std::iter::repeat(b' ')).take(letters);
        letters.fold(0, |name, letter| name << 8 | u64::from(letter))
    };
    let (month, year) = (u64::from(identity.month), u64::from(year_code(profile.kind, identity).unwrap_or(0)));
    match profile.kind {
        CardKind::Emmc => {
            set_bits(&mut cid, 103, 56, name(6));
            set_bits(&mut cid, 55, 48, identity.revision.into());
            set_bits(&mut cid, 47, 16, identity.serial.into());
            set_bits(&mut cid, 15, 8, month << 4 | year);
        }
        CardKind::Sd => {
            set_bits(&mut cid, 103, 64, name(5));
            set_bits(&mut cid, 63, 56, identity.revision.into());
            set_bits(&mut cid, 55, 24, identity.serial.into());
            set_bits(&mut cid, 19, 8, year << 4 | month);
        }
    }
    seal(cid)
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

/// READ_BL_LEN, C_SIZE_MULT and C_SIZE + 1 of a part of at most 2 GiB, if they can say its size exactly.
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
    let mut csd = [0; 16];
    for (hi, lo, value) in [
        (127, 126, 3),
        (125, 122, 4),
        // TAAC 1 ms x 1.0 and NSAC 100 clocks: the standard has blocks read within ten times that.
        (119, 112, 0x0e),
        (111, 104, 1),
        (103, 96, 0x32),
        (95, 84, classes),
        (83, 80, block_len),
        (73, 62, count - 1),
        (61, 50, 0xfff),
        (49, 47, mult),
        (46, 37, 0x3ff),
        (36, 32, wp_groups.into()),
        (31, 31, 1),
        // R2W_FACTOR: a block is written within 32 times that; hosts give up then, and collecting takes long on a full
        // card.
        (28, 26, 5),
        (25, 22, 9),
    ] {
        set_bits(&mut csd, hi, lo, value);
    }
    seal(csd)
}
