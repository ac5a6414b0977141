use serde::Serialize;

/// How much a finding matters; sorts with the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Data or the device is at risk now.
    Critical,
    /// Will become a problem, or already costs life or speed.
    Warning,
    /// Worth knowing; nothing has to be done.
    Notice,
    /// Checked, and as it should be.
    Good,
    /// Could not be found out: neither good nor bad.
    Unknown,
}

impl Severity {
    /// Every severity, the most urgent first.
    pub const ALL: [Self; 5] = [Self::Critical, Self::Warning, Self::Notice, Self::Good, Self::Unknown];

    /// The lower-case word that stands for it in text, HTML and JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Good => "good",
            Self::Unknown => "unknown",
        }
    }
}

/// One conclusion about the part, with what it rests on and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// The conclusion, as one sentence.
    pub what: String,
    /// The values it was concluded from, one a line.
    pub evidence: Vec<String>,
    /// What to do, one step a line; may hold a command.
    pub advice: Vec<String>,
    /// Where the rule comes from: a clause of the standard, a kernel file, a measurement.
    pub source: Option<String>,
}

impl Finding {
    /// A finding that has neither evidence, advice nor source yet.
    pub fn new(severity: Severity, what: impl Into<String>) -> Self {
        Self { severity, what: what.into(), evidence: Vec::new(), advice: Vec::new(), source: None }
    }

    /// Adds a value it rests on.
    pub fn evidence(mut self, line: impl Into<String>) -> Self {
        self.evidence.push(line.into());
        self
    }

    /// Adds a step to take.
    pub fn advice(mut self, line: impl Into<String>) -> Self {
        self.advice.push(line.into());
        self
    }

    /// Says where the rule comes from.
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = Some(source.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severities_sort_most_urgent_first_and_serialise_as_their_word() {
        let mut shuffled = [Severity::Good, Severity::Unknown, Severity::Critical, Severity::Notice, Severity::Warning];
        shuffled.sort();
        assert_eq!(shuffled, Severity::ALL);
        for severity in Severity::ALL {
            assert_eq!(serde_json::to_value(severity).unwrap(), severity.word());
        }
    }

    #[test]
    fn a_finding_serialises_with_all_its_keys() {
        let finding = Finding::new(Severity::Notice, "w").evidence("e").advice("a");
        assert_eq!(
            serde_json::to_string(&finding).unwrap(),
            r#"{"severity":"notice","what":"w","evidence":["e"],"advice":["a"],"source":null}"#
        );
    }
}
