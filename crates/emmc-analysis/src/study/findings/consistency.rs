//! Registers that contradict the standard, each other, or other sources.

use emmc_regs::crc::Crc;
use emmc_regs::csd::Csd;
use emmc_regs::ext_csd::Anomaly;

use super::super::identity;
use super::Facts;
use crate::evidence::{Citation, Evidence};
use crate::finding::{Finding, Severity};

/// The number of anomalies, and of conflicts, that are listed individually.
const NAMED: usize = 12;

pub(super) fn find(facts: &Facts<'_>, anomalies: &[Anomaly], findings: &mut Vec<Finding>) {
    findings.extend(conflicts(&facts.card.conflicts));
    findings.extend(anomaly_list(anomalies));
    findings.extend(contradictions(&facts.csd.contradictions()));
    findings.extend(checksums(facts));
    findings.extend(health_text(facts));
}

/// Values on which the sources of one card disagree.
fn conflicts(sentences: &[String]) -> Option<Finding> {
    if sentences.is_empty() {
        return None;
    }
    let what = "The sources disagree: they are from different times or from different cards";
    let finding = Finding::new(Severity::Warning, "sources-conflict", what);
    let finding = sentences.iter().take(NAMED).fold(finding, |finding, sentence| finding.evidence(sentence));
    Some(
        and_more(finding, sentences.len()).advice(
            "check that all sources are from the same card and the same time: the value of the first one was used",
        ),
    )
}

/// Adds the number of pieces of evidence that were left out.
fn and_more(finding: Finding, all: usize) -> Finding {
    match all.checked_sub(NAMED) {
        None | Some(0) => finding,
        Some(more) => finding.evidence(format!("and {more} more")),
    }
}

fn anomaly_list(anomalies: &[Anomaly]) -> Option<Finding> {
    if anomalies.is_empty() {
        return None;
    }
    let what = match anomalies.len() {
        1 => "A register holds a value that the standard does not allow".to_owned(),
        count => format!("{count} registers hold values that the standard does not allow"),
    };
    let mut finding = Finding::new(Severity::Notice, "register-anomaly", what);
    for anomaly in anomalies.iter().take(NAMED) {
        finding = finding.evidence(anomaly_evidence(anomaly));
    }
    Some(and_more(finding, anomalies.len()).advice(
        "read the registers again; if the value stays, the part violates the standard or uses the bits for its vendor",
    ))
}

/// Fields at odds with each other.
fn contradictions(found: &[Anomaly]) -> Option<Finding> {
    if found.is_empty() {
        return None;
    }
    let what = "EXT_CSD contradicts itself: it is damaged, or put together from two parts";
    let finding = Finding::new(Severity::Warning, "register-contradiction", what);
    let finding = found.iter().take(NAMED).fold(finding, |finding, one| finding.evidence(anomaly_evidence(one)));
    Some(and_more(finding, found.len()).advice("read the register again; trust no figure of this copy"))
}

fn anomaly_evidence(anomaly: &Anomaly) -> Evidence {
    match Citation::byte(anomaly.offset) {
        Some(cited) => Evidence::of(cited, format!(" is {}, expected {}", anomaly.found, anomaly.expected)),
        None => anomaly.to_string().into(),
    }
}

fn checksums(facts: &Facts<'_>) -> Option<Finding> {
    let csd = identity::kind(facts.card).zip(facts.card.csd).map(|(kind, bytes)| Csd::new(kind, bytes).crc());
    let cid = facts.card.cid.map(|cid| cid.crc());
    let wrong: Vec<String> = [("CID", cid), ("CSD", csd)]
        .into_iter()
        .filter_map(|(name, crc)| Some((name, crc.filter(|crc| matches!(crc, Crc::Wrong { .. }))?)))
        .map(|(name, crc)| format!("{name}: checksum {crc}"))
        .collect();
    if wrong.is_empty() {
        return None;
    }
    let what = "A register's checksum is wrong: it was read or copied with errors";
    let finding = Finding::new(Severity::Warning, "checksum-wrong", what);
    Some(
        wrong
            .into_iter()
            .fold(finding, Finding::evidence)
            .advice("read the register again before you trust its fields"),
    )
}

/// sysfs and the register disagree: a monitor that reads sysfs sees old values.
fn health_text(facts: &Facts<'_>) -> Option<Finding> {
    let behind = &facts.health.behind;
    if behind.is_empty() {
        return None;
    }
    let what = "sysfs shows older wear values than the part: monitors that read life_time see old values";
    let finding = Finding::new(Severity::Notice, "sysfs-stale", what);
    Some(
        behind
            .iter()
            .cloned()
            .fold(finding, Finding::evidence)
            .advice("read EXT_CSD (by debugfs, or with this tool on the device) instead of sysfs")
            .source("Linux drivers/mmc/core/mmc.c: the attributes show the values read at initialisation"),
    )
}
