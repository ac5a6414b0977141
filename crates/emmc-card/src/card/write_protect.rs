//! Write protection: groups of the user area, boot areas, the whole card.
//!
//! A group is protected permanently, until power or reset, or temporarily (until CMD29); the stronger one applies, and
//! only the temporary one can be cleared. Boot areas have BOOT_WP, the whole card two bits of the CSD. Absent on
//! purpose: secure write protection by RPMB, which the profiles do not announce.
//!
//! Source: JESD84-B51 clauses 6.6.17 and 7.4 (USER_WP, BOOT_WP, BOOT_WP_STATUS).
//! Assumed: that CMD28 leaves a stronger protection unchanged, and that CMD29 against one returns WP_VIOLATION.

use std::collections::BTreeMap;

use emmc_regs::csd::mmc;
use emmc_regs::ext_csd::{EXT_CSD_BYTES, reg};

use super::partition::Refused;
use crate::device::Area;

const US_PWR_EN: u8 = 1;
const US_PERM_EN: u8 = 1 << 2;
const US_PWR_DIS: u8 = 1 << 3;
const US_PERM_DIS: u8 = 1 << 4;
const B_PWR_EN: u8 = 1;
const B_PWR_SEL: u8 = 1 << 1;
const B_PERM_EN: u8 = 1 << 2;
const B_PERM_SEL: u8 = 1 << 3;
const B_PERM_DIS: u8 = 1 << 4;
const B_PWR_DIS: u8 = 1 << 6;
const B_SEC_SEL: u8 = 1 << 7;

/// The kind of protection of a group, with the codes of CMD31.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protection {
    /// Until CMD29.
    Temporary = 1,
    /// Until a power cycle or a reset.
    PowerOn = 2,
    /// Permanent.
    Permanent = 3,
}

/// The protected ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteProtect {
    /// By area and first sector: number of sectors, and kind. Ranges may overlap: ERASE_GROUP_DEF changes their size.
    groups: BTreeMap<(Area, u64, u64), Protection>,
}

impl WriteProtect {
    /// The protection of a range of sectors: the strongest of any sector in it.
    pub(crate) fn of(&self, area: Area, first: u64, sectors: u64) -> Option<Protection> {
        let end = first.saturating_add(sectors);
        let below = self.groups.range((area, 0, 0)..(area, end, 0));
        below.filter(|((_, start, length), _)| start + length > first).map(|(_, protection)| *protection).max()
    }

    /// CMD28: protects the group with the kind in USER_WP.
    pub(crate) fn set(&mut self, ext_csd: &[u8; EXT_CSD_BYTES], area: Area, first: u64, sectors: u64) {
        let user_wp = ext_csd[reg::USER_WP];
        let wanted = match (user_wp & US_PERM_EN != 0, user_wp & US_PWR_EN != 0) {
            (true, _) => Protection::Permanent,
            (false, true) => Protection::PowerOn,
            (false, false) => Protection::Temporary,
        };
        let known = self.groups.entry((area, first, sectors)).or_insert(wanted);
        *known = wanted.max(*known);
    }

    /// CMD29: clears the group's protection.
    ///
    /// Errors: `false`, if only a power cycle clears it, or it is permanent.
    pub(crate) fn clear(&mut self, area: Area, first: u64, sectors: u64) -> bool {
        if self.of(area, first, sectors) > Some(Protection::Temporary) {
            return false;
        }
        let end = first + sectors;
        self.groups.retain(|&(of, start, length), _| of != area || start >= end || start + length <= first);
        true
    }

    /// The unprotected parts of `first..end`: first sector and length, in order.
    pub(crate) fn gaps(&self, area: Area, first: u64, end: u64) -> Vec<(u64, u64)> {
        let mut gaps = Vec::new();
        let mut at = first;
        for &(_, start, length) in self.groups.range((area, 0, 0)..(area, end, 0)).map(|(run, _)| run) {
            if start > at {
                gaps.push((at, start - at));
            }
            at = at.max(start + length);
        }
        if at < end {
            gaps.push((at, end - at));
        }
        gaps
    }

    /// CMD30: one bit a group, the first in the lowest; CMD31 with `types`: two bits a group.
    ///
    /// Shape: as the card sends it, the highest byte first. Groups past the area's end are 0.
    pub(crate) fn report(&self, area: Area, first: u64, group: u64, area_sectors: u64, types: bool) -> Vec<u8> {
        let mut word = 0u64;
        for index in 0..32 {
            let start = first + index * group;
            if start >= area_sectors {
                break;
            }
            let Some(protection) = self.of(area, start, group) else { continue };
            word |= if types { (protection as u64) << (2 * index) } else { 1 << index };
        }
        let bytes = word.to_be_bytes();
        if types { bytes.to_vec() } else { bytes[4..].to_vec() }
    }

