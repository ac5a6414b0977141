//! Used life and used spare blocks from vendor reports, judged like the standard's registers.
//!
//! Absent on purpose: bad blocks and erase counts. Without the maker's rating they are neither good nor bad.

use serde::Serialize;

use super::HealthOptions;
use super::reading::life_severity;
use crate::finding::Severity;
use crate::maker_health::{Confidence, Reading, VendorHealth};

/// Thresholds of PRE_EOL_INFO: warning at 80 % of the spare blocks, urgent at 90 %.
const SPARE_WARN_PERCENT: f64 = 80.0;
const SPARE_CRIT_PERCENT: f64 = 90.0;

/// What is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WearKind {
    /// Life.
    Life,
    /// Blocks that stand in for bad ones.
    SpareBlocks,
}

/// A vendor's figure for wear, judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VendorWear {
    /// What is used up.
    pub kind: WearKind,
    /// How much of it.
    ///
    /// Unit: percent.
    pub used_percent: f64,
    /// How much it matters; a figure of uncertain meaning changes nothing.
    pub severity: Severity,
    /// Name of the reading: `life_left_percent`.
    pub reading: &'static str,
    /// Its place in the report.
    pub source: String,
    /// Confidence in place and meaning.
    pub confidence: Confidence,
}

impl VendorWear {
    /// Judges a reading; `None` if it is not a share of life or spare blocks.
    pub(crate) fn of(reading: &Reading, options: &HealthOptions) -> Option<Self> {
        let value = reading.value.as_f64()?;
        let (kind, used_percent) = match reading.name {
            // A step is a range, and the reading gives only its upper end.
            name if name.starts_with("life_used_step") => return None,
            name if name.starts_with("life_used_percent") => (WearKind::Life, value),
            name if name.starts_with("life_left_percent") => (WearKind::Life, 100.0 - value),
            "spare_used_percent" => (WearKind::SpareBlocks, value),
            _ => return None,
        };
        let severity = match kind {
            WearKind::Life => life_severity(used_percent, options),
            WearKind::SpareBlocks if used_percent >= SPARE_CRIT_PERCENT => Severity::Critical,
            WearKind::SpareBlocks if used_percent >= SPARE_WARN_PERCENT => Severity::Warning,
            WearKind::SpareBlocks => Severity::Good,
        };
        let severity = match (reading.confidence, severity) {
            (Confidence::Uncertain, Severity::Good) => Severity::Unknown,
            (Confidence::Uncertain, severity) => severity.max(Severity::Notice),
            (_, severity) => severity,
        };
        let source = reading.source.clone();
        Some(Self { kind, used_percent, severity, reading: reading.name, source, confidence: reading.confidence })
    }

    /// The figure and its source: `97 % of life used (vendor's report: sdmon, "Remaining life")`.
    pub fn sentence(&self) -> String {
        let what = match self.kind {
            WearKind::Life => "life",
            WearKind::SpareBlocks => "spare blocks",
        };
        let doubt = if self.confidence == Confidence::Uncertain { ", uncertain" } else { "" };
        format!("{:.0} % of {what} used (vendor's report: {}{doubt})", self.used_percent.floor(), self.source)
    }
}

/// The worst figure of each kind in the reports.
pub(super) fn worst(reports: &[VendorHealth], options: &HealthOptions) -> Vec<VendorWear> {
    let readings = || reports.iter().flat_map(|report| report.life.iter().chain(&report.spares));
    let of_kind = |kind| {
        let judged = readings().filter_map(|reading| VendorWear::of(reading, options));
        judged.filter(|wear| wear.kind == kind).reduce(worse)
    };
    [WearKind::Life, WearKind::SpareBlocks].into_iter().filter_map(of_kind).collect()
}

/// By severity; between equals an uncertain figure comes last.
fn worse(a: VendorWear, b: VendorWear) -> VendorWear {
    let rank = |wear: &VendorWear| match wear.severity {
        Severity::Unknown => (Severity::Good, true),
        severity => (severity, false),
    };
    match rank(&a).cmp(&rank(&b)) {
        std::cmp::Ordering::Less => a,
        std::cmp::Ordering::Equal if a.used_percent >= b.used_percent => a,
        _ => b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maker_health::Value;

    fn reading(name: &'static str, value: i64, confidence: Confidence) -> Reading {
        Reading { name, value: Value::Integer(value), unit: Some("percent"), source: "reply".into(), confidence }
    }

    fn severity(name: &'static str, value: i64, confidence: Confidence) -> Option<Severity> {
        VendorWear::of(&reading(name, value, confidence), &HealthOptions::default()).map(|wear| wear.severity)
    }

    #[test]
    fn used_life_uses_the_thresholds_of_the_registers() {
        for (name, value, expected) in [
            ("life_used_percent", 69, Some(Severity::Good)),
            ("life_used_percent", 89, Some(Severity::Notice)),
            ("life_used_percent_mlc", 90, Some(Severity::Warning)),
            ("life_used_percent", 100, Some(Severity::Critical)),
            ("life_left_percent", 99, Some(Severity::Good)),
            ("life_left_percent_mlc", 5, Some(Severity::Warning)),
            ("life_used_step_percent", 100, None),
            ("life_raw", 100, None),
        ] {
            assert_eq!(severity(name, value, Confidence::SingleSource), expected, "{name} {value}");
        }
    }

    #[test]
    fn spare_blocks_use_the_limits_of_pre_eol_info() {
        let of = |value| severity("spare_used_percent", value, Confidence::Documented);
        assert_eq!([79, 80, 90].map(of), [Severity::Good, Severity::Warning, Severity::Critical].map(Some));
        assert_eq!(severity("spare_blocks_total", 99, Confidence::Documented), None);
    }

    #[test]
    fn a_value_of_uncertain_meaning_does_not_change_the_verdict() {
        let of = |value| severity("life_used_percent", value, Confidence::Uncertain);
        assert_eq!([1, 80, 100].map(of), [Severity::Unknown, Severity::Notice, Severity::Notice].map(Some));
        let options = HealthOptions::default();
        let judged = |value, confidence| VendorWear::of(&reading("life_used_percent", value, confidence), &options);
        let (doubtful, sure) = (judged(60, Confidence::Uncertain).unwrap(), judged(5, Confidence::Documented).unwrap());
        assert_eq!(worse(doubtful.clone(), sure.clone()), sure);
        assert_eq!(worse(sure.clone(), doubtful.clone()), sure);
        assert!(doubtful.sentence().ends_with("(vendor's report: reply, uncertain)"), "{}", doubtful.sentence());
    }
}
