//! Advice for a system above a card: what writes to it without need, what makes it slow, and what that costs in years.
//!
//! A function of the stack above the disk, the system's settings, registers, and what was watched. Absent on purpose:
//! reading anything, changing anything, and gains that nobody has measured.

mod findings;
#[cfg(test)]
pub(crate) mod tests;
mod worth;

use emmc_port::{Activity, CardData, Stack, SystemUse};
use serde::Serialize;

use crate::finding::{Finding, Severity};
use crate::health::WrittenForecast;
pub use worth::{Period, Worth, WorthError, worth};

/// Below this uptime the totals since the boot are of the boot itself. Unit: seconds.
const UPTIME_MIN_S: u64 = 3600;
/// What systemd's journal is called as a process: 15 characters.
const JOURNALD: &str = "systemd-journal";
/// What writes the output of containers.
const ENGINES: [&str; 3] = ["dockerd", "containerd", "conmon"];
const LOGGERS: [&str; 4] = ["rsyslogd", "syslogd", "syslog-ng", "rs:main Q:Reg"];

pub(crate) const DAY_S: f64 = 86_400.0;
pub(crate) const YEAR_DAYS: f64 = 365.25;

/// Everything that is known.
#[derive(Clone, Copy, Debug)]
pub struct AdviseFacts<'a> {
    /// The disk.
    pub disk: &'a str,
    /// The layers above it.
    pub stack: &'a Stack,
    /// The system's settings, and who wrote.
    pub system: &'a SystemUse,
    /// Totals since the boot.
    pub activity: &'a Activity,
    /// Registers.
    pub card: Option<&'a CardData>,
    /// What the host may still write.
    pub left: Option<&'a WrittenForecast>,
    /// The time at which the stack was read, to judge how old the last trim is.
    pub now: Option<jiff::Timestamp>,
}

/// A finding, and what it would bring.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advised {
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
    /// What would not be written any more, as far as it was measured. Unit: bytes a day.
    pub saves_bytes_per_day: Option<f64>,
    /// The years that are left then, at least and at most.
    pub years_then: Option<YearsLeft>,
}

/// How long what may still be written lasts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct YearsLeft {
    /// Unit: years.
    pub at_least: f64,
    /// Absent while there is no upper limit. Unit: years.
    pub at_most: Option<f64>,
}

impl YearsLeft {
    /// At a rate in bytes a day; nothing if nothing is written.
    pub fn at(left: &WrittenForecast, bytes_per_day: f64) -> Option<Self> {
        let years = |bytes: u64| bytes as f64 / bytes_per_day / YEAR_DAYS;
        (bytes_per_day > 0.0).then(|| Self {
            at_least: years(left.remaining_lower_bytes),
            at_most: left.remaining_upper_bytes.map(years),
        })
    }
}

/// How much is written to the disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rate {
    /// Unit: bytes a day.
    pub bytes_per_day: f64,
    /// Over which time. Unit: seconds.
    pub seconds: f64,
    /// `since the boot`, or `while it was watched`.
    pub from: &'static str,
}

/// Advice for a system.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SystemAdvice {
    /// The disk.
    pub disk: String,
    /// The answer in a sentence.
    pub verdict: String,
    /// The worst severity among the findings.
    pub severity: Severity,
    /// How much is written to it.
    pub rate: Option<Rate>,
    /// The years that are left at that rate.
    pub years_left: Option<YearsLeft>,
    /// What to decide, worst first.
    pub findings: Vec<Advised>,
    /// What could not be judged, and what it needs.
    pub unknown: Vec<String>,
    /// The system's settings, and who wrote.
    pub system: SystemUse,
}

