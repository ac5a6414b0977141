//! Findings from vendor reports: wear that the registers do not report, contradictions, undecodable replies.

use super::Facts;
use crate::finding::{Finding, Severity};
use crate::health::{HealthOptions, VendorWear, WearKind};
use crate::maker_health::{Reading, Refusal, VendorHealth, consistency};

pub(super) fn find(
    facts: &Facts<'_>,
    options: &HealthOptions,
    reports: &[VendorHealth],
    refused: &[Refusal],
    findings: &mut Vec<Finding>,
) {
    for report in reports {
        findings.extend(consistency(report, facts.info));
        findings.extend(report.life.iter().chain(&report.spares).filter_map(|reading| wear(reading, options)));
    }
    findings.extend(refused.iter().filter_map(damage));
    findings.extend(refusals(refused));
}

pub(super) fn wear(reading: &Reading, options: &HealthOptions) -> Option<Finding> {
    let wear = VendorWear::of(reading, options).filter(|wear| wear.severity <= Severity::Notice)?;
    let used = wear.used_percent.floor();
    let (id, what, advice) = match wear.kind {
        WearKind::Life => {
            let advice = match wear.severity {
                Severity::Notice => {
                    "keep a history (a snapshot a week) to see when the life ends, and find out what writes"
                }
                _ => "back up now and plan the replacement; stop avoidable writes",
            };
            ("vendor-life-used", format!("The vendor's report says that {used:.0} % of life is used"), advice)
        }
        WearKind::SpareBlocks => {
            let what = format!("The vendor's report says that {used:.0} % of the spare blocks are used");
            ("vendor-spare-used", what, "back up now and replace the part or the board")
        }
    };
    let evidence = format!("{} = {} ({}, {})", reading.name, reading.value, reading.source, reading.confidence);
    Some(Finding::new(wear.severity, id, what).evidence(evidence).advice(advice))
}

fn damage(refusal: &Refusal) -> Option<Finding> {
    matches!(refusal, Refusal::Damaged { .. }).then(|| {
        let what = "A vendor report was not decoded: its text is damaged";
        Finding::new(Severity::Warning, "vendor-report-damaged", what)
            .evidence(refusal.to_string())
            .advice("save the report again, and keep the text as the tool printed it")
    })
}

/// One finding for all that contain nothing: the advice is the same.
fn refusals(refused: &[Refusal]) -> Option<Finding> {
    let empty: Vec<&Refusal> = refused.iter().filter(|refusal| !matches!(refusal, Refusal::Damaged { .. })).collect();
    let what = match empty.len() {
        0 => return None,
        1 => "A vendor report was not decoded: it contains no health data".to_owned(),
        count => format!("{count} vendor reports were not decoded: they contain no health data"),
    };
    let finding = Finding::new(Severity::Unknown, "vendor-report-refused", what);
    let finding = empty.iter().map(ToString::to_string).fold(finding, Finding::evidence);
    Some(finding.advice("this says nothing about the card's health, good or bad"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maker_health::{Confidence, Value};

    fn reading(name: &'static str, value: i64, confidence: Confidence) -> Reading {
        Reading { name, value: Value::Integer(value), unit: Some("percent"), source: "reply".into(), confidence }
    }

    #[test]
    fn only_relevant_vendor_wear_is_a_finding() {
        let found = |name, value, confidence| wear(&reading(name, value, confidence), &HealthOptions::default());
        let sure = Confidence::SingleSource;
        let left = found("life_left_percent", 3, sure).unwrap();
        assert_eq!((left.id, left.severity), ("vendor-life-used", Severity::Warning));
        assert!(left.what.contains("97 % of life"), "{left:?}");
        let spare = found("spare_used_percent", 90, sure).unwrap();
        assert_eq!((spare.id, spare.severity), ("vendor-spare-used", Severity::Critical));
        let doubtful = found("life_used_percent", 100, Confidence::Uncertain).unwrap();
        assert_eq!(doubtful.severity, Severity::Notice);
        assert_eq!(found("life_left_percent", 99, sure), None);
        assert_eq!(found("life_used_percent", 1, Confidence::Uncertain), None);
        assert_eq!(found("later_bad_blocks", 900, sure), None);
    }

    #[test]
    fn a_refused_reply_is_unknown_not_bad() {
        assert_eq!(refusals(&[]), None);
        let two = refusals(&[Refusal::AllOnes, Refusal::AllOnes]).unwrap();
        assert!(two.what.starts_with("2 vendor reports") && two.evidence.len() == 2, "{two:?}");
        let finding = refusals(&[Refusal::AllOnes]).unwrap();
        assert_eq!(finding.severity, Severity::Unknown);
        assert!(finding.evidence[0].text.contains("0xff"), "{finding:?}");
    }
}
