//! What a clone cannot carry to another card, and the commands that plan it there.

use emmc_port::CardData;
use emmc_regs::ext_csd::{DeviceInfo, reg};
use emmc_units::Bytes;

/// What the file of a clone does not hold, and the commands that would set the same on another card.
pub(super) fn not_carried(card: Option<&CardData>) -> (Vec<String>, Vec<String>) {
    let Some(card) = card else { return (Vec::new(), Vec::new()) };
    let mut lost = Vec::new();
    let mut plans = Vec::new();
    let Some(ext_csd) = &card.ext_csd else {
        if card.cid.is_some() {
            lost.push("identity, lock and password of the card: they belong to it".into());
        }
        return (lost, plans);
    };
    let (info, _) = ext_csd.decode();
    let set = |field| ext_csd.raw(field).filter(|value| *value != 0);
    if let Some(bytes) = info.rpmb.filter(|bytes| bytes.0 > 0) {
        lost.push(format!("RPMB ({}): no command reads it with its key and counter", bytes.rounded()));
    }
    if let Some(plan) = layout(&info) {
        lost.push("hardware partitions and write reliability, which are set once".into());
        plans.push(plan);
    }
    if let Some(pin) = set(reg::RST_n_FUNCTION) {
        lost.push("the function of the reset pin, which is set once".into());
        let word = if pin & 3 == 1 { "enable" } else { "disable" };
        plans.push(format!("emmclab plan hwreset TARGET {word}"));
    }
    if info.bkops_manual == Some(true) {
        lost.push("manual background operations, which are set once".into());
        plans.push("emmclab plan bkops TARGET --manual".into());
    }
    if info.bkops_auto == Some(true) {
        plans.push("emmclab plan bkops TARGET --auto on".into());
    }
    if set(reg::USE_NATIVE_SECTOR).is_some() {
        lost.push("native sectors of 4 KiB, which are set once".into());
        plans.push("emmclab plan native-sectors TARGET".into());
    }
    if set(reg::FW_CONFIG).is_some() {
        lost.push("the end of firmware updates, which is set once".into());
        plans.push("emmclab plan set TARGET FW_CONFIG=1".into());
    }
    let protected = [reg::BOOT_WP, reg::USER_WP].into_iter().filter(|field| set(*field).is_some()).count();
    if protected > 0 {
        lost.push("write protection; `emmclab plan wp` plans it".into());
    }
    plans.extend(boot(&info));
    (lost, plans)
}

/// Hardware partitions and write reliability.
fn layout(info: &DeviceInfo) -> Option<String> {
    let partition = &info.hw_partition;
    if partition.completed != Some(true) {
        return None;
    }
    let group = info.hc_wp_group?.0;
    let size = |groups: u64| Bytes(groups * group);
    let attributes = partition.attributes.unwrap_or(0);
    let mut words = vec!["emmclab plan hwpart TARGET".to_owned()];
    if let Some(groups) = partition.enh_user_groups.filter(|groups| *groups > 0 && attributes & 1 == 1) {
        let start = partition.enh_start.map_or(0, |start| start.0);
        let start = if start == 0 { String::new() } else { format!("{}KiB:", start >> 10) };
        words.push(format!("--enh-user {start}{}KiB", size(groups).0 >> 10));
    }
    for (index, groups) in partition.gp_groups.iter().enumerate() {
        let Some(groups) = groups.filter(|groups| *groups > 0) else { continue };
        let enhanced = if attributes >> (index + 1) & 1 == 1 { ":enh" } else { "" };
        words.push(format!("--gp {}:{}KiB{enhanced}", index + 1, size(groups).0 >> 10));
    }
    if partition.wr_rel_writable == Some(true) {
        let user = partition.wr_rel_set.unwrap_or(0) & 1 == 1;
        words.push(format!("--wrrel user={}", if user { "on" } else { "off" }));
    }
    Some(words.join(" "))
}

/// What the card boots from, and its bus.
fn boot(info: &DeviceInfo) -> Option<String> {
    let boot = &info.boot_config;
    let from = match boot.boot_partition_enable? {
        1 => "boot1",
        2 => "boot2",
        7 => "user",
        _ => return None,
    };
    let mut line = format!("emmclab plan boot TARGET --from {from}");
    line += if boot.boot_ack == Some(true) { " --ack on" } else { " --ack off" };
    if let Some(bus) = boot.bus_conditions.filter(|bus| *bus != 0) {
        let mode = ["sdr", "hs", "ddr"].get(usize::from(bus >> 3 & 3)).copied().unwrap_or("sdr");
        let width = if mode == "ddr" { [4, 4, 8, 8] } else { [1, 4, 8, 8] }[usize::from(bus & 3)];
        let keep = if bus & 4 != 0 { "on" } else { "off" };
        line += &format!(" --width {width} --mode {mode} --keep {keep}");
    }
    Some(line)
}
