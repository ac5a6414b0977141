//! A saved result of `trust`, as a reason of a study.
//!
//! Absent on purpose: the result's sentence, which follows from its findings, and commands, which named files of then.

use serde::Deserialize;

use crate::evidence::EvidenceList;
use crate::finding::{self, Finding, Severity};
use crate::study::Answer;

/// The schema of the documents that are read.
pub const SCHEMA: &str = "emmclab.trust/1";

/// Every id that `trust` gives.
const IDS: [&str; 19] = [
    "trust-bad-blocks",
    "trust-bad-region",
    "trust-bus",
    "trust-capacity",
    "trust-discards",
    "trust-drops-writes",
    "trust-io-errors",
    "trust-life",
    "trust-lost-cache",
    "trust-read-only",
    "trust-reads-fail",
    "trust-spare",
    "trust-status",
    "trust-stuck",
    "trust-timeouts",
    "trust-unreadable",
    "trust-wraps",
    "trust-write-protected",
    "trust-writes-fail",
];

/// Why a document is no result of `trust`.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// No JSON, or a key that is missing or of another type; the text has line and column.
    #[error("expected the output of `trust --json`: {0}")]
    Json(#[from] serde_json::Error),
    /// Another document.
    #[error("its schema is {found}; expected {SCHEMA}, the output of `trust --json`")]
    Schema {
        /// The schema that it states.
        found: String,
    },
    /// A finding that `trust` never gives.
    #[error("findings[{index}].id is {found:?}; expected an id that `trust` gives, such as trust-read-only")]
    Id {
        /// Which finding, from 0.
        index: usize,
        /// Its id.
        found: String,
    },
    /// The findings do not have the severity that is stated.
    #[error("severity is {found}; expected {expected}, that of its worst finding")]
    Severity {
        /// The severity that it states.
        found: &'static str,
        /// That of its findings.
        expected: &'static str,
    },
}

#[derive(Deserialize)]
struct Stated {
    schema: String,
}

#[derive(Deserialize)]
struct Saved {
    cid: Option<String>,
    severity: Severity,
    witnesses: Vec<String>,
    findings: Vec<SavedFinding>,
}

#[derive(Deserialize)]
struct SavedFinding {
    severity: Severity,
    id: String,
    what: String,
    #[serde(default)]
    evidence: Vec<String>,
    #[serde(default)]
    advice: Vec<String>,
    source: Option<String>,
    summary: Option<String>,
}

/// What `trust` had found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedTrust {
    /// The card's CID, where the result has it.
    pub cid: Option<String>,
    /// What was looked at.
    pub witnesses: Vec<String>,
    /// What speaks against the card, worst first.
    pub findings: Vec<Finding>,
}

impl SavedTrust {
    /// Reads the output of `trust --json`.
    ///
    /// Errors: no JSON; another schema; an id that `trust` never gives; a severity that is not that of the findings.
    pub fn from_json(bytes: &[u8]) -> Result<Self, SavedError> {
        // The schema first: of another document the first key that is missing says little.
        let value: serde_json::Value = serde_json::from_slice(bytes)?;
        let stated = Stated::deserialize(&value).map(|stated| stated.schema);
        if !matches!(&stated, Ok(schema) if schema == SCHEMA) {
            return Err(SavedError::Schema { found: stated.map_or("none".into(), |schema| format!("{schema:?}")) });
        }
        let saved: Saved = serde_json::from_slice(bytes)?;
        let numbered = saved.findings.into_iter().enumerate();
        let mut findings = numbered.map(|(index, found)| finding(index, found)).collect::<Result<Vec<_>, _>>()?;
        finding::sort(&mut findings);
        let worst = findings.first().map_or(Severity::Good, |finding| finding.severity);
        if worst != saved.severity {
            return Err(SavedError::Severity { found: saved.severity.word(), expected: worst.word() });
        }
        Ok(Self { cid: saved.cid, witnesses: saved.witnesses, findings })
    }

    /// The first line of a study: that the card must go, and why; nothing of a card without a reason.
    pub fn answer(&self) -> Option<Answer> {
        let worst = self.findings.first()?;
        let verdict = match worst.severity {
            Severity::Critical => "this card must go",
            Severity::Warning => "do not rely on this card",
            _ => return None,
        };
        let others = self.findings[1..].iter().filter(|finding| finding.severity <= Severity::Warning).count();
        let others = match others {
            0 => String::new(),
            1 => "; one more reason is below".into(),
            _ => format!("; {others} more reasons are below"),
        };
        let answer = Answer::new(worst.severity, format!("{verdict}: {}{others}", worst.what));
        Some(match worst.evidence.texts().first() {
            Some(evidence) => answer.evidence(evidence.as_str()),
            None => answer,
        })
    }
}

fn finding(index: usize, found: SavedFinding) -> Result<Finding, SavedError> {
    let Some(id) = IDS.into_iter().find(|id| *id == found.id) else {
        return Err(SavedError::Id { index, found: found.id });
    };
    Ok(Finding {
        evidence: EvidenceList::from(found.evidence),
        advice: found.advice,
        source: found.source.map(Into::into),
        summary: found.summary,
        ..Finding::new(found.severity, id, found.what)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::super::tests::CASES;
    use super::*;

    fn document(severity: &str, findings: Value) -> Vec<u8> {
        let all = json!({"schema": SCHEMA, "verdict": "", "severity": severity, "witnesses": [], "findings": findings});
        all.to_string().into_bytes()
    }

    #[test]
    fn every_finding_of_trust_is_read_as_it_was_and_leads() {
        assert_eq!(CASES.iter().map(|(id, _)| *id).collect::<BTreeSet<_>>(), BTreeSet::from(IDS));
        for (id, findings) in CASES {
            let mut given = findings(true);
            finding::sort(&mut given);
            let worst = given[0].severity;
            let saved = SavedTrust::from_json(&document(worst.word(), json!(given))).unwrap();
            for (saved, given) in saved.findings.iter().zip(&given) {
                assert_eq!((saved.id, &saved.what, saved.severity), (given.id, &given.what, given.severity), "{id}");
                assert_eq!((saved.evidence.texts(), &saved.advice), (given.evidence.texts(), &given.advice), "{id}");
            }
            let answer = saved.answer().unwrap();
            let start = if worst == Severity::Critical { "this card must go: " } else { "do not rely on this card: " };
            assert!(answer.text.starts_with(&format!("{start}{}", given[0].what)), "{id}: {}", answer.text);
            assert_eq!(answer.evidence, given[0].evidence.texts().first().cloned(), "{id}");
        }
        assert_eq!(SavedTrust::from_json(&document("good", json!([]))).unwrap().answer(), None);
    }

    #[test]
    fn a_document_that_is_none_of_trust_is_refused() {
        let finding = |id: &str| json!([{"severity": "critical", "id": id, "what": "x"}]);
        for (bytes, says) in [
            (b"no json".to_vec(), "expected the output of `trust --json`: expected ident at line 1"),
            (b"[]".to_vec(), "its schema is none; expected emmclab.trust/1"),
            (
                br#"{"schema":"emmclab.health/1"}"#.to_vec(),
                "its schema is \"emmclab.health/1\"; expected emmclab.trust/1",
            ),
            (br#"{"schema":"emmclab.trust/1"}"#.to_vec(), "missing field `severity` at line 1 column 28"),
            (document("critical", finding("life-used-a")), "findings[0].id is \"life-used-a\"; expected"),
            (document("good", finding("trust-life")), "severity is good; expected critical"),
            (document("warning", json!([])), "severity is warning; expected good"),
        ] {
            let error = SavedTrust::from_json(&bytes).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