    /// The persistent protections: area, first sector, sectors, and the code of CMD31.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (Area, u64, u64, u8)> + '_ {
        let kept = self.groups.iter().filter(|(_, protection)| **protection != Protection::PowerOn);
        kept.map(|(&(area, first, sectors), protection)| (area, first, sectors, *protection as u8))
    }

    /// Restores a persistent protection.
    pub(crate) fn keep(&mut self, area: Area, first: u64, sectors: u64, code: u8) {
        let protection = if code == 1 { Protection::Temporary } else { Protection::Permanent };
        self.groups.insert((area, first, sectors), protection);
    }

    /// A power cycle, or a reset by the pin.
    pub(crate) fn power_cycle(&mut self) {
        self.groups.retain(|_, protection| *protection != Protection::PowerOn);
    }

    /// All data is erased, and the protection with it.
    pub(crate) fn forget(&mut self) {
        self.groups.clear();
    }

    /// Whether a group has a protection that CMD29 cannot clear.
    pub(crate) fn lasts(&self) -> bool {
        self.groups.values().any(|protection| *protection > Protection::Temporary)
    }
}

/// Whether the CSD protects the whole card: PERM_WRITE_PROTECT or TMP_WRITE_PROTECT.
pub(crate) fn is_card_protected(csd: &[u8; 16]) -> bool {
    mmc::PERM_WRITE_PROTECT.is_set(csd) || mmc::TMP_WRITE_PROTECT.is_set(csd)
}

/// Whether a boot area is protected.
pub(crate) fn is_boot_protected(ext_csd: &[u8; EXT_CSD_BYTES], boot: u8) -> bool {
    ext_csd[reg::BOOT_WP_STATUS] >> (2 * boot) & 3 != 0
}

/// The rules of USER_WP beyond its access types: disabled protection cannot be enabled, enabled protection cannot be
/// disabled.
///
/// Errors: a violated rule.
pub(crate) fn check_user_wp(old: u8, new: u8) -> Result<(), Refused> {
    let both = |enable, disable| new & enable != 0 && new & disable != 0;
    let reserved = (old ^ new) & 0x22 != 0;
    if both(US_PWR_EN, US_PWR_DIS) || both(US_PERM_EN, US_PERM_DIS) || reserved { Err(Refused) } else { Ok(()) }
}

/// CMD6 to BOOT_WP, whose one-time and once-per-power-cycle bits the caller has checked: its effect on BOOT_WP_STATUS.
///
/// Errors: enabling a disabled protection, or the reverse.
pub(crate) fn write_boot_wp(ext_csd: &mut [u8; EXT_CSD_BYTES], new: u8) -> Result<(), Refused> {
    let old = ext_csd[reg::BOOT_WP];
    let both = |enable, disable| new & enable != 0 && new & disable != 0;
    if both(B_PWR_EN, B_PWR_DIS) || both(B_PERM_EN, B_PERM_DIS) || (old ^ new) & 0x20 != 0 {
        return Err(Refused);
    }
    let areas = |select: u8| match (new & B_SEC_SEL != 0, new & select != 0) {
        (false, _) => [true, true],
        (true, second) => [!second, second],
    };
    let mut status = ext_csd[reg::BOOT_WP_STATUS];
    for (enable, select, code) in [(B_PWR_EN, B_PWR_SEL, 1), (B_PERM_EN, B_PERM_SEL, 2)] {
        if new & enable == 0 {
            continue;
        }
        for (boot, chosen) in (0..).zip(areas(select)) {
            let known = status >> (2 * boot) & 3;
            if chosen && code > known {
                status = status & !(3 << (2 * boot)) | code << (2 * boot);
            }
        }
    }
    (ext_csd[reg::BOOT_WP], ext_csd[reg::BOOT_WP_STATUS]) = (new, status);
    Ok(())
}