/// Judges a system.
pub fn system_advice(facts: &AdviseFacts) -> SystemAdvice {
    let rate = rate(facts);
    let per_day = rate.as_ref().map(|rate| rate.bytes_per_day);
    let years = |per_day: f64| facts.left.and_then(|left| YearsLeft::at(left, per_day));
    let mut findings: Vec<Advised> = findings::findings(facts, per_day)
        .into_iter()
        .map(|(finding, saves_bytes_per_day)| Advised {
            years_then: saves_bytes_per_day.zip(per_day).and_then(|(saves, per_day)| years((per_day - saves).max(0.0))),
            saves_bytes_per_day,
            finding,
        })
        .collect();
    findings.sort_by_key(|advised| advised.finding.severity);
    let severity = findings.first().map_or(Severity::Good, |advised| advised.finding.severity);
    let years_left = per_day.and_then(years);
    SystemAdvice {
        disk: facts.disk.into(),
        verdict: verdict(&findings, rate.as_ref(), years_left),
        severity,
        rate,
        years_left,
        findings,
        unknown: unknown(facts),
        system: facts.system.clone(),
    }
}

fn rate(facts: &AdviseFacts) -> Option<Rate> {
    let uptime = facts.activity.machine.uptime_s.filter(|seconds| *seconds >= UPTIME_MIN_S);
    let since_boot = uptime.zip(facts.activity.totals).map(|(seconds, totals)| {
        let seconds = seconds as f64;
        let bytes_per_day = totals.written_bytes as f64 * DAY_S / seconds;
        Rate { bytes_per_day, seconds, from: "since the boot" }
    });
    let watched = || {
        let watched = facts.system.watched.as_ref()?;
        let bytes_per_day = watched.disk_bytes? as f64 * DAY_S / watched.seconds;
        Some(Rate { bytes_per_day, seconds: watched.seconds, from: "while it was watched" })
    };
    since_boot.or_else(watched)
}

fn verdict(findings: &[Advised], rate: Option<&Rate>, years: Option<YearsLeft>) -> String {
    let decide = findings.iter().filter(|advised| advised.finding.severity <= Severity::Warning).count();
    let lead = match (decide, findings.len()) {
        (0, 0) => "Nothing to change".to_string(),
        (0, 1) => "Nothing needs a decision; 1 thing is worth knowing".into(),
        (0, count) => format!("Nothing needs a decision; {count} things are worth knowing"),
        (1, _) => format!("1 thing to decide: {}", findings[0].finding.what),
        (count, _) => format!("{count} things to decide, the first: {}", findings[0].finding.what),
    };
    let rate = rate.map(|rate| format!("; {} a day are written", bytes(rate.bytes_per_day))).unwrap_or_default();
    let years = years.map(|years| format!(", at which the card has {} left", years_text(years))).unwrap_or_default();
    format!("{lead}{rate}{years}")
}

fn unknown(facts: &AdviseFacts) -> Vec<String> {
    let mut unknown = Vec::new();
    if facts.system.watched.is_none() {
        unknown.push("who writes: `--for 1min` watches processes, `emmclab trace who` also their files".into());
    }
    if facts.left.is_none() {
        unknown
            .push("years: `--history FILE` with samples of `emmclab monitor --append` over a part of the life".into());
    }
    if facts.card.is_none() {
        unknown.push("the card's registers: queue, cache, units for alignment".into());
    }
    unknown
}

/// `3.2 GB`.
pub fn bytes(bytes: f64) -> String {
    let (value, unit) = match bytes {
        bytes if bytes >= 1e12 => (bytes / 1e12, "TB"),
        bytes if bytes >= 1e9 => (bytes / 1e9, "GB"),
        bytes if bytes >= 1e6 => (bytes / 1e6, "MB"),
        bytes => (bytes / 1e3, "kB"),
    };
    if value < 10.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

/// `3.1 to 4.2 years`.
pub fn years_text(years: YearsLeft) -> String {
    let text = |years: f64| if years < 100.0 { format!("{years:.1}") } else { format!("{years:.0}") };
    match years.at_most {
        Some(most) => format!("{} to {} years", text(years.at_least), text(most)),
        None => format!("at least {} years", text(years.at_least)),
    }
}
