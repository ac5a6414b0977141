//! One line and an exit code for Nagios and compatible monitoring systems.
//!
//! Source: Monitoring Plugins Development Guidelines, "Performance data" and "Threshold and Ranges". A plain threshold
//! alerts above its number, and all values here are whole, so one that changes the state at 90 is written 89. Absent on
//! purpose: ranges with `@` or `:`, which some collectors drop.

use std::borrow::Cow;
use std::fmt::Write as _;

use emmc_port::CardData;
use emmc_regs::CardKind;
use serde::Serialize;

use super::host_link::LinkErrorKind;
use super::reading::LifeReading;
use super::{Health, HealthOptions, WearKind, health};
use crate::finding::Severity;
use crate::maker_health::Confidence;

/// A state of a monitoring system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// As it should be, or merely worth knowing.
    Ok,
    /// Needs a decision.
    Warning,
    /// Data is, or soon will be, at risk.
    Critical,
    /// Not known.
    Unknown,
}

impl CheckStatus {
    /// Its exit code.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
        }
    }

    /// Rank by urgency, worst first: a problem comes before an unknown state.
    pub const fn rank(self) -> u8 {
        match self {
            Self::Critical => 0,
            Self::Warning => 1,
            Self::Unknown => 2,
            Self::Ok => 3,
        }
    }

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }
}

impl From<Severity> for CheckStatus {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Critical => Self::Critical,
            Severity::Warning => Self::Warning,
            Severity::Unknown => Self::Unknown,
            Severity::Notice | Severity::Good => Self::Ok,
        }
    }
}

/// One measured value for a monitoring system's graphs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PerfValue {
    /// Its name, without blanks; with the device before it where several cards are checked: `mmcblk0_pre_eol`.
    pub label: Cow<'static, str>,
    /// Its value.
    pub value: u64,
    /// `%` for percent, `c` for a counter, empty for a code.
    pub unit: &'static str,
    /// A warning above this.
    pub warn: Option<u8>,
    /// Critical above this.
    pub crit: Option<u8>,
    /// The smallest and the largest possible value, where they exist.
    pub range: Option<(u8, u8)>,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckResult {
    /// The state.
    pub status: CheckStatus,
    /// Its exit code.
    pub exit_code: u8,
    /// The whole line, values included.
    pub line: String,
    /// The values alone.
    pub perfdata: Vec<PerfValue>,
    /// The line without its values.
    #[serde(skip)]
    pub text: String,
}

impl CheckResult {
    fn new(service: &str, status: CheckStatus, sentence: &str, perfdata: Vec<PerfValue>) -> Self {
        // A vertical bar would end the text, and a line break the line.
        let sentence: String = sentence.chars().map(|c| if c == '|' || c.is_control() { ' ' } else { c }).collect();
        Self::of_text(status, format!("{service} {} - {sentence}", status.as_str()), perfdata)
    }

    fn of_text(status: CheckStatus, text: String, perfdata: Vec<PerfValue>) -> Self {
        let mut line = text.clone();
        for (index, value) in perfdata.iter().enumerate() {
            line.push_str(if index == 0 { " | " } else { " " });
            value.write(&mut line);
        }
        Self { status, exit_code: status.exit_code(), line, perfdata, text }
    }

    /// Result of a check that could not be run.
    pub fn unknown(reason: &str) -> Self {
        Self::new("EMMC", CheckStatus::Unknown, reason, Vec::new())
    }

    /// The result for one card of several: its device precedes the sentence and the name of each value.
    pub fn named(self, device: &str) -> Self {
        let (service, sentence) = self.text.split_once(" - ").unwrap_or(("EMMC", &self.text));
        let text = format!("{service} - {device}: {sentence}");
        let named = |value: PerfValue| PerfValue { label: format!("{device}_{}", value.label).into(), ..value };
        Self::of_text(self.status, text, self.perfdata.into_iter().map(named).collect())
    }

    /// One result for several cards: the text and state of the worst, and the values of all.
    ///
    /// If several lines have text, a monitoring system reads values from the first line only.
    pub fn worst_of(cards: &[Self]) -> Option<Self> {
        let worst = cards.iter().min_by_key(|card| card.status.rank())?;
        let perfdata = cards.iter().flat_map(|card| card.perfdata.iter().cloned()).collect();
        Some(Self::of_text(worst.status, worst.text.clone(), perfdata))
    }
}

/// Judges a card's health in one line.
pub fn check(card: &CardData, options: &HealthOptions) -> CheckResult {
    let health = health(card, options);
    let status = CheckStatus::from(health.verdict.severity);
    let perfdata = perfdata(&health, options);
    let service = if card.kind == Some(CardKind::Sd) { "SD" } else { "EMMC" };
    CheckResult::new(service, status, &health.verdict.sentence, perfdata)
}

