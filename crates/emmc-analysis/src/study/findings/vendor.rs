//! What vendor reports add: wear where the standard's registers are silent, contradictions, and replies that are none.

use super::Facts;
use crate::finding::{Finding, Severity};
use crate::health::HealthOptions;
use crate::vendor::{Confidence, Reading, Refusal, VendorHealth, consistency};

/// PRE_EOL_INFO's own marks: a warning at 80 % of the spare blocks, urgent at 90 %.
const SPARE_WARN_PERCENT: f64 = 80.0;
const SPARE_CRIT_PERCENT: f64 = 90.0;

pub(super) fn find(
    facts: &Facts<'_>,
    options: &HealthOptions,
    reports: &[VendorHealth],
    refused: &[Refusal],
    findings: &mut Vec<Finding>,
) {
    for report in reports {
        findings.extend(consistency(report, facts.info));
        findings.extend(report.life.iter().filter_map(|reading| life(reading, options)));
        findings.extend(report.spares.iter().filter_map(spare));
    }
    findings.extend(refused.iter().map(refusal));
}

fn life(reading: &Reading, options: &HealthOptions) -> Option<Finding> {
    let value = reading.value.as_f64()?;
    let used = match reading.name {
        // A step is a range, and the reading gives only its upper end.
        name if name.starts_with("life_used_step") => return None,
        name if name.starts_with("life_used_percent") => value,
        name if name.starts_with("life_left_percent") => 100.0 - value,
        _ => return None,
    };
    let severity = match used {
        used if used >= f64::from(options.crit_percent()) => Severity::Critical,
        used if used >= f64::from(options.warn_percent()) => Severity::Warning,
        _ => return None,
    };
    let what = format!("The vendor's report says that {used:.0} % of the life is used");
    Some(
        finding(severity, "vendor-life-used", what, reading)
            .advice("back up now and plan the replacement; stop avoidable writes"),
    )
}

fn spare(reading: &Reading) -> Option<Finding> {
    let used = reading.value.as_f64().filter(|_| reading.name == "spare_used_percent")?;
    let severity = match used {
        used if used >= SPARE_CRIT_PERCENT => Severity::Critical,
        used if used >= SPARE_WARN_PERCENT => Severity::Warning,
        _ => return None,
    };
    let what = format!("The vendor's report says that {used:.0} % of the spare blocks are used");
    Some(finding(severity, "vendor-spare-used", what, reading).advice("back up now and replace the part or the board"))
}

/// What rests on an uncertain meaning alarms nobody.
fn finding(severity: Severity, id: &'static str, what: String, reading: &Reading) -> Finding {
    let severity = if reading.confidence == Confidence::Uncertain { Severity::Notice } else { severity };
    let evidence = format!("{} = {} ({}, {})", reading.name, reading.value, reading.source, reading.confidence);
    Finding::new(severity, id, what).evidence(evidence)
}

fn refusal(refusal: &Refusal) -> Finding {
    Finding::new(Severity::Unknown, "vendor-report-refused", "A vendor report was not decoded: it holds no health")
        .evidence(refusal.to_string())
        .advice("this says nothing about the card's health, good or bad")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::Value;

    fn reading(name: &'static str, value: i64, confidence: Confidence) -> Reading {
        Reading { name, value: Value::Integer(value), unit: Some("percent"), source: "reply".into(), confidence }
    }

    #[test]
    fn used_life_is_judged_by_the_same_thresholds_as_the_registers() {
        let options = HealthOptions::default();
        let severity =
            |name, value, confidence| life(&reading(name, value, confidence), &options).map(|found| found.severity);
        for (name, value, expected) in [
            ("life_used_percent", 89, None),
            ("life_used_percent_mlc", 90, Some(Severity::Warning)),
            ("life_used_percent", 100, Some(Severity::Critical)),
            ("life_left_percent", 99, None),
            ("life_left_percent_mlc", 5, Some(Severity::Warning)),
            ("life_used_step_percent", 100, None),
            ("life_raw", 100, None),
        ] {
            assert_eq!(severity(name, value, Confidence::SingleSource), expected, "{name} {value}");
        }
        assert_eq!(severity("life_used_percent", 100, Confidence::Uncertain), Some(Severity::Notice));
    }

    #[test]
    fn spare_blocks_are_judged_as_pre_eol_info_judges_them() {
        let severity =
            |value| spare(&reading("spare_used_percent", value, Confidence::Documented)).map(|found| found.severity);
        assert_eq!([79, 80, 90].map(severity), [None, Some(Severity::Warning), Some(Severity::Critical)]);
        assert_eq!(spare(&reading("spare_blocks_total", 99, Confidence::Documented)), None);
    }

    #[test]
    fn a_refused_reply_is_unknown_not_bad() {
        let finding = refusal(&Refusal::AllOnes);
        assert_eq!(finding.severity, Severity::Unknown);
        assert!(finding.evidence[0].contains("0xff"), "{finding:?}");
    }
}
