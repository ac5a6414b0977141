//! Wear, and errors between host and card.

use emmc_regs::ext_csd::reg;

use super::Facts;
use crate::evidence::Evidence;
use crate::finding::{Finding, Severity};
use crate::health::{Absent, LifeReading, LinkErrorKind, Reading};

pub(super) fn find(facts: &Facts<'_>, findings: &mut Vec<Finding>) {
    let health = facts.health;
    findings.extend(life("life-used-a", "A", &health.life_a));
    findings.extend(life("life-used-b", "B", &health.life_b));
    findings.extend(pre_eol(&health.pre_eol));
    findings.extend(untold(facts));
    findings.extend(reading(
        "bkops-outstanding",
        &health.bkops_status,
        "The part has background operations outstanding",
        [
            "leave the part powered and idle, or start the operations (BKOPS_START)",
            "expect slow writes until they are done",
        ],
    ));
    findings.extend(reading(
        "exception-event",
        &health.exception_events,
        "The part signals an exception event",
        ["see which event: URGENT_BKOPS needs idle time, the others a check of what the host does", ""],
    ));
    findings.extend(host_link(facts));
}

fn life(id: &'static str, cells: &str, life: &LifeReading) -> Option<Finding> {
    let reading = &life.reading;
    let what = match reading.severity {
        Severity::Critical => format!("The estimated life of the type {cells} cells is used up: {}", reading.text),
        Severity::Warning => {
            format!("The type {cells} cells are near the end of their estimated life: {}", reading.text)
        }
        Severity::Notice => format!("The type {cells} cells have used most of their estimated life: {}", reading.text),
        Severity::Unknown | Severity::Good => return None,
    };
    let finding = Finding::new(reading.severity, id, what).evidence(reading.evidence()).evidence(life.cells);
    Some(match reading.severity {
        Severity::Notice => {
            finding.advice("keep a history (a snapshot a week) to see when the life ends, and find out what writes")
        }
        _ => finding
            .advice("back up now and plan the replacement of the part or the board")
            .advice("stop avoidable writes: logs, databases that sync often, swap, access times"),
    })
}

fn pre_eol(reading: &Reading) -> Option<Finding> {
    let what = match reading.severity {
        Severity::Critical => "90 % of the reserved blocks are consumed: the part may soon refuse writes",
        Severity::Warning => "80 % of the reserved blocks are consumed",
        _ => return None,
    };
    let finding = Finding::new(reading.severity, "pre-eol", what).evidence(reading.evidence());
    Some(
        finding
            .advice("back up now and replace the part or the board")
            .advice("verify the backup: bad blocks cause read errors"),
    )
}

/// Why an eMMC does not report its wear, where the part itself is the reason.
fn untold(facts: &Facts<'_>) -> Option<Finding> {
    let (a, b) = (&facts.health.life_a.reading, &facts.health.life_b.reading);
    if a.is_known() || b.is_known() || facts.health.pre_eol.is_known() {
        return None;
    }
    match a.absent? {
        Absent::PartTooOld => {
            let finding = Finding::new(
                Severity::Unknown,
                "no-health-registers",
                "The part does not report its wear: the health registers exist from eMMC 5.0 on",
            );
            let evidence = match (facts.info.rev, &facts.card.stated.mmc_version) {
                (Some(rev), _) => Evidence::of(reg::EXT_CSD_REV, format!(" = {rev}, below 7")),
                (None, Some(version)) => format!("printed version of the standard: {version}").into(),
                (None, None) => "sysfs rev, below 7".into(),
            };
            Some(finding.evidence(evidence).advice("ask for the vendor's health report, or count the bytes written"))
        }
        Absent::NotDefined | Absent::NotAssigned => Some(
            Finding::new(Severity::Unknown, "health-undefined", "The part leaves its health registers undefined")
                .evidence(a.evidence())
                .evidence(b.evidence())
                .evidence(facts.health.pre_eol.evidence())
                .advice("this is neither good nor bad; ask for the vendor's health report, or count the bytes written"),
        ),
        _ => None,
    }
}

fn reading(id: &'static str, reading: &Reading, what: &str, advice: [&str; 2]) -> Option<Finding> {
    if reading.severity > Severity::Notice {
        return None;
    }
    let finding = Finding::new(reading.severity, id, format!("{what}: {}", reading.text)).evidence(reading.evidence());
    Some(advice.into_iter().filter(|advice| !advice.is_empty()).fold(finding, Finding::advice))
}

fn host_link(facts: &Facts<'_>) -> Option<Finding> {
    let link = &facts.health.host_link;
    if link.severity > Severity::Notice {
        return None;
    }
    let mut finding =
        Finding::new(link.severity, "host-link-errors", format!("The host controller counted errors: {}", link.text));
    for error in &link.errors {
        finding = finding.evidence(format!("err_stats, {}: {} ({})", error.name.trim(), error.count, error.meaning));
    }
    let has = |kinds: &[LinkErrorKind]| link.errors.iter().any(|error| kinds.contains(&error.kind));
    if has(&[LinkErrorKind::CommandCrc, LinkErrorKind::DataCrc, LinkErrorKind::Tuning]) {
        finding = finding.advice(
            "check the board before the part: supply and its decoupling, signal voltage, driver strength, line \
             lengths; see whether the errors stop in a slower mode",
        );
    }
    if has(&[LinkErrorKind::DataTimeout, LinkErrorKind::RequestTimeout]) {
        finding = finding.advice("look in the kernel's log for the request that timed out");
    }
    Some(finding.source("Linux drivers/mmc/core/debugfs.c, err_stats"))
}
