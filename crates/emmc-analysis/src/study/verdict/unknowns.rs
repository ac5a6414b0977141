//! What a source cannot answer, and which source can: each once, most important first.

use emmc_regs::CardKind;

use super::super::Measured;
use super::Facts;
use crate::finding::Severity;
use crate::health::CannotTell;

pub(super) fn list(facts: &Facts<'_>, measured: &Measured) -> Vec<CannotTell> {
    let study = facts.study;
    let mut list = Vec::new();
    let mut add = |is_unknown: bool, what: &str, why: &str| {
        if is_unknown {
            list.push(CannotTell { what: what.into(), why: why.into() });
        }
    };
    let is_sd = study.identity.kind == Some(CardKind::Sd);
    add(study.identity.manufacturer_id.is_none(), "its maker", "add its CID: --with /sys/block/mmcblkN/device/cid");
    add(study.capacity.areas.is_empty(), "its size", "add EXT_CSD or `lsblk -b`");
    add(measured.speed.is_none(), "speed", "measure it: `emmclab study DEVICE --measure`, `emmclab bench`");
    add(study.health.host_link.severity == Severity::Unknown, "bus errors", "debugfs err_stats of Linux 6.0 and later");
    add(!is_sd && study.maker_health().is_empty(), "bytes written", "no standard register counts them");
    list
}
