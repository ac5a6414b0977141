//! Sectors, groups, optimal sizes, timeouts, and the state of hardware partitioning.

use emmc_port::CardData;
use emmc_regs::ext_csd::{DeviceInfo, ExtCsd, reg};
use emmc_units::Bytes;

use super::{Rows, Topic, at_least, plain, with};

pub(super) fn rows(card: &CardData, csd: &ExtCsd, info: &DeviceInfo, rows: &mut Rows) {
    rows.topic = Topic::Media;
    sectors(csd, info, rows);
    groups(card, csd, info, rows);
    best_sizes(info, rows);
    partitioning(card, info, rows);
    waiting(csd, info, rows);
}

fn sectors(csd: &ExtCsd, info: &DeviceInfo, rows: &mut Rows) {
    if !at_least(info, 6) {
        return;
    }
    let native = csd.bit(reg::NATIVE_SECTOR_SIZE, 0);
    let sector = info.data_sector_4k.map(|large| match (large, native) {
        (true, _) => plain("4 KiB"),
        (false, Some(true)) => with("512 B", "emulated: the native size is 4 KiB"),
        (false, _) => plain("512 B"),
    });
    rows.add("sector size", [reg::DATA_SECTOR_SIZE, reg::NATIVE_SECTOR_SIZE], sector);
}

fn groups(card: &CardData, csd: &ExtCsd, info: &DeviceInfo, rows: &mut Rows) {
    let size = |bytes: Option<Bytes>| {
        bytes.map(|bytes| plain(if bytes.0 == 0 { "not told".into() } else { bytes.to_string() }))
    };
    rows.add("high-capacity erase group", reg::HC_ERASE_GRP_SIZE, size(info.hc_erase_group));
    match (info.hc_wp_group, card.stated.hc_wp_group) {
        (None, Some(printed)) => {
            rows.add("high-capacity write-protect group", "printed text", Some(plain(printed.to_string())));
        }
        (group, _) => rows.add("high-capacity write-protect group", reg::HC_WP_GRP_SIZE, size(group)),
    }
    // U-Boot prints the group in use, which may be the CSD's.
    if let (None, Some(printed)) = (info.hc_erase_group, card.stated.erase_group) {
        rows.add_if_told("erase group in force", "printed text", Some(plain(printed.to_string())));
    }
    let in_force = info.erase_group_def.map(|high| match high {
        true => plain("high-capacity groups"),
        false => with("groups of the CSD", "until the host enables high-capacity groups, after each power-up"),
    });
    rows.add("groups in force", reg::ERASE_GROUP_DEF, in_force);
    let erased = csd.byte(reg::ERASED_MEM_CONT).map(|raw| plain(if raw == 0 { "zeros" } else { "ones" }));
    rows.add_if_told("erased memory reads as", reg::ERASED_MEM_CONT, erased);
}

fn best_sizes(info: &DeviceInfo, rows: &mut Rows) {
    let [read, write, trim] = info.optimal_read_write_trim;
    for (name, source, bytes) in [
        ("best read size", reg::OPTIMAL_READ_SIZE, read),
        ("best write size", reg::OPTIMAL_WRITE_SIZE, write),
        ("best trim size", reg::OPTIMAL_TRIM_UNIT_SIZE, trim),
    ] {
        rows.add_if_told(name, source, bytes.filter(|_| at_least(info, 7)).map(|bytes| plain(bytes.to_string())));
    }
}

fn partitioning(card: &CardData, info: &DeviceInfo, rows: &mut Rows) {
    let hw = &info.hw_partition;
    let supported = hw.partitioning_supported.filter(|_| at_least(info, 5));
    let supported = supported.map(|supported| match (supported, hw.enh_supported, hw.completed) {
        (false, _, _) => plain("not supported"),
        (true, _, Some(true)) => with("completed", "it can never be changed again"),
        (true, Some(true), Some(false)) => with("open", "can be done once, with enhanced areas"),
        (true, _, Some(false)) => with("open", "can be done once, without enhanced areas"),
        (true, _, None) => with("supported", "whether it is completed is unknown"),
    });
    let source = [reg::PARTITIONING_SUPPORT, reg::PARTITION_SETTING_COMPLETED];
    rows.add("hardware partitioning", source, supported);
    let max = hw.max_enh_groups.zip(info.hc_wp_group).and_then(|(groups, group)| group.checked_mul(groups));
    let max = max.filter(|max| max.0 > 0 && hw.enh_supported == Some(true));
    rows.add_if_told("largest enhanced area", reg::MAX_ENH_SIZE_MULT, max.map(|max| plain(max.to_string())));
    if let (None, Some(printed)) = (max, card.stated.max_enh_size) {
        rows.add_if_told("largest enhanced area", "printed text", Some(plain(printed.to_string())));
    }
}

fn waiting(csd: &ExtCsd, info: &DeviceInfo, rows: &mut Rows) {
    let after = info.init_timeout_ap_ms.filter(|ms| *ms > 0 && at_least(info, 5));
    let after = after.map(|ms| with(format!("{ms} ms"), "timeout of the first power-up after partitioning"));
    rows.add_if_told("first start after partitioning", reg::INI_TIMEOUT_AP, after);
    for (name, field, since) in [
        ("switch time", reg::GENERIC_CMD6_TIME, 6),
        ("partition switch time", reg::PARTITION_SWITCH_TIME, 5),
        ("long power-off time", reg::POWER_OFF_LONG_TIME, 6),
        ("out-of-interrupt time", reg::OUT_OF_INTERRUPT_TIME, 5),
    ] {
        let raw = csd.byte(field).filter(|raw| *raw > 0 && at_least(info, since));
        rows.add_if_told(name, field, raw.map(|raw| with(format!("{} ms", u32::from(raw) * 10), "at most")));
    }
}