/// A power cycle or a reset by the pin: the power-on protection of boot areas ends, unless secure write protection
/// `holds` it.
pub(crate) fn power_cycle_boot_wp(ext_csd: &mut [u8; EXT_CSD_BYTES], holds: bool) {
    ext_csd[reg::BOOT_WP] &= B_PERM_EN | B_PERM_DIS;
    if holds {
        return;
    }
    for boot in 0..2 {
        if ext_csd[reg::BOOT_WP_STATUS] >> (2 * boot) & 3 == 1 {
            ext_csd[reg::BOOT_WP_STATUS] &= !(3 << (2 * boot));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: u64 = 16384;

    fn register(user_wp: u8) -> [u8; EXT_CSD_BYTES] {
        let mut ext_csd = [0; EXT_CSD_BYTES];
        ext_csd[reg::USER_WP] = user_wp;
        ext_csd
    }

    #[test]
    fn each_kind_of_protection_ends_as_specified() {
        let mut protect = WriteProtect::default();
        for (group, user_wp) in [(0, 0), (1, US_PWR_EN), (2, US_PERM_EN), (3, US_PERM_EN | US_PWR_EN)] {
            protect.set(&register(user_wp), Area::User, group * GROUP, GROUP);
        }
        assert_eq!(protect.of(Area::User, 0, 1), Some(Protection::Temporary));
        assert_eq!(protect.of(Area::User, GROUP - 1, 2), Some(Protection::PowerOn));
        assert_eq!(protect.of(Area::User, 0, 3 * GROUP), Some(Protection::Permanent));
        assert_eq!(protect.of(Area::User, 4 * GROUP, GROUP), None);
        assert!(protect.lasts());
        assert_eq!(protect.of(Area::Gp(0), 0, GROUP), None);
        assert!(!protect.clear(Area::User, GROUP, GROUP));
        assert!(!protect.clear(Area::User, 2 * GROUP, GROUP));
        protect.power_cycle();
        assert_eq!(protect.of(Area::User, GROUP, GROUP), None);
        assert_eq!(protect.of(Area::User, 0, 1), Some(Protection::Temporary));
        assert!(protect.clear(Area::User, 0, GROUP));
        assert_eq!(protect.of(Area::User, 0, GROUP), None);
        // A weaker wish does not weaken.
        protect.set(&register(0), Area::User, 3 * GROUP, GROUP);
        assert_eq!(protect.of(Area::User, 3 * GROUP, 1), Some(Protection::Permanent));
    }

    #[test]
    fn reports_count_groups_from_the_lowest_bit() {
        let mut protect = WriteProtect::default();
        protect.set(&register(0), Area::User, GROUP, GROUP);
        protect.set(&register(US_PWR_EN), Area::User, 2 * GROUP, GROUP);
        protect.set(&register(US_PERM_EN), Area::User, 32 * GROUP, GROUP);
        let report = |first, types| protect.report(Area::User, first * GROUP, GROUP, 33 * GROUP, types);
        assert_eq!(report(0, false), [0, 0, 0, 6]);
        assert_eq!(report(0, true), [0, 0, 0, 0, 0, 0, 0, 0b10_01_00]);
        assert_eq!(report(1, false), [0x80, 0, 0, 3]);
        assert_eq!(report(1, true), [0xc0, 0, 0, 0, 0, 0, 0, 0b1001]);
        assert_eq!(report(32, true)[7], 3, "and nothing past the end");
    }

    #[test]
    fn smaller_groups_inside_larger_ones_are_found() {
        let mut protect = WriteProtect::default();
        protect.set(&register(0), Area::User, 0, GROUP);
        assert_eq!(protect.of(Area::User, GROUP / 2, 1), Some(Protection::Temporary));
        assert_eq!(protect.gaps(Area::User, 5, 2 * GROUP), [(GROUP, GROUP)]);
        assert!(protect.clear(Area::User, GROUP / 2, GROUP / 4));
        assert_eq!(protect.gaps(Area::User, 5, 2 * GROUP), [(5, 2 * GROUP - 5)]);
        assert_eq!(protect.of(Area::User, 0, GROUP), None, "the whole of it is free");
    }

    #[test]
    fn enabling_and_disabling_protection_are_exclusive() {
        for (old, new, allowed) in [
            (0, US_PWR_EN, true),
            (US_PWR_DIS, US_PWR_DIS | US_PWR_EN, false),
            (US_PERM_DIS, US_PERM_DIS | US_PERM_EN, false),
            (US_PERM_DIS, US_PERM_DIS | US_PWR_EN, true),
            (0, 0x20, false),
            (0, 0x02, false),
            (0, 0x80, true),
        ] {
            assert_eq!(check_user_wp(old, new).is_ok(), allowed, "{old:#x} -> {new:#x}");
        }
    }

    #[test]
    fn boot_areas_are_protected_together_or_separately() {
        let mut ext_csd = register(0);
        assert_eq!(write_boot_wp(&mut ext_csd, B_PWR_EN), Ok(()));
        assert_eq!(ext_csd[reg::BOOT_WP_STATUS], 0b0101);
        power_cycle_boot_wp(&mut ext_csd, false);
        assert_eq!((ext_csd[reg::BOOT_WP], ext_csd[reg::BOOT_WP_STATUS]), (0, 0));
        assert_eq!(write_boot_wp(&mut ext_csd, B_SEC_SEL | B_PWR_EN | B_PWR_SEL), Ok(()));
        assert_eq!(ext_csd[reg::BOOT_WP_STATUS], 0b0100);
        assert!(is_boot_protected(&ext_csd, 1) && !is_boot_protected(&ext_csd, 0));
        assert_eq!(write_boot_wp(&mut ext_csd, B_SEC_SEL | B_PERM_EN), Ok(()));
        assert_eq!(ext_csd[reg::BOOT_WP_STATUS], 0b0110);
        power_cycle_boot_wp(&mut ext_csd, false);
        assert_eq!((ext_csd[reg::BOOT_WP], ext_csd[reg::BOOT_WP_STATUS]), (B_PERM_EN, 0b0010));
        for disabled in [B_PWR_DIS | B_PWR_EN, B_PERM_DIS | B_PERM_EN, 0x20] {
            assert_eq!(write_boot_wp(&mut ext_csd, disabled), Err(Refused));
        }
    }

    #[test]
    fn two_bits_of_the_csd_protect_the_whole_card() {
        for (last_but_one, is_protected) in [(0x00, false), (0x10, true), (0x20, true), (0x4f, false)] {
            let mut csd = [0; 16];
            csd[14] = last_but_one;
            assert_eq!(is_card_protected(&csd), is_protected, "{last_but_one:#04x}");
        }
    }
}
