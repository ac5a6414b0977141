//! Hardware partitioning: open, unfinished or completed; sector size.

use emmc_regs::ext_csd::reg;

use super::Facts;
use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};

pub(super) fn find(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    findings.extend(unfinished(facts));
    findings.extend(completed(facts));
    findings.extend(sectors(facts));
    findings.extend(emulated_sectors(facts));
}

/// Every partitioning register that is not 0.
fn set_registers(facts: &Facts<'_>) -> Vec<Evidence> {
    let hw = &facts.info.hw_partition;
    let mut set = Vec::new();
    match hw.attributes {
        Some(attributes) if attributes != 0 => set.push(Evidence::value(reg::PARTITIONS_ATTRIBUTE, attributes)),
        None if facts.csd.bit(reg::PARTITIONS_ATTRIBUTE, 0) == Some(true) => {
            set.push(Evidence::of(reg::PARTITIONS_ATTRIBUTE, ": ENH_USR is set"));
        }
        _ => {}
    }
    if let Some(groups) = hw.enh_user_groups.filter(|groups| *groups > 0) {
        set.push(Evidence::of(reg::ENH_SIZE_MULT, format!(" = {groups} groups")));
    }
    for (field, groups) in reg::GP_SIZE_MULT.into_iter().zip(hw.gp_groups) {
        if let Some(groups) = groups.filter(|groups| *groups > 0) {
            set.push(Evidence::of(field, format!(" = {groups} groups")));
        }
    }
    set
}

fn unfinished(facts: &Facts<'_>) -> Option<Finding> {
    let set = set_registers(facts);
    if facts.info.hw_partition.completed != Some(false) || set.is_empty() {
        return None;
    }
    let what = "Hardware partitioning was started but not completed: sizes are set, but nothing is partitioned yet";
    let finding = Finding::new(Severity::Warning, "partitioning-unfinished", what)
        .evidence(Evidence::value(reg::PARTITION_SETTING_COMPLETED, 0));
    Some(
        set.into_iter()
            .fold(finding, Finding::evidence)
            .advice("power-cycle the part and read again: most parts then drop the values")
            .advice("mmc-utils writes these registers even with its option -n; a later completion would use them")
            .source("mmc-utils mmc_cmds.c; U-Boot drivers/mmc/mmc.c, mmc_hwpart_config"),
    )
}

fn completed(facts: &Facts<'_>) -> Option<Finding> {
    if facts.info.hw_partition.completed != Some(true) {
        return None;
    }
    let set = set_registers(facts);
    let part = facts.capacity.areas.iter().find_map(|area| area.enhanced_part);
    let mut what = "The part is permanently partitioned in hardware".to_owned();
    match (part, &facts.card.stated.enh_user_size) {
        (Some(part), _) => what.push_str(&format!(": {} of the user area are enhanced", part.size_bytes)),
        (None, Some(stated)) => what.push_str(&format!(": {} of the user area are enhanced, as printed", stated.text)),
        (None, None) if set.is_empty() && facts.info.hw_partition.attributes == Some(0) => {
            what.push_str(", without an enhanced area");
        }
        (None, None) => {}
    }
    let finding = Finding::new(Severity::Notice, "partitioning-completed", what)
        .evidence(Evidence::value(reg::PARTITION_SETTING_COMPLETED, 1));
    Some(
        set.into_iter()
            .fold(finding, Finding::evidence)
            .advice("layout and write reliability can no longer be changed; images must fit the present sizes"),
    )
}

fn sectors(facts: &Facts<'_>) -> Option<Finding> {
    if facts.info.data_sector_4k != Some(true) || !facts.at_least(6) {
        return None;
    }
    Some(
        Finding::new(Severity::Notice, "sectors-4k", "The part has 4 KiB sectors: accesses of 512 bytes fail")
            .evidence(Evidence::value(reg::DATA_SECTOR_SIZE, 1))
            .advice("partition tables, filesystems and boot loaders must use 4 KiB; images for 512 bytes do not fit"),
    )
}

fn emulated_sectors(facts: &Facts<'_>) -> Option<Finding> {
    let native = facts.csd.bit(reg::NATIVE_SECTOR_SIZE, 0) == Some(true) && facts.info.data_sector_4k == Some(false);
    if !native || !facts.at_least(6) {
        return None;
    }
    let what = "The part emulates 512-byte sectors on native 4 KiB sectors: smaller or unaligned writes cost extra";
    Some(
        Finding::new(Severity::Notice, "sectors-emulated", what)
            .evidence(Evidence::value(reg::NATIVE_SECTOR_SIZE, 1))
            .evidence(Evidence::value(reg::DATA_SECTOR_SIZE, 0))
            .advice("write aligned multiples of 4 KiB; leaving the emulation (USE_NATIVE_SECTOR) is one-time"),
    )
}