impl PerfValue {
    /// `label=value[unit];[warn];[crit];[min];[max]`, empty ends left off.
    fn write(&self, line: &mut String) {
        let number = |number: Option<u8>| number.map(|number| number.to_string()).unwrap_or_default();
        let (min, max) = (self.range.map(|range| range.0), self.range.map(|range| range.1));
        let tail = format!(";{};{};{};{}", number(self.warn), number(self.crit), number(min), number(max));
        // Writing to a string cannot fail.
        let _ = write!(line, "{}={}{}{}", self.label, self.value, self.unit, tail.trim_end_matches(';'));
    }
}

fn perfdata(health: &Health, options: &HealthOptions) -> Vec<PerfValue> {
    let above = |limits: bool, percent: u8| limits.then_some(percent.saturating_sub(1));
    let percent = |label: &'static str, value: Option<u8>, limits: bool| {
        value.map(|value| PerfValue {
            label: label.into(),
            value: value.into(),
            unit: "%",
            warn: above(limits, options.warn_percent()),
            crit: above(limits, options.crit_percent()),
            range: Some((0, 100)),
        })
    };
    let bounds = |lower, upper, life: &LifeReading| {
        [percent(lower, life.used_lower_percent, true), percent(upper, life.used_upper_percent, false)]
    };
    let mut values: Vec<PerfValue> = bounds("life_a_used_lower", "life_a_used_upper", &health.life_a)
        .into_iter()
        .chain(bounds("life_b_used_lower", "life_b_used_upper", &health.life_b))
        .flatten()
        .collect();
    if let Some(raw) = health.pre_eol.raw.filter(|_| health.pre_eol.is_known()) {
        let range = Some((1, 3));
        values.push(PerfValue {
            label: "pre_eol".into(),
            value: raw.into(),
            unit: "",
            warn: Some(1),
            crit: Some(2),
            range,
        });
    }
    if let Some(wear) = health.vendor_wear.iter().find(|wear| wear.kind == WearKind::Life) {
        // Rounded down: rounding up could pass a threshold that the figure does not pass.
        let used = wear.used_percent.floor().clamp(0.0, 100.0) as u8;
        let limits = wear.confidence != Confidence::Uncertain;
        values.extend(percent("vendor_life_used", Some(used), limits));
    }
    let counter = |label: &'static str, kinds: &[LinkErrorKind]| {
        let count = health.host_link.count(kinds)?;
        Some(PerfValue { label: label.into(), value: count, unit: "c", warn: None, crit: None, range: None })
    };
    values.extend(counter("crc_errors", &[LinkErrorKind::CommandCrc, LinkErrorKind::DataCrc]));
    values.extend(counter("data_timeouts", &[LinkErrorKind::DataTimeout, LinkErrorKind::RequestTimeout]));
    values
}

#[cfg(test)]
mod tests {
    use super::super::tests::emmc;
    use super::*;

    fn line(card: &CardData) -> (u8, String) {
        let result = check(card, &HealthOptions::default());
        (result.exit_code, result.line)
    }

    #[test]
    fn a_healthy_part_is_one_line_with_its_bounds() {
        let expected = "EMMC OK - 10 % to 20 % of life used (type A cells), 0 % to 10 % (type B cells); reserved blocks \
                        normal | life_a_used_lower=10%;89;99;0;100 life_a_used_upper=20%;;;0;100 \
                        life_b_used_lower=0%;89;99;0;100 life_b_used_upper=10%;;;0;100 pre_eol=1;1;2;1;3";
        assert_eq!(line(&emmc(&[(268, 2), (269, 1), (267, 1)])), (0, expected.into()));
    }

    #[test]
    fn every_state_has_its_code() {
        for (registers, code, start) in [
            ([(268, 0x0a), (269, 1), (267, 1)], 1, "EMMC WARNING - "),
            ([(268, 0x01), (269, 0x0b), (267, 1)], 2, "EMMC CRITICAL - "),
            ([(268, 0x01), (269, 0x01), (267, 2)], 1, "EMMC WARNING - "),
            ([(268, 0x01), (269, 0x01), (267, 3)], 2, "EMMC CRITICAL - "),
            ([(268, 0), (269, 0), (267, 0)], 3, "EMMC UNKNOWN - "),
            ([(268, 0), (269, 3), (267, 1)], 0, "EMMC OK - "),
            (
                [(268, 0), (269, 0), (267, 1)],
                3,
                "EMMC UNKNOWN - life used is not known: type A not defined, type B not",
            ),
            ([(268, 0xff), (269, 0xff), (267, 1)], 3, "EMMC UNKNOWN - life used is not known: type A not assigned"),
            ([(268, 0), (269, 0), (267, 2)], 1, "EMMC WARNING - life used is not known: "),
            ([(268, 0), (269, 0xff), (267, 3)], 2, "EMMC CRITICAL - life used is not known: "),
        ] {
            let (found, text) = line(&emmc(&registers));
            assert!(found == code && text.starts_with(start), "{registers:?}: {found} {text}");
        }
    }

