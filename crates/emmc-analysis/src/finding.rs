//! Findings: one statement each, with its evidence and advice.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::evidence::{Evidence, EvidenceList};

/// How much a finding matters, worst first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Data is, or soon will be, at risk.
    Critical,
    /// Needs a decision.
    Warning,
    /// Worth knowing.
    Notice,
    /// Unknown: neither good nor bad.
    #[default]
    Unknown,
    /// As it should be.
    Good,
}

impl Severity {
    /// Every severity, worst first.
    pub const ALL: [Self; 5] = [Self::Critical, Self::Warning, Self::Notice, Self::Unknown, Self::Good];

    /// Its lower-case word in text, HTML and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Unknown => "unknown",
            Self::Good => "good",
        }
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// Stable name for scripts: `life-used-a`.
    pub id: &'static str,
    /// The statement, in one sentence.
    pub what: String,
    /// Register values and figures as evidence.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(with = "crate::evidence::PrintedList"))]
    pub evidence: EvidenceList,
    /// What to do about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
    /// Where the rule comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Cow<'static, str>>,
    /// The same in one plain sentence, for a reader who does not know the registers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Commands that fix it or investigate it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<Command>,
}

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Command {
    /// The shell command.
    pub command: String,
    /// Its purpose, in a few words.
    pub why: String,
}

impl Finding {
    /// A finding without evidence, advice or source yet.
    pub fn new(severity: Severity, id: &'static str, what: impl Into<String>) -> Self {
        Self {
            severity,
            id,
            what: what.into(),
            evidence: EvidenceList::default(),
            advice: Vec::new(),
            source: None,
            summary: None,
            commands: Vec::new(),
        }
    }

    /// Adds evidence.
    #[must_use]
    pub fn evidence(mut self, evidence: impl Into<Evidence>) -> Self {
        self.evidence.0.push(evidence.into());
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }

    /// Sets the plain sentence.
    #[must_use]
    pub fn summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = Some(summary.into());
        self
    }

    /// Adds a command.
    #[must_use]
    pub fn command(mut self, command: impl Into<String>, why: impl Into<String>) -> Self {
        self.commands.push(Command { command: command.into(), why: why.into() });
        self
    }

    /// Sets where the rule comes from.
    #[must_use]
    pub fn source(mut self, source: impl Into<Cow<'static, str>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

/// Sorts findings by severity, worst first; the sort is stable.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| finding.severity);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severities_sort_worst_first_and_serialise_as_words() {
        let mut shuffled = [Severity::Good, Severity::Unknown, Severity::Critical, Severity::Notice, Severity::Warning];
        shuffled.sort();
        assert_eq!(shuffled, Severity::ALL);
        for severity in Severity::ALL {
            assert_eq!(serde_json::to_value(severity).unwrap(), severity.word());
        }
    }
}
