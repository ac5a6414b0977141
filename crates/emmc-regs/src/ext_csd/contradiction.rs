//! Fields at odds with each other: a register that was put together from two parts, or damaged, shows them.
//!
//! Each row is a state that a part refuses to enter (SWITCH_ERROR) or that its maker cannot give it, so that a faithful
//! copy has none. Source: JESD84-B51, the clauses of the named registers. Absent on purpose: relations that only most
//! parts keep, such as an enhanced area of half the capacity.

use std::fmt::Display;

use super::anomaly::Anomaly;
use super::device_info::{DeviceInfo, is_sector_addressed};
use super::{ExtCsd, Field, reg};

/// The contradictions among the known fields, each named by the field that cannot hold its value.
pub(super) fn find(csd: &ExtCsd, info: &DeviceInfo) -> Vec<Anomaly> {
    let mut list = Vec::new();
    modes(csd, &mut list);
    sizes(csd, info, &mut list);
    list
}

fn add(list: &mut Vec<Anomaly>, field: &'static Field, found: impl Display, expected: impl Display) {
    let (found, expected) = (found.to_string(), expected.to_string());
    list.push(Anomaly { field: field.name, offset: field.offset, found, expected });
}

/// What is switched on, or promised, without the ability.
fn modes(csd: &ExtCsd, list: &mut Vec<Anomaly>) {
    let some = |field: &Field, mask: u8| csd.byte(field).is_some_and(|byte| byte & mask != 0);
    let none = |field: &Field, mask: u8| csd.byte(field).is_some_and(|byte| byte & mask == 0);
    for (on, mask, ability, needed) in [
        (reg::CMDQ_MODE_EN, 0x01, reg::CMDQ_SUPPORT, 0x01),
        (reg::BARRIER_CTRL, 0x01, reg::BARRIER_SUPPORT, 0x01),
        (reg::HPI_MGMT, 0x01, reg::HPI_FEATURES, 0x01),
        (reg::BKOPS_EN, 0x03, reg::BKOPS_SUPPORT, 0x01),
        (reg::STROBE_SUPPORT, 0x01, reg::DEVICE_TYPE, 0xc0),
    ] {
        if some(on, mask) && none(ability, needed) {
            let value = csd.byte(on).unwrap_or_default();
            add(list, on, format_args!("{value:#04x}"), format_args!("0, as {} does not offer it", ability.name));
        }
    }
    if some(reg::CACHE_CTRL, 0x01) && csd.raw(reg::CACHE_SIZE) == Some(0) {
        add(list, reg::CACHE_CTRL, "0x01", "0, as CACHE_SIZE is 0");
    }
    let boots = csd.byte(reg::PARTITION_CONFIG).is_some_and(|config| matches!(config >> 3 & 7, 1 | 2));
    if boots && csd.byte(reg::BOOT_SIZE_MULT) == Some(0) {
        add(list, reg::PARTITION_CONFIG, "boot from a boot area", "none, as BOOT_SIZE_MULT is 0");
    }
    let Some(timing) = csd.byte(reg::HS_TIMING) else { return };
    for (code, name, needed) in [(2, "HS200", 0x30), (3, "HS400", 0xc0)] {
        if timing & 0x0f == code && none(reg::DEVICE_TYPE, needed) {
            add(list, reg::HS_TIMING, name, "a mode that DEVICE_TYPE offers");
        }
    }
    let strength = timing >> 4;
    if (1..8).contains(&strength) && none(reg::DRIVER_STRENGTH, 1 << strength) {
        add(list, reg::HS_TIMING, format_args!("driver type {strength}"), "one that DRIVER_STRENGTH offers");
    }
}

/// Areas larger than what they are cut from.
fn sizes(csd: &ExtCsd, info: &DeviceInfo, list: &mut Vec<Anomaly>) {
    let hw = &info.hw_partition;
    let user = info.user_sectors.and_then(|sectors| sectors.bytes()).filter(|_| is_sector_addressed(csd) == Some(true));
    let group = info.hc_wp_group.filter(|group| group.0 > 0);
    if let (Some(user), Some(group), Some(max), Some(false)) = (user, group, hw.max_enh_groups, hw.completed) {
        // Enhanced space costs capacity, so it can only equal the user area where all of it is enhanced already.
        let groups = user.0 / group.0;
        if max > groups {
            let expected = format!("at most the {groups} of SEC_COUNT");
            add(list, reg::MAX_ENH_SIZE_MULT, format_args!("{max} groups"), expected);
        }
    }
    let small_sectors = csd.bit(reg::DATA_SECTOR_SIZE, 0) == Some(false);
    if let (Some(count), Some(preload)) = (csd.raw(reg::SEC_COUNT), csd.raw(reg::MAX_PRE_LOADING_DATA_SIZE)) {
        if small_sectors && count > 0 && preload > count {
            let expected = format!("at most the {count} of SEC_COUNT");
            add(list, reg::MAX_PRE_LOADING_DATA_SIZE, format_args!("{preload} sectors"), expected);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part that offers everything and uses nothing.
    fn part() -> ExtCsd {
        let mut bytes = [0; 512];
        let abilities = [(308, 1), (486, 1), (503, 1), (502, 1), (196, 0x57), (197, 0x1f), (226, 0x20), (250, 2)];
        let sizes = [(215, 1), (221, 16), (224, 1), (192, 8), (194, 2), (504, 1), (158, 1)];
        abilities.into_iter().chain(sizes).for_each(|(offset, value)| bytes[offset] = value);
        ExtCsd::from_bytes(bytes)
    }

    #[test]
    fn each_row_needs_both_of_its_fields() {
        assert_eq!(part().contradictions(), []);
        for (on, value, ability, lost, name) in [
            (15, 1, 308, 0, "CMDQ_MODE_EN"),
            (31, 1, 486, 0, "BARRIER_CTRL"),
            (161, 1, 503, 0, "HPI_MGMT"),
            (163, 2, 502, 0, "BKOPS_EN"),
            (184, 1, 196, 0x17, "STROBE_SUPPORT"),
            (33, 1, 250, 0, "CACHE_CTRL"),
            (179, 8, 226, 0, "PARTITION_CONFIG"),
            (185, 2, 196, 0x07, "HS_TIMING"),
            (185, 3, 196, 0x17, "HS_TIMING"),
            (185, 0x41, 197, 0x0f, "HS_TIMING"),
            (159, 1, 215, 1, "MAX_ENH_SIZE_MULT"),
            (20, 0x10, 215, 0, "MAX_PRE_LOADING_DATA_SIZE"),
        ] {
            let mut csd = part();
            if name == "MAX_PRE_LOADING_DATA_SIZE" {
                csd.set_uint(213, 1, 0x40);
                csd.set_uint(158, 1, 0);
            }
            csd.set_uint(on, 1, value);
            csd.set_uint(ability, 1, lost);
            let names: Vec<&str> = csd.contradictions().iter().map(|found| found.field).collect();
            assert_eq!(names, [name]);
            let mut mask = [0xff; 512];
            mask[usize::from(ability)] = 0;
            let unknown = ExtCsd::with_mask(*csd.bytes(), mask);
            assert_eq!(unknown.contradictions(), [], "{name}: byte {ability} is not known");
        }
    }
}
