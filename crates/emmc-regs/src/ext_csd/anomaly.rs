//! Register values that the standard does not allow, or that contradict each other.

use std::fmt;

use serde::Serialize;

use super::device_info::DeviceInfo;
use super::{ExtCsd, contradiction, fields};

/// A register value that breaks the standard or contradicts another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Anomaly {
    /// The field's name.
    pub field: &'static str,
    /// First byte of the field.
    pub offset: u16,
    /// What it holds.
    pub found: String,
    /// The value expected from the standard or another register.
    pub expected: String,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}] is {}, expected {}", self.field, self.offset, self.found, self.expected)
    }
}

pub(super) fn find(csd: &ExtCsd, info: &DeviceInfo) -> Vec<Anomaly> {
    let mut list = List(Vec::new());
    codes(csd, &mut list);
    geometry(csd, info, &mut list);
    partitioning(csd, info, &mut list);
    modes(csd, info, &mut list);
    list.0.extend(contradiction::find(csd, info));
    reserved(csd, &mut list);
    list.0
}

struct List(Vec<Anomaly>);

impl List {
    fn add(&mut self, field: &'static str, offset: u16, found: impl fmt::Display, expected: impl fmt::Display) {
        self.0.push(Anomaly { field, offset, found: found.to_string(), expected: expected.to_string() });
    }
}

fn codes(csd: &ExtCsd, list: &mut List) {
    const LIMITS: [(&str, u16, u8); 11] = [
        ("PRODUCTION_STATE_AWARENESS", 133, 3),
        ("ERASED_MEM_CONT", 181, 1),
        ("EXT_CSD_REV", 192, 9),
        ("CSD_STRUCTURE", 194, 3),
        ("S_A_TIMEOUT", 217, 0x17),
        ("S_C_VCCQ", 219, 0x0d),
        ("S_C_VCC", 220, 0x0d),
        ("OPTIMAL_TRIM_UNIT_SIZE", 264, 0x15),
        ("PRE_EOL_INFO", 267, 3),
        ("DEVICE_LIFE_TIME_EST_TYP_A", 268, 0x0b),
        ("DEVICE_LIFE_TIME_EST_TYP_B", 269, 0x0b),
    ];
    for (name, offset, max) in LIMITS {
        if let Some(value) = csd.byte(offset).filter(|value| *value > max) {
            list.add(name, offset, format_args!("{value:#04x}"), format_args!("at most {max:#04x}"));
        }
    }
    if csd.byte(192) == Some(4) {
        list.add("EXT_CSD_REV", 192, "4", "3 or 5: revision 1.4 is obsolete");
    }
}

fn geometry(csd: &ExtCsd, info: &DeviceInfo, list: &mut List) {
    if info.user_sectors.is_some_and(|sectors| sectors.0 == 0) && info.rev.is_some_and(|rev| rev >= 2) {
        list.add("SEC_COUNT", 212, "0", "the size of the user area; a part of at most 2 GiB gives it in CSD.C_SIZE");
    }
    for (name, offset) in [("HC_WP_GRP_SIZE", 221), ("HC_ERASE_GRP_SIZE", 224)] {
        if csd.byte(offset) == Some(0) && info.rev.is_some_and(|rev| rev >= 3) {
            list.add(name, offset, "0", "at least 1: no size in hardware partitioning can be computed");
        }
    }
    if csd.bit(61, 0) == Some(true) && csd.bit(63, 0) == Some(false) {
        list.add("DATA_SECTOR_SIZE", 61, "4 KiB", "512 B, as NATIVE_SECTOR_SIZE is 512 B");
    }
}

fn partitioning(csd: &ExtCsd, info: &DeviceInfo, list: &mut List) {
    let hw = &info.hw_partition;
    let groups = match (info.user_sectors.and_then(|sectors| sectors.bytes()), info.hc_wp_group) {
        (Some(user), Some(group)) if group.0 > 0 => Some((user.0 / group.0, group.0)),
        _ => None,
    };
    if let (Some((user, group)), Some(start), Some(size)) = (groups, hw.enh_start, hw.enh_user_groups) {
        if start.0 % group != 0 {
            list.add("ENH_START_ADDR", 136, format_args!("{} bytes", start.0), format_args!("a multiple of {group}"));
        }
        if hw.completed == Some(true) && start.0 / group + size > user {
            list.add(
                "ENH_SIZE_MULT",
                140,
                format_args!("{size} groups"),
                format_args!("an end inside the {user} of SEC_COUNT"),
            );
        }
    }
    if hw.completed == Some(true) && csd.bit(175, 0) == Some(false) && hw.enh_user_groups.is_some_and(|size| size > 0) {
        list.add("ERASE_GROUP_DEF", 175, "0", "1 on a partitioned part: its sizes count high-capacity groups");
    }
    if hw.completed == Some(false) && hw.attributes.is_some_and(|attributes| attributes != 0) {
        list.add("PARTITIONS_ATTRIBUTE", 156, "set", "0 until PARTITION_SETTING_COMPLETED: an unfinished partitioning");
    }
}

fn modes(csd: &ExtCsd, info: &DeviceInfo, list: &mut List) {
    if let Some(timing) = info.hs_timing.filter(|timing| *timing > 3) {
        list.add("HS_TIMING", 185, timing, "at most 3");
    }
    if csd.bits(162, 3) == Some(3) {
        list.add("RST_n_FUNCTION", 162, "3", "0, 1 or 2");
    }
}

fn reserved(csd: &ExtCsd, list: &mut List) {
    for field in fields().filter(|field| field.is_reserved()) {
        let mut set = (field.offset..field.offset + field.width)
            .filter_map(|at| csd.byte(at).filter(|b| *b != 0).map(|b| (at, b)));
        if let Some((first, value)) = set.next() {
            let found = match set.fold((0, first), |(count, _), (at, _)| (count + 1, at)) {
                (0, _) => format!("{value:#04x}"),
                (count, last) => format!("{value:#04x}, with {count} more set up to byte {last}"),
            };
            list.add("RESERVED", first, found, "0");
        }
    }
}
