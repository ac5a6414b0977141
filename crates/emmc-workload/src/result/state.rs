//! The state of a card at a measurement, on which most of its speed depends.
//!
//! A virtual card knows its state exactly. A real card does not report it: there it is the state that the suite itself
//! has caused, or unknown, and never guessed. Absent on purpose: conclusions from speeds about the state (`trim`
//! measures the cost of a state).

use emmc_port::TargetFill;
use serde::{Deserialize, Serialize};

/// From this share of mapped units on a card counts as filled.
const FILLED: f64 = 0.5;
/// Share of erased blocks above which an empty card was used before.
const USED: f64 = 0.5;
/// Share of erased blocks above which a filled card was overwritten. Filling alone erases almost none.
const WRITTEN_OVER: f64 = 0.15;
/// A state that the suite caused on a smaller share than this does not count for a target that reports its own.
pub(crate) const MOST: f64 = 0.5;
/// Shares further apart than this differ.
const APART: f64 = 0.1;

/// The kind of state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum StateKind {
    /// It holds little data, and most of its blocks were never erased.
    Fresh,
    /// Most of it holds data that was written once, sequentially.
    Filled,
    /// Most of it holds data, part of which was overwritten: valid and invalid data are mixed.
    Aged,
    /// It was used, and holds little data now: the rest was trimmed.
    Trimmed,
    /// Unknown.
    #[default]
    Unknown,
}

/// The state of a card, or of the known part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CardState {
    /// The kind.
    pub kind: StateKind,
    /// The share of the capacity that holds data, 0 to 1.
    pub holds_share: Option<f64>,
    /// The share that the card knows to be free: trimmed, or never written. 0 to 1.
    pub trimmed_share: Option<f64>,
    /// The share of its blocks that were erased at least once, 0 to 1.
    pub erased_share: Option<f64>,
    /// The share of the disk that this covers, 0 to 1; the rest is unknown.
    pub of_share: Option<f64>,
    /// Its source: `card`, `suite` (the writes of the suite itself), or absent.
    pub source: Option<String>,
}

impl StateKind {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Filled => "filled",
            Self::Aged => "aged",
            Self::Trimmed => "trimmed",
            Self::Unknown => "unknown",
        }
    }

    fn of(fill: &TargetFill) -> Self {
        match fill.holds_share >= FILLED {
            true if fill.erased_share > WRITTEN_OVER => Self::Aged,
            true => Self::Filled,
            false if fill.erased_share > USED => Self::Trimmed,
            false => Self::Fresh,
        }
    }
}

impl CardState {
    /// The state as a target reports it, with the effect of the suite on a share of the target.
    ///
    /// What a suite did to most of it determines the state better than shares do; but trimming a card that was never
    /// used leaves it fresh.
    pub(crate) fn new(fill: Option<TargetFill>, brought: Option<(StateKind, f64)>) -> Self {
        let told = fill.as_ref().map(StateKind::of);
        let brought = brought.filter(|(_, share)| told.is_none() || *share >= MOST);
        let (kind, of_share, source) = match (told, brought) {
            (Some(StateKind::Fresh), Some((StateKind::Trimmed, _))) => (StateKind::Fresh, 1.0, "card"),
            (_, Some((kind, share))) => (kind, share, "suite"),
            (Some(kind), None) => (kind, 1.0, "card"),
            (None, None) => return Self::default(),
        };
        Self {
            kind,
            holds_share: fill.map(|fill| fill.holds_share),
            trimmed_share: fill.map(|fill| 1.0 - fill.holds_share),
            erased_share: fill.map(|fill| fill.erased_share),
            of_share: Some(of_share),
            source: Some(source.into()),
        }
    }

    /// Whether the state is unknown.
    pub fn is_unknown(&self) -> bool {
        self.kind == StateKind::Unknown
    }

    /// Whether both are known and differ enough to affect speeds.
    pub fn differs_from(&self, other: &Self) -> bool {
        let apart = |a: Option<f64>, b: Option<f64>| matches!((a, b), (Some(a), Some(b)) if (a - b).abs() > APART);
        !self.is_unknown()
            && !other.is_unknown()
            && (self.kind != other.kind
                || apart(self.holds_share, other.holds_share)
                || apart(self.of_share, other.of_share))
    }

    /// For people, e.g. `aged, 98 % holds data`.
    pub fn describe(&self) -> String {
        let percent = |share: f64| match share * 100.0 {
            0.0 => "0".to_owned(),
            p if p < 1.0 => format!("{p:.2}"),
            p => format!("{p:.0}"),
        };
        let mut text = self.kind.word().to_owned();
        if let Some(share) = self.holds_share {
            text += &format!(", {} % holds data", percent(share));
        }
        if let Some(share) = self.of_share.filter(|share| *share < 0.995) {
            text += &format!(", known for {} % of the disk", percent(share));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(holds_share: f64, erased_share: f64) -> Option<TargetFill> {
        Some(TargetFill { holds_share, erased_share })
    }

    #[test]
    fn reported_shares_and_the_suite_determine_the_state() {
        use StateKind::*;
        for (fill, brought, expected) in [
            (None, None, Unknown),
            (None, Some((Filled, 0.5)), Filled),
            (fill(0.0, 0.0), None, Fresh),
            (fill(0.01, 0.9), None, Trimmed),
            (fill(1.0, 0.01), None, Filled),
            (fill(1.0, 0.9), None, Aged),
            (fill(0.0, 0.0), Some((Trimmed, 1.0)), Fresh),
            (fill(0.0, 0.9), Some((Trimmed, 1.0)), Trimmed),
            (fill(1.0, 0.9), Some((Filled, 1.0)), Filled),
            (fill(0.01, 0.0), Some((Filled, 0.01)), Fresh),
            (None, Some((Filled, 0.01)), Filled),
        ] {
            assert_eq!(CardState::new(fill, brought).kind, expected, "{fill:?} {brought:?}");
        }
    }

    #[test]
    fn unknown_states_are_not_different() {
        let [unknown, fresh, aged] = [None, fill(0.0, 0.0), fill(0.99, 0.4)].map(|fill| CardState::new(fill, None));
        assert!(fresh.differs_from(&aged) && !fresh.differs_from(&unknown) && !fresh.differs_from(&fresh));
        let half = CardState { holds_share: Some(0.4), ..fresh.clone() };
        assert!(fresh.differs_from(&half));
        assert_eq!(aged.describe(), "aged, 99 % holds data");
        let part = CardState::new(None, Some((StateKind::Trimmed, 0.25)));
        assert_eq!(part.describe(), "trimmed, known for 25 % of the disk");
    }
}
