//! Registers in two sources: values that distinguish two parts, and values that merely changed.

use emmc_regs::ext_csd::{Access, ExtCsd, Field, fields, reg};

use super::{Used, digits, labels, only_rises, sentence};
use crate::CardData;

/// Fields that the maker sets and no host can change.
///
/// Source: access type R in JESD84-B51; without those that partitioning, wear or new firmware move.
const FIXED: [&Field; 8] = [
    reg::EXT_CSD_REV,
    reg::DEVICE_TYPE,
    reg::HC_WP_GRP_SIZE,
    reg::HC_ERASE_GRP_SIZE,
    reg::ACC_SIZE,
    reg::SEC_FEATURE_SUPPORT,
    reg::INI_TIMEOUT_AP,
    reg::CACHE_SIZE,
];

/// The first fixed field that differs between the sources.
pub(super) fn fixed_difference(ours: &CardData, theirs: &CardData) -> Option<(&'static str, u64, u64)> {
    let read = |data: &CardData, field: &Field| {
        let inferred = field.bytes().any(|byte| data.is_inferred(byte));
        data.ext_csd.as_ref().filter(|_| !inferred)?.raw(field)
    };
    // SEC_COUNT changes only by partitioning: before that it is the part's size.
    let unpartitioned = |data: &CardData| {
        let completed = data.ext_csd.as_ref().and_then(|ext_csd| ext_csd.bit(reg::PARTITION_SETTING_COMPLETED, 0));
        completed == Some(false) && !data.is_inferred(reg::PARTITION_SETTING_COMPLETED)
    };
    let size = (unpartitioned(ours) && unpartitioned(theirs)).then_some(reg::SEC_COUNT);
    FIXED.into_iter().chain(size).find_map(|field| {
        let (ours, theirs) = (read(ours, field)?, read(theirs, field)?);
        // Older mmc-utils printed kilobits as KiB.
        let eightfold = ours.checked_mul(8) == Some(theirs) || theirs.checked_mul(8) == Some(ours);
        let unit = field == reg::CACHE_SIZE && eightfold;
        (ours != theirs && !unit).then_some((field.name, ours, theirs))
    })
}

/// Other differences, one sentence each.
pub(super) fn conflicts(ours: &CardData, theirs: &CardData) -> Vec<String> {
    let (name, other) = labels(ours, theirs);
    let mut found = Vec::new();
    let bytes = |what: &str, ours: Option<&[u8]>, theirs: Option<&[u8]>| {
        let (ours, theirs) = ours.zip(theirs).filter(|(ours, theirs)| ours != theirs)?;
        Some(sentence(what, (&name, digits(ours)), (&other, digits(theirs)), Used::First))
    };
    // The last byte of CSD is a checksum that hosts strip; the first of SSR holds the present bus width.
    found.extend(bytes(
        "CSD",
        ours.csd.as_ref().and_then(|csd| csd.get(..15)),
        theirs.csd.as_ref().and_then(|csd| csd.get(..15)),
    ));
    found.extend(bytes("SCR", ours.scr.as_ref().map(|scr| &scr[..]), theirs.scr.as_ref().map(|scr| &scr[..])));
    found.extend(bytes(
        "SSR past its first byte",
        ours.ssr.as_ref().and_then(|ssr| ssr.get(1..)),
        theirs.ssr.as_ref().and_then(|ssr| ssr.get(1..)),
    ));
    if let (Some(first), Some(second)) = (&ours.ext_csd, &theirs.ext_csd) {
        for field in fields().filter(|field| !field.is_reserved()) {
            let Some((before, after)) = differing(field, first, second) else { continue };
            let inferred = |data: &CardData| field.bytes().any(|byte| data.is_inferred(byte));
            let used = match () {
                () if inferred(ours) != inferred(theirs) => Used::Read,
                () if only_rises(field.offset) => Used::Higher,
                () => Used::First,
            };
            found.push(sentence(field.name, (&name, before), (&other, after), used));
        }
    }
    found
}

/// The values of a field in the persistent bits that both registers know; `None` if they are equal.
fn differing(field: &Field, ours: &ExtCsd, theirs: &ExtCsd) -> Option<(String, String)> {
    let (start, end) = (usize::from(field.offset), usize::from(field.offset + field.width));
    let known = ours.mask().get(start..end)?.iter().zip(theirs.mask().get(start..end)?);
    let compared: Vec<u8> =
        (0..).zip(known).map(|(index, (ours, theirs))| ours & theirs & !volatile(field, index)).collect();
    let masked = |ext_csd: &ExtCsd| -> Option<Vec<u8>> {
        Some(ext_csd.bytes().get(start..end)?.iter().zip(&compared).map(|(byte, mask)| byte & mask).collect())
    };
    let (ours, theirs) = (masked(ours)?, masked(theirs)?);
    // Little-endian, as the numbers of this register are.
    let number = |bytes: &[u8]| format!("0x{}", digits(&bytes.iter().rev().copied().collect::<Vec<_>>()));
    (ours != theirs).then(|| (number(&ours), number(&theirs)))
}

/// Bits of byte `index` of a field that a power cycle clears.
fn volatile(field: &Field, index: u16) -> u8 {
    let cleared = |access: &Access| matches!(access, Access::RWCp | Access::RWEp | Access::WEp);
    let shift = (u32::from(index) * 8).min(63);
    let named = |wanted: bool| {
        let those =
            field.bits.iter().filter(|bits| bits.access.as_ref().is_some_and(|access| cleared(access) == wanted));
        (those.fold(0, |mask, bits| mask | bits.mask()) >> shift) as u8
    };
    let whole = if field.access.iter().all(cleared) { 0xff } else { 0 };
    whole & !named(false) | named(true)
}
