//! Partitioning: the one-time registers that divide the card, and the bit that commits them.
//!
//! Until PARTITION_SETTING_COMPLETED is set a power cycle clears the settings. The commit is checked as a whole; it
//! takes effect at the next power cycle, and the data is lost. Afterwards every write is refused. Absent on purpose:
//! the write-once rule of each setting (`access`), the division of the flash (`profile::capacity`), and the accessed
//! area (`switch`).
//!
//! Source: JESD84-B51 clauses 6.2.4, 7.4.

use emmc_regs::ext_csd::{EXT_CSD_BYTES, Field, reg};

use crate::profile::Partitioning;

/// A write to a register that the rules do not allow: the card reports SWITCH_ERROR and changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

impl Refused {
    /// Nothing where the rule holds.
    ///
    /// Errors: it does not.
    pub(crate) const fn unless(holds: bool) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self) }
    }
}

/// What PARTITION_SETTING_COMPLETED commits, itself not among it.
pub(crate) const SETTINGS: [&Field; 9] = [
    reg::EXT_PARTITIONS_ATTRIBUTE,
    reg::ENH_START_ADDR,
    reg::ENH_SIZE_MULT,
    reg::GP_SIZE_MULT_1,
    reg::GP_SIZE_MULT_2,
    reg::GP_SIZE_MULT_3,
    reg::GP_SIZE_MULT_4,
    reg::PARTITIONS_ATTRIBUTE,
    reg::WR_REL_SET,
];

/// Every byte of the settings: cleared by a power cycle until committed.
pub(crate) fn settings() -> impl Iterator<Item = u8> {
    (0..=u8::MAX).filter(|index| SETTINGS.iter().any(|field| field.bytes().contains(&u16::from(*index))))
}

/// Whether PARTITION_SETTING_COMPLETED is set.
pub(crate) fn is_committed(ext_csd: &[u8; EXT_CSD_BYTES]) -> bool {
    ext_csd[reg::PARTITION_SETTING_COMPLETED] & 1 == 1
}

/// The rules of one byte of a setting beyond its access class.
///
/// Errors: any rule broken.
pub(crate) fn check_setting(ext_csd: &[u8; EXT_CSD_BYTES], index: u8, value: u8) -> Result<(), Refused> {
    Refused::unless(!is_committed(ext_csd) && is_supported(ext_csd, index, value))
}

/// The rules of PARTITION_SETTING_COMPLETED beyond its access class.
///
/// Errors: any rule broken, by the settings together too.
pub(crate) fn check_completed(ext_csd: &[u8; EXT_CSD_BYTES], value: u8) -> Result<(), Refused> {
    let offered = ext_csd[reg::PARTITIONING_SUPPORT] & 1 == 1;
    Refused::unless(!is_committed(ext_csd) && offered && value <= 1)?;
    if value == 1 { check_commit(ext_csd) } else { Ok(()) }
}

/// The committed partitioning; the caller applies it at the next power cycle.
pub(crate) fn committed(ext_csd: &[u8; EXT_CSD_BYTES]) -> Option<Partitioning> {
    is_committed(ext_csd).then(|| partitioning(ext_csd))
}

/// The partitioning is in effect: sets the user area's new size.
pub(crate) fn set_user_sectors(ext_csd: &mut [u8; EXT_CSD_BYTES], user_sectors: u64) {
    let sectors = u32::try_from(user_sectors).unwrap_or(u32::MAX);
    ext_csd[reg::SEC_COUNT.range()].copy_from_slice(&sectors.to_le_bytes());
}