    #[test]
    fn a_threshold_applies_when_it_is_reached() {
        let options = HealthOptions::new(80, 90).unwrap();
        let code = |life| check(&emmc(&[(268, life), (269, 1), (267, 1)]), &options).exit_code;
        assert_eq!([8, 9, 10, 11].map(code), [0, 1, 2, 2]);
    }

    #[test]
    fn thresholds_in_range_syntax_agree_with_the_state() {
        for (warn, crit) in [(90, 100), (50, 80), (1, 1), (100, 100)] {
            let options = HealthOptions::new(warn, crit).unwrap();
            for (life, pre_eol) in (1..=11).flat_map(|life| (1..=3).map(move |pre_eol| (life, pre_eol))) {
                let result = check(&emmc(&[(268, life), (269, 1), (267, pre_eol)]), &options);
                let alerts = |limit: fn(&PerfValue) -> Option<u8>| {
                    result.perfdata.iter().any(|value| limit(value).is_some_and(|limit| value.value > limit.into()))
                };
                let by_values = if alerts(|value| value.crit) { 2 } else { u8::from(alerts(|value| value.warn)) };
                assert_eq!(by_values, result.exit_code, "{}", result.line);
            }
        }
    }

    #[test]
    fn an_undefined_value_is_named() {
        for (registers, sentence) in [
            (
                [(268, 0xff), (269, 1), (267, 1)],
                "0 % to 10 % of life used (type B cells), type A not assigned (0xff); reserved",
            ),
            ([(268, 2), (269, 0x0c), (267, 1)], "(type A cells), type B not assigned (0x0c); reserved blocks normal |"),
            ([(268, 0), (269, 1), (267, 7)], "(type B cells), type A not defined; PRE_EOL_INFO not assigned (0x07) |"),
            (
                [(268, 0xff), (269, 0xff), (267, 1)],
                "UNKNOWN - life used is not known: type A not assigned (0xff), type B not assigned (0xff); reserved",
            ),
            ([(268, 0xff), (269, 0), (267, 0)], "undefined; type A not assigned (0xff), type B not defined; PRE_EOL"),
            (
                [(268, 0), (269, 0), (267, 0)],
                "UNKNOWN - wear is unknown: the part leaves its health registers undefined",
            ),
        ] {
            let (_, text) = line(&emmc(&registers));
            assert!(text.contains(sentence), "{registers:?} {text}");
        }
        assert!(line(&emmc(&[])).1.ends_with("registers undefined"));
    }

    #[test]
    fn an_exceeded_life_has_no_upper_value_and_unknown_has_none() {
        let (_, past) = line(&emmc(&[(268, 0x0b), (269, 0), (267, 1)]));
        assert!(past.contains("life_a_used_lower=100%;89;99;0;100 pre_eol"), "{past}");
        assert!(!past.contains("life_a_used_upper") && !past.contains("life_b"), "{past}");
    }

    #[test]
    fn the_output_is_one_line_and_counters_have_the_counter_unit() {
        let mut card = emmc(&[(268, 1), (269, 1), (267, 1)]);
        card.host.err_stats.insert("Data CRC |\n Errors Occurred: data crc".into(), 12);
        let (code, text) = line(&card);
        assert_eq!((code, text.matches('|').count(), text.lines().count()), (1, 1, 1), "{text}");
        assert!(text.ends_with("crc_errors=12c data_timeouts=0c"), "{text}");
    }

    #[test]
    fn several_cards_are_as_bad_as_the_worst() {
        let check = |life, device: &str| {
            check(&emmc(&[(268, life), (269, 1), (267, 1)]), &HealthOptions::default()).named(device)
        };
        let (good, worn, lost) = (check(1, "mmcblk0"), check(11, "mmcblk1"), CheckResult::unknown("no answer"));
        let of = |cards: &[&CheckResult]| {
            let cards: Vec<CheckResult> = cards.iter().map(|card| (*card).clone()).collect();
            CheckResult::worst_of(&cards).map(|all| (all.exit_code, all.text))
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[&good, &lost]), Some((3, "EMMC UNKNOWN - no answer".into())));
        assert_eq!(of(&[&good, &lost, &worn]), Some((2, worn.text.clone())));
        assert!(worn.text.starts_with("EMMC CRITICAL - mmcblk1: past 100 %"), "{}", worn.text);
        let all = CheckResult::worst_of(&[good, worn]).unwrap();
        assert!(all.line.contains(" mmcblk1_life_a_used_lower=100%;89;99;0;100 "), "{}", all.line);
        assert!(all.line.contains(" mmcblk0_life_a_used_lower=0%;89;99;0;100 "), "{}", all.line);
        assert_eq!(all.line.matches('|').count(), 1, "{}", all.line);
    }

    #[test]
    fn an_sd_card_is_reported_as_unknown() {
        let card = CardData { kind: Some(CardKind::Sd), ..CardData::default() };
        let (code, text) = line(&card);
        assert!(code == 3 && text.starts_with("SD UNKNOWN - ") && !text.contains('|'), "{text}");
    }
}
