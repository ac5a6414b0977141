//! A bus mode or a command queue below the abilities of the part.

use emmc_regs::ext_csd::reg;

use super::super::bus_mode::{self, BusMode, SaidBy};
use super::Facts;
use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};

pub(super) fn find(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    findings.extend(slower_mode(facts));
    findings.extend(narrow(facts));
    findings.extend(queue_off(facts));
}

fn slower_mode(facts: &Facts<'_>) -> Option<Finding> {
    let offered = bus_mode::fastest_offered(facts.info)?;
    let in_use = bus_mode::in_use(facts.card, facts.info)?;
    if in_use.at_most >= offered {
        return None;
    }
    // A dump holds the mode at the time of reading: there is nothing to fix.
    if in_use.said_by == SaidBy::Register {
        return None;
    }
    // Only the kernel reports the mode that the system uses; a boot loader or a dump reports the mode of its moment.
    let severity = match (in_use.said_by, in_use.at_most >= BusMode::Hs200) {
        (SaidBy::Kernel, false) => Severity::Warning,
        _ => Severity::Notice,
    };
    let what = format!(
        "The bus ran in {} ({} MB/s); the part offers {} ({} MB/s)",
        if in_use.at_most == in_use.mode { in_use.mode.name() } else { "DDR52 at most" },
        in_use.at_most.mb_per_s(),
        offered.name(),
        offered.mb_per_s()
    );
    let mut finding = Finding::new(severity, "bus-slower-than-offered", what).evidence(in_use.evidence);
    if let Some(device_type) = facts.info.device_type {
        finding = finding.evidence(Evidence::value(reg::DEVICE_TYPE, device_type));
    }
    finding = match in_use.said_by {
        SaidBy::Kernel => finding,
        _ => finding
            .advice("check the mode that the kernel uses: `ios` in debugfs; a boot loader often uses a slower one"),
    };
    Some(
        finding
            .advice("check the device tree: mmc-hs200-1_8v, mmc-hs400-1_8v, max-frequency, bus-width")
            .advice("HS200 and HS400 need signals of 1.8 V or 1.2 V: check the I/O supply of the board")
            .source("Linux Documentation/devicetree/bindings/mmc/mmc-controller-common.yaml"),
    )
}

fn narrow(facts: &Facts<'_>) -> Option<Finding> {
    let (lines, said_by, evidence) = bus_mode::lines_in_use(facts.card)?;
    if lines == 8 {
        return None;
    }
    let severity = if lines == 1 && said_by == SaidBy::Kernel { Severity::Warning } else { Severity::Notice };
    let what = format!("The bus used {lines} of the part's 8 data lines");
    Some(
        Finding::new(severity, "bus-narrow", what)
            .evidence(evidence)
            .advice("check bus-width in the device tree, and whether the board connects all lines; HS400 needs 8"),
    )
}

/// CMDQ_MODE_EN reads 0 even where Linux uses the queue, so only the kernel's report counts.
fn queue_off(facts: &Facts<'_>) -> Option<Finding> {
    let off = facts.card.sysfs.get("cmdq_en").is_some_and(|text| text.trim() == "0");
    if !off || facts.info.cmdq_supported != Some(true) {
        return None;
    }
    let what = "The kernel does not use the part's command queue: random reads run one at a time";
    let mut finding = Finding::new(Severity::Notice, "command-queue-off", what)
        .evidence("sysfs cmdq_en = 0")
        .evidence(Evidence::value(reg::CMDQ_SUPPORT, 1));
    if let Some(depth) = facts.info.cmdq_depth {
        finding = finding.evidence(Evidence::of(reg::CMDQ_DEPTH, format!(": {depth} tasks")));
    }
    Some(finding.advice(
        "the queue needs a host controller with a queue engine (CQHCI), a driver that enables it, and a part that is not on \
         the kernel's list of broken queues",
    ))
}
