//! Data that a power cut may damage: writes in the cache, and older data.

use emmc_regs::ext_csd::{DeviceInfo, ExtCsd, reg};

use super::Facts;
use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};

/// Whether an area protects data that was written before.
pub(in crate::study) struct AreaReliability {
    /// 0 is the user area, 1 to 4 are the general purpose areas.
    pub(in crate::study) index: usize,
    pub(in crate::study) protected: bool,
}

/// WR_REL_SET for each area that exists, bit by bit: text may state one bit without the others.
pub(in crate::study) fn reliability(csd: &ExtCsd, info: &DeviceInfo) -> Vec<AreaReliability> {
    let exists = |index: usize| match index.checked_sub(1) {
        None => true,
        Some(gp) => {
            let groups = info.hw_partition.gp_groups.get(gp).copied().flatten();
            info.hw_partition.completed == Some(true) && groups.is_some_and(|groups| groups > 0)
        }
    };
    let area = |index: usize| {
        let protected = csd.bit(reg::WR_REL_SET, u8::try_from(index).ok()?)?;
        Some(AreaReliability { index, protected })
    };
    (0..5).filter(|index| exists(*index)).filter_map(area).collect()
}

pub(super) fn find(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    findings.extend(write_reliability(facts));
    findings.extend(cache(facts));
}

fn write_reliability(facts: &Facts<'_>) -> Option<Finding> {
    let hw = &facts.info.hw_partition;
    let unprotected: Vec<String> = reliability(facts.csd, facts.info)
        .iter()
        .filter(|area| !area.protected)
        .map(
            |area| {
                if area.index == 0 { "the user area".into() } else { format!("general purpose area {}", area.index) }
            },
        )
        .collect();
    // The register exists from eMMC 4.41; on an older part its zeros mean nothing.
    if unprotected.is_empty() || facts.info.rev.is_some_and(|rev| rev < 5) {
        return None;
    }
    let what = format!(
        "Write reliability is off for {}: a power cut during a write may damage data written long before",
        unprotected.join(", ")
    );
    let set = hw
        .wr_rel_set
        .map_or(Evidence::of(reg::WR_REL_SET, ": the area's bit is 0"), |set| Evidence::value(reg::WR_REL_SET, set));
    let mut finding = Finding::new(Severity::Warning, "write-reliability-off", what).evidence(set);
    if let Some(param) = facts.csd.byte(reg::WR_REL_PARAM) {
        finding = finding.evidence(Evidence::value(reg::WR_REL_PARAM, param));
    }
    finding = match (hw.wr_rel_writable, hw.completed) {
        (Some(false), _) => {
            finding.advice("the maker fixed the setting: use another part, or a supply that holds until a write has ended")
        }
        (_, Some(true)) => finding
            .advice("the setting is fixed, because partitioning is completed; hold the supply until a write has ended"),
        (Some(true), _) => finding
            .advice(
                "set it before the part goes into service: it is one-time, takes effect with PARTITION_SETTING_COMPLETED, and \
                 all data on the part is lost",
            )
            .advice("measure its cost on a spare part first: some parts write slower"),
        (None, _) => finding.advice("read WR_REL_PARAM to see whether it can still be set"),
    };
    Some(finding.source("JESD84-B51, WR_REL_SET and WR_REL_PARAM; U-Boot mmc hwpartition"))
}

fn cache(facts: &Facts<'_>) -> Option<Finding> {
    let size = facts.info.cache.filter(|cache| cache.0 > 0);
    if facts.info.cache_on != Some(true) {
        return None;
    }
    let amount = size.map_or("an unknown amount".into(), |size| format!("up to {size}"));
    let what = format!("The volatile cache is on: {amount} of acknowledged writes are lost if power fails");
    let mut finding = Finding::new(Severity::Notice, "cache-on", what).evidence(Evidence::value(reg::CACHE_CTRL, 1));
    if let Some(size) = size {
        finding = finding.evidence(Evidence::of(reg::CACHE_SIZE, format!(" = {} bytes", size.0)));
    }
    if facts.at_least(6) && facts.csd.byte(reg::POWER_OFF_NOTIFICATION) == Some(0) {
        finding =
            finding.evidence(Evidence::of(reg::POWER_OFF_NOTIFICATION, " = 0: the host does not announce a power-off"));
    }
    Some(
        finding
            .advice("filesystems that flush survive a power cut: do not mount with `nobarrier`, and call fsync for important data")
            .advice("raw writers (dd, boot loaders, updaters) must flush: `sync`, O_SYNC, or a flush before power-off")
            .source("JESD84-B51, CACHE_CTRL; Linux flushes it on fsync and before suspend and power-off"),
    )
}