/// Whether the card supports the byte's feature, and every bit of the value.
fn is_supported(ext_csd: &[u8; EXT_CSD_BYTES], index: u8, value: u8) -> bool {
    let support = ext_csd[reg::PARTITIONING_SUPPORT];
    let (partitions, enhanced, extended) = (support & 1 == 1, support & 2 != 0, support & 4 != 0);
    let sizes_count = ext_csd[reg::ERASE_GROUP_DEF] & 1 == 1;
    let is_of = |fields: &[&Field]| fields.iter().any(|field| field.bytes().contains(&index.into()));
    if is_of(&[reg::EXT_PARTITIONS_ATTRIBUTE]) {
        let known = |code| code == 0 || (code <= 2 && ext_csd[reg::EXT_SUPPORT] >> (code - 1) & 1 == 1);
        extended && known(value & 0xf) && known(value >> 4)
    } else if is_of(&[reg::ENH_START_ADDR, reg::ENH_SIZE_MULT]) {
        partitions && enhanced && sizes_count
    } else if is_of(&[reg::PARTITIONS_ATTRIBUTE]) {
        enhanced && value & 0xe0 == 0
    } else if is_of(&[reg::WR_REL_SET]) {
        ext_csd[reg::WR_REL_PARAM] & 1 == 1 && value & 0xe0 == 0
    } else {
        partitions && sizes_count
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Sectors of a write protection group.
fn group_sectors(ext_csd: &[u8; EXT_CSD_BYTES]) -> u64 {
    u64::from(ext_csd[reg::HC_WP_GRP_SIZE]) * u64::from(ext_csd[reg::HC_ERASE_GRP_SIZE]) * 1024
}

/// ENH_START_ADDR is in bytes on parts of at most 2 GiB, else in sectors.
fn enhanced_start_sectors(ext_csd: &[u8; EXT_CSD_BYTES]) -> Option<u64> {
    let start = number(&ext_csd[reg::ENH_START_ADDR.range()]);
    let by_byte = number(&ext_csd[reg::SEC_COUNT.range()]) <= (2 << 30) / 512;
    if by_byte { (start % 512 == 0).then_some(start / 512) } else { Some(start) }
}

/// The partitioning described by the settings.
fn partitioning(ext_csd: &[u8; EXT_CSD_BYTES]) -> Partitioning {
    let attribute = ext_csd[reg::PARTITIONS_ATTRIBUTE];
    let is_enhanced = attribute & 1 == 1;
    let gp = |index: usize| number(&ext_csd[reg::GP_SIZE_MULT_1.index() + 3 * index..][..3]);
    let group = group_sectors(ext_csd).max(1);
    Partitioning {
        enhanced_start: if is_enhanced { enhanced_start_sectors(ext_csd).unwrap_or(0) / group } else { 0 },
        enhanced_groups: if is_enhanced { number(&ext_csd[reg::ENH_SIZE_MULT.range()]) } else { 0 },
        gp_groups: [gp(0), gp(1), gp(2), gp(3)],
        gp_enhanced: [1, 2, 3, 4].map(|bit| attribute >> bit & 1 == 1),
    }
}

/// The rules that concern several registers.
fn check_commit(ext_csd: &[u8; EXT_CSD_BYTES]) -> Result<(), Refused> {
    let wanted = partitioning(ext_csd);
    let group = group_sectors(ext_csd);
    let aligned = enhanced_start_sectors(ext_csd).is_some_and(|start| group > 0 && start % group == 0);
    let enhanced_gp = wanted.gp_groups.iter().zip(wanted.gp_enhanced).filter(|(_, enhanced)| *enhanced);
    let enhanced: u64 = wanted.enhanced_groups + enhanced_gp.map(|(groups, _)| groups).sum::<u64>();
    let total = wanted.enhanced_groups + wanted.gp_groups.iter().sum::<u64>();
    let fits = total.checked_mul(group).is_some_and(|sectors| sectors <= number(&ext_csd[reg::SEC_COUNT.range()]));
    let extended = number(&ext_csd[reg::EXT_PARTITIONS_ATTRIBUTE.range()]);
    // An extended attribute is for a partition that exists and is not enhanced.
    let attributes = (0..4).all(|gp| {
        let code = extended >> (4 * gp) & 0xf;
        code == 0 || (wanted.gp_groups[gp] > 0 && !wanted.gp_enhanced[gp])
    });
    let allowed = aligned && fits && attributes && enhanced <= number(&ext_csd[reg::MAX_ENH_SIZE_MULT.range()]);
    if allowed { Ok(()) } else { Err(Refused) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule of a byte, as the rows of SWITCH name it.
    fn check(ext_csd: &[u8; EXT_CSD_BYTES], index: u8, value: u8) -> Result<(), Refused> {
        match usize::from(index) == reg::PARTITION_SETTING_COMPLETED.index() {
            true => check_completed(ext_csd, value),
            false => check_setting(ext_csd, index, value),
        }
    }

    /// The board vendor's part: 1897 groups of 8 MiB, 939 of which can be enhanced.
    fn part() -> [u8; EXT_CSD_BYTES] {
        let mut ext_csd = [0; EXT_CSD_BYTES];
        ext_csd[reg::SEC_COUNT.range()].copy_from_slice(&31_080_448u32.to_le_bytes());
        ext_csd[reg::MAX_ENH_SIZE_MULT.range()].copy_from_slice(&[0xab, 3, 0]);
        (ext_csd[reg::PARTITIONING_SUPPORT], ext_csd[reg::WR_REL_PARAM], ext_csd[reg::EXT_SUPPORT]) = (7, 5, 3);
        (ext_csd[reg::HC_WP_GRP_SIZE], ext_csd[reg::HC_ERASE_GRP_SIZE]) = (16, 1);
        ext_csd
    }

    /// Performs the allowed writes, as the card would; returns whether each was allowed.
    fn write_all(ext_csd: &mut [u8; EXT_CSD_BYTES], writes: &[(u8, u8)]) -> Vec<bool> {
        let mut write = |&(index, value)| {
            let allowed = check(ext_csd, index, value).is_ok();
            if allowed {
                ext_csd[usize::from(index)] = value;
            }
            allowed
        };
        writes.iter().map(&mut write).collect()
    }

    #[test]
    fn the_vendors_example_is_committed_once_and_shrinks_the_user_area() {
        let mut ext_csd = part();
        assert_eq!(check(&ext_csd, 140, 0xab), Err(Refused), "without ERASE_GROUP_DEF");
        ext_csd[reg::ERASE_GROUP_DEF] = 1;
        assert_eq!(committed(&ext_csd), None);
        let accepted = write_all(&mut ext_csd, &[(140, 0xab), (141, 3), (156, 1), (167, 0x1f), (155, 1)]);
        assert_eq!(accepted, [true; 5]);
        let accepted = write_all(&mut ext_csd, &[(155, 1), (155, 0), (140, 0xab), (143, 1), (156, 3), (167, 0)]);
        assert_eq!(accepted, [false; 6], "after the commit");
        let wanted = committed(&ext_csd).unwrap();
        assert_eq!((wanted.enhanced_start, wanted.enhanced_groups), (0, 939));
        set_user_sectors(&mut ext_csd, 15_384_576);
        assert_eq!(number(&ext_csd[reg::SEC_COUNT.range()]), 15_384_576);
        assert_eq!(ext_csd[reg::ENH_SIZE_MULT], 0xab);
    }

    #[test]
    fn the_commit_is_checked_as_a_whole() {
        let start = |sectors: u32| sectors.to_le_bytes();
        let [low, high, ..] = start(16384 + 1024);
        for (why, writes) in [
            ("more than MAX_ENH_SIZE_MULT", &[(140, 0xac), (141, 3), (156, 1)][..]),
            ("start inside a group", &[(136, low), (137, high), (140, 1), (156, 1)]),
            ("together more", &[(140, 0xab), (141, 3), (143, 1), (156, 3)]),
            ("beyond the user area", &[(143, 0xff), (144, 0xff)]),
            ("extended and enhanced", &[(143, 1), (156, 2), (52, 1)]),
            ("attribute of nothing", &[(52, 0x20)]),
        ] {
            let mut ext_csd = part();
            ext_csd[reg::ERASE_GROUP_DEF] = 1;
            let accepted = write_all(&mut ext_csd, writes);
            assert!(accepted.iter().all(|accepted| *accepted), "{why}");
            assert_eq!(write_all(&mut ext_csd, &[(155, 1)]), [false], "{why}");
            assert_eq!(ext_csd[reg::PARTITION_SETTING_COMPLETED], 0, "{why}");
        }
        let mut ext_csd = part();
        ext_csd[reg::ERASE_GROUP_DEF] = 1;
        let accepted = write_all(&mut ext_csd, &[(143, 2), (146, 3), (156, 4), (52, 2), (155, 1)]);
        assert_eq!(accepted, [true; 5]);
        let wanted = partitioning(&ext_csd);
        assert_eq!((wanted.gp_groups, wanted.gp_enhanced), ([2, 3, 0, 0], [false, true, false, false]));
    }

    #[test]
    fn unsupported_features_are_refused() {
        for (byte, cleared, writes) in [
            (reg::PARTITIONING_SUPPORT.index(), 0, &[(140, 1), (143, 1), (155, 1), (156, 1), (52, 1)][..]),
            (reg::PARTITIONING_SUPPORT.index(), 1, &[(140, 1), (156, 1), (52, 1)]),
            (reg::WR_REL_PARAM.index(), 4, &[(167, 1)]),
            (reg::EXT_SUPPORT.index(), 1, &[(52, 2), (53, 0x20)]),
        ] {
            let mut ext_csd = part();
            (ext_csd[byte], ext_csd[reg::ERASE_GROUP_DEF]) = (cleared, 1);
            let accepted = write_all(&mut ext_csd, writes);
            assert!(!accepted.contains(&true), "{byte}: {accepted:?}");
        }
        let mut ext_csd = part();
        assert_eq!(write_all(&mut ext_csd, &[(156, 0x20), (52, 3), (155, 2)]), [false; 3]);
    }
}
